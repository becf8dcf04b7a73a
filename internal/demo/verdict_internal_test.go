package demo

import (
	"testing"
)

// perfect is a report that passes.
func perfect() Report {
	return Report{
		Phases: []PhaseReport{
			{Title: "calm", Event: Calm, All: Figures{InZone: 1}},
			{Title: "slow", Event: Slow, Spilled: new(0.4)},
			{Title: "recovery", Event: Recovery, All: Figures{InZone: 0.5}},
		},
		Total: Figures{Success: 0.9991},
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(r *Report)
		want  bool
	}{
		{"all reached", func(*Report) {}, true},
		{"too little in zone when calm", func(r *Report) { r.Phases[0].All.InZone = 0.9899 }, false},
		{"a spill after more than a second", func(r *Report) { r.Phases[1].Spilled = new(1.1) }, false},
		{"no spill", func(r *Report) { r.Phases[1].Spilled = nil }, false},
		{"just enough answered well", func(r *Report) { r.Total.Success = 0.995 }, true},
		{"too few answered well", func(r *Report) { r.Total.Success = 0.9949 }, false},
		{"enough with retries", func(r *Report) { r.RetryOn = "gateway-error,5xx" }, true},
		{"too few with retries", func(r *Report) {
			r.RetryOn = "gateway-error,5xx"
			r.Total.Success = 0.9989
		}, false},
		{"interrupted", func(r *Report) { r.Interrupted = true }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := perfect()
			c.spoil(&r)
			if checks := judge(&r); passed(checks) != c.want {
				t.Errorf("passed is %v, want %v: %+v", !c.want, c.want, checks)
			}
		})
	}
}

func TestPercentagesNeverLookBetterThanTheyAre(t *testing.T) {
	for _, c := range []struct {
		fraction float64
		digits   int
		want     string
	}{
		{1, 1, "100.0 %"},
		{0.99999, 2, "99.99 %"},
		{0.995, 1, "99.5 %"},
		{0.9949, 1, "99.4 %"},
		{0, 1, "0.0 %"},
	} {
		if got := percent(c.fraction, c.digits); got != c.want {
			t.Errorf("percent(%v, %d) is %q, want %q", c.fraction, c.digits, got, c.want)
		}
	}
}
