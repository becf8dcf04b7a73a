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
	Strategy string
	Script   []Phase
	Phase    int           // index into Script
	Elapsed  time.Duration // since the script began
	Zones    []zoneFrame
}

// zoneFrame is one zone's row: what its clients saw lately, and what its agent thinks of it.
type zoneFrame struct {
	Zone topology.Zone
	Figures
	poolState
}

// poolState is where a zone's pool stands.
type poolState struct {
	State  string
	Reason string
}

// live renders the frame for a terminal of the given width: title, progress, a row for each zone, and below them why each
// pool is where it is. Every frame of a script has as many lines.
func (f *frame) live(width int, p grid.Painter) []string {
	g := numbers(8)
	g.Add(grid.Text("zone"), grid.Text("rate/s"), grid.Text("in zone"), grid.Text("spill"), grid.Text("success"),
		grid.Text("p50"), grid.Text("p99"), grid.Text("cost"), grid.Text("pool"))
	var why []string
	for _, z := range f.Zones {
		g.Add(grid.Cell{Text: string(z.Zone), Tone: grid.Bold},
			grid.Text(fmt.Sprintf("%.0f", z.Rate)),
			grid.Text(percent(z.InZone, 1)),
			grid.Text(rounded(z.Spill)),
			grid.Cell{Text: percent(z.Success, 1), Tone: successTone(z.Success)},
			grid.Text(z.P50.String()), grid.Text(z.P99.String()),
			grid.Text(fmt.Sprintf("%.2f", z.Cost)),
			grid.Cell{Text: z.State, Tone: stateTone(z.State)})
		why = append(why, p.Line(width, grid.Cell{Text: string(z.Zone) + ": " + z.Reason, Tone: grid.Dim}))
	}
	title := p.Line(width, grid.Cell{Text: "weir demo", Tone: grid.Bold}, grid.Text(fmt.Sprintf(" · %s · %s", f.Strategy, f.position())))
	lines := append([]string{title, f.bar(width, p), ""}, g.Lines(width, p)...)
	return append(append(lines, ""), why...)
}

// numbers is a table with numbers in all columns but the first and those that are aligned left like it.
func numbers(left ...int) grid.Table {
	const gap = 2
	isRight := func(column int) bool { return column > 0 && !slices.Contains(left, column) }
	return grid.Table{Columns: grid.Columns{Gap: gap, Right: isRight}}
}

// position says where the script is: the phase by name, and the time of the whole.
func (f *frame) position() string {
	now := fmt.Sprintf("%.0f of %.0f s · %s", f.Elapsed.Seconds(), duration(f.Script).Seconds(), f.Script[f.Phase])
	if f.Phase+1 < len(f.Script) {
		now += " · then " + f.Script[f.Phase+1].String()
	}
	return now
}

// bar draws the script's progress: faults heavier than the quiet between them, what is done in colour.
func (f *frame) bar(width int, p grid.Painter) string {
	const widest = 100 // more is not more precise: a cell is already less than a second
	if width <= 0 || width > widest {
		width = widest
	}
	whole := duration(f.Script)
	behind, ahead := looks(p)
	for i := range width {
		at := whole * time.Duration(2*i+1) / time.Duration(2*width)
		part := behind
		if at >= f.Elapsed {
			part = ahead
		}
		part.draw(phaseAt(f.Script, at).Event)
	}
	return p.Paint(behind.drawn) + p.Paint(ahead.drawn)
}

// stretch is one of the two parts of the bar.
type stretch struct {
	quiet, fault string
	drawn        grid.Cell
}

func (s *stretch) draw(e Event) {
	if e.IsFault() {
		s.drawn.Text += s.fault
	} else {
		s.drawn.Text += s.quiet
	}
}

// looks tells how the two parts of the bar look: what is behind has another colour or, without colours, more weight.
func looks(p grid.Painter) (behind, ahead *stretch) {
	behind = &stretch{"─", "▄", grid.Cell{Tone: grid.Green}}
	ahead = &stretch{"─", "▄", grid.Cell{Tone: grid.Dim}}
	if !p.Colour {
		behind.quiet, behind.fault = "━", "█"
	}
	return behind, ahead
}

func phaseAt(script []Phase, at time.Duration) Phase {
	for _, p := range script {
		if at < p.Lasts {
			return p
		}
		at -= p.Lasts
	}
	return script[len(script)-1]
}

// plain renders the frame as one line, for logs.
func (f *frame) plain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%5.1f s  %-18s", f.Elapsed.Seconds(), f.Script[f.Phase])
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
