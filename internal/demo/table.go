package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/grid"
)

// frame is what a viewer sees of one instant.
type frame struct {
	Title   string // which strategy plays what
	Phases  []Phase
	Elapsed time.Duration // since the run began
	Zones   []zoneFrame
}

// zoneFrame is one zone's row: what its clients saw lately, and what the agent of its first client thinks of it.
type zoneFrame struct {
	Zone topology.Zone
	Measures
	poolState
}

// live renders the frame for a terminal of the given width: title, progress, a row for each zone, and below them why each
// pool is where it is. Every frame of a play has as many lines.
func (f *frame) live(width int, p grid.Painter) []string {
	g := numbers(8)
	g.Add(texts("zone", "rate/s", "in zone", "spill", "success", "p50", "p99", "cost", "pool")...)
	var why []string
	for _, z := range f.Zones {
		g.Add(grid.Cell{Text: string(z.Zone), Tone: grid.Bold},
			grid.Text(fmt.Sprintf("%.0f", z.Rate)),
			grid.Text(percent(z.InZone, 1)),
			grid.Text(rounded(1-z.InZone)),
			grid.Cell{Text: percent(z.Success, 1), Tone: successTone(z.Success)},
			grid.Text(z.P50.String()), grid.Text(z.P99.String()),
			grid.Text(fmt.Sprintf("%.2f", z.Cost)),
			grid.Cell{Text: z.State, Tone: stateTone(z.State)})
		why = append(why, p.Line(width, grid.Cell{Text: string(z.Zone) + ": " + z.Reason, Tone: grid.Dim}))
	}
	title := p.Line(width, grid.Cell{Text: "weir demo", Tone: grid.Bold}, grid.Text(fmt.Sprintf(" · %s · %s", f.Title, f.position())))
	lines := append([]string{title, f.bar(width, p), ""}, g.Lines(width, p)...)
	return append(append(lines, ""), why...)
}

// numbers is a table with numbers in all columns but the first and those that are aligned left like it.
func numbers(left ...int) grid.Table {
	const gap = 2
	isRight := func(column int) bool { return column > 0 && !slices.Contains(left, column) }
	return grid.Table{Columns: grid.Columns{Gap: gap, Right: isRight}}
}

func texts(words ...string) []grid.Cell {
	cells := make([]grid.Cell, len(words))
	for i, w := range words {
		cells[i] = grid.Text(w)
	}
	return cells
}

// position says where the play is: the phase by name, and the time of the whole.
func (f *frame) position() string {
	i := phaseAt(f.Phases, f.Elapsed)
	now := fmt.Sprintf("%.0f of %.0f s · %s", f.Elapsed.Seconds(), f.length().Seconds(), f.Phases[i].Title)
	if i+1 < len(f.Phases) {
		now += " · then " + f.Phases[i+1].Title
	}
	return now
}

func (f *frame) length() time.Duration { return f.Phases[len(f.Phases)-1].To }

// bar draws the progress: faults heavier than the quiet between them, what is over in colour or, without colours, heavier.
func (f *frame) bar(width int, p grid.Painter) string {
	const widest = 100 // more is not more precise: a cell is already less than a second
	if width <= 0 || width > widest {
		width = widest
	}
	over, ahead := grid.Cell{Tone: grid.Green}, grid.Cell{Tone: grid.Dim}
	for i := range width {
		at := f.length() * time.Duration(2*i+1) / time.Duration(2*width)
		isFault := f.Phases[phaseAt(f.Phases, at)].IsFault
		switch {
		case at >= f.Elapsed:
			ahead.Text += either(isFault, "▄", "─")
		case p.Colour:
			over.Text += either(isFault, "▄", "─")
		default:
			over.Text += either(isFault, "█", "━")
		}
	}
	return p.Paint(over) + p.Paint(ahead)
}

func either(is bool, yes, no string) string { //nolint:revive // what the words are chosen by.
	if is {
		return yes
	}
	return no
}

// plain renders the frame as one line, for logs.
func (f *frame) plain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%5.1f s  %s  %-18s", f.Elapsed.Seconds(), f.Title, f.Phases[phaseAt(f.Phases, f.Elapsed)].Title)
	for _, z := range f.Zones {
		fmt.Fprintf(&b, "  %s %.0f/s in-zone %s ok %s p99 %s %s",
			z.Zone, z.Rate, percent(z.InZone, 1), percent(z.Success, 1), z.P99, z.State)
	}
	return b.String()
}

func successTone(success float64) grid.Tone {
	switch {
	case success >= wantSuccess:
		return grid.Green
	case success >= 0.9: // one in ten is what people start to write mails about
		return grid.Yellow
	default:
		return grid.Red
	}
}

func stateTone(state string) grid.Tone {
	switch state {
	case "calm":
		return grid.Green
	case "crisis", "evacuated":
		return grid.Red
	default:
		return grid.Yellow
	}
}

// String prints the latency with three digits at most.
func (m Millis) String() string {
	switch {
	case m < 9.95:
		return fmt.Sprintf("%.1f ms", float64(m))
	case m < 999.5:
		return fmt.Sprintf("%.0f ms", float64(m))
	default:
		return fmt.Sprintf("%.2f s", float64(m)/1000)
	}
}

// percent prints a fraction, cut and not rounded, so that a value below its target never reads as if it met it.
func percent(fraction float64, digits int) string {
	scale := 1.0
	for range digits {
		scale *= 10
	}
	// The small addition takes back what binary fractions lose: 0.995 · 1000 is 994.9999….
	return fmt.Sprintf("%.*f %%", digits, float64(int(fraction*100*scale+1e-6))/scale)
}

// rounded prints a fraction to the nearest tenth of a percent.
func rounded(fraction float64) string { return fmt.Sprintf("%.1f %%", fraction*100) }

// Lines renders the report for a terminal: the table by phase, then the checks; or, if it was compared with the simulator,
// the agreement.
func (r *Report) Lines(p grid.Painter) []string {
	if r.Agreement != nil {
		return append(r.Agreement.Lines(), r.complaint(p)...)
	}
	g := numbers()
	g.Add(texts("phase", "rate/s", "in zone", "spill", "success", "p50", "p99", "cost", "stall", "to spill", "to return")...)
	for i := range r.Phases {
		phase := &r.Phases[i]
		cells := phase.All.cells(phase.Title)
		if phase.IsFault {
			cells = append(cells, texts(phase.spilled(), phase.returned())...)
		}
		g.Add(cells...)
		if phase.Hit != nil {
			g.Add(phase.Hit.cells("  clients in " + phase.Zone)...)
		}
	}
	g.Add(r.Total.cells("the whole")...)
	lines := append([]string{r.heading()}, g.Lines(0, p)...)
	lines = append(lines, "not answered well: "+r.Total.Errors.String())
	return append(append(lines, r.complaint(p)...), r.verdict(p)...)
}

func (r *Report) complaint(p grid.Painter) []string {
	if c := r.Total.complaint(); c != "" {
		return []string{p.Paint(grid.Cell{Text: c, Tone: grid.Yellow})}
	}
	return nil
}

func (r *Report) heading() string {
	h := fmt.Sprintf("%s in %s, seed %d", r.title, strings.Join(r.Zones, ", "), r.Seed)
	if r.RetryOn != "" && r.RetryOn != DefaultRetryOn {
		h += ", retries on " + r.RetryOn
	}
	if r.Interrupted {
		h += " (interrupted)"
	}
	return h
}

func (f *Measures) cells(title string) []grid.Cell {
	return []grid.Cell{
		grid.Text(title), grid.Text(fmt.Sprintf("%.0f", f.Rate)), grid.Text(percent(f.InZone, 1)), grid.Text(rounded(1 - f.InZone)),
		{Text: percent(f.Success, 2), Tone: successTone(f.Success)},
		grid.Text(f.P50.String()), grid.Text(f.P99.String()),
		grid.Text(fmt.Sprintf("%.2f", f.Cost)), grid.Text(f.Stall.String()),
	}
}

func (p *PhaseReport) spilled() string { return seen(p.Spilled) }

// returned prints the time to return; traffic that never left cannot.
func (p *PhaseReport) returned() string {
	if p.Spilled == nil {
		return "-"
	}
	return seen(p.Returned)
}

// seen prints a time that may not have come.
func seen(seconds *float64) string {
	if seconds == nil {
		return "not seen"
	}
	return fmt.Sprintf("%.1f s", *seconds)
}

// String names the kinds that occurred.
func (e Errors) String() string {
	var parts []string
	for _, kind := range []struct {
		count int
		what  string
	}{
		{e.Late, "not in time"},
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
func (r *Report) verdict(p grid.Painter) []string {
	if len(r.Checks) == 0 {
		return nil
	}
	g := numbers(1, 2, 3)
	for _, c := range r.Checks {
		mark := grid.Cell{Text: "ok", Tone: grid.Green}
		if !c.Passed {
			mark = grid.Cell{Text: "MISSED", Tone: grid.Red}
		}
		g.Add(mark, grid.Text(c.Name), grid.Text(c.Got), grid.Text("want "+c.Want))
	}
	end := grid.Cell{Text: r.title + " meets every target", Tone: grid.Green}
	if !r.Passed {
		end = grid.Cell{Text: r.title + " misses a target", Tone: grid.Red}
	}
	return append(append([]string{""}, g.Lines(0, p)...), p.Paint(end))
}
