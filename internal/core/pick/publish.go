package pick

import "slices"

// publish makes the view that follows the decision, unless requests would not notice the difference. It drafts the view
// in memory that it reuses, as most ticks change nothing.
func (p *Pool) publish() {
	old := p.view.Load()
	draft := &p.draft
	draft.routes, draft.reserve = p.drawRoutes(old, draft.routes[:0]), draft.reserve[:0]
	draft.shed, draft.sampled = p.decision.Shed > 0, p.sampled
	draft.split = draft.shed || len(draft.routes) > 1
	if !p.decision.Confined {
		for _, g := range p.groups {
			if !slices.ContainsFunc(draft.routes, func(r route) bool { return r.group == g }) {
				draft.reserve = append(draft.reserve, p.route(old, g, nil))
			}
		}
	}
	if draft.equal(old) {
		return
	}
	next := *draft
	next.routes, next.reserve = slices.Clone(draft.routes), slices.Clone(draft.reserve)
	p.view.Store(&next)
}

// drawRoutes appends the decision's routes that exist and have a share; without any, and without shedding, home has
// all.
func (p *Pool) drawRoutes(old *view, routes []route) []route {
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

// route sorts a group's endpoints, or a subset of them, by what they can be used for. If the old view has the same
// route its slices and its picker serve again.
func (p *Pool) route(old *view, g *group, subset []int) route {
	if subset == nil {
		subset = g.members
	}
	p.serving, p.due, p.everyone = p.serving[:0], p.due[:0], p.everyone[:0]
	for _, i := range subset {
		if i < 0 || i >= len(p.members) {
			continue
		}
		e := p.members[i].endpoint
		p.everyone = append(p.everyone, e)
		if p.members[i].drained {
			continue
		}
		switch e.standing.Load() {
		case serving:
			p.serving = append(p.serving, e)
		case due:
			p.due = append(p.due, e)
		}
	}
	r := route{
		group: g, ring: g.past.rings[0], failing: g.failing(),
		serving: p.serving, due: p.due, everyone: p.everyone,
	}
	if before := old.find(&r); before != nil {
		r.serving, r.due, r.everyone, r.picker = before.serving, before.due, before.everyone, before.picker
		return r
	}
	r.serving, r.due, r.everyone = slices.Clone(r.serving), slices.Clone(r.due), slices.Clone(r.everyone)
	if len(r.serving) > 0 {
		r.picker = newPicker(&p.options.Config, r.serving, g.turn)
	}
	return r
}
