package agent

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/l7"
	"github.com/weir-lb/weir/internal/latest"
)

// tickInterval is how often an active pool takes its counters in and decides anew: the step that the overflow law's own
// tests run with, and a tenth of the second within which a spill has to show.
const tickInterval = 100 * time.Millisecond

// running is what runs now: pools and listeners. One goroutine, that of serve, reads and writes it; what others may see
// is published as a state.
type running struct {
	agent     *Agent
	world     *world
	wanted    map[netip.AddrPort]*wantedPool // of world: who should answer where
	pools     map[poolKey]*pool
	listeners map[netip.AddrPort]*listener
	lanes     map[poolKey]*l7.Upstreams // for the listeners of each pool without a class
	failing   map[netip.AddrPort]*failing

	order    []*pool        // of pools, by key, for ticking and publishing
	draining sync.WaitGroup // listeners, until their last request is over
	reported map[string]bool
}

func newRunning(a *Agent) *running {
	return &running{
		agent:     a,
		pools:     make(map[poolKey]*pool),
		listeners: make(map[netip.AddrPort]*listener),
		failing:   make(map[netip.AddrPort]*failing),
		reported:  make(map[string]bool),
	}
}

// serve makes what runs equal to the newest world, ticks the pools and tries failing addresses again, until ctx is done.
func (r *running) serve(ctx context.Context, worlds *latest.Value[*world]) {
	tick := time.NewTicker(tickInterval)
	defer tick.Stop()
	defer r.stop(ctx)
	for {
		w, changed := worlds.Load()
		if w != nil && w != r.world {
			r.apply(ctx, w)
		}
		select {
		case <-changed:
		case <-tick.C:
			r.tick()
			r.retry()
		case <-ctx.Done():
			return
		}
	}
}

// tick steps every pool that saw a request lately.
func (r *running) tick() {
	now := r.agent.clock()
	r.agent.ticked.Store(int64(now))
	for _, p := range r.order {
		if p.pool.Active(now) {
			p.pool.Tick(now)
			r.tell(p)
		}
	}
}

// apply makes what runs equal to w.
func (r *running) apply(ctx context.Context, w *world) {
	isFirst := r.world == nil
	r.world = w
	r.wanted = make(map[netip.AddrPort]*wantedPool)
	keep := make(map[poolKey]bool, len(w.pools))
	for i := range w.pools {
		keep[w.pools[i].key] = true
		for _, a := range w.pools[i].addresses {
			r.wanted[a] = &w.pools[i]
		}
	}
	r.close(ctx)
	r.drop(keep)
	changed := make(map[poolKey]bool)
	for i := range w.pools {
		if r.update(&w.pools[i]) {
			changed[w.pools[i].key.base()] = true
		}
	}
	slices.SortFunc(r.order, func(a, b *pool) int { return a.wanted.key.compare(b.wanted.key) })
	r.redirect()
	r.keep(changed)
	for _, a := range slices.SortedFunc(maps.Keys(r.wanted), netip.AddrPort.Compare) {
		if r.listeners[a] == nil {
			r.open(a)
		}
	}
	r.publish()
	if isFirst {
		close(r.agent.ready)
	}
	r.agent.logger.Info("serving", "zone", w.client.Zone, "pools", len(r.pools), "listeners", len(r.listeners),
		"failing", len(r.failing), "problems", len(w.problems))
}

// close closes the listeners that nobody wants any more, or that somebody else wants.
func (r *running) close(ctx context.Context) {
	for a, l := range r.listeners {
		if w := r.wanted[a]; w == nil || w.key != l.pool.wanted.key || protocolOf(w) != l.protocol {
			delete(r.listeners, a)
			r.drain(ctx, l)
		}
	}
	for a := range r.failing {
		if r.wanted[a] == nil {
			delete(r.failing, a)
		}
	}
}

// drop forgets the pools that nobody wants any more. Requests in flight still hold theirs.
func (r *running) drop(keep map[poolKey]bool) {
	gone, served := make(map[topology.ServiceName]bool), make(map[topology.ServiceName]bool)
	for key := range r.pools {
		if keep[key] {
			served[key.service] = true
			continue
		}
		gone[key.service] = true
		delete(r.pools, key)
	}
	for service := range gone {
		if !served[service] {
			r.agent.metrics.forget(service)
		}
	}
	r.order = slices.DeleteFunc(r.order, func(p *pool) bool { return !keep[p.wanted.key] })
}

// update gives a pool what it should have, makes it when it is new, and tells whether its endpoints changed.
func (r *running) update(w *wantedPool) bool {
	p := r.pools[w.key]
	if p == nil {
		p = r.newPool(w)
		r.pools[w.key] = p
		r.order = append(r.order, p)
	}
	changed := r.agent.config.follow(p, w, r.agent.clock())
	if changed {
		r.agent.logger.Debug("pool changed", "service", w.key.service, "port", w.key.port, "family", w.key.family,
			"class", w.key.class, "endpoints", len(w.targets), "algorithm", w.tuning.Algorithm, "reason", w.choice.String())
	}
	return changed
}

// redirect sends the next requests of each listener to the pools that there are now. Requests under way stay where they
// are.
func (r *running) redirect() {
	r.lanes = make(map[poolKey]*l7.Upstreams)
	for _, p := range r.order { // that without a class comes first
		if p.wanted.key.class == "" {
			r.lanes[p.wanted.key] = &l7.Upstreams{Default: p.lane, ByClient: make(map[netip.Addr]*l7.Upstream)}
			continue
		}
		for _, addr := range p.wanted.clients {
			r.lanes[p.wanted.key.base()].ByClient[addr] = p.lane
		}
	}
	for _, l := range r.listeners {
		now := r.lanes[l.pool.wanted.key]
		if l.lanes.Default != now.Default || !maps.Equal(l.lanes.ByClient, now.ByClient) {
			l.lanes = now
			l.server.Follow(now)
		}
	}
}

// keep tells the listeners of pools that changed which endpoints there still are, for whichever client, so that kept
// connections to others are closed.
func (r *running) keep(changed map[poolKey]bool) {
	endpoints := make(map[poolKey][]netip.AddrPort)
	for _, p := range r.order {
		if key := p.wanted.key.base(); changed[key] {
			for i := range p.wanted.targets {
				endpoints[key] = append(endpoints[key], p.wanted.targets[i].Addr)
			}
		}
	}
	for _, l := range r.listeners {
		if changed[l.pool.wanted.key] {
			l.server.Keep(endpoints[l.pool.wanted.key])
		}
	}
}

// open listens on a wanted address; a failure is kept, to be tried again.
func (r *running) open(a netip.AddrPort) {
	key := r.wanted[a].key
	l, err := r.listen(a, r.pools[key])
	if err != nil {
		f := r.failing[a]
		if f == nil {
			f = &failing{}
			r.failing[a] = f
		}
		f.key = key
		f.again(r.agent.clock(), err)
		return
	}
	delete(r.failing, a)
	r.listeners[a] = l
	r.agent.logger.Debug("listening", "service", key.service, "address", a, "protocol", l.protocol)
}

// retry opens the failing addresses whose pause is over.
func (r *running) retry() {
	now := r.agent.clock()
	tried := false
	for a, f := range r.failing {
		if now >= f.next {
			r.open(a)
			tried = true
		}
	}
	if tried {
		r.publish()
	}
}

// stop closes every listener and waits until all requests in flight are over or have had their time.
func (r *running) stop(ctx context.Context) {
	r.agent.draining.Store(true)
	started := r.agent.clock()
	r.agent.logger.Info("draining", "listeners", len(r.listeners), "limit", r.agent.config.Drain)
	for _, l := range r.listeners {
		r.drain(ctx, l)
	}
	r.draining.Wait()
	r.agent.logger.Info("drained", "after", r.agent.clock()-started)
}
