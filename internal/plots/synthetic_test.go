package plots_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/plots"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/score"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

// habit is how a made-up strategy behaves in a made-up brownout.
type habit struct {
	name, title string
	calm, spill float64       // share that leaves the zone before and in the stress
	react       time.Duration // how long it takes to get there
	p99         time.Duration // in the stress, from then on
	good        float64
}

// habits are eight strategies like those that are compared.
func habits() []habit {
	return []habit{
		{"random", "random", 0.667, 0.667, 0, 480 * time.Millisecond, 0.66},
		{"static-auto", "Static, Auto", 0, 0, 0, time.Second, 0.02},
		{"static-same-zone", "Static, PreferSameZone", 0, 0, 0, time.Second, 0},
		{"static-balanced", "Static, Balanced", 0.03, 0.03, 0, time.Second, 0.01},
		{"envoy-zone", "Envoy zone-aware", 0.01, 0.82, 6 * time.Second, 310 * time.Millisecond, 0.926},
		{"priority", "priority failover 1.4", 0, 0.8, 7 * time.Second, 330 * time.Millisecond, 0.923},
		{"hazl", "Hazl", 0.02, 0.62, 18 * time.Second, 700 * time.Millisecond, 0.715},
		{"weir", "weir", 0.004, 0.93, 1400 * time.Millisecond, 110 * time.Millisecond, 0.964},
	}
}

// brownout is a scenario of three zones, one of which gets slow.
func brownout() *scenario.Scenario {
	return &scenario.Scenario{
		Name:  "brownout",
		Title: "Local brownout: zone a serves ten times slower for forty seconds",
		About: "Nothing is down, and no probe fails.\n\nWho looks only at health keeps its traffic at home.",
		Clients: []scenario.Clients{
			{Zone: "a", Count: 8, Rate: 660}, {Zone: "b", Count: 8, Rate: 660}, {Zone: "c", Count: 8, Rate: 660},
		},
		Length:   100 * time.Second,
		Stress:   scenario.Window{From: 30 * time.Second, To: 70 * time.Second},
		Affected: []topology.Zone{"a"},
		Steps: []scenario.Step{
			{At: 30 * time.Second, Verb: scenario.Slow, Where: scenario.Where{Zone: "a"}, Factor: 10},
			{At: 70 * time.Second, Verb: scenario.Heal, Where: scenario.Where{Zone: "a"}},
		},
	}
}

// level is how far a strategy has come at a time: 0 calm, 1 where it goes in the stress.
func (h habit) level(sc *scenario.Scenario, at time.Duration) float64 {
	switch {
	case at < sc.Stress.From:
		return 0
	case at < sc.Stress.To:
		return 1 - math.Exp(-(at-sc.Stress.From).Seconds()/math.Max(h.react.Seconds()/2, 0.01))
	default:
		return math.Exp(-(at - sc.Stress.To).Seconds() / math.Max(h.react.Seconds(), 0.5))
	}
}

// play makes up a result.
func (h habit) play(sc *scenario.Scenario, seed uint64) *sim.Result {
	random := rand.New(rand.NewPCG(seed, uint64(len(h.name))))
	noise := func(size float64) float64 { return 1 + size*random.NormFloat64() }
	r := &sim.Result{Scenario: sc.Name, Strategy: h.name, Seed: seed}
	spill := math.Min(h.spill*noise(0.02), 1)
	good := math.Min(h.good*noise(0.01), 1)
	for at := time.Duration(0); at < sc.Length; at += time.Second {
		r.Line = append(r.Line, h.second(sc, at, noise))
	}
	p99 := time.Duration(float64(h.p99) * noise(0.03))
	r.Affected = sim.Figures{Requests: 26400, InZone: 1 - spill, Good: good, Success: 1 - (1-good)/3, P99: min(p99, time.Second)}
	r.Window = r.Affected
	r.Window.Good, r.Window.Success = (2+good)/3, 1-(1-good)/9
	r.Window.Dollars = 0.9 * (spill + 2*h.calm) / 3
	if h.good > 0.9 && (h.react < 7*time.Second || seed == 1) { // who takes longer gets there in one of two runs only
		react := time.Duration(float64(h.react) * noise(0.05))
		r.React = &react
	}
	for i := range 18 {
		zone := topology.Zone([]string{"a", "b", "c"}[i/6])
		load := 0.55 + 0.55*h.spill/2
		if zone == "a" {
			load = 5.5 * (1 - h.spill)
		}
		load *= noise(0.04)
		r.Endpoints = append(r.Endpoints, sim.Endpoint{
			Addr: netip.AddrFrom4([4]byte{10, 0, byte(i / 6), byte(i)}), Zone: zone, Load: load, Peak: load * (1.1 + 0.3*random.Float64()),
		})
		r.PeakLoad = math.Max(r.PeakLoad, r.Endpoints[i].Peak)
	}
	return r
}

// second makes up a point.
func (h habit) second(sc *scenario.Scenario, at time.Duration, noise func(float64) float64) sim.Point {
	level := h.level(sc, at)
	p := sim.Point{At: at, Pods: 18}
	for _, c := range sc.Clients {
		requests := int64(c.Rate * math.Max(noise(0.05), 0))
		spill := math.Max(math.Min(h.calm*noise(0.05), 1), 0)
		p99, good := 70*time.Millisecond, 0.99
		if c.Zone == "a" {
			spill = math.Max(math.Min((h.calm+(h.spill-h.calm)*level)*noise(0.03), 1), 0)
			if at >= sc.Stress.From && at < sc.Stress.To {
				p99 = max(h.p99, time.Duration(float64(time.Second)*(1-level)))
				good = h.good * level
				if h.spill == h.calm {
					good = h.good
				}
			}
		}
		p99 = min(time.Duration(float64(p99)*noise(0.08)), time.Second)
		p.Zones = append(p.Zones, sim.ZonePoint{
			Zone: c.Zone, Requests: requests, Answered: requests, Crossed: int64(spill * float64(requests)),
			Good: int64(math.Min(good*noise(0.005), 1) * float64(requests)), P99: p99,
		})
		p.P99 = max(p.P99, p99)
	}
	return p
}

// report makes up a comparison in the given scenarios.
func report(all []habit, scenarios ...*scenario.Scenario) plots.Report {
	const seeds = 2
	r := plots.Report{Scenarios: scenarios, Assumptions: []string{"Clients do not know of each other.", "Packets are never lost."}}
	var o score.Options
	for _, h := range all {
		r.Strategies = append(r.Strategies, strategy.Strategy{Name: h.name, Title: h.title, Source: "the " + h.name + " manual"})
		o.Strategies = append(o.Strategies, score.Label{Name: h.name, Title: h.title})
	}
	for _, sc := range scenarios {
		o.Scenarios = append(o.Scenarios, score.LabelOf(sc))
		for _, h := range all {
			for seed := range uint64(seeds) {
				r.Results = append(r.Results, h.play(sc, seed+1))
			}
		}
	}
	board := score.Compare(r.Results, o)
	r.Board = &board
	return r
}

// crowd is more strategies than there are colours, with long titles.
func crowd(n int) []habit {
	all := habits()
	for i := len(all); i < n; i++ {
		h := all[i%7]
		h.name = fmt.Sprintf("%s-%d", h.name, i)
		h.title = fmt.Sprintf("%s with a long title, number %d", h.title, i)
		h.spill *= 0.8
		all = append(all, h)
	}
	return all
}
