package pick

import "slices"

// view is what requests follow between two ticks. It is immutable.
type view struct {
	routes  []groupView // in use, with their shares of the interval [0, 2^32)
	reserve []groupView // the other groups in order, for when no route has an endpoint that serves
	keys    []keyRange  // of the same interval, for requests with a key; with the same shares
	shed    bool        // positions beyond the last route are to be rejected
	strict  bool        // endpoints that sit out are not used, not even if all do
	split   bool        // there is a choice between routes or shedding
	// sampled takes positions at random: with many requests chance is fair enough, and the sequence, which makes few
	// requests keep to the shares exactly, would be one word that all processors write.
	sampled bool
}

// groupView is a group's share of the requests and the endpoints that serve them.
type groupView struct {
	end      uint64 // of the route's part of [0, 2^32)
	group    *group
	ages     *ageSet     // for requests that start now
	subset   []int       // of the group, by index; nil: all
	version  version     // of what the rest was made of
	panics   bool        // endpoints that sit out are used like all others
	hashes   bool        // the picker is over all that are ready and not drained, and tells which of them owns a key
	picker   picker      // over serving, if it does not hash; nil if there is no endpoint
	walker   walker      // the picker, if it is one
	serving  []*endpoint // those that served when the view was made; in a panic all
	due      []*endpoint // those that wait for a trial
	everyone []*endpoint // those and the ones that sit out, or are drained
	failing  bool        // a retry is better off elsewhere
}

// version tells what a groupView was made of: the pool's revision, and the group's changes and moves then.
type version struct{ revision, changes, moves int }

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
	for i := range v.keys {
		if r := &v.keys[i]; position < r.end {
			if r.group == nil {
				return nil
			}
			return &v.routes[r.route]
		}
	}
	return nil
}

// find looks for the previous view of the same group, or of the same subset of it, so that what did not change need not be
// made again.
func (v *view) find(r *groupView) *groupView {
	for _, routes := range [][]groupView{v.routes, v.reserve} {
		for i := range routes {
			if o := &routes[i]; o.group == r.group && o.hashes == r.hashes && sameSubset(o.subset, r.subset) {
				return o
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
