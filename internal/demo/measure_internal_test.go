package demo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/golden"
	"github.com/weir-lb/weir/internal/grid"
)

// seenAt is the moment of a scripted sample, in milliseconds since the run began.
type seenAt int

// feed files one request of zone 0 every 10 ms from one moment to another; answers come 20 ms after they are due from
// the zones in turn, by index; -1 rejects.
func feed(r *recorder, from, to seenAt, served ...int) {
	for at, i := from, 0; at < to; at, i = at+10, i+1 {
		due := time.Duration(at) * time.Millisecond
		s := sample{zone: 0, due: due, sent: due, done: due + 20*time.Millisecond, served: served[i%len(served)]}
		if s.served < 0 {
			s.result = rejected
		}
		r.record(s)
	}
}

// scripted plays calm until 2 s, a slow zone-a until 4 s, and recovery until 8 s.
func scripted(react func(r *recorder)) Report {
	script := []Phase{
		{Calm, "", 2 * time.Second}, {Slow, "zone-a", 2 * time.Second}, {Recovery, "", 4 * time.Second},
	}
	r := newRecorder(costTable())
	for _, at := range []time.Duration{0, 2 * time.Second, 4 * time.Second} {
		r.enter(at)
	}
	react(r)
	zones := zoneNames()
	report := Report{Strategy: "Scripted", Rate: 100, Seed: 1, Zones: []string{"zone-a", "zone-b", "zone-c"}}
	report.Phases, report.Total = r.report(script, zones[:], 8*time.Second)
	report.Checks = judge(&report)
	report.Passed = passed(report.Checks)
	return report
}

func TestReportOfAZoneThatSpillsAndReturns(t *testing.T) {
	report := scripted(func(r *recorder) {
		feed(r, 0, 2000, 0)
		feed(r, 2000, 2300, 0)    // not yet noticed
		feed(r, 2300, 2350, -1)   // five rejected
		feed(r, 2350, 4000, 0, 1) // half spills
		feed(r, 4000, 5000, 0, 1) // a second to notice the recovery
		feed(r, 5000, 8000, 0)
		r.record(sample{due: 7 * time.Second, sent: 7120 * time.Millisecond, done: 7140 * time.Millisecond})
	})
	golden.Check(t, "summary.txt", joined(summary(&report, grid.Painter{})))
}

func TestSpillAndReturnAreDated(t *testing.T) {
	for _, c := range []struct {
		name            string
		react           func(r *recorder)
		spills, returns *float64
	}{
		{"at once and for good", func(r *recorder) {
			feed(r, 0, 2000, 0)
			feed(r, 2000, 4000, 1)
			feed(r, 4000, 8000, 0)
		}, new(0.1), new(0.0)},
		{"after half a second, back after two", func(r *recorder) {
			feed(r, 0, 2500, 0)
			feed(r, 2500, 6000, 0, 1, 2)
			feed(r, 6000, 8000, 0)
		}, new(0.6), new(2.0)},
		{"never spills", func(r *recorder) { feed(r, 0, 8000, 0) }, nil, new(0.0)},
		{"one answer in a bucket is not a spill", func(r *recorder) {
			feed(r, 0, 8000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
		}, nil, nil},
		{"never returns", func(r *recorder) {
			feed(r, 0, 2000, 0)
			feed(r, 2000, 8000, 0, 1)
		}, new(0.1), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			phase := scripted(c.react).Phases[1]
			if diff := cmp.Diff(c.spills, phase.Spilled, near()); diff != "" {
				t.Errorf("seconds to spill (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.returns, phase.Returned, near()); diff != "" {
				t.Errorf("seconds to return (-want +got):\n%s", diff)
			}
		})
	}
}

// near compares seconds to the millisecond.
func near() cmp.Option {
	return cmp.Comparer(func(a, b float64) bool { return a-b < 1e-3 && b-a < 1e-3 })
}

func TestARequestBelongsToThePhaseInWhichItWasDue(t *testing.T) {
	r := newRecorder(costTable())
	r.enter(time.Second)
	r.enter(2 * time.Second)
	for _, due := range []time.Duration{
		0,                       // before the script: in none
		1999 * time.Millisecond, // due in the first phase, done in the second
		2 * time.Second,
	} {
		r.record(sample{due: due, done: due + 500*time.Millisecond})
	}
	zones := zoneNames()
	phases, total := r.report([]Phase{{Event: Calm}, {Event: Recovery}}, zones[:], 3*time.Second)
	if phases[0].All.Requests != 1 || phases[1].All.Requests != 1 || total.Requests != 2 {
		t.Errorf("%d and %d of %d requests in the two phases, want 1 and 1 of 2",
			phases[0].All.Requests, phases[1].All.Requests, total.Requests)
	}
}

func TestRecentFiguresForgetThePast(t *testing.T) {
	r := newRecorder(costTable())
	feed(r, 0, 1000, 1)
	feed(r, 1000, 3000, 0)
	got := r.recent(3*time.Second, 10)[0]
	if got.InZone != 1 || got.Rate < 95 || got.Rate > 105 {
		t.Errorf("the last second reads %v in zone at %v/s, want 1 at 100/s", got.InZone, got.Rate)
	}
}

func TestCostsAreThoseOfTheTopology(t *testing.T) {
	want := [][]topology.Cost{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}}
	if diff := cmp.Diff(want, costTable()); diff != "" {
		t.Errorf("costs between the zones (-want +got):\n%s", diff)
	}
}
