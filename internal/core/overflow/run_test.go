package overflow_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
)

// course is how long the parts of a run take: calm, stress, and a while after it.
type course struct{ calm, stress, after time.Duration }

// The courses: that of the study, and one that is long enough to see what tests look at.
func fullCourse() course  { return course{20 * time.Second, 60 * time.Second, 25 * time.Second} }
func shortCourse() course { return course{12 * time.Second, 24 * time.Second, time.Second} }

// never stands for a moment that did not come.
const never = -time.Second

// goodWithin is how soon an answer has to come to be good: five times the service time, as in the study.
const goodWithin = 100 * time.Millisecond

// policy is a strategy in the model.
type policy struct {
	name    string
	config  overflow.Config
	options mirrorOptions
	pooled  bool // choose endpoints with the real pool
}

// weir, hazl and the rest as the tables have them.
func policies() []policy {
	return []policy{
		{name: "Weir"},
		{name: "Hazl", options: mirrorOptions{union: true, trips: 7}},
		{name: "Static"},
		{name: "Random"},
	}
}

// result is what the clients saw.
type result struct {
	good, ok     float64       // fraction of the affected clients' requests, under stress
	cross        float64       // fraction of all requests under stress that left their zone
	calmCross    float64       // the same while calm, from 5 s on
	react        time.Duration // until a second of the affected clients' requests is nearly as good as before, or never
	back         time.Duration // after the stress, until all but 2 % are at home, or never
	oscillation  float64       // standard deviation of the affected clients' spill from second to second, last half
	p99          time.Duration
	neighbourP99 time.Duration // of the other clients
	shed         float64
}

// run plays the scenario.
func (sc scenario) run(tb testing.TB, p policy, c course, seed uint64) result {
	tb.Helper()
	l := sc.layout
	l.seed = seed
	l.make = func(w *world, client int) balancer {
		config := p.config
		config.Rotate = uint64(client)
		s, err := overflow.New(p.name, config)
		if err != nil {
			tb.Fatal(err)
		}
		if p.pooled {
			return newPooled(w, client, s)
		}
		return newMirror(w, client, s, p.options)
	}
	w := l.build()
	w.shift = sc.events(c)
	log := newTape(sc, c)
	w.watch = func(r *request, took time.Duration) { log.add(w, r, took) }
	w.run(c.calm + c.stress + c.after)
	return log.result()
}

// events gives what happens when, in order.
func (sc scenario) events(c course) []at {
	var list []at
	if sc.begin != nil {
		list = append(list, at{c.calm, sc.begin})
	}
	if sc.discovery > 0 && sc.discovery < c.stress {
		list = append(list, at{c.calm + sc.discovery, discover(func(s *server) bool { return s.zone > 0 })})
	}
	if sc.end != nil {
		list = append(list, at{c.calm + c.stress, sc.end})
	}
	if sc.discovery > 0 {
		list = append(list, at{c.calm + c.stress, discover(func(*server) bool { return true })})
	}
	return list
}

func discover(usable func(*server) bool) func(*world) {
	return func(w *world) {
		for _, c := range w.callers {
			c.Discover(w.now, usable)
		}
	}
}

// tape is what happened, by tenths of a second of sending.
type tape struct {
	sc         scenario
	course     course
	all        []tally
	affected   []tally
	latencies  []time.Duration // of the affected clients under stress
	neighbours []time.Duration // of the others
	rejected   int
}

// tally counts one tenth of a second.
type tally struct{ sent, good, ok, home int }

const bin = 100 * time.Millisecond

func newTape(sc scenario, c course) *tape {
	n := int((c.calm+c.stress+c.after)/bin) + 1
	return &tape{sc: sc, course: c, affected: make([]tally, n), all: make([]tally, n)}
}

func (t *tape) add(w *world, r *request, took time.Duration) {
	i := int(r.sent / bin)
	if i >= len(t.all) {
		return
	}
	if !r.ok {
		took = w.timeout
	}
	zone := w.callers[r.caller].zone
	one := tally{sent: 1}
	if r.server < 0 || w.servers[r.server].zone == zone {
		one.home = 1
	}
	if r.ok {
		one.ok = 1
		if took <= goodWithin {
			one.good = 1
		}
	}
	t.all[i].plus(one)
	stress := r.sent >= t.course.calm && r.sent < t.course.calm+t.course.stress
	if !slices.Contains(t.sc.affected, zone) {
		if stress {
			t.neighbours = append(t.neighbours, took)
		}
		return
	}
	t.affected[i].plus(one)
	if stress {
		t.latencies = append(t.latencies, took)
		if r.server < 0 {
			t.rejected++
		}
	}
}

func (t *tally) plus(o tally) {
	t.sent += o.sent
	t.good += o.good
	t.ok += o.ok
	t.home += o.home
}

func (t tally) share(n int) float64 { return float64(n) / math.Max(1, float64(t.sent)) }

// over adds up the bins of a stretch of time.
func over(rows []tally, from, length time.Duration) tally {
	var s tally
	for _, r := range rows[min(len(rows), int(from/bin)):min(len(rows), int((from+length)/bin))] {
		s.plus(r)
	}
	return s
}

func (t *tape) result() result {
	c := t.course
	end := c.calm + c.stress
	const settle = 5 * time.Second
	calm, stress := over(t.affected, settle, c.calm-settle), over(t.affected, c.calm, c.stress)
	quiet, all := over(t.all, settle, c.calm-settle), over(t.all, c.calm, c.stress)
	r := result{
		good: stress.share(stress.good), ok: stress.share(stress.ok),
		cross: 1 - all.share(all.home), calmCross: 1 - quiet.share(quiet.home),
		p99: p99(t.latencies), neighbourP99: p99(t.neighbours),
		shed: float64(t.rejected) / math.Max(1, float64(stress.sent)),
	}
	r.react = t.first(c.calm, c.stress, func(s tally) bool {
		return s.share(s.good) >= 0.95*calm.share(calm.good)
	})
	r.back = t.first(end, c.after, func(s tally) bool { return s.share(s.home) >= 0.98 })
	var spills []float64
	for d := c.calm + c.stress/2; d < end; d += time.Second {
		s := over(t.affected, d, time.Second)
		spills = append(spills, 1-s.share(s.home))
	}
	r.oscillation = deviation(spills)
	return r
}

// first finds the first second of the affected clients' requests of which something holds.
func (t *tape) first(from, within time.Duration, holds func(tally) bool) time.Duration {
	for d := time.Duration(0); d <= within-time.Second; d += bin {
		if holds(over(t.affected, from+d, time.Second)) {
			return d
		}
	}
	return never
}

func p99(of []time.Duration) time.Duration {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[len(of)*99/100]
}

func deviation(of []float64) float64 {
	var sum, squares float64
	for _, v := range of {
		sum += v
		squares += v * v
	}
	n := math.Max(1, float64(len(of)))
	return math.Sqrt(math.Max(0, squares/n-sum/n*sum/n))
}
