package pick

import (
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
)

// inputs is what the last view was made of, beside what groups and endpoints remember of themselves.
type inputs struct {
	revision                int // counts configurations and sets of endpoints
	stale                   bool
	routes                  []overflow.Route
	shed, confined, sampled bool
}

// renew makes the next view from scratch.
func (in *inputs) renew() {
	in.revision++
	in.stale = true
}

// follow tells endpoints and groups what the loop decided, and finds out which of them a view shows differently now.
func (p *Pool) follow(now time.Duration) {
	d := p.decision
	p.detector.allowed.Store(int64(d.Allowed))
	for i, e := range p.endpoints {
		to := &d.Endpoints[i]
		e.follow(to, p.counters.Endpoints[i].Standing, now)
		// A store takes the line from the requests that read it, a look does not; few weights change in a tick.
		if weight := uint32(max(1, to.Slowdown*weightOne)); weight != e.weight.Load() {
			e.weight.Store(weight)
		}
		if ramp := rampOf(to.Ramp); ramp != e.ramp.Load() {
			e.ramp.Store(ramp)
		}
		g := p.groups[to.Group]
		if s := e.standing.Load(); s != e.shown {
			e.shown = s
			g.changes++
			p.inputs.stale = true
		}
		if to.Drained != e.drained {
			e.drained = to.Drained
			g.changes++
			g.moves++
			p.inputs.stale = true
		}
	}
	for i, g := range p.groups {
		to := &d.Groups[i]
		if to.Full != g.full.Load() {
			g.full.Store(to.Full)
		}
		if limit := int64(to.Limit); limit != g.limit.Load() {
			g.limit.Store(limit)
		}
		ages := g.past.fit(d.Horizon+max(0, to.ExtraRTT), p.shards)
		if ages != g.ages || to.Panics != g.panics {
			g.ages, g.panics = ages, to.Panics
			g.changes++
			p.inputs.stale = true
		}
		if to.Failing != g.failing {
			g.failing = to.Failing
			p.inputs.stale = true
		}
	}
}

// rampOne is a whole weight; it is written as 0, as nearly all endpoints have it nearly always.
const rampOne = 1 << 16

func rampOf(part float64) uint32 {
	if part >= 1 {
		return 0
	}
	return uint32(max(1, part*rampOne))
}

// isStale tells whether requests would notice a new view, and notes what it will be made of.
func (p *Pool) isStale() bool {
	in, d := &p.inputs, p.decision
	stale := in.stale
	in.stale = false
	same := func(a, b overflow.Route) bool {
		return a.Group == b.Group && a.Share == b.Share && sameSubset(a.Endpoints, b.Endpoints)
	}
	if in.shed == (d.Shed > 0) && in.confined == d.Confined && in.sampled == p.sampled && slices.EqualFunc(in.routes, d.Routes, same) {
		return stale
	}
	in.routes = slices.Clone(d.Routes)
	for i := range in.routes { // a strategy may use its slices again
		in.routes[i].Endpoints = slices.Clone(in.routes[i].Endpoints)
	}
	in.shed, in.confined, in.sampled = d.Shed > 0, d.Confined, p.sampled
	return true
}

func sameSubset(a, b []int) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }

// publish makes the view that follows the decision, unless requests would not notice the difference.
func (p *Pool) publish() {
	if p.isStale() {
		p.view.Store(p.draw(p.view.Load()))
	}
}

// draw makes a view. What is the same in the old one is taken over.
func (p *Pool) draw(old *view) *view {
	v := &view{shed: p.inputs.shed, sampled: p.inputs.sampled, hashes: p.prepared.make != nil}
	v.strict = p.prepared.config.Panic != nil && *p.prepared.config.Panic <= 0
	v.groups = p.drawRoutes(old)
	routes := len(v.groups)
	for i, g := range p.groups {
		if !p.inputs.confined && !slices.ContainsFunc(v.groups[:routes], func(r groupView) bool { return r.group == g }) {
			v.groups = append(v.groups, p.drawGroup(old, i, nil))
		}
	}
	v.routes = v.groups[:routes]
	v.keys = p.divide(old.keys, v.routes)
	return v
}

// drawRoutes gives the decision's routes that exist and have a share; without any, and without shedding, home has
// all.
func (p *Pool) drawRoutes(old *view) []groupView {
	routes := make([]groupView, 0, len(p.groups)+1)
	cumulative := 0.0
	for _, r := range p.inputs.routes {
		if r.Group < 0 || r.Group >= len(p.groups) || r.Share <= 0 {
			continue
		}
		cumulative += r.Share
		next := p.drawGroup(old, r.Group, r.Endpoints)
		next.end = position(cumulative)
		routes = append(routes, next)
	}
	if p.inputs.shed {
		return routes
	}
	if len(routes) == 0 && len(p.groups) > 0 {
		routes = append(routes, p.drawGroup(old, 0, nil))
	}
	if n := len(routes); n > 0 {
		routes[n-1].end = whole // whatever the rounding of the shares
	}
	return routes
}

// whole is the length of the interval that routes share.
const whole = 1 << 32

func position(share float64) uint64 { return uint64(min(max(share, 0), 1) * whole) }

// drawGroup sorts a group's endpoints, or a subset of them, by what they can be used for. If the old view has the same, its
// slices and its picker serve again.
func (p *Pool) drawGroup(old *view, at int, subset []int) groupView {
	g := p.groups[at]
	r := groupView{
		group: g, subset: subset, version: version{p.inputs.revision, g.changes, g.moves}, ages: g.ages, failing: g.failing,
		panics: g.panics,
	}
	before := old.find(g, subset)
	if before != nil && before.version == r.version {
		same := *before
		same.end, same.failing = 0, g.failing
		return same
	}
	if subset == nil {
		subset = p.decision.Groups[at].Members
	}
	var present []*endpoint // all that are not drained, ready or not
	for _, i := range subset {
		if i < 0 || i >= len(p.endpoints) {
			continue
		}
		e := p.endpoints[i]
		if !e.drained {
			present = append(present, e)
		}
		if e.target.Unready {
			continue
		}
		r.ready = append(r.ready, e)
		if s := e.standing.Load(); !e.drained && (s == serving || r.panics) {
			r.serving = append(r.serving, e)
		}
		if !e.drained && e.standing.Load() == due {
			r.due = append(r.due, e)
		}
	}
	r.picker = p.pickerOf(at, &r, before, present)
	return r
}

// pickerOf gives a group its picker. That of a hashing algorithm is made again only when other endpoints are to be found, and
// not because one of them is ejected.
func (p *Pool) pickerOf(at int, r, before *groupView, present []*endpoint) picker {
	c, g := &p.prepared.config, r.group
	switch {
	case p.prepared.make != nil && before != nil && before.version.revision == r.version.revision && before.version.moves == r.version.moves:
		return before.picker
	case p.prepared.make != nil:
		return p.hashed(at, r.subset)
	case len(r.serving) == 0:
		return nil
	case r.panics: // ejections are ignored
		return newPlain(&Config{Algorithm: Random}, r.serving, g.counter)
	case p.decision.Groups[at].Parted: // a part loses its share with its endpoints: the picker has to know all of them
		return newAffinity(c, present, g.counter)
	default:
		return newPlain(c, r.serving, g.counter)
	}
}

// divide lays out the keys by the routes' shares.
func (p *Pool) divide(old []keyRange, routes []groupView) []keyRange {
	wanted := make([]allocation, max(1, len(p.groups)), len(p.groups)+2)
	wanted[0].group = new(group) // home of an empty pool
	for i, g := range p.groups {
		wanted[i].group = g
	}
	begin := uint64(0)
	for _, r := range routes {
		wanted[slices.Index(p.groups, r.group)].size += r.end - begin
		begin = r.end
	}
	if begin < whole {
		wanted = append(wanted, allocation{size: whole - begin})
	}
	ranges := apportion(old, wanted)
	for i := range ranges {
		ranges[i].route = slices.IndexFunc(routes, func(r groupView) bool { return r.group == ranges[i].group })
	}
	return ranges
}
