package sim_test

import (
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

// watched is a short scenario of two zones, in which the first one's traffic grows.
func watched(t *testing.T) *scenario.Scenario {
	t.Helper()
	snapshot, err := topology.ParseSnapshot("nodes r/a:4x1 r/b:4x1\nservice shop/web\nendpoints a:2 b:2\n")
	if err != nil {
		t.Fatal(err)
	}
	return &scenario.Scenario{
		Name: "watched", Snapshot: snapshot,
		Clients: []scenario.Clients{
			{Zone: "a", Count: 2, Rate: 40, Shares: []float64{0.75, 0.25}}, {Zone: "b", Count: 3, Rate: 30},
		},
		Server: scenario.Server{
			Workers: 4, Queue: 10, Service: scenario.Distribution{Kind: scenario.Lognormal, Mean: 20 * time.Millisecond, CV: 1},
		},
		Request:  scenario.Request{Timeout: time.Second, Bytes: 1000},
		Price:    scenario.Price{PerGB: 0.02},
		Length:   16 * time.Second,
		Stress:   scenario.Window{From: 12 * time.Second, To: 15 * time.Second},
		Affected: []topology.Zone{"a"},
		Steps: []scenario.Step{
			{At: 12 * time.Second, Verb: scenario.Rate, Where: scenario.Where{Zone: "a"}, Factor: 2, Over: time.Second},
			{At: 15 * time.Second, Verb: scenario.Rate, Where: scenario.Where{Zone: "a"}, Factor: 1},
		},
	}
}

func random() *strategy.Strategy {
	return &strategy.Strategy{
		Name: "random", Mode: topology.ModeDisabled, KeepsHome: true,
		New: func(strategy.Client) overflow.Strategy {
			s, err := overflow.New("Random", overflow.Config{})
			if err != nil {
				panic(err)
			}
			return s
		},
	}
}

func TestArrivalsAreTheRequestsThatASimulationSends(t *testing.T) {
	sc := watched(t)
	simulated, err := sim.Run(sim.Options{Scenario: sc, Strategy: random(), Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	type place struct{ second, row int }
	count := make(map[place]int64)
	var work time.Duration
	for _, a := range sim.NewArrivals(sc, 5) {
		last := time.Duration(0)
		for due, service, ok := a.Next(); ok; due, service, ok = a.Next() {
			if due < last || due >= sc.Length {
				t.Fatalf("a request is due at %v, after one at %v", due, last)
			}
			last = due
			count[place{int(due / time.Second), a.Row}]++
			work += service
		}
	}
	var all float64
	for second, p := range simulated.Line {
		for row, z := range p.Zones {
			if got := count[place{second, row}]; got != z.Requests {
				t.Errorf("in second %d row %d sends %d: simulated %d", second, row, got, z.Requests)
			}
		}
	}
	for _, e := range simulated.Endpoints {
		for _, load := range e.Line {
			all += float64(load) * float64(sc.Server.Workers)
		}
	}
	// Nothing fails here, so every request brings its work to an endpoint, the last ones perhaps after the last second.
	if difference := work.Seconds() - all; difference < -1e-3 || difference > 0.5 {
		t.Errorf("the requests are %v s of work: simulated %v", work.Seconds(), all)
	}
}

func TestPeakIsTheHighestRateOfAllTogether(t *testing.T) {
	sc := watched(t)
	if got := sim.Peak(sc); got != 110 {
		t.Errorf("the peak is %v requests/s, want 110", got)
	}
	sc.Day = &scenario.Day{Period: 16 * time.Second, Low: 0.5, High: 1.5}
	if got := sim.Peak(sc); !same(got, 105) { // at noon, which is before the stress
		t.Errorf("with a day the peak is %v requests/s, want 105", got)
	}
}

func TestAnObservationIsSummedUpAsASimulationIs(t *testing.T) {
	sc := watched(t)
	o := sim.Observation{Scenario: sc, Strategy: "real", Seed: 9, Endpoints: []sim.Endpoint{{Zone: "a"}, {Zone: "b"}}}
	// Ten requests a second, one of which crosses and one fails under stress; the order does not matter.
	for i := 159; i >= 0; i-- {
		due := time.Duration(i) * 100 * time.Millisecond
		q := sim.Observed{Due: due, Took: 30 * time.Millisecond, Success: true, Taken: true, Attempts: 1}
		if due >= sc.Stress.From && due < sc.Stress.To {
			q.Crossed = i%10 == 1
			q.Success = i%10 != 2
			if q.Crossed {
				q.Cost = 1
			}
		}
		o.Requests = append(o.Requests, q)
	}
	// At the second endpoint, second 13 brings twice the work that it can do.
	for range 8 {
		o.Work = append(o.Work, sim.Work{Endpoint: 1, At: 13500 * time.Millisecond, Service: time.Second})
	}
	r := o.Result()
	w := r.Window
	if r.Strategy != "real" || r.Seed != 9 || r.Requests != 160 || w.Requests != 30 {
		t.Errorf("got %s, seed %d, %d requests, %d under stress", r.Strategy, r.Seed, r.Requests, w.Requests)
	}
	if !same(w.InZone, 0.9) || !same(w.Success, 0.9) || !same(w.Cost, 0.1) || !same(w.Rate, 10) || w.P99 < 990*time.Millisecond {
		t.Errorf("under stress %+v", w)
	}
	if r.Calm.InZone != 1 || r.Calm.Success != 1 || r.Others.Requests != 0 {
		t.Errorf("calm %+v, others %+v", r.Calm, r.Others)
	}
	e := r.Endpoints[1]
	if !same(r.PeakLoad, 2) || !same(e.Peak, 2) || !same(e.Load, 2.0/3) || e.Requests != 8 || e.Line[13] != 2 {
		t.Errorf("the peak is %v, the endpoint did %+v", r.PeakLoad, e)
	}
}

func same(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 }
