package overflow_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// both wraps a change into one that begins with the stress and one that ends it.
func both(begin, end func(w *world)) []at { return []at{{0, begin}, {stressFor, end}} }

func rate(zone int, factor float64) []at {
	return both(func(w *world) { w.rates = scaled(w.rates, zone, factor) },
		func(w *world) { w.rates = scaled(w.rates, zone, 1/factor) })
}

func scaled(rates []float64, zone int, factor float64) []float64 {
	out := append([]float64(nil), rates...)
	out[zone] *= factor
	return out
}

// each changes every nth endpoint of zone 0 for the time of the stress.
func each(nth int, change, back func(s *server)) []at {
	apply := func(f func(*server)) func(*world) {
		return func(w *world) {
			for i, s := range w.zone(0) {
				if i%nth == 0 {
					f(s)
				}
			}
		}
	}
	return both(apply(change), apply(back))
}

func scenarios() []scenario {
	const good = 100 * time.Millisecond // five times the service time
	with := func(name string, change func(l *layout), start []at) scenario {
		l := usual()
		if change != nil {
			change(&l)
		}
		return scenario{name: name, layout: l, start: start, good: good}
	}
	slow := func(f float64) func(*server) { return func(s *server) { s.slow = f } }
	fails := func(f float64) func(*server) { return func(s *server) { s.fails = f } }
	lost := func(v bool) func(*server) { return func(s *server) { s.lost = v } }
	delay := func(d time.Duration) func(*server) { return func(s *server) { s.delay = d } }
	all := func(f float64) []at {
		times := func(f float64) func(*world) {
			return func(w *world) {
				for z := range w.rates {
					w.rates = scaled(w.rates, z, f)
				}
			}
		}
		return both(times(f), times(1/f))
	}
	uneven := with("5/1/1", func(l *layout) {
		l.endpoints = []int{5, 1, 1}
		l.rates = []float64{257, 257, 257}
	}, nil)
	uneven.affect = []int{0, 1, 2}
	return []scenario{
		with("steady", nil, nil),
		with("skew 70 %", nil, both(
			func(w *world) { w.rates = []float64{1386, 297, 297} },
			func(w *world) { w.rates = []float64{660, 660, 660} })),
		with("spike x3", func(l *layout) { l.rates = []float64{460, 460, 460} }, rate(0, 3)),
		with("brownout x10", nil, each(1, slow(10), slow(1))),
		with("+200 ms network", nil, each(1, delay(200*time.Millisecond), delay(0))),
		with("half fail", nil, each(2, fails(1), fails(0))),
		with("A fails 50 %", nil, each(1, fails(.5), fails(0))),
		with("zone lost", nil, each(1, lost(true), lost(false))),
		uneven,
		with("600 clients x 3 rps", func(l *layout) {
			l.clients = make([]float64, 200)
			for i := range l.clients {
				l.clients[i] = 1. / 200
			}
			l.rates = []float64{600, 600, 600}
		}, rate(0, 2)),
		with("all at 110 %", nil, all(2)),
		with("2 % long polls", func(l *layout) { l.polls, l.timeout = .02, 10*time.Second }, nil),
	}
}

func policies() []policy {
	return []policy{
		{name: "Weir"},
		{name: "Hazl", options: mirrorOptions{union: true, trips: 7}},
		{name: "Static"},
		{name: "Random"},
	}
}

func TestTable(t *testing.T) {
	only := os.Getenv("SC")
	pol := os.Getenv("PO")
	for _, sc := range scenarios() {
		for _, p := range policies() {
			if only != "" && !strings.Contains(only, sc.name) || pol != "" && pol != p.name {
				continue
			}
			for seed := uint64(1); seed <= 2; seed++ {
				begin := time.Now()
				r := sc.run(t, p, seed)
				fmt.Printf("%-20s %-7s good %5.1f ok %5.1f cross %5.1f calm %5.2f react %5.1f back %5.1f osc %4.1f p99 %4d  (%d ms)\n",
					sc.name, p.name, r.good*100, r.ok*100, r.cross*100, r.calmCross*100, r.react.Seconds(), r.retract.Seconds(),
					r.oscillation*100, r.p99.Milliseconds(), time.Since(begin).Milliseconds())
				if os.Getenv("TL") != "" {
					for d := 0; d < len(r.tape.all); d += 20 {
						s := sum(r.tape.all, time.Duration(d)*100*time.Millisecond, time.Duration(d+20)*100*time.Millisecond)
						a := sum(r.tape.affected, time.Duration(d)*100*time.Millisecond, time.Duration(d+20)*100*time.Millisecond)
						fmt.Printf("%d:%.1f/%.1f/%.1f ", d/10, 100-100*s.of(s.home), 100-100*a.of(a.home), 100*a.of(a.good))
					}
					fmt.Println()
				}
			}
		}
	}
}
