package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
	"github.com/weir-lb/weir/internal/simulate"
)

// printSensitivity halves and doubles each constant, and prints what that does.
func (f *simulateFlags) printSensitivity(c *cobra.Command, scenarios []*scenario.Scenario) error {
	o := f.options(sensitivitySeeds)
	o.Scenarios = scenarios
	bar := f.bar(c)
	o.Progress = bar.show
	s, err := simulate.Vary(c.Context(), o, f.config, simulate.ConstantNames())
	bar.clear()
	if err != nil {
		return err
	}
	if f.output == "table" || f.output == "markdown" {
		words := fmt.Sprintf("Scenarios: %d, seeds: %d", len(s.Scenarios), s.Seeds)
		if s.Seeds > 1 { // one does not vary
			words += fmt.Sprintf("; from seed to seed bad %% varies by %.2f points", 100*s.Noise)
		}
		_, err := fmt.Fprint(c.OutOrStdout(), words+".\n\n")
		if err != nil {
			return err
		}
	}
	return f.printReport(c, report{table: s.Table(), left: 1, rows: s.Rows(), data: struct {
		notes
		*simulate.Sensitivity
	}{newNotes(), s}})
}

// printTrace prints what one client decided.
func (f *simulateFlags) printTrace(c *cobra.Command, scenarios []*scenario.Scenario, strategies []strategy.Strategy) error {
	if len(scenarios) != 1 || len(strategies) != 1 {
		return &usageError{errors.New("--trace: name one scenario, and one strategy with --strategies")}
	}
	client, err := simulate.ParseClient(f.trace)
	if err != nil {
		return &usageError{fmt.Errorf("--trace: %w", err)}
	}
	job := simulate.Job{Scenario: scenarios[0], Strategy: &strategies[0], Seed: f.seed}
	moments, err := simulate.Trace(c.Context(), job, client)
	if err != nil {
		return err
	}
	t := simulate.TraceTable(moments)
	return f.printReport(c, report{table: t, left: len(t.Columns), rows: simulate.TraceRows(moments), data: struct {
		notes
		Scenario string            `json:"scenario"`
		Strategy string            `json:"strategy"`
		Seed     uint64            `json:"seed"`
		Moments  []simulate.Moment `json:"moments"`
	}{newNotes(), job.Scenario.Name, job.Strategy.Name, job.Seed, moments}})
}
