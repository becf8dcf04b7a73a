package agent

import (
	"context"
	"net/netip"
	"time"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/l7"
)

// listener is an open address.
type listener struct {
	address  netip.AddrPort
	protocol l7.Protocol
	pool     *pool // of everybody that has no class
	lanes    *l7.Upstreams
	server   *l7.Server
}

func protocolOf(w *wantedPool) l7.Protocol { return l7.ProtocolOf(w.port.AppProtocol) }

// listen opens an address for a pool, and for those of its classes, and serves on it.
func (r *running) listen(a netip.AddrPort, p *pool) (*listener, error) {
	protocol, lanes := protocolOf(&p.wanted), r.lanes[p.wanted.key]
	server, err := l7.Listen(a, l7.Options{
		Protocol: protocol,
		Upstreams:    lanes,
		Clock:    r.agent.clock,
		Limits:   r.agent.config.Limits,
		Timeouts: r.agent.config.Timeouts,
		Retry:    r.agent.config.Retry,

		TrustedFilters: r.agent.config.TrustedFilters,

		Logger: r.agent.logger.With("service", p.wanted.key.service, "address", a),
	})
	if err != nil {
		return nil, err
	}
	r.draining.Go(func() {
		if err := server.Serve(); err != nil {
			r.agent.logger.Error("listener ended", "address", a, "error", err)
		}
	})
	return &listener{address: a, protocol: protocol, pool: p, lanes: lanes, server: server}, nil
}

// drain closes a listener, so that its address is free for the next one, and lets its requests in flight finish, in a
// goroutine that stop waits for.
func (r *running) drain(ctx context.Context, l *listener) {
	l.server.StopAccepting()
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.agent.config.Drain)
	r.draining.Go(func() {
		defer cancel()
		started := time.Now()
		if err := l.server.Shutdown(limit); err != nil {
			r.agent.logger.Warn("requests were cut off at the drain limit",
				"service", l.pool.wanted.key.service, "address", l.address, "after", time.Since(started), "error", err)
			return
		}
		r.agent.logger.Debug("listener closed", "address", l.address, "after", time.Since(started))
	})
}

// failing is an address that cannot be opened now.
type failing struct {
	key   poolKey
	err   error
	pause time.Duration
	next  time.Duration // when to try again, on the agent's clock
}

// The pauses between two tries to open an address: short at first, because the holder may be an agent that is just
// being replaced, and never so long that a person who frees the port waits.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 10 * time.Second
)

// again notes a failure and when to try next.
func (f *failing) again(now time.Duration, err error) {
	f.pause = min(max(2*f.pause, firstPause), maxPause)
	f.next = now + f.pause
	f.err = err
}

func (f *failing) problem() Problem {
	return Problem{
		Service: f.key.service.String(),
		Reason:  reason.New(reason.AddressNotBound, f.err.Error()).With("retry", f.pause.Seconds(), reason.Seconds),
	}
}
