package agent

import (
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/l7"
)

// pool is the running pool of an entry.
type pool struct {
	*pick.Pool

	entry    *route.Entry // that it follows
	spec     *spec        // what was made of entry
	strategy *replaceable
	capped   *overflow.Capped // around strategy
	observer *observer
	upstream *l7.Upstream // another one when requests are to be hashed in another way
	told     told
}

// spec is what a pool takes over from an entry and what takes long to make. It is immutable.
type spec struct {
	config    pick.Config
	endpoints []route.Endpoint
	prepared  *pick.Prepared
	hashing   *hashing
}

// hashing is how requests are hashed. It is immutable.
type hashing struct {
	policies []policy.HashPolicy
	routes   []policy.RouteHash
	rules    l7.HashRules // zero: requests are not hashed, or the policies cannot be followed
	err      error        // why they cannot
}

// newSpec makes the spec of an entry, with those parts of the one before that did not change.
func newSpec(e *route.Entry, before *spec) *spec {
	s := &spec{config: algorithm(&e.Settings), endpoints: e.Endpoints, prepared: before.prepared, hashing: before.hashing}
	if s.prepared == nil || !slices.Equal(s.endpoints, before.endpoints) || !reflect.DeepEqual(s.config, before.config) {
		s.prepared = pick.Prepare(s.config, s.endpoints)
	}
	h := hashing{}
	if e.Settings.Policy.LoadBalancer.Type.IsHashing() {
		h.policies, h.routes = e.Settings.Policy.HashPolicies, e.Settings.Policy.Routes
	}
	if s.hashing == nil || !reflect.DeepEqual(h.policies, s.hashing.policies) || !reflect.DeepEqual(h.routes, s.hashing.routes) {
		if len(h.policies)+len(h.routes) > 0 {
			h.rules, h.err = l7.CompileHash(h.policies, h.routes)
		}
		s.hashing = &h
	}
	return s
}

// problems tells what of an entry's settings the spec could not follow.
func (s *spec) problems(e *route.Entry) []route.Problem {
	if s.hashing.err == nil {
		return nil
	}
	return []route.Problem{{Service: e.Key.Service.String(), Reason: reason.New(reason.HashRefused, s.hashing.err.Error())}}
}

// algorithm is how a pool chooses an endpoint, by the settings of an entry.
func algorithm(settings *route.Settings) pick.Config {
	b := settings.Policy.LoadBalancer
	c := pick.Config{
		Config:       balance.ConfigFor(settings.Policy),
		Algorithm:    pick.Algorithm(settings.Algorithm),
		Choices:      int(*b.LeastRequest.ChoiceCount),
		HashFunction: pick.HashFunction(*b.RingHash.HashFunction),
		MinRingSize:  uint64(*b.RingHash.MinRingSize), //nolint:gosec // above 0 by validation.
		MaxRingSize:  uint64(*b.RingHash.MaxRingSize), //nolint:gosec // above 0 by validation.
		TableSize:    uint64(*b.Maglev.TableSize),     //nolint:gosec // above 0 by validation.
	}
	if b.Type == policy.LeastRequest {
		c.Bias = new(float64(*b.LeastRequest.ActiveRequestBias))
	}
	return c
}

// replaceable is a strategy that can be replaced: a pool keeps the one it was made with, and a service may ask for another
// while its listeners stay open. Pool.Apply is called next, by the same goroutine.
type replaceable struct {
	overflow.Strategy
	layout overflow.Layout
}

// Reset implements overflow.Strategy.
func (r *replaceable) Reset(now time.Duration, layout overflow.Layout) {
	r.layout = layout
	r.Strategy.Reset(now, layout)
}

// replace goes on with the strategy that settings ask for, on the same groups.
func (r *replaceable) replace(now time.Duration, o route.Overflow) {
	strategy, err := o.New()
	if err != nil {
		panic("agent: an entry has settings that were refused: " + err.Error())
	}
	r.Strategy = strategy
	if len(r.layout.Groups) > 0 {
		strategy.Reset(now, r.layout)
	}
}

// newPool makes the pool of an entry, which holds nothing yet; update fills it.
func (p *l7Plane) newPool(e *route.Entry, s *spec) *pool {
	strategy := &replaceable{}
	capped := &overflow.Capped{Strategy: strategy}
	return &pool{
		Pool: pick.NewPool(pick.Options{
			Zone:     e.Key.Zone,
			Random:   rand.Uint64,
			Strategy: capped,
			Config:   s.config,
			Rotate:   e.Settings.Rotate,
			Parallel: runtime.GOMAXPROCS(0),
		}),
		entry:    &route.Entry{},
		spec:     &spec{},
		strategy: strategy,
		capped:   capped,
		observer: p.metrics.observer(e.Key.Service, e.Key.Zone),
	}
}

// update makes a pool what an entry asks for and tells whether its endpoints may differ. What the pool has learned and what
// its requests are doing stays, whatever changes.
func (p *l7Plane) update(pool *pool, e *route.Entry, s *spec) bool {
	before, old, now := pool.entry, pool.spec, p.clock()
	pool.entry, pool.spec, pool.capped.Skew = e, s, e.Settings.Skew
	changed := old.prepared != s.prepared || before.Settings.Overflow != e.Settings.Overflow
	if before.Settings.Overflow != e.Settings.Overflow {
		pool.strategy.replace(now, e.Settings.Overflow)
	}
	if changed {
		pool.Apply(now, s.prepared)
	}
	if !slices.Equal(before.Drains, e.Drains) {
		drain(pool.Pool, before.Drains, e.Drains, now)
		changed = true
	}
	if old.hashing != s.hashing {
		pool.upstream = &l7.Upstream{Pool: pool.Pool, Observer: pool.observer, Hash: s.hashing.rules}
	}
	if changed {
		p.logger.Debug("pool changed", "service", e.Key.Service.String(), "port", e.Key.Port, "family", e.Key.Family.String(),
			"class", e.Key.Class, "endpoints", len(e.Endpoints), "algorithm", s.config.Algorithm, "reason", e.Choice.String())
	}
	return changed
}

// forever outlasts any agent, and can still be added to: what is left until the year 9999, which people write when they
// mean for ever, is more than a duration holds.
const forever = 100 * 365 * 24 * time.Hour

// drainer is a pool or its loop.
type drainer interface {
	Drain(zone topology.Zone, until time.Duration)
}

// drain ends the drains before and begins those of now.
func drain(p drainer, before, now []topology.Drain, at time.Duration) {
	for _, d := range before {
		p.Drain(d.Zone, 0)
	}
	for _, d := range now {
		if left := time.Until(d.Until); left > 0 {
			p.Drain(d.Zone, at+min(left, forever))
		}
	}
}
