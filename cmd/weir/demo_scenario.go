package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

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

// demoScenarioFlags are the flags of playing scenarios, as typed.
type demoScenarioFlags struct {
	files     []string
	contender string
	peak      float64
	agree     bool
}

func (f *demoScenarioFlags) group() flagGroup {
	g := group("Scenarios")
	g.StringSliceVar(&f.files, "scenario", nil,
		"instead of the script, play scenarios on real sockets, one after the other: files, - for standard input, or names that weir simulate --list has")
	g.StringVar(&f.contender, "contender", demo.DefaultContender, "how the agents balance: weir, hazl, random or one of static-*")
	g.Float64Var(&f.peak, "peak", 0,
		"make requests rarer and longer until all clients together send at most this many per second (0: 250)")
	g.BoolVar(&f.agree, "agree", true, "compare with the simulator; the exit status is 1 if they do not agree")
	return g
}

// errDisagree means that what was measured is not what was simulated.
var errDisagree = errors.New("what was measured is not what was simulated")

// run plays the scenarios and prints what was measured beside what was simulated.
func (f *demoScenarioFlags) run(c *cobra.Command, o demo.PlayOptions, output string) error {
	switch output {
	case "table", "markdown", "json", "yaml":
	default:
		return fmt.Errorf("--output=%s: want table, markdown, json or yaml", output)
	}
	if output == "markdown" && !f.agree {
		return errors.New("--output=markdown is the table of what agrees: want --agree")
	}
	if f.peak != 0 && !(f.peak >= leastPeak) {
		return fmt.Errorf("--peak=%v: want %v or more", f.peak, leastPeak)
	}
	way, err := strategy.Named(f.contender)
	if err != nil {
		return err
	}
	if o.Player, err = demo.PlayerFor(way.Name, way.Mode); err != nil {
		return err
	}
	all, err := f.read(o.Player, c.InOrStdin())
	if err != nil {
		return err
	}
	c.SilenceUsage = true
	out := c.OutOrStdout()
	o.Progress = demo.NewDisplay(os.Stderr)
	if o.Seed == 0 {
		o.Seed = demo.DefaultSeed
	}
	if output == "markdown" {
		if _, err := fmt.Fprintln(out, demo.MarkdownHead); err != nil {
			return err
		}
	}
	var runs []demo.Agreement
	for _, sc := range all {
		a, err := f.prove(c.Context(), sc, o)
		if errors.Is(err, context.Canceled) {
			err = fmt.Errorf("the run of %s was ended early: it has no result", sc.Name)
		}
		if err == nil {
			runs = append(runs, a)
			err = printAgreement(out, &a, output)
		}
		if err != nil { // what was measured before it is not lost
			return errors.Join(err, printRuns(out, runs, output))
		}
	}
	return conclude(out, runs, output)
}

// prove plays a scenario on sockets and, if that is wanted, in the simulator.
func (f *demoScenarioFlags) prove(ctx context.Context, sc *scenario.Scenario, o demo.PlayOptions) (demo.Agreement, error) {
	measured, err := demo.Play(ctx, sc, o)
	if err != nil {
		return demo.Agreement{}, fmt.Errorf("play %s: %w", sc.Name, err)
	}
	var simulated []*sim.Result
	if f.agree {
		if simulated, err = simulateSeeds(ctx, sc, o); err != nil {
			return demo.Agreement{}, err
		}
	}
	return demo.Agree(measured, simulated), nil
}

// read gives the scenarios, made so that this machine can play them.
//
// Errors: of all that cannot be read or played.
func (f *demoScenarioFlags) read(p demo.Player, stdin io.Reader) ([]*scenario.Scenario, error) {
	var (
		all  []*scenario.Scenario
		errs []error
	)
	for _, name := range f.files {
		sc, err := scenarioOf(name, stdin)
		if err == nil {
			err = demo.Playable(sc, p)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, demo.Fit(sc, demo.FitOptions{Rate: f.peak}))
	}
	return all, errors.Join(errs...)
}

// simulateSeeds plays the scenario in the simulator, first with the requests that are sent on sockets.
func simulateSeeds(ctx context.Context, sc *scenario.Scenario, o demo.PlayOptions) ([]*sim.Result, error) {
	out, err := simulate.Run(ctx, simulate.Options{
		Scenarios: []*scenario.Scenario{sc}, Strategies: []strategy.Strategy{*o.Player.Simulated()},
		Seeds: demoSeeds, First: o.Seed,
	})
	if err != nil {
		return nil, fmt.Errorf("simulate %s: %w", sc.Name, err)
	}
	return out.Results, nil
}

// printAgreement prints one run as text, if text is wanted.
func printAgreement(w io.Writer, a *demo.Agreement, output string) error {
	var err error
	switch output {
	case "markdown":
		_, err = fmt.Fprintln(w, a.Markdown())
	case "table":
		_, err = fmt.Fprintln(w, strings.Join(append(a.Lines(), ""), "\n"))
	default: // at the end
	}
	return err
}

// printRuns prints the data that is wanted at the end, if there is any.
func printRuns(w io.Writer, runs []demo.Agreement, output string) error {
	if len(runs) == 0 || output != "json" && output != "yaml" {
		return nil
	}
	return printData(w, output, struct {
		Runs []demo.Agreement `json:"runs"`
	}{runs})
}

// conclude prints the data that is wanted at the end, and says whether all agree.
func conclude(w io.Writer, runs []demo.Agreement, output string) error {
	if err := printRuns(w, runs, output); err != nil {
		return err
	}
	for i := range runs {
		if !runs[i].Agrees {
			return errDisagree
		}
	}
	return nil
}
