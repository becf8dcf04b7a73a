package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/golden"
	"github.com/weir-lb/weir/internal/grid"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// perfect is a report that passes.
func perfect() Report {
	return Report{
		Phases: []PhaseReport{
			{Title: "calm", All: Measures{InZone: 1}},
			{Title: "slow", IsFault: true, Spilled: new(0.4)},
			{Title: "recovery", All: Measures{InZone: 0.5}},
		},
		Total: Measures{Success: 0.9991},
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
			if r.Judge(); r.Passed != c.want {
				t.Errorf("passed is %v, want %v: %+v", !c.want, c.want, r.Checks)
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

// seenAt is the moment of a scripted request, in milliseconds since the run began.
type seenAt int

// feed files one request of row 0 every 10 ms from one moment to another; answers come 20 ms after they are due from the
// zones in turn, by index; -1 rejects.
func feed(g *requestLog, from, to seenAt, zones ...int) {
	for at, i := from, 0; at < to; at, i = at+10, i+1 {
		due := time.Duration(at) * time.Millisecond
		s := sample{request: request{due: due}, sent: due, done: due + 20*time.Millisecond, result: rejected}
		if zone := zones[i%len(zones)]; zone >= 0 {
			s.result, s.reached = good, []int{2 * zone}
		}
		g.add(s)
	}
}

// scripted plays calm until 2 s, a slow zone a until 4 s, and recovery until 8 s.
func scripted(t *testing.T, react func(g *requestLog)) *Report {
	t.Helper()
	in := scenario.Where{Zone: "a"}
	sc := story(t,
		scenario.Step{At: 2 * time.Second, Verb: scenario.Slow, Where: in, Factor: 10},
		scenario.Step{At: 4 * time.Second, Verb: scenario.Heal, Where: in},
	)
	sc.Length, sc.Stress = 8*time.Second, scenario.Window{From: 2 * time.Second, To: 4 * time.Second}
	l, err := newLayout(sc)
	if err != nil {
		t.Fatal(err)
	}
	p := &play{
		scenario: sc, options: Options{Player: Player{}.withDefaults(), Seed: 1}, phases: Phases(sc),
		layout: l, log: newRequestLog(l), end: sc.Length,
	}
	react(p.log)
	r := p.report()
	r.Judge()
	return r
}

func TestReportOfAZoneThatSpillsAndReturns(t *testing.T) {
	report := scripted(t, func(g *requestLog) {
		feed(g, 0, 2000, 0)
		feed(g, 2000, 2300, 0)    // not yet noticed
		feed(g, 2300, 2350, -1)   // five rejected
		feed(g, 2350, 4000, 0, 1) // half spills
		feed(g, 4000, 5000, 0, 1) // a second to notice the recovery
		feed(g, 5000, 8000, 0)
		g.add(sample{
			request: request{due: 7 * time.Second}, sent: 7120 * time.Millisecond, done: 7140 * time.Millisecond, reached: []int{0},
		})
	})
	golden.Check(t, "summary.txt", joined(report.Lines(grid.Painter{})))
}

func TestSpillAndReturnAreDated(t *testing.T) {
	for _, c := range []struct {
		name            string
		react           func(g *requestLog)
		spills, returns *float64
	}{
		{"at once and for good", func(g *requestLog) {
			feed(g, 0, 2000, 0)
			feed(g, 2000, 4000, 1)
			feed(g, 4000, 8000, 0)
		}, new(0.1), new(0.0)},
		{"after half a second, back after two", func(g *requestLog) {
			feed(g, 0, 2500, 0)
			feed(g, 2500, 6000, 0, 1, 1)
			feed(g, 6000, 8000, 0)
		}, new(0.6), new(2.0)},
		{"never spills", func(g *requestLog) { feed(g, 0, 8000, 0) }, nil, new(0.0)},
		{"one answer in a bucket is not a spill", func(g *requestLog) {
			feed(g, 0, 8000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
		}, nil, nil},
		{"never returns", func(g *requestLog) {
			feed(g, 0, 2000, 0)
			feed(g, 2000, 8000, 0, 1)
		}, new(0.1), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			phase := scripted(t, c.react).Phases[1]
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
	r := scripted(t, func(g *requestLog) {
		for _, due := range []time.Duration{
			1999 * time.Millisecond, // done in the second phase
			2 * time.Second,
		} {
			g.add(sample{request: request{due: due}, sent: due, done: due + 500*time.Millisecond})
		}
	})
	if a, b := r.Phases[0].All.Requests, r.Phases[1].All.Requests; a != 1 || b != 1 || r.Total.Requests != 2 {
		t.Errorf("%d and %d of %d requests in the two phases, want 1 and 1 of 2", a, b, r.Total.Requests)
	}
}

func TestRecentFiguresForgetThePast(t *testing.T) {
	scripted(t, func(g *requestLog) {
		feed(g, 0, 900, 1)
		feed(g, 900, 3000, 0)
		if got := g.recent(3 * time.Second)[0]; got.InZone != 1 || got.Rate < 95 || got.Rate > 105 {
			t.Errorf("the last seconds read %v in zone at %v/s, want 1 at 100/s", got.InZone, got.Rate)
		}
	})
}

func TestABusyMachineIsBlamed(t *testing.T) {
	for _, c := range []struct {
		s    sample
		want string
	}{
		{sample{sent: 10 * time.Millisecond, reached: []int{0}}, ""},
		{sample{sent: 300 * time.Millisecond, reached: []int{3, 2}}, "300 ms"},
		{sample{sent: 300 * time.Millisecond, reached: []int{3, 2}}, "The verdict is void: repeat this on an idle machine, or with fewer requests (--rate"},
		{sample{result: dropped}, "1 requests were never sent"},
		{sample{sent: 300 * time.Millisecond, result: dropped}, "300 ms"},
	} {
		r := scripted(t, func(g *requestLog) { g.add(c.s) })
		if got := r.Total.complaint(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%+v: %q, want %q", c.s, got, c.want)
		}
	}
}

func TestEachAttemptCostsWhatItCrosses(t *testing.T) {
	r := scripted(t, func(g *requestLog) { g.add(sample{reached: []int{3, 2}}) })
	if r.Total.Cost != 2 || r.Total.InZone != 0 {
		t.Errorf("two attempts in the other zone cost %v, and %v are in zone", r.Total.Cost, r.Total.InZone)
	}
	if f := r.Result.Whole; f.Requests != 0 {
		t.Errorf("the warm-up is counted: %+v", f)
	}
}
