package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/sim/score"
	"github.com/weir-lb/weir/internal/sim/strategy"
	"github.com/weir-lb/weir/internal/simulate"
)

// weirWith makes weir's strategy with these constants, under a name of its own.
func weirWith(k overflow.Constants, name string) strategy.Strategy {
	all := strategy.With(overflow.Config{Constants: k})
	weir := all[slices.IndexFunc(all, func(s strategy.Strategy) bool { return s.Name == "weir" })]
	weir.Name, weir.Title = name, name
	return weir
}

// sweep compares weir at several values of a constant: NAME=VALUE,… and the scenarios.
func sweep(ctx context.Context, w io.Writer, args []string, seeds int) error {
	if len(args) < 2 {
		return errors.New("sweep: want NAME=VALUE,… and scenarios, such as HomeSlowdown=1.2,1.6 spike")
	}
	name, values, _ := strings.Cut(args[0], "=")
	var all []strategy.Strategy
	var labels []score.Label
	for text := range strings.SplitSeq(values, ",") {
		k := overflow.DefaultConstants()
		name, err := set(&k, name, text)
		if err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
		s := weirWith(k, name+"="+text)
		all, labels = append(all, s), append(labels, score.Label{Name: s.Name, Title: s.Title})
	}
	o, err := options(args[1:], all, seedsOr(seeds, 3))
	if err != nil {
		return err
	}
	out, err := simulate.Run(ctx, o)
	if err != nil {
		return err
	}
	compare := score.Options{Strategies: labels}
	for _, sc := range o.Scenarios {
		compare.Scenarios = append(compare.Scenarios, score.LabelOf(sc))
	}
	board := score.Compare(out.Results, compare)
	return board.Print(w, score.Style{Wide: true})
}

func seedsOr(seeds, usual int) int {
	if seeds > 0 {
		return seeds
	}
	return usual
}

// outcome is what a set of constants comes to: means over all scenarios and seeds.
type outcome struct {
	bad       float64 // fraction of the affected clients' requests that were not good, under stress
	calmCross float64 // fraction of all requests that left their zone in the calm before
	dollars   float64 // an hour, of bytes that crossed zones under stress
}

func (o outcome) cells() []string {
	return []string{fmt.Sprintf("%.2f", 100*o.bad), fmt.Sprintf("%.2f", 100*o.calmCross), fmt.Sprintf("%.3f", o.dollars)}
}

// sum adds up the results of a strategy, and says by how much bad varies from seed to seed as a standard deviation.
func sum(out *simulate.Outcome, at, scenarios, seeds int) (mean outcome, noise float64) {
	bad := make([]float64, seeds)
	n := float64(scenarios * seeds)
	for s := range scenarios {
		for i, r := range out.Of(s, at) {
			bad[i] += (1 - r.Affected.Good) / float64(scenarios)
			mean.bad += (1 - r.Affected.Good) / n
			mean.calmCross += (1 - r.Calm.InZone) / n
			mean.dollars += r.Window.Dollars / n
		}
	}
	if seeds < 2 {
		return mean, 0
	}
	for _, b := range bad {
		noise += (b - mean.bad) * (b - mean.bad) / float64(seeds-1)
	}
	return mean, math.Sqrt(noise)
}

// sensitivity halves and doubles each of the named constants of weir's law in the sense of times: a row for each, the first
// of the constants as they are. noise is that of bad.
func sensitivity(ctx context.Context, o simulate.Options, names []string) (table simulate.Table, noise float64, err error) {
	base := overflow.DefaultConstants()
	o.Strategies = []strategy.Strategy{weirWith(base, "weir")}
	var values []string // of each strategy
	for _, name := range names {
		for _, factor := range []float64{0.5, 2} {
			k, err := times(base, name, factor)
			if err != nil {
				return table, 0, err
			}
			text, err := value(k, name)
			if err != nil {
				return table, 0, err
			}
			o.Strategies = append(o.Strategies, weirWith(k, name+"="+text))
			values = append(values, text)
		}
	}
	out, err := simulate.Run(ctx, o)
	if err != nil {
		return table, 0, err
	}
	table.Columns = []string{
		"constant", "value", "half", "bad %", "calm cross %", "$/h", "double", "bad %", "calm cross %", "$/h",
	}
	asTheyAre, noise := sum(out, 0, len(o.Scenarios), o.Seeds)
	table.Rows = [][]string{slices.Concat([]string{"as they are", "", ""}, asTheyAre.cells(), make([]string, 4))}
	for i, name := range names {
		now, err := value(base, name)
		if err != nil {
			return table, 0, err
		}
		row := []string{name, now}
		for at := 2 * i; at < 2*i+2; at++ {
			mean, _ := sum(out, 1+at, len(o.Scenarios), o.Seeds)
			row = append(append(row, values[at]), mean.cells()...)
		}
		table.Rows = append(table.Rows, row)
	}
	return table, noise, nil
}

// printSensitivity prints the sensitivity as docs/simulation.md has it; without names of the scenarios that it is over there.
func printSensitivity(ctx context.Context, w io.Writer, names []string, seeds int) error {
	if len(names) == 0 {
		names = strings.Fields("skew brownout half-failing zone-loss uneven steady rollout")
	}
	o, err := options(names, nil, seedsOr(seeds, 2))
	if err != nil {
		return err
	}
	table, noise, err := sensitivity(ctx, o, constantNames())
	if err != nil {
		return err
	}
	if err := table.Markdown(w, 1); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\n%d scenarios, %d seeds; from seed to seed bad varies by %.2f points.\n", len(names), o.Seeds, 100*noise)
	return err
}
