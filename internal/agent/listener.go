package agent

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/l7"
)

// listener is an open address.
type listener struct {
	address   netip.AddrPort
	protocol  l7.Protocol
	key       route.Key // of the base
	upstreams *l7.Upstreams
	server    *l7.Server
}

func protocolOf(e *route.Entry) l7.Protocol { return l7.ProtocolOf(e.Port.AppProtocol) }

// checkEntry tells which settings have no effect on an entry: hash policies that need requests where the port carries bytes, and
// those by filter state that no filter may give.
func (c *Config) checkEntry(e *route.Entry) []reason.Reason {
	if e.DataPlane == topology.DataPlaneKernel {
		return checkKernel(e)
	}
	s := e.Settings.Policy
	if !s.LoadBalancer.Type.IsHashing() {
		return nil
	}
	var all []reason.Reason
	if protocolOf(e) == l7.TCP {
		for _, h := range s.HashPolicies {
			if !l7.HashesConnections(h) {
				all = append(all, reason.New(reason.HashNeedsHTTP, string(h.Type)+" "+h.Name(), e.PortName()))
			}
		}
		if len(s.Routes) > 0 {
			all = append(all, reason.New(reason.HashNeedsHTTP, "the routes' policies", e.PortName()))
		}
		return all
	}
	hashes := slices.Clone(s.HashPolicies)
	for i := range s.Routes {
		hashes = append(hashes, s.Routes[i].HashPolicies...)
	}
	for _, h := range hashes {
		if len(c.TrustedFilters) == 0 && l7.NeedsFilter(h) {
			all = append(all, reason.New(reason.FilterNotTrusted, h.Name(), e.PortName()))
		}
	}
	return all
}

// open listens on a wanted address; a failure is kept, to be tried again.
func (p *l7Plane) open(a netip.AddrPort) {
	e := p.wanted[a]
	l, err := p.listen(a, e)
	if err != nil {
		f := p.failing[a]
		if f == nil {
			f = &failing{}
			p.failing[a] = f
		}
		f.service = e.Key.Service.String()
		f.again(p.clock(), err)
		return
	}
	delete(p.failing, a)
	p.listeners[a] = l
	p.logger.Debug("listening", "service", e.Key.Service.String(), "address", a, "protocol", l.protocol.String())
}

// listen opens an address for an entry, and for those of its classes, and serves on it.
func (p *l7Plane) listen(a netip.AddrPort, e *route.Entry) (*listener, error) {
	l := &listener{address: a, protocol: protocolOf(e), key: e.Key, upstreams: &p.ports[e.Key].upstreams}
	var err error
	l.server, err = l7.Listen(a, l7.Options{
		Protocol:       l.protocol,
		Upstreams:      l.upstreams,
		Clock:          p.clock,
		Limits:         p.config.Limits,
		Timeouts:       p.config.Timeouts,
		Retry:          p.config.Retry,
		TrustedFilters: p.config.TrustedFilters,
		Logger:         p.logger.With("service", e.Key.Service.String(), "address", a),
	})
	if err != nil {
		return nil, err
	}
	p.draining.Go(func() {
		if err := l.server.Serve(); err != nil {
			p.logger.Error("listener ended", "address", a, "error", err)
		}
	})
	return l, nil
}

// drain closes a listener, so that its address is free for the next one, and lets its requests in flight finish, in a
// goroutine that Stop waits for.
func (p *l7Plane) drain(l *listener) {
	l.server.StopAccepting()
	limit, cancel := context.WithTimeout(context.Background(), p.config.Drain)
	p.draining.Go(func() {
		defer cancel()
		started := time.Now()
		if err := l.server.Shutdown(limit); err != nil {
			p.logger.Warn("requests were cut off at the drain limit",
				"service", l.key.Service.String(), "address", l.address, "after", time.Since(started), "error", err)
			return
		}
		p.logger.Debug("listener closed", "address", l.address, "after", time.Since(started))
	})
}

// failing is an address that cannot be opened now.
type failing struct {
	service string
	err     error
	pause   time.Duration
	next    time.Duration // when to try again, on the agent's clock
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

func (f *failing) problem() route.Problem {
	return route.Problem{
		Service: f.service,
		Reason:  reason.New(reason.AddressNotBound, f.err.Error()).With("retry", f.pause.Seconds(), reason.Seconds),
	}
}
