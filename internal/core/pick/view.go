package pick

import "slices"

// view is what requests follow between two ticks. It is immutable.
type view struct {
	groups []groupView // the routes, and then the other groups in order, for when no route has an endpoint that serves
	routes []groupView // those of groups that are in use, with their shares of the interval [0, 2^32)
	keys   []keyRange  // of the same interval, for requests with a key; with the same shares
	shed   bool        // positions beyond the last route are to be rejected
	strict bool        // ejected endpoints are not used, not even if all are ejected
	hashes bool        // pickers are over all endpoints that are ready and not drained, and tell which of them owns a key
	// sampled takes positions at random: with many requests chance is fair enough, and the sequence, which makes few
	// requests keep to the shares exactly, would be one word that all processors write.
	sampled bool
}

// groupView is a group's share of the requests and the endpoints that serve them.
type groupView struct {
	end     uint64 // of the route's part of [0, 2^32)
	group   *group
	ages    *ageSet     // for requests that start now
	subset  []int       // of the group, by index; nil: all
	version version     // of what the rest was made of
	picker  picker      // over serving, if it does not hash; nil if there is no endpoint
	serving []*endpoint // those that served when the view was made; in a panic all
	due     []*endpoint // those that wait for a trial
	ready   []*endpoint // those, and the ones that are ejected or drained
	panics  bool        // ejected endpoints are used like all others
	failing bool        // a retry is better off elsewhere
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

// find looks for the previous view of a group, or of a subset of it, so that what did not change need not be made again.
func (v *view) find(g *group, subset []int) *groupView {
	i := slices.IndexFunc(v.groups, func(o groupView) bool { return o.group == g && sameSubset(o.subset, subset) })
	if i < 0 {
		return nil
	}
	return &v.groups[i]
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

// walker is a picker that knows which endpoint takes the place of another: the next on the ring, another probe of the table.
type walker interface {
	picker
	// next gives the first endpoint in the picker's own order that the query accepts; nil if it accepts none. It takes a
	// copy: what an interface's method is given the address of is garbage.
	next(q query) *endpoint
}

// search finds an endpoint where the picker's choice is not enough: an endpoint of the route is due for a trial, the request
// is a retry, or the one proposed has stopped serving. Each step asks for less than the one before. A request that two
// endpoints failed looks for another group: a zone that has just gone is not known to fail before the next tick.
func (v *view) search(r *groupView, q query) (choice, bool) {
	if len(q.avoid) == 0 {
		if e := v.trial(r, &q); e != nil {
			return choice{route: r, endpoint: e, trial: true}, true
		}
	}
	if len(q.avoid) > 1 || len(q.avoid) > 0 && r.failing {
		if c, ok := v.first(&q, r.group); ok {
			return c, true
		}
	}
	for range 2 { // the second time without avoiding any
		if e := r.next(&q); e != nil {
			return choice{route: r, endpoint: e}, true
		}
		if c, ok := v.first(&q, nil); ok {
			return c, true
		}
		q.avoid = nil
	}
	if v.strict {
		return choice{}, false
	}
	return v.anyReady(r, &q)
}

// trial gives an endpoint that waits for one, if this request is to be it. Where keys belong to endpoints only a key of
// its own will do: others would move twice.
func (v *view) trial(r *groupView, q *query) *endpoint {
	waiting := r.due
	if v.hashes && len(waiting) > 0 {
		waiting = []*endpoint{r.picker.pick(q.random, q.key)}
	}
	for _, e := range waiting {
		if e != nil && e.standing.CompareAndSwap(due, trying) {
			return e
		}
	}
	return nil
}

// first looks for an endpoint that serves in all groups in order; with a group to leave, in others that do not fail.
func (v *view) first(q *query, leave *group) (choice, bool) {
	for i := range v.groups {
		r := &v.groups[i]
		if leave != nil && (r.failing || r.group == leave) {
			continue
		}
		if e := r.next(q); e != nil {
			return choice{route: r, endpoint: e}, true
		}
	}
	return choice{}, false
}

// anyReady is for a service of which all endpoints are ejected or drained: any ready endpoint is better than an error.
func (v *view) anyReady(r *groupView, q *query) (choice, bool) {
	for i := 0; len(r.ready) == 0; i++ {
		if i == len(v.groups) {
			return choice{}, false
		}
		r = &v.groups[i]
	}
	return choice{route: r, endpoint: r.ready[below(upper(q.random), uint64(len(r.ready)))]}, true
}

// next gives an acceptable endpoint of the route: the picker's, or else the one that follows in the picker's own order, or
// around the circle from a position that depends on the key, so that a request with a key finds the same substitute each
// time.
func (r *groupView) next(q *query) *endpoint {
	if len(r.serving) == 0 {
		return nil
	}
	q.panics = r.panics
	if w, ok := r.picker.(walker); ok {
		return w.next(*q)
	}
	if e := r.picker.pick(q.random, q.key); q.accepts(e) {
		return e
	}
	return around(r.serving, q)
}
