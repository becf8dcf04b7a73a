package demo

import (
	"fmt"
	"slices"
	"strings"
)

// What a run has to reach. The figures are those of the project's goals: calm traffic stays, a fault is answered within
// a second, and next to nobody notices.
const (
	wantInZone        = 0.99
	wantSpillSeconds  = 1.0
	wantSuccess       = 0.995
	wantSuccess5xx    = 0.999 // with retries on 5xx
	retryServerErrors = "5xx"
)

// Check is one figure against what it should be.
type Check struct {
	Name   string `json:"name"`
	Want   string `json:"want"`
	Got    string `json:"got"`
	Passed bool   `json:"passed"`
}

// judge checks a report. A run that was interrupted is judged by the phases that it has, and does not pass.
func judge(r *Report) []Check {
	var checks []Check
	for i := range r.Phases {
		p := &r.Phases[i]
		switch {
		case p.Event == Calm:
			checks = append(checks, atLeast("in zone when calm", wantInZone, p.All.InZone))
		case p.Event.IsFault():
			checks = append(checks, spillCheck(p))
		}
	}
	want := wantSuccess
	if slices.Contains(strings.Split(r.RetryOn, ","), retryServerErrors) {
		want = wantSuccess5xx
	}
	checks = append(checks, atLeast("answered well", want, r.Total.Success))
	if r.Interrupted {
		checks = append(checks, Check{Name: "script", Want: "to its end", Got: "interrupted"})
	}
	return checks
}

func atLeast(name string, want, got float64) Check {
	return Check{Name: name, Want: "≥ " + percent(want, 1), Got: percent(got, 2), Passed: got >= want}
}

func spillCheck(p *PhaseReport) Check {
	c := Check{Name: "spill: " + p.Title, Want: fmt.Sprintf("≤ %.1f s", wantSpillSeconds), Got: "none seen"}
	if p.Spilled != nil {
		c.Got = fmt.Sprintf("%.1f s", *p.Spilled)
		c.Passed = *p.Spilled <= wantSpillSeconds
	}
	return c
}

func passed(checks []Check) bool {
	return !slices.ContainsFunc(checks, func(c Check) bool { return !c.Passed })
}

// percent prints a fraction, cut and not rounded, so that what falls short never reads as if it did not.
func percent(fraction float64, digits int) string {
	scale := 1.0
	for range digits {
		scale *= 10
	}
	// The small addition takes back what binary fractions lose: 0.995 · 1000 is 994.9999….
	return fmt.Sprintf("%.*f %%", digits, float64(int(fraction*100*scale+1e-6))/scale)
}

// rounded prints a fraction to the nearest tenth of a percent.
func rounded(fraction float64) string { return fmt.Sprintf("%.1f %%", fraction*100) }
