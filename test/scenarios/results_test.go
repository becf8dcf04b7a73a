package scenarios_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/score"
	"github.com/weir-lb/weir/internal/sim/strategy"
	"github.com/weir-lb/weir/test/scenarios"
)

// play runs each strategy on a scenario with as many seeds, strategy by strategy.
func play(t *testing.T, sc *scenario.Scenario, strategies []strategy.Strategy, seeds int) []*sim.Result {
	t.Helper()
	results := make([]*sim.Result, len(strategies)*seeds)
	errs := make([]error, len(results))
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	var running sync.WaitGroup
	for i := range results {
		running.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			seed := uint64(i%seeds) + 1 //nolint:gosec // a small number.
			results[i], errs[i] = sim.Run(sim.Options{Scenario: sc, Strategy: &strategies[i/seeds], Seed: seed})
		})
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return results
}

// TestResultsAreThoseOfTheGoldens runs each strategy once. The digest is of everything that happened, in order.
func TestResultsAreThoseOfTheGoldens(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the goldens are of amd64, on which CI runs: other architectures round floating point in other places")
	}
	for _, name := range scenarios.Names() {
		s := read(t, name)
		got := table(play(t, s, strategy.All(), 1))
		if *update {
			rewrite(t, name, "results", got)
			continue
		}
		if diff := cmp.Diff(strings.TrimSpace(s.Results), strings.TrimSpace(got)); diff != "" {
			t.Errorf("%s: the results differ (-want +got):\n%s", name, diff)
		}
	}
}

func table(results []*sim.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s  %8s  %8s  %8s  %9s  %7s  %s\n", "SEED 1", "IN ZONE", "SUCCESS", "GOOD", "P99", "REACT", "DIGEST")
	for _, r := range results {
		react := "never"
		if r.React != nil {
			react = fmt.Sprintf("%.1f s", r.React.Seconds())
		}
		w := &r.Window
		fmt.Fprintf(&b, "%-16s  %6.2f %%  %6.2f %%  %6.2f %%  %6.1f ms  %7s  %016x\n", r.Strategy, 100*w.InZone, 100*w.Success,
			100*w.Good, float64(w.P99)/float64(time.Millisecond), react, r.Digest)
	}
	return b.String()
}

// TestWeirIsNeverWorseThanHazl holds what weir promises of its law: in none of the standard scenarios does it lose more
// requests than Hazl, or answer later, beyond noise.
func TestWeirIsNeverWorseThanHazl(t *testing.T) {
	const seeds = 4
	both := strategy.With(overflow.Config{})
	var strategies []strategy.Strategy
	for _, c := range both {
		if c.Name == "weir" || c.Name == "hazl" {
			strategies = append(strategies, c)
		}
	}
	var results []*sim.Result
	var o score.Options
	for _, name := range scenarios.Names() {
		s := read(t, name)
		o.Scenarios = append(o.Scenarios, score.LabelOf(s))
		results = append(results, play(t, s, strategies, seeds)...)
	}
	board := score.Compare(results, o)
	for measure, least := range map[string]int{"success": 4, "good": 8, "p99": 8} {
		better := 0
		for _, d := range board.Differences("weir", "hazl", measure) {
			switch d.Verdict {
			case score.Worse:
				t.Errorf("%s: weir's %s is worse than Hazl's by %.5g ± %.2g", d.Scenario, measure, d.Mean, d.Half)
			case score.Better:
				better++
			default:
			}
		}
		if better < least {
			t.Errorf("weir's %s is better than Hazl's in %d of %d scenarios: want %d", measure, better, len(o.Scenarios), least)
		}
	}
}
