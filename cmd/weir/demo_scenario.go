package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/weir-lb/weir/internal/demo"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
	"github.com/weir-lb/weir/internal/simulate"
)

// demoSeeds is how many simulated runs a measured one is compared with: enough to tell what chance does.
const demoSeeds = 5

// leastPeak is the smallest --peak, in requests per second: with less a run of a minute tells nothing, and what requests
// then take does not fit into times.
const leastPeak = 1

// resolveScenarios checks the flags of scenarios, and gives these, made so that this machine can play them.
//
// Errors: of all that cannot be read or played.
func (f *demoFlags) resolveScenarios(stdin io.Reader) ([]demoPlay, error) {
	if f.output == "markdown" && !f.agree {
		return nil, errors.New("--output=markdown is the table of what agrees: want --agree")
	}
	if f.peak != 0 && !(f.peak >= leastPeak) {
		return nil, fmt.Errorf("--peak=%v: want %v or more", f.peak, leastPeak)
	}
	simulated, err := strategy.Named(strings.ToLower(f.strategy))
	if err != nil {
		return nil, err
	}
	player, err := demo.PlayerFor(simulated.Name, simulated.Mode)
	if err != nil {
		return nil, err
	}
	var (
		plays []demoPlay
		errs  []error
	)
	for _, name := range f.files {
		sc, err := scenarioOf(name, stdin)
		if err == nil {
			err = demo.Playable(sc, player)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		plays = append(plays, demoPlay{demo.Fit(sc, f.peak), player})
	}
	return plays, errors.Join(errs...)
}

// playScenario plays a scenario on sockets and, if that is wanted, in the simulator.
func (f *demoFlags) playScenario(ctx context.Context, p demoPlay) (*demo.Report, error) {
	o := f.options
	o.Player = p.player
	report, err := demo.Play(ctx, p.scenario, o)
	switch {
	case errors.Is(err, context.Canceled) || err == nil && report.Interrupted:
		return nil, fmt.Errorf("the run of %s was ended early: it has no result", p.scenario.Name)
	case err != nil:
		return nil, fmt.Errorf("play %s: %w", p.scenario.Name, err)
	}
	if !f.agree {
		report.Compare(nil)
		return report, nil
	}
	results, err := simulateSeeds(ctx, p.scenario, o)
	if err != nil {
		return nil, err
	}
	report.Compare(results)
	return report, nil
}

// simulateSeeds plays the scenario in the simulator, first with the requests that are sent on sockets.
func simulateSeeds(ctx context.Context, sc *scenario.Scenario, o demo.Options) ([]*sim.Result, error) {
	out, err := simulate.Run(ctx, simulate.Options{
		Scenarios: []*scenario.Scenario{sc}, Strategies: []strategy.Strategy{*o.Player.Simulated()},
		Seeds: demoSeeds, First: o.Seed,
	})
	if err != nil {
		return nil, fmt.Errorf("simulate %s: %w", sc.Name, err)
	}
	return out.Results, nil
}
