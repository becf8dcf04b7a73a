package agent

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
)

// named bounds how many endpoints a line of the log names: a zone of hundreds that fails at once fills no screen, and
// the page /pools has all of them.
const named = 8

// logged is what the log was told about a pool.
type logged struct {
	brief  pick.Brief
	pauses map[netip.AddrPort]int64 // of each endpoint
}

// tell writes to the log what the last tick of a pool changed: its state, and ejected endpoints. Both are
// rare, however many requests there are: a state lasts, and the ejections of an endpoint grow longer.
func (p *l7Plane) tell(pool *pool) {
	brief, before := pool.Brief(), pool.logged.brief
	if brief == before {
		return
	}
	pool.logged.brief = brief
	status, key := pool.Status(), pool.entry.Key
	logger := p.logger.With("service", key.Service.String(), "port", key.Port, "family", key.Family.String())
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
	if out := pool.logged.paused(&status); len(out) > 0 {
		logger.Warn("endpoints ejected", "endpoints", out[:min(len(out), named)],
			"count", len(out), "of", len(status.Endpoints))
	}
}

// paused lists the endpoints that were ejected since the last call.
func (l *logged) paused(s *pick.Status) []netip.AddrPort {
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
