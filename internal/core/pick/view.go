package pick

import "slices"

// view is what requests follow between two ticks. It is immutable.
type view struct {
	routes    []groupView // in use, with their shares of the interval [0, 2^32)
	reserve   []groupView // the other groups in waterfall order, for when no route has anyone who serves
	stretches []stretch   // of the same interval, for requests with a key; with the same shares
	shed      bool        // positions beyond the last route are to be rejected
	strict    bool        // who sits out is not used, not even if all do
	split     bool        // there is a choice between routes or shedding
	// sampled takes positions at random: with many requests chance is fair enough, and the sequence, which makes few
	// requests keep to the shares exactly, would be one word that all processors write.
	sampled bool
}

// groupView is a group's share of the requests and the endpoints that serve them.
type groupView struct {
	end      uint64 // of the route's part of [0, 2^32)
	group    *group
	ring     *ring       // for requests that start now
	revision int         // of what the picker was made of
	panics   bool        // who sits out is used like everybody
	hashes   bool        // the picker is over covered, whoever of them serves, and tells who owns a key
	covered  []*endpoint // all that are ready and not drained
	picker   picker      // over serving, if it does not hash; nil if there is nobody
	walker   walker      // the picker, if it is one
	serving  []*endpoint // who served when the view was made; in a panic all
	due      []*endpoint // who waits for a trial
	everyone []*endpoint // those and the ones that sit out, or are drained
	failing  bool        // a retry is better off elsewhere
}

// at gives the route of a position in [0, 2^32); nil where requests are to be shed.
func (v *view) at(position uint64) *groupView {
	for i := range v.routes {
		if r := &v.routes[i]; position < r.end {
			return r
		}
	}
	return nil
}

// keyed gives the route of a key's place in [0, 2^32); nil where requests are to be shed.
func (v *view) keyed(position uint64) *groupView {
	for i := range v.stretches {
		if p := &v.stretches[i]; position < p.end {
			if p.group == nil {
				return nil
			}
			return &v.routes[p.route]
		}
	}
	return nil
}

// equal tells whether requests would notice the difference. The stretches follow from the routes.
func (v *view) equal(o *view) bool {
	same := func(a, b groupView) bool {
		return a.end == b.end && a.failing == b.failing && a.sameEndpoints(&b)
	}
	return v.shed == o.shed && v.sampled == o.sampled && v.split == o.split && v.strict == o.strict &&
		slices.EqualFunc(v.routes, o.routes, same) && slices.EqualFunc(v.reserve, o.reserve, same)
}

// sameEndpoints tells whether both routes have the same group with the same endpoints in the same standing.
func (r *groupView) sameEndpoints(o *groupView) bool {
	return r.group == o.group && r.ring == o.ring && r.revision == o.revision && r.panics == o.panics &&
		sameList(r.serving, o.serving) && sameList(r.due, o.due) &&
		sameList(r.everyone, o.everyone) && r.sameWheel(o)
}

// sameList is slices.Equal, and quick when both are the same memory: an unchanged route takes its lists over.
func sameList(a, b []*endpoint) bool {
	if len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] {
		return true
	}
	return slices.Equal(a, b)
}

// sameWheel tells whether a hashing picker of one is good for the other.
func (r *groupView) sameWheel(o *groupView) bool {
	return r.hashes == o.hashes && r.group == o.group && r.revision == o.revision && sameList(r.covered, o.covered)
}

// find looks for the previous view's route that is the same in that respect, so that slices and picker need not be made
// again.
func (v *view) find(r *groupView, same func(r, o *groupView) bool) *groupView {
	for _, routes := range [][]groupView{v.routes, v.reserve} {
		for i := range routes {
			if same(&routes[i], r) {
				return &routes[i]
			}
		}
	}
	return nil
}

// takes tells whether an endpoint may have a request.
func (r *groupView) takes(e *endpoint) bool {
	s := e.standing.Load()
	return s == serving || r.panics && s != gone
}

// choice is an endpoint, the route it was found on, and whether this request is its trial.
type choice struct {
	route    *groupView
	endpoint *endpoint
	trial    bool
}

// query is a request on its way to an endpoint.
type query struct {
	random, key uint64
	avoid       []uint32
	panics      bool // the route does where it looks
}

func (q *query) accepts(e *endpoint) bool {
	return e != nil && (e.standing.Load() == serving || q.panics && e.standing.Load() != gone) && !slices.Contains(q.avoid, e.id)
}

// walker is a picker that knows who comes after an endpoint that does not do: the next on the ring, another probe of the
// table.
type walker interface {
	picker
	// next gives the first endpoint in the picker's own order that the query accepts; nil if it accepts none. It takes a
	// copy: what an interface's method is given the address of is garbage.
	next(q query) *endpoint
}

// search finds an endpoint when the straight way is not open: somebody on the route is due for a trial, the request is
// a retry, or the one proposed has stopped serving. Each step asks for less than the one before. A request that two
// endpoints failed looks for another group: a zone that has just gone is not known to fail before the next tick.
func (v *view) search(r *groupView, q query) (choice, bool) {
	if len(q.avoid) == 0 {
		if e := r.trial(&q); e != nil {
			return choice{route: r, endpoint: e, trial: true}, true
		}
	}
	if len(q.avoid) > 1 || len(q.avoid) > 0 && r.failing {
		if c, ok := v.elsewhere(r, &q); ok {
			return c, true
		}
	}
	for range 2 { // the second time without avoiding anyone
		if e := r.next(&q); e != nil {
			return choice{route: r, endpoint: e}, true
		}
		if c, ok := v.first(&q); ok {
			return c, true
		}
		q.avoid = nil
	}
	if v.strict {
		return choice{}, false
	}
	return v.resort(r, &q)
}

// trial gives an endpoint that waits for one, if this request is to be it. Where keys belong to endpoints only a key of
// its own will do: others would move twice.
func (r *groupView) trial(q *query) *endpoint {
	if r.hashes && len(r.due) > 0 {
		if e := r.picker.pick(q.random, q.key); e != nil && e.standing.CompareAndSwap(due, trying) {
			return e
		}
		return nil
	}
	for _, e := range r.due {
		if e.standing.CompareAndSwap(due, trying) {
			return e
		}
	}
	return nil
}

// elsewhere looks for another group that does not fail, cheapest first.
func (v *view) elsewhere(from *groupView, q *query) (choice, bool) {
	for _, routes := range [...][]groupView{v.routes, v.reserve} {
		for i := range routes {
			if r := &routes[i]; !r.failing && r.group != from.group {
				if e := r.next(q); e != nil {
					return choice{route: r, endpoint: e}, true
				}
			}
		}
	}
	return choice{}, false
}

// first looks for any endpoint that serves, cheapest first.
func (v *view) first(q *query) (choice, bool) {
	for _, routes := range [...][]groupView{v.routes, v.reserve} {
		for i := range routes {
			if e := routes[i].next(q); e != nil {
				return choice{route: &routes[i], endpoint: e}, true
			}
		}
	}
	return choice{}, false
}

// resort is for a service nobody of which serves: then sitting out helps nobody, and any endpoint will do.
func (v *view) resort(r *groupView, q *query) (choice, bool) {
	if n := uint64(len(r.everyone)); n > 0 {
		return choice{route: r, endpoint: r.everyone[below(upper(q.random), n)]}, true
	}
	for _, routes := range [...][]groupView{v.routes, v.reserve} {
		for i := range routes {
			r := &routes[i]
			if n := uint64(len(r.everyone)); n > 0 {
				return choice{route: r, endpoint: r.everyone[below(upper(q.random), n)]}, true
			}
		}
	}
	return choice{}, false
}

// next gives an acceptable endpoint of the route: the picker's, or else the one that follows in the picker's own order, or
// around the circle from a place that depends on the key, so that a request with a key finds the same substitute each time.
func (r *groupView) next(q *query) *endpoint {
	n := uint64(len(r.serving))
	if n == 0 {
		return nil
	}
	q.panics = r.panics
	if r.walker != nil {
		return r.walker.next(*q)
	}
	if e := r.picker.pick(q.random, q.key); q.accepts(e) {
		return e
	}
	start := below(upper(q.key), n)
	for i := range n {
		if e := r.serving[(start+i)%n]; q.accepts(e) {
			return e
		}
	}
	return nil
}
