package score_test

import (
	"math"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/score"
)

func TestMeasuresReadTheResult(t *testing.T) {
	r := &sim.Result{
		Window: sim.Figures{
			Requests: 1000, Success: 0.99, Good: 0.9, InZone: 0.8, Dollars: 1.25, Attempts: 1.02,
			Mean: 25 * time.Millisecond, P50: 20 * time.Millisecond, P99: 110 * time.Millisecond, P999: 400 * time.Millisecond,
		},
		Affected: sim.Figures{Requests: 400, Good: 0.7}, Others: sim.Figures{Requests: 600, P99: 95 * time.Millisecond},
		Calm:  sim.Figures{Requests: 500, InZone: 0.99},
		React: new(400 * time.Millisecond), Return: new(3 * time.Second), Oscillation: 0.02, PeakLoad: 1.3,
	}
	want := map[string]float64{
		"inZone": 0.8, "dollarsPerHour": 1.25, "success": 0.99, "good": 0.9, "p50": 20, "p99": 110, "p999": 400,
		"react": 0.4, "oscillation": 0.02, "peakLoad": 1.3, "return": 3, "calmCross": 0.01, "affectedGood": 0.7,
		"othersP99": 95, "mean": 25, "requests": 1000, "retries": 0.02,
	}
	all := score.Measures()
	if len(all) != len(want) {
		t.Errorf("there are %d measures, want %d", len(all), len(want))
	}
	for _, m := range all {
		if got, ok := m.Of(r); !ok || math.Abs(got-want[m.Key]) > 1e-9 {
			t.Errorf("%s is %v %v, want %v", m.Key, got, ok, want[m.Key])
		}
	}
}

func TestMeasuresOfNothing(t *testing.T) {
	// A run in which nothing was sent has loads, a steady spill of nothing, and a number of requests.
	known := map[string]bool{"oscillation": true, "peakLoad": true, "requests": true}
	for _, m := range score.Measures() {
		if got, ok := m.Of(&sim.Result{}); ok != known[m.Key] || got != got {
			t.Errorf("%s of nothing is %v %v, want %v", m.Key, got, ok, known[m.Key])
		}
	}
}

func TestPrioritiesOfColumnsDiffer(t *testing.T) {
	seen := make(map[int]string)
	for _, m := range score.Measures() {
		if m.Priority == 0 {
			continue
		}
		if other, twice := seen[m.Priority]; twice {
			t.Errorf("%s and %s both have priority %d", other, m.Key, m.Priority)
		}
		seen[m.Priority] = m.Key
	}
	for i := range 10 {
		if seen[i+1] == "" {
			t.Errorf("no measure has priority %d", i+1)
		}
	}
}

func TestPerMonth(t *testing.T) {
	if got := score.PerMonth(2); got != 1460 {
		t.Errorf("2 dollars per hour are %v per month, want 1460", got)
	}
}
