package overflow

import (
	"time"

	"github.com/weir-lb/weir/internal/core/reason"
)

// The band and the pace of HAZL as documented and measured (docs/adr/0006-overflow-law.md).
const (
	hazlLow    = 0.8 // requests in flight for each active endpoint: BUOYANT_BALANCER_LOAD_LOW
	hazlHigh   = 2.0 // BUOYANT_BALANCER_LOAD_HIGH
	hazlMemory = 10 * time.Second
	hazlPace   = time.Second // between two changes of the pool, one endpoint each
)

// hazl is a model of Buoyant's high availability zonal load balancing, for comparison: the mean number of requests in
// flight, against a band for each active endpoint. Above the band one endpoint of another zone is added, the cheapest
// zone first; below it the one that was added last is taken back.
//
// The product picks among all active endpoints alike. A route knows one group, so there is one route for each group
// with its active endpoints and a share in proportion to their number: the picker's two choices then compare endpoints
// of one group only, and how far an added endpoint draws more than its part is left out.
type hazl struct {
	low, high float64
	groups    []Group
	extra     []place // endpoints that may be added, in the order in which they are
	added     int
	load      rate // mean in flight of the active endpoints
	started   bool
	last      time.Duration
	changed   time.Duration
	story     story
}

// place is one endpoint of a group.
type place struct{ group, endpoint int }

func newHazl(c Config) Strategy { return &hazl{low: c.Low, high: c.High} }

// Reset implements Strategy. As many endpoints stay added as before; which ones is not remembered.
func (h *hazl) Reset(now time.Duration, scene Scene) {
	h.groups = scene.Groups
	h.extra = h.extra[:0]
	for _, g := range waterfall(scene.Groups, 0) {
		for _, e := range scene.Groups[g].Endpoints {
			h.extra = append(h.extra, place{g, e})
		}
	}
	h.added = min(h.added, len(h.extra))
	if !h.story.begun {
		h.story = story{begun: true, reason: reason.New(reason.BandNotExceeded), since: now}
	}
}

// Step implements Strategy.
func (h *hazl) Step(now time.Duration, c *Counters) Decision {
	if len(h.groups) == 0 {
		return Decision{Cap: DefaultConstants().Cap, Reason: h.story.reason, Since: h.story.since}
	}
	dt := max(0, now-h.last).Seconds()
	if !h.started {
		dt, h.changed = 0, now
	}
	h.started, h.last = true, max(h.last, now)
	if dt > 0 {
		h.load.step(h.inFlight(c)*dt, dt, hazlMemory.Seconds())
		h.adapt()
	}
	return h.decision()
}

// inFlight counts the requests in flight on the active endpoints.
func (h *hazl) inFlight(c *Counters) float64 {
	var n int64
	count := func(e int) {
		if e < len(c.Endpoints) {
			n += max(0, c.Endpoints[e].InFlight)
		}
	}
	for _, e := range h.groups[0].Endpoints {
		count(e)
	}
	for _, p := range h.extra[:h.added] {
		count(p.endpoint)
	}
	return float64(n)
}

// adapt adds or removes one endpoint, at most once a second.
func (h *hazl) adapt() {
	if h.last-h.changed < hazlPace {
		return
	}
	active := float64(h.active())
	load := h.load.perSecond()
	code := reason.PoolGrew
	switch {
	case load > h.high*active && h.added < len(h.extra):
		h.added++
	case load < h.low*active && h.added > 0:
		h.added--
		code = reason.PoolShrank
	default:
		return
	}
	h.changed = h.last
	h.story.state, h.story.since = Calm, h.last
	if h.added > 0 {
		h.story.state = Overflow
	}
	h.story.reason = reason.New(code).
		With("load", load, reason.Factor).With("active", float64(h.active()), reason.Count)
}

// active is how many endpoints are in use; an empty home counts as one so that the band has a size.
func (h *hazl) active() int { return max(1, len(h.groups[0].Endpoints)+h.added) }

// decision gives each group a share by its number of active endpoints.
func (h *hazl) decision() Decision {
	d := Decision{
		Cap: DefaultConstants().Cap, Groups: make([]GroupStatus, len(h.groups)),
		State: h.story.state, Reason: h.story.reason, Since: h.story.since,
	}
	home := len(h.groups[0].Endpoints)
	all := float64(home + h.added)
	switch {
	case all == 0:
		d.Routes = append(d.Routes, Route{Group: 0, Share: 1})
	case home > 0:
		d.Routes = append(d.Routes, Route{Group: 0, Share: float64(home) / all})
	}
	for _, p := range h.extra[:h.added] {
		if n := len(d.Routes); n == 0 || d.Routes[n-1].Group != p.group {
			d.Routes = append(d.Routes, Route{Group: p.group})
		}
		last := &d.Routes[len(d.Routes)-1]
		last.Endpoints = append(last.Endpoints, p.endpoint)
		last.Share += 1 / all
	}
	for _, r := range d.Routes {
		d.Groups[r.Group].Share = r.Share
	}
	return d
}
