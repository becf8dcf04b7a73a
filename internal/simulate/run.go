package simulate

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

// Job is one run: a scenario, a way to balance, and the seed of all randomness.
type Job struct {
	Scenario *scenario.Scenario
	Strategy *strategy.Strategy
	Seed     uint64
}

// String names the job in errors.
func (j Job) String() string {
	return fmt.Sprintf("scenario %s, strategy %s, seed %d", j.Scenario.Name, j.Strategy.Name, j.Seed)
}

// Simulation is a run under way, as sim.New makes it. One goroutine at a time.
type Simulation interface {
	Step(until time.Duration)
	Result() *sim.Result
}

// Options say what is to be run.
type Options struct {
	Scenarios  []*scenario.Scenario
	Strategies []strategy.Strategy
	Seeds      int    // runs of each scenario with each strategy; 0: 1
	First      uint64 // seed of the first of them; the next has the next number
	Parallel   int    // runs at once; 0: as many as there are cores for this process

	// Progress is told how far the work is; one call at a time, often. Nil: not told.
	Progress func(Progress)
	// Start begins a run. Nil: sim.New.
	Start func(Job) (Simulation, error)
}

// Outcome is the results of all runs.
type Outcome struct {
	// Results are in the order of the scenarios, within one in the order of the strategies, within one by seed.
	Results []*sim.Result

	strategies, seeds int
}

// Of gives the results of a scenario with a strategy, by seed; both count from 0 in the order of the Options.
func (o *Outcome) Of(scenario, strategy int) []*sim.Result {
	first := (scenario*o.strategies + strategy) * o.seeds
	return o.Results[first : first+o.seeds]
}

// slice is how much simulated time passes between two checks of the context: some milliseconds of a core.
const slice = time.Second

// Run makes all runs, several at once.
//
// Errors: the first job in the order of Outcome that failed, by name; then or when ctx ends the other runs are given up,
// and there is no Outcome.
func Run(ctx context.Context, o Options) (*Outcome, error) {
	o = o.withDefaults()
	results, err := o.run(ctx, o.repeat(o.jobs()))
	if err != nil {
		return nil, err
	}
	return &Outcome{Results: results, strategies: len(o.Strategies), seeds: o.Seeds}, nil
}

// Memory of a run: each client knows each endpoint.
const (
	pairBytes = 1 << 10 // of an endpoint in a client: 256 B for requests, the rest for the control loop
	mostBytes = 8 << 30 // of all runs at once: what a developer's machine has
)

// fits refuses jobs that would take more memory than a machine has.
func (o *Options) fits(jobs []Job) error {
	for _, j := range jobs {
		clients, endpoints := 0, 0
		for i := range j.Scenario.Clients {
			clients += j.Scenario.Clients[i].Count
		}
		for _, svc := range j.Scenario.Snapshot.Services {
			endpoints += len(svc.Endpoints)
		}
		parallel := min(o.Parallel, len(jobs))
		if bytes := float64(clients) * float64(endpoints) * float64(parallel) * pairBytes; bytes > mostBytes {
			return fmt.Errorf("scenario %s: %d clients that know %d endpoints each take about %.0f GiB in %d runs at once: want at most %d",
				j.Scenario.Name, clients, endpoints, bytes/(1<<30), parallel, mostBytes>>30)
		}
	}
	return nil
}

// run makes the runs of all jobs; the results are in the same order.
func (o *Options) run(ctx context.Context, jobs []Job) ([]*sim.Result, error) {
	if err := o.fits(jobs); err != nil {
		return nil, err
	}
	results := make([]*sim.Result, len(jobs))
	errs := make([]error, len(jobs))
	meter := newMeter(jobs, o.Progress)
	runs, cancel := context.WithCancel(ctx)
	defer cancel()
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(o.Parallel, len(jobs)) {
		group.Go(func() {
			for runs.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(jobs) {
					return
				}
				if results[i], errs[i] = jobs[i].run(runs, o.Start, meter); errs[i] != nil {
					cancel()
				}
			}
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("the simulation was ended early: %w", err)
	}
	return results, first(errs)
}

// first gives the first error that is a job's own, and not the end of all because another failed.
func first(errs []error) error {
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Seeds < 1 {
		o.Seeds = 1
	}
	if o.Parallel < 1 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
	if o.Start == nil {
		o.Start = start
	}
	return o
}

// jobs lists what is to be run, but for the seeds, in the order of the results.
func (o *Options) jobs() []Job {
	jobs := make([]Job, 0, len(o.Scenarios)*len(o.Strategies))
	for _, s := range o.Scenarios {
		for i := range o.Strategies {
			jobs = append(jobs, Job{Scenario: s, Strategy: &o.Strategies[i]})
		}
	}
	return jobs
}

// repeat lists each job once for each seed.
func (o *Options) repeat(jobs []Job) []Job {
	all := make([]Job, 0, len(jobs)*o.Seeds)
	for _, j := range jobs {
		for n := range o.Seeds {
			j.Seed = o.First + uint64(n) //nolint:gosec // not negative.
			all = append(all, j)
		}
	}
	return all
}

// run makes one run, unless ctx ends.
func (j Job) run(ctx context.Context, start func(Job) (Simulation, error), m *meter) (*sim.Result, error) {
	s, err := start(j)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", j, err)
	}
	for now := time.Duration(0); now < j.Scenario.Length; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		until := min(now+slice, j.Scenario.Length)
		s.Step(until)
		m.add(j.weight(until-now), 0)
		now = until
	}
	m.add(0, 1)
	return s.Result(), nil
}
