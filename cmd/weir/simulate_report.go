package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/weir-lb/weir/internal/grid"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/score"
	"github.com/weir-lb/weir/internal/sim/strategy"
	"github.com/weir-lb/weir/internal/simulate"
	"github.com/weir-lb/weir/internal/web/charts"
)

// compare plays scenarios with strategies and reports.
func (f *simulateFlags) compare(c *cobra.Command, scenarios []*scenario.Scenario, strategies []strategy.Strategy) error {
	o := f.options(compareSeeds)
	if len(scenarios) > few {
		o = f.options(manySeeds)
	}
	o.Scenarios, o.Strategies = scenarios, strategies
	labels := score.Options{Strategies: labelsOf(strategies)}
	for _, s := range scenarios {
		labels.Scenarios = append(labels.Scenarios, score.LabelOf(s))
	}
	return f.playAndReport(c, o, func(results []*sim.Result) score.Board { return score.Compare(results, labels) })
}

// compareDrawn plays scenarios that are drawn at random, each once.
func (f *simulateFlags) compareDrawn(c *cobra.Command, strategies []strategy.Strategy) error {
	names, titles := simulate.Kinds()
	draw := score.Draw{Seed: f.seed, Kind: func(i int) int { return i % len(names) }, Against: weirStrategy}
	o := f.options(1)
	o.Strategies = strategies
	for i := range f.random {
		sc := simulate.Draw(f.seed, i+1)
		o.Scenarios, draw.Names = append(o.Scenarios, sc), append(draw.Names, sc.Name)
	}
	for i := range min(len(names), f.random) {
		label := score.LabelOf(o.Scenarios[i])
		label.Name, label.Title, label.Affected = names[i], titles[i], nil
		draw.Kinds = append(draw.Kinds, label)
	}
	labels := score.Options{Strategies: labelsOf(strategies)}
	return f.playAndReport(c, o, func(results []*sim.Result) score.Board { return score.CompareDrawn(results, draw, labels) })
}

func labelsOf(strategies []strategy.Strategy) []score.Label {
	labels := make([]score.Label, 0, len(strategies))
	for i := range strategies {
		labels = append(labels, score.Label{Name: strategies[i].Name, Title: strategies[i].Title, Limit: strategies[i].Omniscient})
	}
	return labels
}

// playAndReport makes the runs, and prints and writes what compare makes of them.
func (f *simulateFlags) playAndReport(c *cobra.Command, o simulate.Options, compare func([]*sim.Result) score.Board) error {
	if f.html != "" { // before the runs, which take time
		if err := canWrite(f.html); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	out, err := f.play(c, o)
	if err != nil {
		return err
	}
	board := compare(out.Results)
	board.Assumptions = simulate.Assumptions()
	if f.html != "" {
		page := compare(out.Results) // of its own, as -o json has no details
		page.Assumptions = simulate.Assumptions()
		page.AddDetails(o.Strategies, o.Scenarios, out.Results)
		if err := writeAtomically(f.html, func(w io.Writer) error { return charts.WriteReport(w, &page) }); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	return f.printBoard(c, &board)
}

// play makes the runs with a progress bar.
func (f *simulateFlags) play(c *cobra.Command, o simulate.Options) (*simulate.Outcome, error) {
	bar := f.bar(c)
	defer bar.clear()
	o.Progress = bar.show
	return simulate.Run(c.Context(), o)
}

// printBoard prints a comparison as asked.
func (f *simulateFlags) printBoard(c *cobra.Command, b *score.Board) error {
	w := c.OutOrStdout()
	style := score.Style{Wide: f.wide, Notes: b.Assumptions}
	if len(b.Overall.Rows) > 1 && slices.ContainsFunc(b.Overall.Rows, func(r score.Row) bool { return r.Strategy == weirStrategy }) {
		style.Against = weirStrategy
	}
	switch f.output {
	case "json":
		return printData(w, f.output, b)
	case "csv":
		c.PrintErrln(simulate.Disclaimer)
		return b.CSV(w)
	case "markdown":
		return b.Markdown(w, style)
	default:
		style.Colour, style.Width = wantsColour(w), terminalWidth(w)
		return b.Print(w, style)
	}
}

// weirStrategy is the one that the others are compared with.
const weirStrategy = "weir"

// terminalWidth is how many columns w has; 0: it is no terminal.
func terminalWidth(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd())) //nolint:gosec // a file descriptor.
	if err != nil {
		return 0
	}
	return width
}

// printTable prints a table as asked, but for JSON; its first columns are text.
func (f *simulateFlags) printTable(w io.Writer, t *simulate.Table, left int) error {
	switch f.output {
	case "csv":
		return t.CSV(w)
	case "markdown":
		return t.Markdown(w, left)
	default:
		return t.Print(w, left)
	}
}

// report is one answer in its forms.
type report struct {
	table simulate.Table // for people
	left  int            // how many of its columns are text
	rows  simulate.Table // as CSV
	data  any            // as JSON
}

// printReport prints an answer in the form that was asked for, with what every report says.
func (f *simulateFlags) printReport(c *cobra.Command, r report) error {
	w := c.OutOrStdout()
	switch f.output {
	case "json":
		return printData(w, f.output, r.data)
	case "csv":
		c.PrintErrln(simulate.Disclaimer)
		return r.rows.CSV(w)
	}
	if err := f.printTable(w, &r.table, r.left); err != nil {
		return err
	}
	return printNotes(w)
}

// printNotes prints what every report says.
func printNotes(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "\n%s The model:\n\n", simulate.Disclaimer); err != nil {
		return err
	}
	width := 100 // what every page has room for
	if columns := terminalWidth(w); columns > 0 {
		width = min(width, columns)
	}
	for _, a := range simulate.Assumptions() {
		if _, err := fmt.Fprintln(w, strings.Join(grid.Wrap("- "+a, width, len("- ")), "\n")); err != nil {
			return err
		}
	}
	return nil
}

// notes are what every report says, as JSON has it.
type notes struct {
	Notice      string   `json:"notice"`
	Assumptions []string `json:"assumptions"`
}

func newNotes() notes { return notes{simulate.Disclaimer, simulate.Assumptions()} }

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
