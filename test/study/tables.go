package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/strategy"
	"github.com/weir-lb/weir/internal/simulate"
)

// The strategies of the tables, in the order of their columns.
const columns = "random static-same-zone envoy-zone priority hazl weir"

// published are the study's numbers, in the order of columns; where it printed none there is a dash.
type published struct{ scenario, good, cross string }

func study() []published {
	return []published{
		{"skew", "98.8 0.9 75.5 74.8 92.8 98.6", "66.8 - 43.5 - 22.0 18.1"},
		{"spike", "98.5 0.7 74.6 77.1 91.7 98.6", "66.8 - 41.8 - 21.0 18.1"},
		{"brownout", "66.2 0.0 92.6 92.3 71.5 96.4", "66.8 - 31.2 - 24.9 33.4"},
		{"distance", "66.1 0.0 0.0 0.0 35.8 95.4", ""},
		{"coin", "82.5 49.6 91.4 91.3 49.8 97.0", ""},
		{"half-failing", "82.4 49.7 98.3 98.2 89.0 98.2", ""},
		{"zone-loss", "76.7 32.4 96.4 96.4 72.9 97.3", "66.7 - 32.6 - 33.9 33.7"},
		{"uneven", "98.7 33.0 98.9 96.6 95.8 97.1", ""},
		{"low-rate", "97.8 1.8 5.0 3.6 2.2 94.3", "66.7 - 1.5 - 0.0 11.7"},
		{"autoscale", "96.0 7.9 63.7 75.5 96.2 98.6", "66.5 - 33.2 - 15.4 17.7"},
		{"neighbour", "93.7 0.4 68.2 60.6 75.4 97.7", ""},
		{"steady", "", "- - - - 0.0 0.06"},
		{"streams", "", "- - - - 24.4 0.2"},
		{"noise", "", "- - - - 0.0 0.5"},
		{"rollout", "", "- - - - 0.0 0.9"},
		{"speeds", "", "- - - - 0.0 0.1"},
		{"day", "", "- - - - 0.0 0.9"},
	}
}

// compareWithStudy plays the study's scenarios and prints our numbers beside its own.
func compareWithStudy(ctx context.Context, w io.Writer, seeds int) error {
	var strategies []strategy.Strategy
	for name := range strings.FieldsSeq(columns) {
		s, err := strategy.Named(name)
		if err != nil {
			return err
		}
		strategies = append(strategies, s)
	}
	var names []string
	for _, f := range study() {
		names = append(names, f.scenario)
	}
	o, err := options(names, strategies, seedsOr(seeds, 3))
	if err != nil {
		return err
	}
	out, err := simulate.Run(ctx, o)
	if err != nil {
		return err
	}
	return printTables(w, out.Of)
}

// printTables prints both tables, given the results of a scenario with a strategy.
func printTables(w io.Writer, of func(scenario, strategy int) []*sim.Result) error {
	good := func(p *published, r *sim.Result) (string, float64) {
		if p.scenario == "uneven" { // the study has it of all clients
			return p.good, r.Window.Good
		}
		return p.good, r.Affected.Good
	}
	if err := printTable(w, "good %", of, good); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return printTable(w, "cross-zone %", of, func(p *published, r *sim.Result) (string, float64) { return p.cross, 1 - r.Window.InZone })
}

// printTable prints one of them; read gives the study's numbers of a scenario, and ours of a result.
func printTable(w io.Writer, title string, of func(scenario, strategy int) []*sim.Result, read func(*published, *sim.Result) (string, float64)) error {
	table := simulate.Table{Columns: []string{title, "random", "same zone", "Envoy's zones", "priority", "Hazl", "weir"}}
	for k, p := range study() {
		row := []string{"`" + p.scenario + "`"}
		for c := range table.Columns[1:] {
			results, ours, theirs := of(k, c), 0.0, ""
			for _, r := range results {
				numbers, value := read(&p, r)
				ours, theirs = ours+100*value/float64(len(results)), numbers
			}
			cell := fmt.Sprintf("%.1f", ours)
			if numbers := strings.Fields(theirs); c < len(numbers) && numbers[c] != "-" {
				cell += " (" + numbers[c] + ")"
			}
			row = append(row, cell)
		}
		table.Rows = append(table.Rows, row)
	}
	return table.Markdown(w, len(table.Columns))
}
