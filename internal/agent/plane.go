package agent

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/l7"
)

// dataPlane carries requests as tables say.
type dataPlane interface {
	// Apply makes what runs equal to a table. It is idempotent, and each entry is applied whole or not at all: what cannot
	// be had, as an address that another process holds, keeps its last state, is tried again, and is among
	// reading.problems meanwhile. One goroutine at a time; all other methods are safe for concurrent use.
	Apply(t *route.Table)
	// Tick takes counters in and decides anew; see tickInterval.
	Tick()
	// Read gives what runs and its counters; nil before the first table.
	Read() *reading
	// Stop ends all, lets requests in flight finish within their limit, and returns when they have. Apply does nothing then.
	Stop()
}

// reading is what a data plane runs at one moment. It is immutable; only the pools in it live on.
type reading struct {
	table    *route.Table
	pools    []livePool              // one for each of table.Entries, with its counters; none in a preview
	open     map[netip.AddrPort]bool // the addresses that are listened on
	problems []route.Problem         // of the table and of what cannot be applied
}

// l7Plane serves the entries of a table with pools and listeners. Apply writes what is below; Tick and Stop share it under
// the lock.
type l7Plane struct {
	config  *Config
	logger  *slog.Logger
	metrics *metrics
	clock   func() time.Duration
	last    atomic.Pointer[reading]

	mu        sync.Mutex
	isStopped bool
	table     *route.Table
	pools     map[route.Key]*pool
	order     []*pool                         // of pools, as in the table
	wanted    map[netip.AddrPort]*route.Entry // of the table: what should answer where
	ports     map[route.Key]*port             // by base
	listeners map[netip.AddrPort]*listener
	failing   map[netip.AddrPort]*failing
	log       problemLog

	draining sync.WaitGroup // listeners, until their last request is over
}

// port is what the listeners of a service port lead to: the pools of all classes of clients.
type port struct {
	upstreams l7.Upstreams
	pools     []*pool // first that of the base
	changed   bool    // in the last Apply
}

// endpoints lists what some client of the port may use.
func (p *port) endpoints() []netip.AddrPort {
	var all []netip.AddrPort
	for _, pool := range p.pools {
		for i := range pool.entry.Endpoints {
			all = append(all, pool.entry.Endpoints[i].Addr)
		}
	}
	return all
}

func newL7Plane(c *Config, logger *slog.Logger, m *metrics, clock func() time.Duration) *l7Plane {
	return &l7Plane{
		config: c, logger: logger, metrics: m, clock: clock,
		pools:     make(map[route.Key]*pool),
		listeners: make(map[netip.AddrPort]*listener),
		failing:   make(map[netip.AddrPort]*failing),
		log:       problemLog{logger: logger},
	}
}

// Read implements dataPlane.
func (p *l7Plane) Read() *reading { return p.last.Load() }

// Apply implements dataPlane. Large tables of hashing algorithms are built before ticks have to wait.
func (p *l7Plane) Apply(t *route.Table) {
	if t == p.table {
		return
	}
	specs := p.prepare(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isStopped {
		return
	}
	p.table = t
	p.wanted = make(map[netip.AddrPort]*route.Entry)
	for _, e := range t.Entries {
		for _, a := range e.Addresses {
			p.wanted[a] = e
		}
	}
	p.closeUnwanted()
	p.follow(t, specs)
	p.redirect()
	for _, a := range slices.SortedFunc(maps.Keys(p.wanted), netip.AddrPort.Compare) {
		if p.listeners[a] == nil {
			p.open(a)
		}
	}
	p.publish()
	p.logger.Info("serving", "zone", t.Client.Zone, "pools", len(p.pools), "listeners", len(p.listeners),
		"failing", len(p.failing), "problems", len(t.Problems))
}

// prepare makes what takes long of the entries that changed.
func (p *l7Plane) prepare(t *route.Table) map[route.Key]*spec {
	specs := make(map[route.Key]*spec)
	for _, e := range t.Entries {
		before := p.pools[e.Key]
		switch {
		case before == nil:
			specs[e.Key] = newSpec(e, &spec{})
		case before.entry != e:
			specs[e.Key] = newSpec(e, before.spec)
		}
	}
	return specs
}

// follow makes the pools those of a table. Requests in flight still hold pools that are gone.
func (p *l7Plane) follow(t *route.Table, specs map[route.Key]*spec) {
	before := p.pools
	p.pools, p.order = make(map[route.Key]*pool, len(t.Entries)), make([]*pool, 0, len(t.Entries))
	p.ports = make(map[route.Key]*port, len(t.Entries))
	for _, e := range t.Entries { // a base comes before its classes
		pool := before[e.Key]
		if pool == nil {
			pool = p.newPool(e, specs[e.Key])
		}
		p.pools[e.Key], p.order = pool, append(p.order, pool)
		changed := pool.entry != e && p.update(pool, e, specs[e.Key])
		p.join(pool, changed)
	}
	gone := make(map[topology.ServiceName]bool)
	for key := range before {
		gone[key.Service] = gone[key.Service] || p.pools[key] == nil
	}
	for _, pool := range p.order {
		delete(gone, pool.entry.Key.Service)
	}
	for service, isGone := range gone {
		if isGone {
			p.metrics.forget(service)
		}
	}
}

// join makes a pool part of its port; that of the base comes first.
func (p *l7Plane) join(pool *pool, changed bool) {
	base := pool.entry.Key.Base()
	if p.ports[base] == nil {
		p.ports[base] = &port{upstreams: l7.Upstreams{Default: pool.upstream}}
	}
	port := p.ports[base]
	for _, addr := range pool.entry.Clients {
		if port.upstreams.ByClient == nil {
			port.upstreams.ByClient = make(map[netip.Addr]*l7.Upstream)
		}
		port.upstreams.ByClient[addr] = pool.upstream
	}
	port.pools, port.changed = append(port.pools, pool), port.changed || changed
}

// redirect sends the next requests of each listener to the pools that there are now, and closes kept connections to
// endpoints that no client of a port may use any more. Requests under way stay where they are.
func (p *l7Plane) redirect() {
	for _, l := range p.listeners {
		port := p.ports[l.key]
		if now := &port.upstreams; l.upstreams.Default != now.Default || !maps.Equal(l.upstreams.ByClient, now.ByClient) {
			l.upstreams = now
			l.server.Follow(now)
		}
		if port.changed {
			l.server.Keep(port.endpoints())
		}
	}
}

// closeUnwanted closes the listeners that are not wanted any more, or for another service port or protocol.
func (p *l7Plane) closeUnwanted() {
	for a, l := range p.listeners {
		if e := p.wanted[a]; e == nil || e.Key != l.key || protocolOf(e) != l.protocol {
			delete(p.listeners, a)
			p.drain(l)
		}
	}
	for a := range p.failing {
		if p.wanted[a] == nil {
			delete(p.failing, a)
		}
	}
}

// Tick steps every pool that saw a request lately, and opens the failing addresses whose pause is over.
func (p *l7Plane) Tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	for _, pool := range p.order {
		if pool.Active(now) {
			pool.Tick(now)
			pool.told.tell(p.logger, pool.entry.Key, pool)
		}
	}
	tried := false
	for a, f := range p.failing {
		if now >= f.next {
			p.open(a)
			tried = true
		}
	}
	if tried {
		p.publish()
	}
}

// publish makes what runs visible.
func (p *l7Plane) publish() {
	r := &reading{table: p.table, open: make(map[netip.AddrPort]bool, len(p.listeners)), problems: slices.Clone(p.table.Problems)}
	r.pools = make([]livePool, 0, len(p.order))
	for _, pool := range p.order {
		r.pools = append(r.pools, pool.Pool)
		if err := pool.spec.hashing.err; err != nil {
			why := reason.New(reason.HashRefused, err.Error())
			r.problems = append(r.problems, route.Problem{Service: pool.entry.Key.Service.String(), Reason: why})
		}
	}
	for a := range p.listeners {
		r.open[a] = true
	}
	for _, a := range slices.SortedFunc(maps.Keys(p.failing), netip.AddrPort.Compare) {
		r.problems = append(r.problems, p.failing[a].problem())
	}
	p.log.report(context.Background(), r.problems)
	p.last.Store(r)
}

// Stop closes every listener and waits until all requests in flight are over or have had their time.
func (p *l7Plane) Stop() {
	p.mu.Lock()
	p.isStopped = true
	started := p.clock()
	p.logger.Info("draining", "listeners", len(p.listeners), "limit", p.config.Drain)
	for _, l := range p.listeners {
		p.drain(l)
	}
	p.mu.Unlock()
	p.draining.Wait()
	p.logger.Info("drained", "after", p.clock()-started)
}
