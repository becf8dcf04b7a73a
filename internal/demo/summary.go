package demo

import (
	"fmt"
	"strings"
)

// stallLimit is what a machine may be late by without being blamed for it: as long as an agent takes from one decision to
// the next.
const stallLimit = Millis(100)

// summary renders the table by phase, then the checks.
func summary(r *Report, p painter) []string {
	var g grid
	g.add(text("phase"), text("rate/s"), text("in zone"), text("spill"), text("success"), text("p50"), text("p99"),
		text("cost"), text("stall"), text("to spill"), text("to return"))
	for i := range r.Phases {
		phase := &r.Phases[i]
		g.add(append(figureCells(phase.Title, &phase.All), timeCells(phase)...)...)
		if phase.Hit != nil {
			g.add(figureCells("  clients in "+string(phase.Zone), phase.Hit)...)
		}
	}
	g.add(figureCells("whole script", &r.Total)...)
	lines := append([]string{heading(r)}, g.lines(0, p)...)
	lines = append(lines, "not answered well: "+r.Total.Errors.String())
	if r.Total.Stall > stallLimit {
		lines = append(lines, p.paint(cell{fmt.Sprintf("this machine was busy otherwise: requests were sent up to %s after "+
			"they were due, and every figure suffers from it", r.Total.Stall), yellow}))
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

func figureCells(title string, f *Figures) []cell {
	return []cell{
		text(title), text(fmt.Sprintf("%.0f", f.Rate)), text(percent(f.InZone, 1)), text(rounded(f.Spill)),
		{percent(f.Success, 2), successStyle(f.Success)},
		text(f.P50.String()), text(f.P99.String()),
		text(fmt.Sprintf("%.2f", f.Cost)), text(f.Stall.String()),
	}
}

func timeCells(p *PhaseReport) []cell {
	if !p.Event.IsFault() {
		return nil
	}
	return []cell{text(seen(p.Spilled)), text(returned(p))}
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
func verdict(r *Report, p painter) []string {
	var g grid
	g.left = map[int]bool{1: true, 2: true, 3: true}
	for _, c := range r.Checks {
		mark := cell{"ok", green}
		if !c.Passed {
			mark = cell{"SHORT", red}
		}
		g.add(mark, text(c.Name), text(c.Got), text("want "+c.Want))
	}
	end := cell{r.Strategy + " reaches every figure", green}
	if !r.Passed {
		end = cell{r.Strategy + " falls short", red}
	}
	return append(g.lines(0, p), p.paint(end))
}

// comparison renders the reports side by side: one column for each strategy.
func comparison(reports []Report, p painter) []string {
	var g grid
	row := func(name string, value func(*Report) string) {
		cells := []cell{text(name)}
		for i := range reports {
			cells = append(cells, text(value(&reports[i])))
		}
		g.add(cells...)
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
	return g.lines(0, p)
}
