package demo

import (
	"fmt"
	"strings"

	"github.com/weir-lb/weir/internal/grid"
)

// stallLimit is what a machine may be late by without being blamed for it: as long as an agent takes from one decision to
// the next.
const stallLimit = Millis(100)

// summary renders the table by phase, then the checks.
func summary(r *Report, p grid.Painter) []string {
	g := numbers()
	g.Add(grid.Text("phase"), grid.Text("rate/s"), grid.Text("in zone"), grid.Text("spill"), grid.Text("success"), grid.Text("p50"), grid.Text("p99"),
		grid.Text("cost"), grid.Text("stall"), grid.Text("to spill"), grid.Text("to return"))
	for i := range r.Phases {
		phase := &r.Phases[i]
		g.Add(append(figureCells(phase.Title, &phase.All), timeCells(phase)...)...)
		if phase.Hit != nil {
			g.Add(figureCells("  clients in "+string(phase.Zone), phase.Hit)...)
		}
	}
	g.Add(figureCells("whole script", &r.Total)...)
	lines := append([]string{heading(r)}, g.Lines(0, p)...)
	lines = append(lines, "not answered well: "+r.Total.Errors.String())
	if r.Total.Stall > stallLimit {
		lines = append(lines, p.Paint(grid.Cell{Text: fmt.Sprintf("this machine was busy otherwise: requests were sent up to %s after "+
			"they were due, and every figure suffers from it", r.Total.Stall), Tone: grid.Yellow}))
	}
	return append(append(lines, ""), verdict(r, p)...)
}

func heading(r *Report) string {
	h := fmt.Sprintf("%s, %.0f requests/s in each of %s, seed %d", r.Strategy, r.Rate, strings.Join(r.Zones, ", "), r.Seed)
	if r.RetryOn != "" {
		h += ", retry on " + r.RetryOn
	}
	if r.Interrupted {
		h += " (interrupted)"
	}
	return h
}

func figureCells(title string, f *Figures) []grid.Cell {
	return []grid.Cell{
		grid.Text(title), grid.Text(fmt.Sprintf("%.0f", f.Rate)), grid.Text(percent(f.InZone, 1)), grid.Text(rounded(f.Spill)),
		{Text: percent(f.Success, 2), Tone: successTone(f.Success)},
		grid.Text(f.P50.String()), grid.Text(f.P99.String()),
		grid.Text(fmt.Sprintf("%.2f", f.Cost)), grid.Text(f.Stall.String()),
	}
}

func timeCells(p *PhaseReport) []grid.Cell {
	if !p.Event.IsFault() {
		return nil
	}
	return []grid.Cell{grid.Text(seen(p.Spilled)), grid.Text(returned(p))}
}

// seen prints a time that may not have come.
func seen(seconds *float64) string {
	if seconds == nil {
		return "not seen"
	}
	return fmt.Sprintf("%.1f s", *seconds)
}

// returned prints the time to return; traffic that never left cannot.
func returned(p *PhaseReport) string {
	if p.Spilled == nil {
		return "-"
	}
	return seen(p.Returned)
}

// String names the kinds that occurred.
func (e Errors) String() string {
	var parts []string
	for _, kind := range []struct {
		count int
		what  string
	}{
		{e.Late, "later than a second"},
		{e.Erroneous, "5xx from an endpoint"},
		{e.Rejected, "5xx from the agent"},
		{e.Broken, "connection broken"},
		{e.Dropped, "not sent, too many outstanding"},
	} {
		if kind.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", kind.count, kind.what))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// verdict renders the checks and what follows from them.
func verdict(r *Report, p grid.Painter) []string {
	g := numbers(1, 2, 3)
	for _, c := range r.Checks {
		mark := grid.Cell{Text: "ok", Tone: grid.Green}
		if !c.Passed {
			mark = grid.Cell{Text: "SHORT", Tone: grid.Red}
		}
		g.Add(mark, grid.Text(c.Name), grid.Text(c.Got), grid.Text("want "+c.Want))
	}
	end := grid.Cell{Text: r.Strategy + " reaches every figure", Tone: grid.Green}
	if !r.Passed {
		end = grid.Cell{Text: r.Strategy + " falls short", Tone: grid.Red}
	}
	return append(g.Lines(0, p), p.Paint(end))
}

// comparison renders the reports side by side: one column for each strategy.
func comparison(reports []Report, p grid.Painter) []string {
	g := numbers()
	row := func(name string, value func(*Report) string) {
		cells := []grid.Cell{grid.Text(name)}
		for i := range reports {
			cells = append(cells, grid.Text(value(&reports[i])))
		}
		g.Add(cells...)
	}
	row("", func(r *Report) string { return r.Strategy })
	for i := range reports[0].Phases {
		phase := &reports[0].Phases[i]
		at := func(f func(*PhaseReport) string) func(*Report) string {
			return func(r *Report) string {
				if i >= len(r.Phases) {
					return "-" // interrupted
				}
				return f(&r.Phases[i])
			}
		}
		row(phase.Title+": success", at(func(p *PhaseReport) string { return percent(p.All.Success, 2) }))
		row("  in zone", at(func(p *PhaseReport) string { return percent(p.All.InZone, 1) }))
		row("  p99", at(func(p *PhaseReport) string { return p.All.P99.String() }))
		if phase.Event.IsFault() {
			row("  to spill", at(func(p *PhaseReport) string { return seen(p.Spilled) }))
			row("  to return", at(returned))
		}
	}
	row("whole script: success", func(r *Report) string { return percent(r.Total.Success, 2) })
	row("  in zone", func(r *Report) string { return percent(r.Total.InZone, 1) })
	row("  p99", func(r *Report) string { return r.Total.P99.String() })
	row("  cost per request", func(r *Report) string { return fmt.Sprintf("%.3f", r.Total.Cost) })
	row("reaches every figure", func(r *Report) string {
		if r.Passed {
			return "yes"
		}
		return "no"
	})
	return g.Lines(0, p)
}
