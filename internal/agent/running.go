package agent

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
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
	for i := range w.pools {
		r.update(&w.pools[i])
	}
	slices.SortFunc(r.order, func(a, b *pool) int { return a.wanted.key.compare(b.wanted.key) })
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

// update gives a pool what it should have, and makes it when it is new.
func (r *running) update(w *wantedPool) {
	p := r.pools[w.key]
	if p == nil {
		p = r.newPool(w)
		r.pools[w.key] = p
		r.order = append(r.order, p)
	}
	if r.agent.config.follow(p, w, r.agent.clock()) {
		p.keep(r.listeners)
		r.agent.logger.Debug("endpoints changed", "service", w.key.service, "port", w.key.port,
			"family", w.key.family, "endpoints", len(w.targets), "reason", w.choice.String())
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
