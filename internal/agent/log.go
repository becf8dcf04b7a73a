package agent

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/route"
)

// named bounds how many endpoints a line of the log names: a zone of hundreds that fails at once fills no screen, and
// the page /pools has all of them.
const named = 8

// told is what the log was told about a pool.
type told struct {
	brief  pick.Brief
	pauses map[netip.AddrPort]int64 // of each endpoint
}

// briefed is what tells how a pool stands.
type briefed interface {
	Brief() balance.Brief
	Status() balance.Status
}

// tell writes to the log what the last tick of a pool changed: its state, and ejected endpoints. Both are
// rare, however many requests there are: a state lasts, and the ejections of an endpoint grow longer.
func (l *told) tell(logger *slog.Logger, key route.Key, pool briefed) {
	brief, before := pool.Brief(), l.brief
	if brief == before {
		return
	}
	l.brief = brief
	status := pool.Status()
	logger = logger.With("service", key.Service.String(), "port", key.Port, "family", key.Family.String())
	if key.Class != "" {
		logger = logger.With("class", key.Class)
	}
	if brief.State != before.State {
		logger.Log(context.Background(), levelOf(brief.State), "pool changed its state", "state", brief.State.String(),
			"before", before.State.String(), "code", status.Reason.Code, "reason", status.Reason.String())
	}
	if brief.Ejections == before.Ejections {
		return
	}
	if out := l.paused(&status); len(out) > 0 {
		logger.Warn("endpoints ejected", "endpoints", out[:min(len(out), named)],
			"count", len(out), "of", len(status.Endpoints))
	}
}

// paused lists the endpoints that were ejected since the last call.
func (l *told) paused(s *pick.Status) []netip.AddrPort {
	var more []netip.AddrPort
	now := make(map[netip.AddrPort]int64, len(s.Endpoints))
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		now[e.Addr] = e.Ejections
		if e.Ejections > l.pauses[e.Addr] {
			more = append(more, e.Addr)
		}
	}
	l.pauses = now
	return more
}

// levelOf is Warn for what an operator should look at: a zone that is lost, or that no other zone can help.
func levelOf(s overflow.State) slog.Level {
	switch s {
	case overflow.Crisis, overflow.Evacuated, overflow.NoHelp:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

// problemLog remembers which problems the log was told of. One goroutine at a time.
type problemLog struct {
	logger   *slog.Logger
	reported map[string]bool
}

// report logs each problem once when it appears and once when it is over.
func (p *problemLog) report(ctx context.Context, problems []route.Problem) {
	now := make(map[string]bool, len(problems))
	for i := range problems {
		problem, id := &problems[i], problems[i].Identity()
		now[id] = true
		if !p.reported[id] {
			p.logger.Log(ctx, levelOfProblem(problem.Reason.Code), "problem", "service", problem.Service,
				"code", problem.Reason.Code, "reason", problem.Reason.String())
		}
	}
	for id := range p.reported {
		if !now[id] {
			p.logger.Info("problem is over", "problem", id)
		}
	}
	p.reported = now
}

// levelOfProblem is Info for what every cluster has and no proxy for TCP on cluster IPs serves, Warn for what an operator
// should mend.
func levelOfProblem(c reason.Code) slog.Level {
	switch c {
	case reason.NoClusterIP, reason.OtherProxy, reason.ProtocolNotServed, reason.KernelNoAffinity:
		return slog.LevelInfo
	default:
		return slog.LevelWarn
	}
}
