package score

import (
	"time"

	"github.com/weir-lb/weir/internal/sim"
)

// The smallest differences that matter.
const (
	// leastShare is one request in a thousand: as much as a service that promises 99.9 % may lose.
	leastShare = 0.001
	// leastPart: two runs of a load test on the same machine differ by more than 2 %.
	leastPart = 0.02
	// leastMillis: latency objectives have no more digits.
	leastMillis = 0.1
	// leastDollars is a cent per hour, about 7 dollars per month: less than it takes to think about it.
	leastDollars = 0.01
	// leastSeconds is how often an agent decides.
	leastSeconds = 0.1
	// leastOscillation: a spill that varies by half a point is at rest.
	leastOscillation = 0.005
	// leastLoad is 2 % of what an endpoint can do.
	leastLoad = 0.02
)

// Measures lists what is compared, in the order of columns: first those of tables, then those for CSV and JSON
// only. All are of the stress unless the title says otherwise.
func Measures() []Measure {
	return append(columns(),
		Measure{Key: "return", Title: "return", Unit: Seconds, Better: Lower, Least: leastSeconds, Of: func(r *sim.Result) (float64, bool) {
			return seconds(r.Return)
		}, Never: func(l Label) float64 { return (l.Length - l.Stress.To).Seconds() }},
		share("calmCross", "calm cross-zone", Lower, func(r *sim.Result) (float64, bool) {
			return 1 - r.Calm.InZone, r.Calm.Requests > 0
		}),
		share("affectedGood", "affected good", Higher, func(r *sim.Result) (float64, bool) {
			return r.Affected.Good, r.Affected.Requests > 0
		}),
		latency("othersP99", "others' p99", func(r *sim.Result) (time.Duration, bool) {
			return r.Others.P99, r.Others.Requests > 0
		}),
		latency("mean", "mean", func(r *sim.Result) (time.Duration, bool) { return r.Window.Mean, r.Window.Requests > 0 }),
		Measure{Key: "requests", Title: "requests", Unit: Number, Of: func(r *sim.Result) (float64, bool) {
			return float64(r.Window.Requests), true
		}},
		// Retries are a means: what they gain is in the success, what they cost is in the load.
		Measure{Key: "retries", Title: "retries per request", Unit: Number, Of: func(r *sim.Result) (float64, bool) {
			return max(r.Window.Attempts-1, 0), r.Window.Requests > 0
		}},
	)
}

// columns are the measures of tables.
func columns() []Measure {
	window := func(of func(*sim.Figures) float64) func(*sim.Result) (float64, bool) {
		return func(r *sim.Result) (float64, bool) { return of(&r.Window), r.Window.Requests > 0 }
	}
	quantile := func(of func(*sim.Figures) time.Duration) func(*sim.Result) (time.Duration, bool) {
		return func(r *sim.Result) (time.Duration, bool) { return of(&r.Window), r.Window.Requests > 0 }
	}
	all := []Measure{
		share("inZone", "in zone", Higher, window(func(f *sim.Figures) float64 { return f.InZone })),
		{
			Key: "dollarsPerHour", Title: "cost", Unit: Dollars, Better: Lower, Least: leastDollars, Part: leastPart,
			Of: window(func(f *sim.Figures) float64 { return f.Dollars }),
		},
		share("success", "success", Higher, window(func(f *sim.Figures) float64 { return f.Success })),
		share("good", "good", Higher, window(func(f *sim.Figures) float64 { return f.Good })),
		latency("p50", "p50", quantile(func(f *sim.Figures) time.Duration { return f.P50 })),
		latency("p99", "p99", quantile(func(f *sim.Figures) time.Duration { return f.P99 })),
		latency("p999", "p99.9", quantile(func(f *sim.Figures) time.Duration { return f.P999 })),
		{
			Key: "react", Title: "react", Unit: Seconds, Better: Lower, Least: leastSeconds,
			Of:    func(r *sim.Result) (float64, bool) { return seconds(r.React) },
			Never: func(l Label) float64 { return (l.Stress.To - l.Stress.From).Seconds() },
		},
		{
			Key: "oscillation", Title: "oscillation", Unit: Points, Better: Lower, Least: leastOscillation,
			Of: func(r *sim.Result) (float64, bool) { return r.Oscillation, true },
		},
		{
			Key: "peakLoad", Title: "peak load", Unit: Ratio, Better: Lower, Least: leastLoad,
			Of: func(r *sim.Result) (float64, bool) { return r.PeakLoad, true },
		},
	}
	// What a narrow terminal still has to show: whether requests succeed, whether they stay, how late the late ones are.
	for i, key := range []string{"success", "inZone", "p99", "dollarsPerHour", "react", "good", "p999", "peakLoad", "oscillation", "p50"} {
		for j := range all {
			if all[j].Key == key {
				all[j].Priority = i + 1
			}
		}
	}
	return all
}

func share(key, title string, better Direction, of func(*sim.Result) (float64, bool)) Measure {
	return Measure{Key: key, Title: title, Unit: Percent, Better: better, Least: leastShare, Of: of}
}

func latency(key, title string, of func(*sim.Result) (time.Duration, bool)) Measure {
	return Measure{
		Key: key, Title: title, Unit: Millis, Better: Lower, Least: leastMillis, Part: leastPart,
		Of: func(r *sim.Result) (float64, bool) {
			d, ok := of(r)
			return float64(d) / float64(time.Millisecond), ok
		},
	}
}

func seconds(d *time.Duration) (float64, bool) {
	if d == nil {
		return 0, false
	}
	return d.Seconds(), true
}

// hoursPerMonth is what clouds bill a month as: 365 days × 24 h / 12.
const hoursPerMonth = 730

// PerMonth turns dollars per hour into dollars per month of 730 hours.
func PerMonth(dollarsPerHour float64) float64 { return dollarsPerHour * hoursPerMonth }
