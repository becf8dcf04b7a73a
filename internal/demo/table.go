package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
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
func (f *frame) live(width int, p painter) []string {
	g := grid{left: map[int]bool{8: true}}
	g.add(text("zone"), text("rate/s"), text("in zone"), text("spill"), text("success"),
		text("p50"), text("p99"), text("cost"), text("pool"))
	var why []string
	for _, z := range f.Zones {
		g.add(cell{string(z.Zone), bold},
			text(fmt.Sprintf("%.0f", z.Rate)),
			text(percent(z.InZone, 1)),
			text(rounded(z.Spill)),
			cell{percent(z.Success, 1), successStyle(z.Success)},
			text(z.P50.String()), text(z.P99.String()),
			text(fmt.Sprintf("%.2f", z.Cost)),
			cell{z.State, stateStyle(z.State)})
		why = append(why, one(width, p, cell{string(z.Zone) + ": " + z.Reason, dim}))
	}
	title := one(width, p, cell{"weir demo", bold}, text(fmt.Sprintf(" · %s · %s", f.Strategy, f.position())))
	lines := append([]string{title, f.bar(width, p), ""}, g.lines(width, p)...)
	return append(append(lines, ""), why...)
}

// one renders a line of its own.
func one(width int, p painter, cells ...cell) string {
	l := line{left: width, limited: width > 0, painter: p}
	for _, c := range cells {
		l.write(c)
	}
	return l.String()
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
func (f *frame) bar(width int, p painter) string {
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
	return p.paint(behind.drawn) + p.paint(ahead.drawn)
}

// stretch is one of the two parts of the bar.
type stretch struct {
	quiet, fault string
	drawn        cell
}

func (s *stretch) draw(e Event) {
	if e.IsFault() {
		s.drawn.text += s.fault
	} else {
		s.drawn.text += s.quiet
	}
}

// looks tells how the two parts of the bar look: what is behind has another colour or, without colours, more weight.
func looks(p painter) (behind, ahead *stretch) {
	behind = &stretch{"─", "▄", cell{style: green}}
	ahead = &stretch{"─", "▄", cell{style: dim}}
	if !p.colour {
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

func successStyle(success float64) style {
	switch {
	case success >= wantSuccess:
		return green
	case success >= 0.9: // one in ten is what people start to write mails about
		return yellow
	default:
		return red
	}
}

func stateStyle(state string) style {
	switch state {
	case "calm":
		return green
	case "crisis", "evacuated":
		return red
	default:
		return yellow
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
