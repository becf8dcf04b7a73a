package sim_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
	"github.com/weir-lb/weir/test/scenarios"
)

// story reads a scenario: one of the standard set, or one of testdata/law, which only tests want.
func story(tb testing.TB, name string) *scenario.Scenario {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "law", name+".txtar"))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = scenarios.Read(name)
	}
	if err != nil {
		tb.Fatal(err)
	}
	sc, err := scenario.Parse(name+".txtar", text)
	if err != nil {
		tb.Fatal(err)
	}
	return sc
}

// named gives a strategy as users have it.
func named(tb testing.TB, name string) *strategy.Strategy {
	tb.Helper()
	c, err := strategy.Named(name)
	if err != nil {
		tb.Fatal(err)
	}
	return &c
}

// promise is what the law keeps in a scenario. Runs of equal seeds are equal, so that bounds are near to what four
// seeds came to.
type promise struct {
	scenario    string
	good        float64       // at least, of the affected clients' requests
	least, most float64       // of all requests that leave their zone: what is needed, and little more
	react       time.Duration // at most; unbounded: nothing helps, or the stress is there from the beginning
	home        time.Duration // at most, after the stress; 0: not looked at
	oscillation float64       // at most
	aboveHazl   float64       // good is at least so much more than with Hazl; 0: not compared
	seeds       uint64
}

// unbounded is no bound.
const unbounded = time.Hour

func promises() []promise {
	const second = time.Second
	return []promise{
		{"skew", .97, .14, .20, second, 6 * second, .06, .07, 2},
		{"spike", .97, .13, .20, second, 6 * second, .06, .07, 2},
		{"brownout", .94, .30, .36, 2 * second, 30 * second, .02, .25, 2},
		{"distance", .93, .30, .36, 3 * second, 0, .02, .50, 2},
		{"half-failing", .96, .06, .14, second, 0, .10, .10, 2},
		{"coin", .95, .30, .36, 2 * second, 35 * second, .02, .35, 2},
		// Hazl's clients leave lost endpoints at once, because the pool does; the product would do it one by one.
		{"zone-loss", .96, .30, .36, 2 * second, 2 * second, .02, .03, 2},
		{"patience", .95, .30, .36, 2 * second, 0, .02, .10, 2},
		// Nearly a tenth of the requests has no room but beside the neighbour's: some seconds are a little worse than
		// nearly good, and it is a matter of chance when one is not.
		{"neighbour", .92, .10, .22, 8 * second, 0, .06, .05, 2},
		{"uneven", .90, .20, .32, unbounded, 0, .08, .03, 2},
		{"low-rate", .90, .10, .20, 4 * second, 0, .05, .50, 1},
		// Where nothing can help, the law keeps home what it costs money to spread: no bound on what is good.
		{"helpless", 0, 0, .05, unbounded, 0, .03, 0, 2},
		{"alike", 0, 0, .05, unbounded, 0, .03, 0, 2},
		{"far", 0, 0, .10, unbounded, 0, .06, 0, 2},
		{"steady", .98, 0, .005, 0, 0, .01, 0, 1},
		{"streams", .97, 0, .01, 0, 0, .01, 0, 1},
		{"noise", .95, 0, .01, 0, 0, .01, 0, 1},
	}
}

func TestTheLawKeepsItsPromises(t *testing.T) {
	for _, p := range promises() {
		t.Run(p.scenario, func(t *testing.T) {
			t.Parallel()
			sc := story(t, p.scenario)
			if p.scenario == "low-rate" {
				few(sc)
			}
			if p.home == 0 {
				sc.Length = sc.Stress.To // nobody looks at what comes later
			}
			first := run(t, sc, named(t, "weir"), 1)
			p.check(t, first)
			for seed := uint64(2); seed <= p.seeds; seed++ {
				p.check(t, run(t, sc, named(t, "weir"), seed))
			}
			if p.aboveHazl > 0 {
				p.compare(t, first, run(t, sc, named(t, "hazl"), 1))
			}
		})
	}
}

// few spares the ticks of many clients to whom nothing happens.
func few(sc *scenario.Scenario) {
	for i := range sc.Clients {
		if sc.Clients[i].Zone != "a" {
			sc.Clients[i].Count = 8
		}
	}
}

func (p promise) check(t *testing.T, r *sim.Result) {
	t.Helper()
	cross, calm := 1-r.Window.InZone, 1-r.Calm.InZone
	t.Logf("seed %d: good %.3f cross %.3f calm %.4f react %v home %v oscillation %.3f",
		r.Seed, r.Affected.Good, cross, calm, r.React, r.Return, r.Oscillation)
	if r.Affected.Good < p.good {
		t.Errorf("good %.3f: want at least %.3f", r.Affected.Good, p.good)
	}
	if cross < p.least || cross > p.most {
		t.Errorf("cross-zone share %.3f: want %.3f to %.3f", cross, p.least, p.most)
	}
	soon(t, "react", r.React, p.react)
	if p.home > 0 {
		soon(t, "be home", r.Return, p.home)
	}
	if r.Oscillation > p.oscillation {
		t.Errorf("spill varies by %.3f from second to second: want at most %.3f", r.Oscillation, p.oscillation)
	}
	// uneven is overloaded from the first request on; elsewhere nothing has happened yet. These are the first seconds,
	// when a client knows least.
	if p.scenario != "uneven" && calm > 0.02 {
		t.Errorf("cross-zone share while calm %.4f: want at most 0.02", calm)
	}
}

// compare holds a run against Hazl's of the same seed.
func (p promise) compare(t *testing.T, weir, hazl *sim.Result) {
	t.Helper()
	if weir.Affected.Good < hazl.Affected.Good+p.aboveHazl {
		t.Errorf("good %.3f, Hazl %.3f: want %.2f more", weir.Affected.Good, hazl.Affected.Good, p.aboveHazl)
	}
	if p.scenario != "neighbour" {
		return
	}
	// The clients of the other zones, while one zone is overloaded and another one is nearly.
	if ours, theirs := weir.Others.P99, hazl.Others.P99; ours > 200*time.Millisecond || 2*ours > theirs {
		t.Errorf("neighbours' p99 %v, with Hazl %v: want at most 200 ms, and half of Hazl's", ours, theirs)
	}
}

// soon compares a moment with its bound.
func soon(t *testing.T, what string, got *time.Duration, bound time.Duration) {
	t.Helper()
	switch {
	case bound == unbounded:
	case got == nil:
		t.Errorf("the clients never %s: want it within %v", what, bound)
	case *got > bound:
		t.Errorf("the clients %s after %v: want it within %v", what, *got, bound)
	}
}

func TestStaticDrownsAndRandomPays(t *testing.T) {
	t.Parallel()
	sc := story(t, "skew")
	sc.Length = sc.Stress.To
	static, random := run(t, sc, named(t, "static-same-zone"), 1), run(t, sc, named(t, "random"), 1)
	if static.Affected.Good > 0.3 || static.Window.InZone < 1 {
		t.Errorf("static: good %.3f, in zone %.3f: want few good ones and nothing abroad", static.Affected.Good, static.Window.InZone)
	}
	if random.Affected.Good < 0.97 || random.Window.InZone > 0.4 {
		t.Errorf("random: good %.3f, in zone %.3f: want nearly all good and two thirds abroad", random.Affected.Good, random.Window.InZone)
	}
}

// Shedding is for answers, not for fast ones: who is not rejected waits in queues that are as long as they were.
func TestWhatNoZoneDeliversIsShedIfWanted(t *testing.T) {
	t.Parallel()
	sc := story(t, "too-much")
	sc.Length = sc.Stress.To
	keep, shed := run(t, sc, named(t, "weir"), 1).Affected, run(t, sc, named(t, "weir-shed"), 1).Affected
	t.Logf("good %.3f ok %.3f without, %.3f %.3f with shedding %.3f", keep.Good, keep.Success, shed.Good, shed.Success, shed.Shed)
	if keep.Shed != 0 || shed.Shed < 0.1 || shed.Shed > 0.3 || shed.Success < keep.Success+0.12 {
		t.Errorf("success %.3f (%.3f shed) without, %.3f (%.3f) with: want clearly more with a fifth shed",
			keep.Success, keep.Shed, shed.Success, shed.Shed)
	}
}
