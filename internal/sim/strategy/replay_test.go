package strategy_test

import (
	"math"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// The published measurement of docs/adr/0006-overflow-law.md: 30 requests a second from one client, three of nine
// endpoints in its zone, answers in 1 ms; after a minute some of the three take longer, for another minute.
const measured = `A published measurement
-- cluster --
nodes a:16 b:16 c:16
service web
endpoints a:3 b:3 c:3
-- run --
clients a:1
rate a:30
server service=lognormal:1ms
request timeout=10s
length 180s
stress 60s..120s
-- steps --
`

// trace is what the client saw of Hazl, at its extremes.
type trace struct {
	rest, peak         float64 // load, requests in flight
	active             int     // endpoints that were used in the stress
	remote             float64 // fraction of the requests of the stress to other zones, once there are added endpoints
	expanded, contract time.Duration
}

// never stands for a moment that did not come.
const never = -time.Second

// measure plays the experiment with the steps given.
func measure(t *testing.T, seed uint64, steps string) trace {
	t.Helper()
	sc, err := scenario.Parse("measured", []byte(measured+steps))
	if err != nil {
		t.Fatal(err)
	}
	hazl := named(t, "hazl")
	out := trace{expanded: never, contract: never}
	load := 0.0
	look := func(now time.Duration, s pick.Status) {
		spills, inFlight := flying(&s)
		keep := math.Exp(-0.1 / 10) // the twin of the strategy's load: 10 s, ten ticks a second
		load = load*keep + inFlight*(1-keep)
		switch {
		case now < sc.Stress.From:
			out.rest = load
		case now < sc.Stress.To:
			out.peak = max(out.peak, load)
			if spills && out.expanded == never {
				out.expanded = now - sc.Stress.From
			}
		case !spills && out.contract == never:
			out.contract = now - sc.Stress.To
		}
	}
	r, err := sim.Run(sim.Options{Scenario: sc, Strategy: &hazl, Seed: seed, Trace: &sim.Trace{Tick: look}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Endpoints {
		if r.Endpoints[i].Requests > 0 {
			out.active++
		}
	}
	out.remote = abroad(r, sc.Stress.From+max(0, out.expanded)+time.Second, sc.Stress.To)
	t.Logf("seed %d: %+v", seed, out)
	return out
}

// flying tells whether endpoints of other zones are active, and gives how many requests are in flight.
func flying(s *pick.Status) (spills bool, inFlight float64) {
	for i, g := range s.Groups {
		spills = spills || i > 0 && g.Share > 0
	}
	for i := range s.Endpoints {
		inFlight += float64(s.Endpoints[i].InFlight)
	}
	return spills, inFlight
}

// abroad is the fraction of the requests that left the zone, in whole seconds.
func abroad(r *sim.Result, from, to time.Duration) float64 {
	var all, crossed float64
	for _, p := range r.Line {
		if p.At >= from && p.At+time.Second <= to {
			all += float64(p.Zones[0].Answered)
			crossed += float64(p.Zones[0].Crossed)
		}
	}
	return crossed / max(1, all)
}

func TestHazlAgreesWithAPublishedMeasurement(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		r := measure(t, seed, "60s delay a 400ms\n120s heal a\n")
		// Published 0.031: 30 requests a second times about a millisecond.
		between(t, "load at rest", r.rest, [2]float64{0.01, 0.08})
		// Published 6.45; the band's top is 2.0 × 3 endpoints, so it cannot stay below.
		between(t, "peak load", r.peak, [2]float64{6, 8.6})
		between(t, "active endpoints", float64(r.active), [2]float64{4, 4})
		// Published 46 % in one run and 11 % in another.
		between(t, "remote share", r.remote, [2]float64{0.11, 0.58})
		// Published 16 s and 12 s: 12 in flight, seen through a memory of 10 s, cross 6 after 7 s.
		between(t, "expanded after, s", r.expanded.Seconds(), [2]float64{5, 16})
		// Published 10 s.
		between(t, "contracted after, s", r.contract.Seconds(), [2]float64{4, 12})
	}
}

// Two of three endpoints get slower. Published peaks are 4.7, 5.8 and 5.8: the load grows far less than the delay,
// because the balancer avoids the slow ones.
func TestHazlSeesOfABrownoutWhatTheBalancerHasNotAvoided(t *testing.T) {
	for _, delay := range []string{"500ms", "750ms", "900ms"} {
		r := measure(t, 1, "60s delay a/1-2 "+delay+"\n120s heal a\n")
		between(t, "peak load with "+delay, r.peak, [2]float64{4, 8.5})
	}
}

func between(t *testing.T, what string, got float64, limits [2]float64) {
	t.Helper()
	if !(got >= limits[0] && got <= limits[1]) {
		t.Errorf("%s is %.3f: want %.3f to %.3f", what, got, limits[0], limits[1])
	}
}
