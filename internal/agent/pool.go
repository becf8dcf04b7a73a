package agent

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/topology"
)

// pool is a running pool, what it was last told, and who counts its requests.
type pool struct {
	wanted   wantedPool
	pool     *pick.Pool
	strategy *followed
	observer *observer
	journal  journal
}

// followed is a strategy that can be exchanged: a pool keeps the one it was made with, and a service may ask for another
// while its listeners stay open. Whoever exchanges it calls Pool.Update next, which resets the new one; both run on the
// goroutine that ticks.
type followed struct{ overflow.Strategy }

// newPool makes a pool that holds nothing yet.
func (r *running) newPool(w *wantedPool) *pool {
	p := &pool{wanted: wantedPool{key: w.key}, strategy: &followed{}}
	p.strategy.Strategy = r.agent.config.mustStrategy(w.settings)
	p.wanted.settings = w.settings
	p.wanted.settings.Drains = nil // follow begins them
	p.pool = pick.NewPool(pick.Options{
		Zone:     w.key.client,
		Random:   rand.Uint64,
		Strategy: p.strategy,
		Config:   pick.Config{Algorithm: r.agent.algorithm},
		Rotate:   r.agent.config.rotate(),
		Parallel: runtime.GOMAXPROCS(0),
	})
	p.observer = r.agent.metrics.observer(w.key.service, w.key.client)
	return p
}

// follow makes p what w asks for and tells whether anything differed.
func (c *Config) follow(p *pool, w *wantedPool, now time.Duration) bool {
	before := p.wanted
	p.wanted = *w
	isSameStrategy := sameStrategy(before.settings, w.settings)
	if !isSameStrategy {
		p.strategy.Strategy = c.mustStrategy(w.settings)
	}
	isSame := isSameStrategy && before.targets != nil && slices.Equal(before.targets, w.targets)
	if !isSame {
		p.pool.Update(now, w.targets)
	}
	if !slices.Equal(before.settings.Drains, w.settings.Drains) {
		drain(p.pool, before.settings.Drains, w.settings.Drains, now)
		isSame = false
	}
	return !isSame
}

// keep tells the listeners of p which endpoints there still are, so that kept connections to others are closed.
func (p *pool) keep(listeners map[netip.AddrPort]*listener) {
	endpoints := make([]netip.AddrPort, 0, len(p.wanted.targets))
	for i := range p.wanted.targets {
		endpoints = append(endpoints, p.wanted.targets[i].Addr)
	}
	for _, a := range p.wanted.addresses {
		if l := listeners[a]; l != nil && l.pool == p {
			l.server.Keep(endpoints)
		}
	}
}

// sameStrategy tells whether a service asks for the same strategy as before; drains apart, which need no other one.
func sameStrategy(a, b topology.OverflowSettings) bool {
	return a.Strategy == b.Strategy && a.Prefer == b.Prefer && a.Shed == b.Shed
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

// strategy makes the strategy that a service asks for. Errors: one that does not exist or cannot be had so.
func (c *Config) strategy(s topology.OverflowSettings) (overflow.Strategy, error) {
	return overflow.New(cmp.Or(s.Strategy, c.Strategy), overflow.Config{
		Prefer: overflow.Prefer(s.Prefer),
		Shed:   s.Shed,
		Rotate: c.rotate(),
	})
}

// mustStrategy makes a strategy of settings that build has checked.
func (c *Config) mustStrategy(s topology.OverflowSettings) overflow.Strategy {
	strategy, err := c.strategy(s)
	if err != nil {
		panic("agent: a wanted pool has settings that were refused: " + err.Error())
	}
	return strategy
}

// rotate is a number that differs between nodes, so that they do not all spill to the same one of equally dear zones.
func (c *Config) rotate() uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.Node))
	return h.Sum64()
}
