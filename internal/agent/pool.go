package agent

import (
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/l7"
)

// pool is a running pool, what it was last told, and who counts its requests.
type pool struct {
	wanted   wantedPool
	pool     *pick.Pool
	strategy *followed
	observer *observer
	lane     *l7.Upstream // another one when requests are to be hashed in another way
	journal  journal
}

// followed is a strategy that can be exchanged: a pool keeps the one it was made with, and a service may ask for another
// while its listeners stay open. Whoever exchanges it calls Pool.Apply next; both run on the goroutine that ticks.
type followed struct {
	overflow.Strategy
	scene overflow.Layout
}

// Reset implements overflow.Strategy.
func (f *followed) Reset(now time.Duration, scene overflow.Layout) {
	f.scene = scene
	f.Strategy.Reset(now, scene)
}

// exchange goes on with another strategy, on the same scene.
func (f *followed) exchange(now time.Duration, s overflow.Strategy) {
	f.Strategy = s
	if len(f.scene.Groups) > 0 {
		s.Reset(now, f.scene)
	}
}

// newPool makes a pool that holds nothing yet; follow fills it.
func (r *running) newPool(w *wantedPool) *pool {
	p := &pool{wanted: wantedPool{key: w.key}, strategy: &followed{}}
	p.pool = pick.NewPool(pick.Options{
		Zone:     w.key.client,
		Random:   rand.Uint64,
		Strategy: p.strategy,
		Config:   w.tuning,
		Rotate:   r.agent.config.rotate(),
		Parallel: runtime.GOMAXPROCS(0),
	})
	p.observer = r.agent.metrics.observer(w.key.service, w.key.client)
	return p
}

// follow makes p what w asks for and tells whether anything differed. What a pool has learned and what its requests are
// doing stays, whatever changes.
func (c *Config) follow(p *pool, w *wantedPool, now time.Duration) bool {
	before := p.wanted
	p.wanted = *w
	changed := before.mixture != w.mixture
	if changed {
		if before.mixture == nil || before.mixture.spilling != w.mixture.spilling {
			p.strategy.exchange(now, c.mustStrategy(w.mixture.spilling))
		}
		p.pool.Apply(now, w.mixture.prepared)
	}
	if !slices.Equal(before.drains, w.drains) {
		drain(p.pool, before.drains, w.drains, now)
		changed = true
	}
	if p.lane == nil || before.hashing != w.hashing {
		p.lane = &l7.Upstream{Pool: p.pool, Observer: p.observer}
		if w.hashing != nil {
			p.lane.Hash = w.hashing.rules
		}
	}
	return changed
}

// forever outlasts any agent, and can still be added to: what is left until the year 9999, which people write when they
// mean for ever, is more than a duration holds.
const forever = 100 * 365 * 24 * time.Hour

// drain ends the drains before and begins those of now.
func drain(p *pick.Pool, before, now []topology.Drain, at time.Duration) {
	for _, d := range before {
		p.Drain(d.Zone, 0)
	}
	for _, d := range now {
		if left := time.Until(d.Until); left > 0 {
			p.Drain(d.Zone, at+min(left, forever))
		}
	}
}

// rotate is a number that differs between nodes, so that they do not all spill to the same one of equally dear zones.
func (c *Config) rotate() uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.Node))
	return h.Sum64()
}
