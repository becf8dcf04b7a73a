package overflow_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/overflow"
)

// The published measurement of docs/adr/0006-overflow-law.md: 30 requests a second from one client, three of nine
// endpoints in its zone, answers in 1 ms; then 400 ms more for the three, for a minute.
func measured() layout {
	l := usual()
	l.endpoints, l.clients, l.rates = []int{3, 3, 3}, []float64{1}, []float64{30, 0, 0}
	l.service, l.cv, l.timeout = time.Millisecond, 1, 10*time.Second
	return l
}

// trace is what the client saw of Hazl, second by second and at its extremes.
type trace struct {
	rest, peak         float64 // load, requests in flight
	active             int     // endpoints at the end of the stress
	remote             float64 // fraction of requests to other zones while expanded
	expanded, contract time.Duration
}

const (
	quiet   = 60 * time.Second
	trouble = 60 * time.Second
)

// measure runs the experiment: delay for the first n endpoints of the zone.
func measure(t *testing.T, seed uint64, delays ...time.Duration) trace {
	t.Helper()
	l := measured()
	l.seed = seed
	out := trace{expanded: never, contract: never}
	var load float64
	l.make = func(w *world, client int) balancer {
		s, err := overflow.New("hazl", overflow.Config{})
		if err != nil {
			t.Fatal(err)
		}
		m := newMirror(w, client, s, mirrorOptions{union: true, trips: 7})
		if client > 0 {
			return m
		}
		m.trace = func(now time.Duration, d *overflow.Decision) {
			active := 0
			var inFlight int64
			for _, r := range d.Routes {
				for _, e := range m.members(r) {
					active++
					inFlight += m.peers[e].inFlight
				}
			}
			keep := math.Exp(-0.1 / 10) // the twin of the strategy's load: 10 s, ten steps a second
			load = load*keep + float64(inFlight)*(1-keep)
			switch {
			case now < quiet:
				out.rest = load
			case now < quiet+trouble:
				out.peak, out.active = max(out.peak, load), active
				if active > 3 && out.expanded == never {
					out.expanded = now - quiet
				}
			case active == 3 && out.contract == never:
				out.contract = now - quiet - trouble
			}
		}
		return m
	}
	w := l.build()
	change := func(on bool) func(*world) {
		return func(w *world) {
			for i, d := range delays {
				w.servers[i].delay = 0
				if on {
					w.servers[i].delay = d
				}
			}
		}
	}
	w.shift = []at{{quiet, change(true)}, {quiet + trouble, change(false)}}
	var sent, remote float64
	w.watch = func(r *request, _ time.Duration) {
		if r.caller == 0 && out.expanded != never && r.sent > quiet+out.expanded && r.sent < quiet+trouble {
			sent++
			if w.servers[r.server].zone != 0 {
				remote++
			}
		}
	}
	w.run(quiet + trouble + 60*time.Second)
	out.remote = remote / max(1, sent)
	return out
}

func TestHazlModelAgreesWithThePublishedMeasurement(t *testing.T) {
	const d = 400 * time.Millisecond
	for seed := uint64(1); seed <= 3; seed++ {
		r := measure(t, seed, d, d, d)
		t.Logf("seed %d: %+v", seed, r)
		// Published 0.031, the study's model 0.038: 30 requests a second times about a millisecond.
		between(t, "load at rest", r.rest, [2]float64{0.01, 0.08})
		// Published 6.45, model 7.13; the band's top is 2.0 × 3 endpoints, so it cannot stay below.
		between(t, "peak load", r.peak, [2]float64{6, 8.5})
		// Published 3 → 4.
		between(t, "active endpoints", float64(r.active), [2]float64{4, 4})
		// Published 46 %: the added endpoint wins whenever it is one of the two that are compared, half of all times.
		between(t, "remote share", r.remote, [2]float64{0.41, 0.51})
		// Published 16 s and 12 s, model 8 s: 12 in flight, seen through a memory of 10 s, cross 6 after 7 s.
		between(t, "expanded after, s", r.expanded.Seconds(), [2]float64{6, 16})
		// Published 10 s, model 9 s.
		between(t, "contracted after, s", r.contract.Seconds(), [2]float64{4, 14})
	}
}

func TestHazlSeesOfABrownoutWhatTheBalancerHasNotAvoided(t *testing.T) {
	// Two of three endpoints get slower. Published peaks 4.7, 5.8 and 5.8, the study's model 6.1, 6.4 and 6.8: the
	// load grows far less than the delay, because the balancer avoids the slow ones.
	for _, d := range []time.Duration{500, 750, 900} {
		r := measure(t, 1, d*time.Millisecond, d*time.Millisecond)
		t.Logf("+%d ms: %+v", d, r)
		between(t, "peak load", r.peak, [2]float64{4, 8.5})
	}
}

func between(t *testing.T, what string, got float64, limits [2]float64) {
	t.Helper()
	if !(got >= limits[0] && got <= limits[1]) {
		t.Errorf("%s is %.3f: want %.3f to %.3f", what, got, limits[0], limits[1])
	}
}

func TestHazlMovesOneEndpointASecondCheapestZoneFirst(t *testing.T) {
	s, err := overflow.New("Hazl", overflow.Config{Low: 1, High: 2})
	if err != nil {
		t.Fatal(err)
	}
	s.Reset(0, overflow.Scene{Endpoints: 5, Groups: []overflow.Group{
		{Zone: "a", Endpoints: []int{0}},
		{Zone: "far", Cost: 4, Endpoints: []int{1, 2}},
		{Zone: "near", Cost: 1, Endpoints: []int{3, 4}},
	}})
	step := func(now time.Duration, inFlight int64) []overflow.Route {
		c := &overflow.Counters{Groups: make([]overflow.GroupCounters, 3), Endpoints: make([]overflow.EndpointCounters, 5)}
		c.Endpoints[0].InFlight = inFlight
		return s.Step(now, c).Routes
	}
	var got [][]overflow.Route
	for i := range 6 {
		load := int64(1000)
		if i > 3 {
			load = -1 // nonsense counts as nothing
		}
		got = append(got, step(time.Duration(i)*time.Second, load))
		got = append(got, step(time.Duration(i)*time.Second+500*time.Millisecond, load))
	}
	home := func(share float64) overflow.Route { return overflow.Route{Group: 0, Share: share} }
	near := func(share float64, e ...int) overflow.Route {
		return overflow.Route{Group: 2, Share: share, Endpoints: e}
	}
	far := func(share float64, e ...int) overflow.Route {
		return overflow.Route{Group: 1, Share: share, Endpoints: e}
	}
	want := [][]overflow.Route{
		{home(1)},
		{home(1)},
		{home(.5), near(.5, 3)},
		{home(.5), near(.5, 3)},
		{home(1. / 3), near(2./3, 3, 4)},
		{home(1. / 3), near(2./3, 3, 4)},
		{home(.25), near(.5, 3, 4), far(.25, 1)},
		{home(.25), near(.5, 3, 4), far(.25, 1)},
		{home(.2), near(.4, 3, 4), far(.4, 1, 2)},
		{home(.2), near(.4, 3, 4), far(.4, 1, 2)},
		{home(.2), near(.4, 3, 4), far(.4, 1, 2)},
		{home(.2), near(.4, 3, 4), far(.4, 1, 2)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
}
