// Command study makes the figures of docs/simulation.md: developers run it from the root of the repository.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
	"github.com/weir-lb/weir/internal/simulate"
	"github.com/weir-lb/weir/test/scenarios"
)

const usage = `go run ./test/study tables
    prints the tables of docs/simulation.md that compare weir's simulator with the study's; takes minutes
go run ./test/study sensitivity [SCENARIO…]
    halves and doubles each constant of weir's law
go run ./test/study sweep NAME=VALUE,… SCENARIO…
    compares weir at several values of a constant
go run ./test/study load-table [LOAD/CLIENTS…]
    compares strategies while one zone's demand brings all endpoints to LOAD %, with so many clients in each zone

A scenario is one of the standard set or of internal/sim/testdata/law.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "study:", err)
		os.Exit(1)
	}
}

// run does what the arguments ask for.
func run(ctx context.Context, args []string, w io.Writer) error {
	flags := flag.NewFlagSet("study", flag.ContinueOnError)
	flags.Usage = func() {
		_, _ = io.WriteString(flags.Output(), usage) // as package flag does
		flags.PrintDefaults()
	}
	seeds := flags.Int("seeds", 0, "runs of each scenario with each strategy (default 3; 2 with sensitivity)")
	first := flags.Uint64("first", 1, "seed of the first run, with load-table")
	command := ""
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		command, args = args[0], args[1:]
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	names := flags.Args()
	switch command {
	case "tables":
		return compareWithStudy(ctx, w, max(*seeds, 0))
	case "sensitivity":
		return printSensitivity(ctx, w, names, max(*seeds, 0))
	case "sweep":
		return sweep(ctx, w, names, max(*seeds, 0))
	case "load-table":
		return loadTable(ctx, w, names, simulate.Options{Seeds: seedsOr(*seeds, 3), First: *first})
	default:
		flags.Usage()
		return fmt.Errorf("unknown command %q: want tables, sensitivity, sweep or load-table", command)
	}
}

// lawStories is where scenarios are that only the law's tests and this study play.
const lawStories = "internal/sim/testdata/law"

// read gives the scenarios of these names.
func read(names []string) ([]*scenario.Scenario, error) {
	var all []*scenario.Scenario
	for _, name := range names {
		text, err := scenarios.Read(name)
		if !slices.Contains(scenarios.Names(), name) {
			text, err = os.ReadFile(filepath.Join(lawStories, filepath.Base(name)+".txtar")) //nolint:gosec // a developer named it.
		}
		if err != nil {
			return nil, err
		}
		sc, err := scenario.Parse(name+".txtar", text)
		if err != nil {
			return nil, err
		}
		all = append(all, sc)
	}
	return all, nil
}

// options are those of a comparison of strategies in the scenarios of these names.
func options(names []string, strategies []strategy.Strategy, seeds int) (simulate.Options, error) {
	all, err := read(names)
	return simulate.Options{Scenarios: all, Strategies: strategies, Seeds: seeds, First: 1}, err
}
