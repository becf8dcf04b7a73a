package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
	"github.com/weir-lb/weir/internal/simulate"
)

// fake is a run that does nothing but say how far it is.
type fake struct {
	job  simulate.Job
	step func(until time.Duration) // nil: nothing
}

func (f *fake) Step(until time.Duration) {
	if f.step != nil {
		f.step(until)
	}
}

func (f *fake) Result() *sim.Result {
	return &sim.Result{Scenario: f.job.Scenario.Name, Strategy: f.job.Strategy.Name, Seed: f.job.Seed}
}

func options() simulate.Options {
	o := simulate.Options{Seeds: 3, First: 7, Parallel: 4}
	for i, name := range []string{"calm", "spike"} {
		o.Scenarios = append(o.Scenarios, &scenario.Scenario{
			Name: name, Length: time.Duration(i+2) * time.Second, Clients: []scenario.Clients{{Zone: "a", Rate: 100}},
		})
	}
	for _, name := range []string{"weir", "hazl", "random"} {
		o.Strategies = append(o.Strategies, strategy.Strategy{Name: name})
	}
	o.Start = func(j simulate.Job) (simulate.Simulation, error) { return &fake{job: j}, nil }
	return o
}

func TestResultsAreInOrderHoweverManyRunsAreMadeAtOnce(t *testing.T) {
	var want []string
	for _, s := range []string{"calm", "spike"} {
		for _, c := range []string{"weir", "hazl", "random"} {
			for seed := 7; seed < 10; seed++ {
				want = append(want, fmt.Sprint(s, " ", c, " ", seed))
			}
		}
	}
	for _, parallel := range []int{0, 1, 2, 5, 100} {
		o := options()
		o.Parallel = parallel
		out, err := simulate.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range out.Results {
			got = append(got, fmt.Sprint(r.Scenario, " ", r.Strategy, " ", r.Seed))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d at once (-want +got):\n%s", parallel, diff)
		}
		of := out.Of(1, 2)
		if len(of) != 3 || of[0].Scenario != "spike" || of[0].Strategy != "random" || of[0].Seed != 7 {
			t.Errorf("results of spike with random: %+v", of)
		}
	}
}

func TestTheFirstRunThatFailsIsNamedAndTheOthersAreGivenUp(t *testing.T) {
	o := options()
	wrong := errors.New("no endpoints")
	var mu sync.Mutex
	started := 0
	o.Parallel = 1
	o.Start = func(j simulate.Job) (simulate.Simulation, error) {
		mu.Lock()
		defer mu.Unlock()
		started++
		if j.Strategy.Name == "hazl" {
			return nil, wrong
		}
		return &fake{job: j}, nil
	}
	out, err := simulate.Run(t.Context(), o)
	if out != nil && err == nil {
		t.Fatal("a run that failed was not told")
	}
	if want := "scenario calm, strategy hazl, seed 7: no endpoints"; err == nil || err.Error() != want || !errors.Is(err, wrong) {
		t.Errorf("error %v, want %s", err, want)
	}
	if started != 4 {
		t.Errorf("%d runs were begun, want 3 that went well and the one that failed", started)
	}
}

func TestTheEndOfTheContextEndsTheRuns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := options()
	o.Scenarios[0].Length = 1000 * time.Hour
	o.Start = func(j simulate.Job) (simulate.Simulation, error) {
		return &fake{job: j, step: func(until time.Duration) {
			if until > 5*time.Second {
				cancel()
			}
		}}, nil
	}
	out, err := simulate.Run(ctx, o)
	if out != nil || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "ended early") {
		t.Errorf("outcome %v, error %v", out, err)
	}
}

func TestProgressRisesToTheWhole(t *testing.T) {
	o := options()
	var seen []simulate.Progress
	o.Progress = func(p simulate.Progress) { seen = append(seen, p) } // -race shows that it is one call at a time
	if _, err := simulate.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for i, p := range seen[1:] {
		if before := seen[i]; p.Done < before.Done || p.Runs < before.Runs || p.Elapsed < before.Elapsed || p.Left() < 0 {
			t.Fatalf("progress went from %+v to %+v", before, p)
		}
	}
	last := seen[len(seen)-1]
	if last.Done < 0.999 || last.Runs != 18 || last.Of != 18 || last.Left() > last.Elapsed {
		t.Errorf("the last progress is %+v", last)
	}
}

func TestRunsThatNoMemoryHoldsAreRefused(t *testing.T) {
	o := options()
	o.Scenarios[1].Clients[0].Count = 10_000
	o.Scenarios[1].Snapshot.Services = []*topology.Service{{Endpoints: make([]topology.Endpoint, 1000)}}
	_, err := simulate.Run(context.Background(), o)
	const want = "scenario spike: 10000 clients that know 1000 endpoints each take about 38 GiB in 4 runs at once: want at most 8"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}
