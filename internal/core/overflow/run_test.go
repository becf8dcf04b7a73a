package overflow_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
)

// scenario is a layout and what happens to it; zone 0 is the affected one.
type scenario struct {
	name   string
	layout layout
	start  []at          // of the stress, times since its begin
	good   time.Duration // an answer within this is good
	affect []int         // zones of the clients that count; nil: zone 0
}

// The course of a scenario: calm, stress, and a while after it.
const (
	calmFor   = 20 * time.Second
	stressFor = 60 * time.Second
	afterFor  = 25 * time.Second
)

// never stands for a moment that did not come.
const never = -time.Second

// policy is a strategy in the model.
type policy struct {
	name    string
	config  overflow.Config
	options mirrorOptions
}

// result is what the clients saw.
type result struct {
	good, ok    float64       // fraction of the affected clients' requests, under stress
	cross       float64       // fraction of all requests under stress that left their zone
	calmCross   float64       // the same while calm, from 5 s on
	react       time.Duration // until the affected clients' requests are nearly as good as before; -1: never
	retract     time.Duration // after the stress, until all but 2 % are at home; -1: never
	oscillation float64       // standard deviation of the affected clients' spill from second to second, last half
	p99         time.Duration
	shed        float64
	tape        *tape
}

// tally counts one tenth of a second.
type tally struct{ sent, good, ok, home int }

func (sc scenario) run(tb testing.TB, p policy, seed uint64) result {
	tb.Helper()
	l := sc.layout
	l.seed = seed
	l.make = func(w *world, client int) balancer {
		c := p.config
		c.Rotate = uint64(client)
		s, err := overflow.New(p.name, c)
		if err != nil {
			tb.Fatal(err)
		}
		return newMirror(w, client, s, p.options)
	}
	w := l.build()
	for _, a := range sc.start {
		w.shift = append(w.shift, at{calmFor + a.when, a.do})
	}
	slices.SortStableFunc(w.shift, func(a, b at) int { return int(a.when - b.when) })
	log := newLog(sc)
	w.watch = func(r *request, took time.Duration, ok bool) { log.add(w, r, took, ok) }
	w.run(calmFor + stressFor + afterFor)
	return log.result()
}

// tape is what happened, by tenths of a second of sending.
type tape struct {
	sc                   scenario
	affected             []tally
	all                  []tally
	latencies            []time.Duration // of the affected clients under stress
	rejected, underfire  int
	affectedZone         map[int]bool
	_                    struct{}
	crossCalm, totalCalm int
}

func newLog(sc scenario) *tape {
	n := int((calmFor+stressFor+afterFor)/(100*time.Millisecond)) + 1
	t := &tape{sc: sc, affected: make([]tally, n), all: make([]tally, n), affectedZone: map[int]bool{}}
	zones := sc.affect
	if zones == nil {
		zones = []int{0}
	}
	for _, z := range zones {
		t.affectedZone[z] = true
	}
	return t
}

func (t *tape) add(w *world, r *request, took time.Duration, ok bool) {
	bin := int(r.sent / (100 * time.Millisecond))
	if bin >= len(t.all) {
		return
	}
	zone := w.callers[r.caller].zone
	home := r.server < 0 || w.servers[r.server].zone == zone
	stress := r.sent >= calmFor && r.sent < calmFor+stressFor
	rows := []*tally{&t.all[bin]}
	if t.affectedZone[zone] {
		rows = append(rows, &t.affected[bin])
		if stress {
			if !ok {
				took = w.timeout
			}
			t.latencies = append(t.latencies, took)
			t.underfire++
			if r.server < 0 {
				t.rejected++
			}
		}
	}
	for _, row := range rows {
		row.sent++
		if ok {
			row.ok++
		}
		if ok && took <= t.sc.good {
			row.good++
		}
		if home {
			row.home++
		}
	}
}

func sum(rows []tally, from, to time.Duration) tally {
	var s tally
	const bin = 100 * time.Millisecond
	for _, r := range rows[min(len(rows), int(from/bin)):min(len(rows), int(to/bin))] {
		s.sent += r.sent
		s.good += r.good
		s.ok += r.ok
		s.home += r.home
	}
	return s
}

func (t tally) of(n int) float64 { return float64(n) / math.Max(1, float64(t.sent)) }

func (t *tape) result() result {
	end := calmFor + stressFor
	calm, stress := sum(t.affected, 5*time.Second, calmFor), sum(t.affected, calmFor, end)
	all, quiet := sum(t.all, calmFor, end), sum(t.all, 5*time.Second, calmFor)
	r := result{
		good: stress.of(stress.good), ok: stress.of(stress.ok),
		cross: 1 - all.of(all.home), calmCross: 1 - quiet.of(quiet.home),
		tape: t, react: never, retract: never, shed: float64(t.rejected) / math.Max(1, float64(t.underfire)),
	}
	const second, bin = time.Second, 100 * time.Millisecond
	for d := time.Duration(0); d < stressFor-second; d += bin {
		if s := sum(t.affected, calmFor+d, calmFor+d+second); s.of(s.good) >= 0.95*calm.of(calm.good) {
			r.react = d
			break
		}
	}
	for d := time.Duration(0); d < afterFor-second; d += bin {
		if s := sum(t.affected, end+d, end+d+second); s.of(s.home) >= 0.98 {
			r.retract = d
			break
		}
	}
	var spills []float64
	for d := calmFor + stressFor/2; d < end; d += second {
		s := sum(t.affected, d, d+second)
		spills = append(spills, 1-s.of(s.home))
	}
	r.oscillation = deviation(spills)
	slices.Sort(t.latencies)
	if n := len(t.latencies); n > 0 {
		r.p99 = t.latencies[n*99/100]
	}
	return r
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
