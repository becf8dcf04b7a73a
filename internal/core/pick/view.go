package pick

import "slices"

// view is what requests follow between two ticks. It is immutable.
type view struct {
	routes  []route // in use, with their shares of the interval [0, 2^32)
	reserve []route // the other groups in waterfall order, for when no route has anyone who serves
	shed    bool    // positions beyond the last route are to be rejected
	split   bool    // there is a choice between routes or shedding
	// sampled takes positions at random: with many requests chance is fair enough, and the sequence, which makes few
	// requests keep to the shares exactly, would be one word that all processors write.
	sampled bool
}

// route is a share of the requests and who serves them.
type route struct {
	end      uint64 // of the route's part of [0, 2^32)
	group    *group
	ring     *ring       // for requests that start now
	picker   picker      // over serving; nil if that is empty
	serving  []*endpoint // who served when the view was made
	due      []*endpoint // who waits for a trial
	everyone []*endpoint // those and the ones that sit out, or are drained
	failing  bool        // a retry is better off elsewhere
}

// at gives the route of a position in [0, 2^32); nil where requests are to be shed.
func (v *view) at(position uint64) *route {
	for i := range v.routes {
		if r := &v.routes[i]; position < r.end {
			return r
		}
	}
	return nil
}

// equal tells whether requests would notice the difference.
func (v *view) equal(o *view) bool {
	same := func(a, b route) bool {
		return a.end == b.end && a.failing == b.failing && a.sameEndpoints(&b)
	}
	return v.shed == o.shed && v.sampled == o.sampled && v.split == o.split &&
		slices.EqualFunc(v.routes, o.routes, same) && slices.EqualFunc(v.reserve, o.reserve, same)
}

// sameEndpoints tells whether both routes have the same group with the same endpoints in the same standing.
func (r *route) sameEndpoints(o *route) bool {
	return r.group == o.group && r.ring == o.ring && slices.Equal(r.serving, o.serving) &&
		slices.Equal(r.due, o.due) && slices.Equal(r.everyone, o.everyone)
}

// find looks for the previous view's route of the same endpoints, so that slices and picker need not be made again.
func (v *view) find(r *route) *route {
	for _, routes := range [][]route{v.routes, v.reserve} {
		for i := range routes {
			if routes[i].sameEndpoints(r) {
				return &routes[i]
			}
		}
	}
	return nil
}

// choice is an endpoint, the route it was found on, and whether this request is its trial.
type choice struct {
	route    *route
	endpoint *endpoint
	trial    bool
}

// query is a request on its way to an endpoint.
type query struct {
	random, key uint64
	avoid       []uint32
}

func (q *query) accepts(e *endpoint) bool {
	return e.standing.Load() == serving && !slices.Contains(q.avoid, e.id)
}

// search finds an endpoint when the straight way is not open: somebody on the route is due for a trial, the request is
// a retry, or the one proposed has stopped serving. Each step asks for less than the one before. A request that two
// endpoints failed looks for another group: a zone that has just gone is not known to fail before the next tick.
func (v *view) search(r *route, q query) (choice, bool) {
	if len(q.avoid) == 0 {
		for _, e := range r.due {
			if e.standing.CompareAndSwap(due, trying) {
				return choice{route: r, endpoint: e, trial: true}, true
			}
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
	return v.resort(r, &q)
}

// elsewhere looks for another group that does not fail, cheapest first.
func (v *view) elsewhere(from *route, q *query) (choice, bool) {
	for _, routes := range [...][]route{v.routes, v.reserve} {
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
	for _, routes := range [...][]route{v.routes, v.reserve} {
		for i := range routes {
			if e := routes[i].next(q); e != nil {
				return choice{route: &routes[i], endpoint: e}, true
			}
		}
	}
	return choice{}, false
}

// resort is for a service nobody of which serves: then sitting out helps nobody, and any endpoint will do.
func (v *view) resort(r *route, q *query) (choice, bool) {
	if n := uint64(len(r.everyone)); n > 0 {
		return choice{route: r, endpoint: r.everyone[below(upper(q.random), n)]}, true
	}
	for _, routes := range [...][]route{v.routes, v.reserve} {
		for i := range routes {
			r := &routes[i]
			if n := uint64(len(r.everyone)); n > 0 {
				return choice{route: r, endpoint: r.everyone[below(upper(q.random), n)]}, true
			}
		}
	}
	return choice{}, false
}

// next gives an acceptable endpoint of the route: the picker's, or else the next one around the circle from a place
// that depends on the key, so that a request with a key finds the same substitute each time.
func (r *route) next(q *query) *endpoint {
	n := uint64(len(r.serving))
	if n == 0 {
		return nil
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
