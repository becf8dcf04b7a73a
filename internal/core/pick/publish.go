package pick

import (
	"slices"

	"github.com/weir-lb/weir/internal/core/overflow"
)

// basis is what the last view was drafted from, beside what sets Pool.stale.
type basis struct {
	routes                  []overflow.Route
	shed, confined, sampled bool
}

// isStale tells whether a view that is drafted now may differ from the last one, and notes what it will be drafted from.
func (p *Pool) isStale() bool {
	stale := p.stale
	p.stale = false
	for _, g := range p.groups {
		if now := (looks{g.past.rings[0], g.failing(), g.panics}); now != g.shown {
			g.shown, stale = now, true
		}
	}
	b, d := &p.basis, &p.decision
	same := func(a, b overflow.Route) bool {
		return a.Group == b.Group && a.Share == b.Share && slices.Equal(a.Endpoints, b.Endpoints) &&
			(a.Endpoints == nil) == (b.Endpoints == nil)
	}
	if b.shed == (d.Shed > 0) && b.confined == d.Confined && b.sampled == p.sampled && slices.EqualFunc(b.routes, d.Routes, same) {
		return stale
	}
	*b = basis{routes: append(b.routes[:0], d.Routes...), shed: d.Shed > 0, confined: d.Confined, sampled: p.sampled}
	for i := range b.routes { // a strategy may use its slices again
		b.routes[i].Endpoints = slices.Clone(b.routes[i].Endpoints)
	}
	return true
}

// publish makes the view that follows the decision, unless requests would not notice the difference. It drafts the view
// in memory that it reuses, as most ticks change nothing.
func (p *Pool) publish() {
	if !p.isStale() {
		return
	}
	old := p.view.Load()
	draft := &p.draft
	draft.routes, draft.reserve = p.drawRoutes(old, draft.routes[:0]), draft.reserve[:0]
	draft.shed, draft.sampled = p.decision.Shed > 0, p.sampled
	draft.split = draft.shed || len(draft.routes) > 1
	draft.strict = p.prepared.config.Panic != nil && *p.prepared.config.Panic <= 0
	if !p.decision.Confined {
		for _, g := range p.groups {
			if !slices.ContainsFunc(draft.routes, func(r groupView) bool { return r.group == g }) {
				draft.reserve = append(draft.reserve, p.route(old, g, nil))
			}
		}
	}
	if draft.equal(old) {
		return
	}
	next := *draft
	next.routes, next.reserve = slices.Clone(draft.routes), slices.Clone(draft.reserve)
	next.stretches = p.divide(next.routes)
	p.view.Store(&next)
}

// divide lays out the keys by the routes' shares.
func (p *Pool) divide(routes []groupView) []stretch {
	claims := make([]claim, len(p.groups), len(p.groups)+1)
	for i, g := range p.groups {
		claims[i].group = g
	}
	if len(claims) == 0 {
		claims = append(claims, claim{group: &group{}}) // home of an empty pool
	}
	at := make(map[*group]int, len(routes))
	begin := uint64(0)
	for i, r := range slices.Backward(routes) {
		at[r.group] = i
	}
	for _, r := range routes {
		i := slices.IndexFunc(claims, func(c claim) bool { return c.group == r.group })
		claims[i].size += r.end - begin
		begin = r.end
	}
	if begin < whole {
		claims = append(claims, claim{size: whole - begin})
	}
	p.keys = apportion(p.keys, claims)
	stretches := slices.Clone(p.keys)
	for i := range stretches {
		stretches[i].route = at[stretches[i].group]
	}
	return stretches
}

// drawRoutes appends the decision's routes that exist and have a share; without any, and without shedding, home has
// all.
func (p *Pool) drawRoutes(old *view, routes []groupView) []groupView {
	cumulative := 0.0
	for _, r := range p.decision.Routes {
		if r.Group < 0 || r.Group >= len(p.groups) || r.Share <= 0 {
			continue
		}
		cumulative += r.Share
		next := p.route(old, p.groups[r.Group], r.Endpoints)
		next.end = position(cumulative)
		routes = append(routes, next)
	}
	if p.decision.Shed > 0 {
		return routes
	}
	if len(routes) == 0 && len(p.groups) > 0 {
		routes = append(routes, p.route(old, p.groups[0], nil))
	}
	if n := len(routes); n > 0 {
		routes[n-1].end = whole // whatever the rounding of the shares
	}
	return routes
}

// whole is the length of the interval that routes share.
const whole = 1 << 32

func position(share float64) uint64 { return uint64(min(max(share, 0), 1) * whole) }

// route sorts a group's ready endpoints, or a subset of them, by what they can be used for. If the old view has the same
// route its slices and its picker serve again.
func (p *Pool) route(old *view, g *group, subset []int) groupView {
	if subset == nil {
		subset = g.Members
	}
	p.serving, p.due, p.everyone, p.covered, p.whole = p.serving[:0], p.due[:0], p.everyone[:0], p.covered[:0], p.whole[:0]
	p.indexes = p.indexes[:0]
	for _, i := range subset {
		if i < 0 || i >= len(p.members) {
			continue
		}
		m := p.members[i]
		e := m.endpoint
		if !m.drained {
			p.whole = append(p.whole, e)
		}
		if m.target.Unready {
			continue
		}
		p.everyone = append(p.everyone, e)
		if m.drained {
			continue
		}
		p.covered, p.indexes = append(p.covered, e), append(p.indexes, i)
		s := e.standing.Load()
		if s == serving || g.panics {
			p.serving = append(p.serving, e)
		}
		if s == due {
			p.due = append(p.due, e)
		}
	}
	r := groupView{
		group: g, ring: g.past.rings[0], failing: g.failing(), revision: p.revision, panics: g.panics,
		serving: p.serving, due: p.due, everyone: p.everyone,
	}
	if r.hashes = p.prepared.make != nil; r.hashes {
		r.covered = p.covered
	}
	if before := old.find(&r, (*groupView).sameEndpoints); before != nil {
		r.serving, r.due, r.everyone, r.covered = before.serving, before.due, before.everyone, before.covered
		r.picker, r.walker = before.picker, before.walker
		return r
	}
	r.serving, r.due, r.everyone = slices.Clone(r.serving), slices.Clone(r.due), slices.Clone(r.everyone)
	p.equip(old, &r)
	return r
}

// equip gives a route its picker. That of a hashing algorithm is made again only when other endpoints are to be found, and
// not because one of them sits out.
func (p *Pool) equip(old *view, r *groupView) {
	switch before := old.find(r, (*groupView).sameWheel); {
	case r.hashes && before != nil:
		r.picker, r.covered = before.picker, before.covered
	case r.hashes:
		r.covered = slices.Clone(r.covered)
		r.picker = p.hashed(r.group, p.indexes)
	case len(r.serving) == 0:
	case r.panics: // nothing that is known of the endpoints is to be believed
		r.picker = newPlain(&Config{Algorithm: Random}, r.serving, r.group.turn)
	case r.group.Parted: // a part loses its share with its endpoints: the picker has to know all of them
		r.picker = newAffinity(&p.prepared.config, p.whole, r.group.turn)
	default:
		r.picker = newPlain(&p.prepared.config, r.serving, r.group.turn)
	}
	r.walker, _ = r.picker.(walker)
}
