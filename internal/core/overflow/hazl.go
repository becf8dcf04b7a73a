package overflow

import (
	"math"
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

// What Linkerd's balancer compares endpoints by: latency × (requests in flight + 1), averaged. The in-flight part is read
// ten times a second here instead of at each request, so it is averaged over a second.
const (
	hazlLatency = 30 * time.Millisecond // of whom nothing is known
	hazlDecay   = 10 * time.Second
	hazlPending = time.Second
)

// hazl is a model of Buoyant's high availability zonal load balancing, for comparison: the mean number of requests in
// flight, against a band for each active endpoint. Above the band one endpoint of another zone is added, the cheapest
// zone first; below it the one that was added last is taken back.
//
// The product picks among all active endpoints alike: of two at random the one with the smaller load. A route knows one
// group, so there is one route for each group with its active endpoints, and its share is what such choices would give
// it; among its own endpoints the picker chooses.
type hazl struct {
	low, high float64
	groups    []Group
	extra     []place // endpoints that may be added, in the order in which they are
	numbers   []int   // of those endpoints
	added     int
	load      rate // mean in flight of the active endpoints
	parts     []part
	sums      []EndpointCounters // of the parts, since the step before
	routes    []Route            // of the last decision, as the next line
	status    []GroupStatus
	started   bool
	last      time.Duration
	changed   time.Duration
	story     story
}

// place is one endpoint of a group.
type place struct{ group, endpoint int }

func newHazl(c Config) Strategy { return &hazl{low: c.Low, high: c.High} }

// part is the active endpoints of a group.
type part struct {
	active  float64
	latency float64 // seconds, a mean that follows a rise at once and a fall slowly
	pending float64 // mean in flight of one endpoint
}

// load is what one of its endpoints is compared by.
func (p *part) load() float64 { return p.latency * (p.pending + 1) }

// see takes what was counted at the active endpoints of a part.
func (p *part) see(dt float64, sum EndpointCounters) {
	p.pending += (float64(sum.InFlight)/p.active - p.pending) * (1 - math.Exp(-dt/hazlPending.Seconds()))
	if sum.OK == 0 {
		return
	}
	mean := sum.Latency.Seconds() / float64(sum.OK)
	p.latency = max(mean, p.latency+(mean-p.latency)*(1-math.Exp(-dt/hazlDecay.Seconds())))
}

// Reset implements Strategy. As many endpoints stay added as before; which ones is not remembered.
func (h *hazl) Reset(now time.Duration, layout Layout) {
	h.groups = layout.Groups
	h.extra, h.numbers = h.extra[:0], h.numbers[:0]
	for g := 1; g < len(layout.Groups); g++ {
		for _, e := range layout.Groups[g].Endpoints {
			h.extra, h.numbers = append(h.extra, place{g, e}), append(h.numbers, e)
		}
	}
	h.added = min(h.added, len(h.extra))
	n := len(layout.Groups)
	h.parts, h.sums = make([]part, n), make([]EndpointCounters, n)
	h.routes, h.status = make([]Route, 0, n), make([]GroupStatus, n)
	for i := range h.parts {
		h.parts[i].latency = hazlLatency.Seconds()
	}
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
		h.load.step(h.inFlight(c)*dt, fade(dt, hazlMemory.Seconds()))
		h.adapt()
	}
	h.compare(dt, c)
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

// compare brings the parts up to date.
func (h *hazl) compare(dt float64, c *Counters) {
	sums := h.sums
	clear(sums)
	for i := range h.parts {
		h.parts[i].active = 0
	}
	add := func(group, e int) {
		h.parts[group].active++
		if e < len(c.Endpoints) {
			sums[group].InFlight += max(0, c.Endpoints[e].InFlight)
			sums[group].OK += c.Endpoints[e].OK
			sums[group].Latency += c.Endpoints[e].Latency
		}
	}
	for _, e := range h.groups[0].Endpoints {
		add(0, e)
	}
	for _, p := range h.extra[:h.added] {
		add(p.group, p.endpoint)
	}
	for i := range h.parts {
		if h.parts[i].active > 0 {
			h.parts[i].see(dt, sums[i])
		}
	}
}

// share is the part of the requests that choices of two among all active endpoints give to a group. Two of the same group
// leave it to the group; of two groups the one with less load wins, as often as it has less: loads vary from request to
// request, so that an equal mean is half of the wins, and ten times the mean a tenth of what the other has.
func (h *hazl) share(group int, all float64) float64 {
	mine := &h.parts[group]
	sum := mine.active
	for i := range h.parts {
		other := &h.parts[i]
		if i != group && other.active > 0 {
			sum += 2 * other.active * other.load() / (mine.load() + other.load())
		}
	}
	return mine.active / all * sum / all
}

// decision gives each group its share.
func (h *hazl) decision() Decision {
	d := Decision{
		Cap: DefaultConstants().Cap, Routes: h.routes[:0], Groups: h.status,
		State: h.story.state, Reason: h.story.reason, Since: h.story.since,
	}
	home := len(h.groups[0].Endpoints)
	all := float64(home + h.added)
	switch {
	case all == 0:
		d.Routes = append(d.Routes, Route{Group: 0, Share: 1})
	case home > 0:
		d.Routes = append(d.Routes, Route{Group: 0, Share: h.share(0, all)})
	}
	from := 0 // of the endpoints of the last route
	for i, p := range h.extra[:h.added] {
		if n := len(d.Routes); n == 0 || d.Routes[n-1].Group != p.group {
			d.Routes = append(d.Routes, Route{Group: p.group, Share: h.share(p.group, all)})
			from = i
		}
		d.Routes[len(d.Routes)-1].Endpoints = h.numbers[from : i+1]
	}
	clear(d.Groups)
	for _, r := range d.Routes {
		d.Groups[r.Group].Share = r.Share
	}
	h.routes = d.Routes
	return d
}
