package sim_test

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// twin is the dumb twin of simulator, plan, aim and pool together: it plays a scenario whose steps are rate and slow with
// functions in a heap, and clients that count for the law in plain fields. It knows no discovery, no full queue, no
// ejection and no age of what is not answered, so that it is good for scenarios in which those do not matter.
type twin struct {
	sc      *scenario.Scenario
	now     time.Duration
	agenda  agenda
	random  *rand.Rand
	factors map[topology.Zone]float64 // on rates
	pods    []*twinPod

	affected, good, all, crossed float64 // requests of the stress
}

// happening is what happens at a time.
type happening struct {
	at time.Duration
	do func()
}

// agenda is a heap of happenings.
type agenda []happening

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(happening)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// twinPod is an endpoint.
type twinPod struct {
	zone    topology.Zone
	slow    float64
	busy    int
	waiting []func() // first come first served
}

// twinClient counts for the law what it sees, and chooses as it says.
type twinClient struct {
	zone     topology.Zone
	number   int // by which it turns the order of the other zones
	rate     float64
	law      overflow.Strategy
	layout   overflow.Layout
	decision overflow.Decision
	counters overflow.Counters
	peers    []twinPeer // one for each pod
}

// twinPeer is what a client knows of a pod: answers and the sum of their slowdowns, of the last two seconds.
type twinPeer struct {
	inFlight     int64
	n, slowdowns float64
}

// playTwin plays a scenario with the twin.
func playTwin(t *testing.T, sc *scenario.Scenario, seed uint64) *twin {
	t.Helper()
	w := &twin{sc: sc, random: rand.New(rand.NewPCG(seed, 0)), factors: make(map[topology.Zone]float64)}
	for _, e := range sc.Snapshot.Services[0].Endpoints {
		w.pods = append(w.pods, &twinPod{zone: e.Zone, slow: 1})
	}
	for _, zone := range sc.Clients {
		w.factors[zone.Zone] = 1
	}
	for _, zone := range sc.Clients {
		for i, share := range zone.Shares {
			law, err := overflow.New("Weir", overflow.Config{})
			if err != nil {
				t.Fatal(err)
			}
			w.join(&twinClient{zone: zone.Zone, number: i, rate: zone.Rate * share, law: law, peers: make([]twinPeer, len(w.pods))})
		}
	}
	for _, st := range sc.Steps {
		w.in(st.At, func() { w.applyFault(t, st) })
	}
	for len(w.agenda) > 0 {
		h := heap.Pop(&w.agenda).(happening)
		if w.now = h.at; w.now > sc.Length {
			break
		}
		h.do()
	}
	return w
}

func (w *twin) in(d time.Duration, do func()) { heap.Push(&w.agenda, happening{w.now + d, do}) }

func (w *twin) applyFault(t *testing.T, st scenario.Step) {
	t.Helper()
	for zone := range w.factors {
		if st.Verb == scenario.Rate && (st.Where.Zone == zone || st.Where.Zone == "") {
			w.factors[zone] = st.Factor
		}
	}
	for _, p := range w.pods {
		switch {
		case st.Verb == scenario.Rate || st.Where.Zone != p.zone:
		case st.Verb == scenario.Slow:
			p.slow = st.Factor
		case st.Verb == scenario.Heal:
			p.slow = 1
		default:
			t.Fatalf("the twin knows no %s", st.Verb)
		}
	}
}

// join lets a client begin: its zone is home, any other costs 1.
func (w *twin) join(c *twinClient) {
	zones := []topology.Zone{c.zone}
	for _, p := range w.pods {
		if !slices.Contains(zones, p.zone) {
			zones = append(zones, p.zone)
		}
	}
	others := zones[1:]
	slices.Sort(others)
	others = slices.Concat(others[c.number%len(others):], others[:c.number%len(others)])
	zones = append(zones[:1], others...)
	c.layout.Endpoints = len(w.pods)
	for i, zone := range zones {
		g := overflow.Group{Zone: zone, Cost: topology.Cost(min(i, 1))}
		for e, p := range w.pods {
			if p.zone == zone {
				g.Endpoints = append(g.Endpoints, e)
			}
		}
		c.layout.Groups = append(c.layout.Groups, g)
	}
	c.law.Reset(0, c.layout)
	w.step(c)
	w.in(w.gap(c), func() { w.send(c) })
	w.in(time.Duration(w.random.Int64N(int64(100*time.Millisecond))), func() { w.tick(c) })
}

func (w *twin) gap(c *twinClient) time.Duration {
	return time.Duration(w.random.ExpFloat64() / (c.rate * w.factors[c.zone]) * float64(time.Second))
}

func (w *twin) tick(c *twinClient) {
	w.step(c)
	for i := range c.peers {
		keep := math.Exp(-0.1 / 2)
		c.peers[i].n *= keep
		c.peers[i].slowdowns *= keep
	}
	w.in(100*time.Millisecond, func() { w.tick(c) })
}

// step tells the law what was counted since the last time.
func (w *twin) step(c *twinClient) {
	if c.counters.Groups == nil {
		c.counters.Groups = make([]overflow.GroupCounters, len(c.layout.Groups))
	}
	for i, g := range c.layout.Groups {
		in := &c.counters.Groups[i]
		in.Usable = len(g.Endpoints)
		if in.RTT = w.sc.Network.CrossZone; i == 0 {
			in.RTT = w.sc.Network.SameZone
		}
	}
	c.decision = c.law.Step(w.now, &c.counters)
	clear(c.counters.Groups)
}

// choose takes a group by the shares, and the better of two of its pods.
func (w *twin) choose(c *twinClient) (group, pod int) {
	u := w.random.Float64()
	for _, r := range c.decision.Routes {
		if group = r.Group; u < r.Share {
			break
		}
		u -= r.Share
	}
	from := c.layout.Groups[group].Endpoints
	load := func(e int) float64 {
		p := &c.peers[e]
		return float64(p.inFlight+1) * (p.slowdowns + 2) / (p.n + 2)
	}
	a := w.random.IntN(len(from))
	b := (a + 1 + w.random.IntN(len(from)-1)) % len(from)
	if load(from[b]) < load(from[a]) {
		a = b
	}
	return group, from[a]
}

// send makes one request, and the next one.
func (w *twin) send(c *twinClient) {
	w.in(w.gap(c), func() { w.send(c) })
	group, e := w.choose(c)
	pod, sent, done := w.pods[e], w.now, false
	c.peers[e].inFlight++
	c.counters.Groups[group].Sent++
	hear := func(v verdict) {
		if done {
			return
		}
		done = true
		v.took = w.now - sent
		c.count(&c.counters.Groups[group], v)
		p := &c.peers[e]
		p.inFlight--
		p.n++
		p.slowdowns += c.slowdown(v)
		w.count(c, pod, v)
	}
	w.in(w.sc.Request.Timeout, func() { hear(verdict{}) })
	w.in(w.way(c, pod), func() {
		w.serve(pod, func() { w.in(w.way(c, pod), func() { hear(verdict{ok: true}) }) })
	})
}

// verdict is what became of a request.
type verdict struct {
	ok   bool
	took time.Duration
}

// slowdown is how many baselines an answer took.
func (c *twinClient) slowdown(v verdict) float64 {
	switch {
	case !v.ok:
		return c.decision.Cap
	case c.decision.Baseline == 0:
		return 1
	default:
		return min(c.decision.Cap, float64(v.took)/float64(c.decision.Baseline))
	}
}

// count counts an answer for the law.
func (c *twinClient) count(in *overflow.GroupCounters, v verdict) {
	if !v.ok {
		in.Failed++
		return
	}
	in.OK++
	if b := c.decision.Baseline; b > 0 {
		v.took = min(v.took, time.Duration(c.decision.Cap*float64(b)))
	}
	in.Latency += v.took
}

// count is what the run comes to.
func (w *twin) count(c *twinClient, pod *twinPod, v verdict) {
	sent := w.now - v.took
	if sent < w.sc.Stress.From || sent >= w.sc.Stress.To {
		return
	}
	w.all++
	if pod.zone != c.zone {
		w.crossed++
	}
	if slices.Contains(w.sc.Affected, c.zone) {
		w.affected++
		if v.ok && v.took <= 5*w.sc.Server.Service.Mean {
			w.good++
		}
	}
}

func (w *twin) way(c *twinClient, pod *twinPod) time.Duration {
	rtt := w.sc.Network.CrossZone
	if pod.zone == c.zone {
		rtt = w.sc.Network.SameZone
	}
	return time.Duration(float64(rtt) / 2 * (1 + w.sc.Network.Jitter*w.random.ExpFloat64()))
}

// serve does the work when a worker is free.
func (w *twin) serve(p *twinPod, answer func()) {
	if p.busy == w.sc.Server.Workers {
		p.waiting = append(p.waiting, answer)
		return
	}
	p.busy++
	d := w.sc.Server.Service
	sigma2 := math.Log(1 + d.CV*d.CV)
	took := float64(d.Mean) * p.slow * math.Exp(math.Sqrt(sigma2)*w.random.NormFloat64()-sigma2/2)
	w.in(time.Duration(took), func() {
		answer()
		p.busy--
		if len(p.waiting) > 0 {
			next := p.waiting[0]
			p.waiting = p.waiting[1:]
			w.serve(p, next)
		}
	})
}

// Two seeds differ by a point by chance; of 24 the shares agree within 0.15 points.
func TestTheSimulatorAgreesWithItsDumbTwin(t *testing.T) {
	for _, name := range []string{"skew", "brownout"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := story(t, name)
			sc.Length = sc.Stress.To
			const seeds = 8
			var good, cross, twinGood, twinCross float64
			for seed := range uint64(seeds) {
				r, twin := run(t, sc, named(t, "weir"), 1+seed), playTwin(t, sc, 1+seed)
				good, cross = good+r.Affected.Good/seeds, cross+(1-r.Window.InZone)/seeds
				twinGood, twinCross = twinGood+twin.good/twin.affected/seeds, twinCross+twin.crossed/twin.all/seeds
			}
			t.Logf("good %.4f, the twin's %.4f; cross %.4f, the twin's %.4f", good, twinGood, cross, twinCross)
			near(t, "good share", good, about{twinGood, 0.01})
			near(t, "cross-zone share", cross, about{twinCross, 0.01})
		})
	}
}
