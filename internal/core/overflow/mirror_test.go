package overflow_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
)

// mirror is the model's balancer: the strategy under test, counters as the pool keeps them, and the simplest pick that
// does what docs/overflow-law.md 6 says.
type mirror struct {
	w        *world
	zone     int
	strategy overflow.Strategy
	scene    overflow.Scene
	decision overflow.Decision
	counters overflow.Counters
	peers    []peer // one for each endpoint of the world
	group    []int  // of each endpoint; -1: not in the scene
	open     []*request
	u        float64
	random   *rand.Rand
	tick     time.Duration
	options  mirrorOptions
	trace    func(now time.Duration, d *overflow.Decision)
}

// mirrorOptions are what the comparisons need.
type mirrorOptions struct {
	union  bool // Hazl: two choices among all active endpoints, by peak EWMA
	noAges bool // leave the age of unanswered requests out
	trips  int  // consecutive failures until an endpoint sits out
}

// peer is what the client knows of an endpoint.
type peer struct {
	inFlight          int64
	n, slowdowns      float64 // decayed over 2 s
	newN, newSlowdown float64 // since the tick before
	ewma              float64 // seconds, peak EWMA
	heard             time.Duration
	failures          int
	until             time.Duration // sits out
	pause             time.Duration
	probation         bool
}

func newMirror(w *world, client int, s overflow.Strategy, o mirrorOptions) *mirror {
	c := w.callers[client]
	m := &mirror{w: w, zone: c.zone, strategy: s, options: o, random: w.random(3, client)}
	m.peers = make([]peer, len(w.servers))
	m.group = make([]int, len(w.servers))
	m.u = m.random.Float64()
	if m.options.trips == 0 {
		m.options.trips = 5
	}
	m.scene = sceneOf(w, c.zone)
	m.reset()
	return m
}

// sceneOf groups the world's endpoints for a client: home first, then the other zones.
func sceneOf(w *world, home int) overflow.Scene {
	zones := []int{home}
	for z := range w.endpoints {
		if z != home {
			zones = append(zones, z)
		}
	}
	scene := overflow.Scene{Endpoints: len(w.servers)}
	for _, z := range zones {
		g := overflow.Group{Zone: topology.Zone(rune('a' + z))}
		if z != home {
			g.Cost = 1
		}
		for i, s := range w.servers {
			if s.zone == z {
				g.Endpoints = append(g.Endpoints, i)
			}
		}
		if len(g.Endpoints) > 0 {
			scene.Groups = append(scene.Groups, g)
		}
	}
	return scene
}

func (m *mirror) reset() {
	for i := range m.group {
		m.group[i] = -1
	}
	for g, group := range m.scene.Groups {
		for _, e := range group.Endpoints {
			m.group[e] = g
		}
	}
	m.counters.Groups = make([]overflow.GroupCounters, len(m.scene.Groups))
	m.counters.Endpoints = make([]overflow.EndpointCounters, m.scene.Endpoints)
	m.strategy.Reset(m.w.now, m.scene)
	m.decision = m.strategy.Step(m.w.now, m.count())
}

// Pick implements balancer.
func (m *mirror) Pick(now time.Duration, r *request) int {
	e := m.pick(now)
	if e < 0 {
		return e
	}
	m.peers[e].inFlight++
	m.counters.Groups[m.group[e]].Sent++
	r.slot = len(m.open)
	m.open = append(m.open, r)
	return e
}

func (m *mirror) pick(now time.Duration) int {
	if m.options.union {
		var all []int
		for _, r := range m.decision.Routes {
			all = append(all, m.members(r)...)
		}
		return m.choose(now, all)
	}
	m.u = math.Mod(m.u+0.6180339887498949, 1)
	u := m.u
	for _, r := range m.decision.Routes {
		if u < r.Share {
			return m.choose(now, m.members(r))
		}
		u -= r.Share
	}
	if m.decision.Shed > 0 {
		return -1
	}
	return m.choose(now, m.members(m.decision.Routes[0]))
}

func (m *mirror) members(r overflow.Route) []int {
	if r.Endpoints != nil {
		return r.Endpoints
	}
	return m.scene.Groups[r.Group].Endpoints
}

// choose takes the better of two of those that do not sit out.
func (m *mirror) choose(now time.Duration, from []int) int {
	usable := make([]int, 0, 32)
	for _, e := range from {
		p := &m.peers[e]
		if p.until > 0 && now >= p.until && !p.probation {
			p.probation = true
			return e
		}
		if p.until == 0 {
			usable = append(usable, e)
		}
	}
	if len(usable) == 0 {
		usable = append(usable, from...)
	}
	a := usable[m.random.IntN(len(usable))]
	if len(usable) == 1 {
		return a
	}
	b := a
	for b == a {
		b = usable[m.random.IntN(len(usable))]
	}
	if m.load(b, now) < m.load(a, now) {
		return b
	}
	return a
}

func (m *mirror) load(e int, now time.Duration) float64 {
	p := &m.peers[e]
	pending := float64(p.inFlight + 1)
	if m.options.union {
		const decay = 10.0 // seconds, and 30 ms before the first answer: linkerd2-proxy
		if p.heard == 0 {
			return 0.030 * pending
		}
		return p.ewma * math.Exp(-(now-p.heard).Seconds()/decay) * pending
	}
	return pending * (p.slowdowns + 2) / (p.n + 2)
}

// Done implements balancer.
func (m *mirror) Done(now time.Duration, r *request) {
	last := m.open[len(m.open)-1]
	m.open[r.slot], last.slot = last, r.slot
	m.open = m.open[:len(m.open)-1]
	p := &m.peers[r.server]
	p.inFlight--
	took := now - r.sent
	m.breaker(now, r)
	slowdown := m.decision.Cap
	if b := m.decision.Baseline; r.ok && b > 0 {
		slowdown = min(slowdown, took.Seconds()/b.Seconds())
	} else if r.ok {
		slowdown = 1
	}
	p.newN++
	p.newSlowdown += slowdown
	p.peak(now, took)
	m.sample(r, took)
}

// sample counts an answer for the strategy, unless it was counted as overdue before.
func (m *mirror) sample(r *request, took time.Duration) {
	g := m.group[r.server]
	if r.overdue || g < 0 {
		return
	}
	in := &m.counters.Groups[g]
	if !r.ok {
		in.Failed++
		return
	}
	if b := m.decision.Baseline; b > 0 {
		took = min(took, time.Duration(m.decision.Cap*float64(b)))
	}
	in.OK++
	in.Latency += took
}

func (p *peer) peak(now time.Duration, took time.Duration) {
	const decay = 10.0
	keep := math.Exp(-(now - p.heard).Seconds() / decay)
	p.ewma = max(took.Seconds(), p.ewma*keep+took.Seconds()*(1-keep))
	p.heard = now
}

// crowded tells whether half of a group sits out already; more never do.
func (m *mirror) crowded(g int) bool {
	if g < 0 {
		return true
	}
	out := 0
	for _, e := range m.scene.Groups[g].Endpoints {
		if m.peers[e].until > 0 {
			out++
		}
	}
	return 2*(out+1) > len(m.scene.Groups[g].Endpoints)
}

// breaker lets an endpoint sit out after failures in a row, for 1, 2, 4 … 30 s, until one request succeeds.
func (m *mirror) breaker(now time.Duration, r *request) {
	p, g := &m.peers[r.server], m.group[r.server]
	if r.ok {
		p.failures, p.until, p.pause, p.probation = 0, 0, 0, false
		return
	}
	p.failures++
	if p.failures < m.options.trips || p.until > 0 && !p.probation || p.until == 0 && m.crowded(g) {
		return
	}
	p.pause = min(max(2*p.pause, time.Second), 30*time.Second)
	p.until, p.probation = now+p.pause, false
}

// Tick implements balancer.
func (m *mirror) Tick(now time.Duration) {
	dt := (now - m.tick).Seconds()
	m.tick = now
	for i := range m.peers {
		p := &m.peers[i]
		keep := math.Exp(-dt / 2)
		p.n, p.slowdowns = p.n*keep+p.newN, p.slowdowns*keep+p.newSlowdown
		p.newN, p.newSlowdown = 0, 0
	}
	m.decision = m.strategy.Step(now, m.count())
	for i := range m.counters.Groups {
		m.counters.Groups[i] = overflow.GroupCounters{}
	}
	if m.trace != nil {
		m.trace(now, &m.decision)
	}
}

// count completes the counters with what is read, not added up: ages, round trips, usable endpoints.
func (m *mirror) count() *overflow.Counters {
	for g := range m.counters.Groups {
		in := &m.counters.Groups[g]
		in.RTT = m.w.cross
		if g == 0 {
			in.RTT = m.w.rtt
		}
		in.Usable = 0
		for _, e := range m.scene.Groups[g].Endpoints {
			if p := &m.peers[e]; p.until == 0 || m.w.now >= p.until {
				in.Usable++
			}
		}
	}
	for e := range m.counters.Endpoints {
		m.counters.Endpoints[e].InFlight = m.peers[e].inFlight
	}
	m.ages()
	return &m.counters
}

func (m *mirror) ages() {
	b := m.decision.Baseline.Seconds()
	if b == 0 || m.options.noAges {
		return
	}
	for _, r := range m.open {
		g := m.group[r.server]
		age := (m.w.now - r.sent).Seconds() / b
		if g < 0 || r.overdue || age <= 1 {
			continue
		}
		in := &m.counters.Groups[g]
		if age > 2*m.decision.Cap {
			r.overdue = true
			in.Failed++
			continue
		}
		in.Waiting++
		in.Aged += min(age, m.decision.Cap)
	}
}

// Discover implements balancer.
func (m *mirror) Discover(_ time.Duration, usable func(*server) bool) {
	m.scene = sceneOf(m.w, m.zone)
	for g := range m.scene.Groups {
		m.scene.Groups[g].Endpoints = slices.DeleteFunc(m.scene.Groups[g].Endpoints, func(e int) bool {
			return !usable(m.w.servers[e])
		})
	}
	m.scene.Groups = slices.DeleteFunc(m.scene.Groups, func(g overflow.Group) bool { return len(g.Endpoints) == 0 })
	m.reset()
}
