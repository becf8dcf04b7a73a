package overflow_test

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
)

// The model of docs/adr/0006-overflow-law.md: clients send Poisson traffic to endpoints with a few workers, a FIFO queue
// and lognormal service times, over a network with a round trip, and give up after a timeout. One heap of events, one
// seeded generator for each actor, no goroutines: the same seed gives the same run.

// balancer chooses endpoints for one client: mirror, the model's own, or pooled, the real pool.
type balancer interface {
	Pick(now time.Duration, r *request) int // index of an endpoint; -1: rejected
	Done(now time.Duration, r *request)
	Tick(now time.Duration)
	Discover(now time.Duration, usable func(*server) bool) // which endpoints there are
}

// layout is a world before it runs.
type layout struct {
	endpoints  []int // in each zone
	workers    int
	service    time.Duration // mean
	cv         float64
	queue      int
	timeout    time.Duration
	rtt, cross time.Duration // round trips in a zone and between zones
	clients    []float64     // shares of a zone's traffic, one for each client of a zone
	rates      []float64     // requests per second of each zone
	polls      float64       // fraction of requests that just wait for 5 s
	seed       uint64
	make       func(w *world, client int) balancer
}

// usual is the layout of 6.1: three zones of six endpoints at 55 % of what they can do.
func usual() layout {
	return layout{
		endpoints: []int{6, 6, 6}, workers: 4, service: 20 * time.Millisecond, cv: 1, queue: 250, timeout: time.Second,
		rtt: 300 * time.Microsecond, cross: 1200 * time.Microsecond,
		clients: []float64{.30, .20, .15, .10, .10, .07, .05, .03},
		rates:   []float64{660, 660, 660}, seed: 1,
	}
}

// world is a running model.
type world struct {
	layout
	now     time.Duration
	events  events
	servers []*server
	callers []*caller
	shift   []at // what happens when, in order
	watch   func(r *request, latency time.Duration)
}

// at is something that happens to the world.
type at struct {
	when time.Duration
	do   func(w *world)
}

// server is an endpoint.
type server struct {
	zone    int
	random  *rand.Rand
	busy    int
	waiting []*request
	slow    float64       // factor on service times
	fails   float64       // fraction of requests answered with an error, at once
	delay   time.Duration // extra network
	lost    bool          // swallows everything
}

// caller is a client.
type caller struct {
	zone   int
	share  float64
	random *rand.Rand
	balancer
}

// request is one attempt; a client sends it, an endpoint may serve it, the client hears or gives up.
type request struct {
	caller, server int
	sent           time.Duration
	poll           bool
	done, ok       bool
	slot           int         // mirror: where it is kept
	overdue        bool        // mirror: counted as failed
	ticket         pick.Ticket // pooled
}

// The kinds of events.
const (
	evSend = iota
	evArrive
	evServed
	evOK
	evFail
	evTick
)

func (l layout) build() *world {
	w := &world{layout: l}
	for z, n := range l.endpoints {
		for range n {
			w.servers = append(w.servers, &server{zone: z, slow: 1, random: l.random(1, len(w.servers))})
		}
	}
	for z := range l.endpoints {
		for _, share := range l.clients {
			w.callers = append(w.callers, &caller{zone: z, share: share, random: l.random(2, len(w.callers))})
		}
	}
	for i, c := range w.callers {
		c.balancer = l.make(w, i)
		w.events.push(event{at: w.gap(c), kind: evSend, index: i})
		first := time.Duration(c.random.Int64N(int64(100 * time.Millisecond)))
		w.events.push(event{at: first, kind: evTick, index: i})
	}
	return w
}

func (l layout) random(kind uint64, index int) *rand.Rand {
	return rand.New(rand.NewPCG(l.seed, kind<<32|uint64(index)))
}

// run moves the world to the end.
func (w *world) run(until time.Duration) {
	for w.now < until {
		e := w.events.pop()
		for len(w.shift) > 0 && w.shift[0].when <= e.at {
			w.now = w.shift[0].when
			w.shift[0].do(w)
			w.shift = w.shift[1:]
		}
		w.now = e.at
		w.handle(e)
	}
}

func (w *world) handle(e event) {
	switch e.kind {
	case evSend:
		w.events.push(event{at: w.now + w.gap(w.callers[e.index]), kind: evSend, index: e.index})
		w.send(e.index)
	case evArrive:
		w.arrive(e.request)
	case evServed:
		w.served(e.request)
	case evOK:
		e.request.ok = e.request.ok || !e.request.done
		w.hear(e.request)
	case evFail:
		w.hear(e.request)
	case evTick:
		w.callers[e.index].Tick(w.now)
		w.events.push(event{at: w.now + 100*time.Millisecond, kind: evTick, index: e.index})
	}
}

func (w *world) gap(c *caller) time.Duration {
	perSecond := max(w.rates[c.zone]*c.share, 1e-3)
	return time.Duration(c.random.ExpFloat64() / perSecond * float64(time.Second))
}

func (w *world) send(index int) {
	c := w.callers[index]
	r := &request{caller: index, sent: w.now, poll: w.polls > 0 && c.random.Float64() < w.polls}
	if r.server = c.Pick(w.now, r); r.server < 0 {
		w.watch(r, 0)
		return
	}
	w.events.push(event{at: w.now + w.timeout, kind: evFail, request: r})
	s := w.servers[r.server]
	w.events.push(event{at: w.now + w.way(c, s), kind: evArrive, request: r})
}

// way is the time from client to endpoint.
func (w *world) way(c *caller, s *server) time.Duration {
	if c.zone == s.zone {
		return (w.rtt + s.delay) / 2
	}
	return (w.cross + s.delay) / 2
}

func (w *world) arrive(r *request) {
	s := w.servers[r.server]
	switch {
	case s.lost:
	case r.poll:
		w.events.push(event{at: w.now + 5*time.Second, kind: evOK, request: r})
	case s.fails > 0 && s.random.Float64() < s.fails, len(s.waiting) >= w.queue:
		w.events.push(event{at: w.now + w.way(w.callers[r.caller], s), kind: evFail, request: r})
	case s.busy < w.workers:
		s.busy++
		w.serve(s, r)
	default:
		s.waiting = append(s.waiting, r)
	}
}

func (w *world) serve(s *server, r *request) {
	sigma2 := math.Log(1 + w.cv*w.cv)
	mean := w.service.Seconds() * s.slow
	took := mean * math.Exp(s.random.NormFloat64()*math.Sqrt(sigma2)-sigma2/2)
	w.events.push(event{at: w.now + time.Duration(took*float64(time.Second)), kind: evServed, request: r})
}

func (w *world) served(r *request) {
	s := w.servers[r.server]
	if !s.lost {
		w.events.push(event{at: w.now + w.way(w.callers[r.caller], s), kind: evOK, request: r})
	}
	if len(s.waiting) == 0 {
		s.busy--
		return
	}
	next := s.waiting[0]
	s.waiting = s.waiting[1:]
	w.serve(s, next)
}

// hear is the first outcome that reaches the client; the endpoint works on, whether anybody waits or not.
func (w *world) hear(r *request) {
	if r.done {
		return
	}
	r.done = true
	w.callers[r.caller].Done(w.now, r)
	w.watch(r, w.now-r.sent)
}

// zone gives the endpoints of a zone.
func (w *world) zone(z int) []*server {
	var in []*server
	for _, s := range w.servers {
		if s.zone == z {
			in = append(in, s)
		}
	}
	return in
}

// event is something at a time.
type event struct {
	at      time.Duration
	seq     uint64
	kind    int
	index   int
	request *request
}

// events is a binary heap by time, then by order of arrival.
type events struct {
	heap []event
	seq  uint64
}

func (h *events) less(i, j int) bool {
	if h.heap[i].at != h.heap[j].at {
		return h.heap[i].at < h.heap[j].at
	}
	return h.heap[i].seq < h.heap[j].seq
}

func (h *events) push(e event) {
	e.seq = h.seq
	h.seq++
	h.heap = append(h.heap, e)
	for i := len(h.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h.heap[i], h.heap[parent] = h.heap[parent], h.heap[i]
		i = parent
	}
}

func (h *events) pop() event {
	top := h.heap[0]
	last := len(h.heap) - 1
	h.heap[0] = h.heap[last]
	h.heap[last] = event{}
	h.heap = h.heap[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if h.less(child, least) {
				least = child
			}
		}
		if least == i {
			return top
		}
		h.heap[i], h.heap[least] = h.heap[least], h.heap[i]
		i = least
	}
}
