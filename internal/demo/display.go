package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/weir-lb/weir/internal/grid"
)

// How often a viewer sees something new: four times a second reads as movement on a terminal; a log wants one line.
const (
	liveEvery  = 250 * time.Millisecond
	plainEvery = time.Second
)

// Display is where progress goes. The zero value shows nothing. One goroutine at a time.
type Display struct {
	out     io.Writer
	width   func() int // of the terminal; nil: not a terminal
	painter grid.Painter
	drawn   int           // lines of the frame that stands on the terminal
	shown   time.Duration // when the last plain line was printed
}

// NewDisplay makes a Display for f: a table that redraws itself where f is a terminal, a line per second elsewhere.
// Colours are only for terminals, and only unless NO_COLOR is set (no-color.org).
func NewDisplay(f *os.File) *Display {
	d := &Display{out: f}
	if descriptor := int(f.Fd()); term.IsTerminal(descriptor) && os.Getenv("TERM") != "dumb" {
		d.width = func() int {
			width, _, err := term.GetSize(descriptor)
			if err != nil {
				return 80 // what terminals were before they could tell
			}
			return width
		}
		d.painter.Colour = os.Getenv("NO_COLOR") == ""
	}
	return d
}

// Painter is for lines that are printed where the display is.
func (d *Display) Painter() grid.Painter { return d.painter }

// show prints the frame, if it is time to.
func (d *Display) show(f *frame) {
	switch {
	case d.out == nil:
	case d.width != nil:
		d.redraw(f.live(d.width()-1, d.painter)) // a full last column makes some terminals wrap
	case f.Elapsed-d.shown >= plainEvery-liveEvery/2:
		d.shown = f.Elapsed
		d.write(f.plain() + "\n")
	}
}

// redraw replaces the frame that stands on the terminal, in one write so that it does not flicker.
func (d *Display) redraw(lines []string) {
	var b strings.Builder
	if d.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", d.drawn) // cursor up
	}
	for _, l := range lines {
		b.WriteString(l)
		b.WriteString("\x1b[K\n") // erase what was longer before
	}
	d.drawn = len(lines)
	d.write(b.String())
}

// finish leaves the last frame standing and begins anew below it.
func (d *Display) finish() {
	d.drawn, d.shown = 0, 0
	if d.out != nil {
		d.write("\n")
	}
}

// write shows s. That a viewer has gone is no reason to end the run: its exit status is still wanted.
func (d *Display) write(s string) { _, _ = io.WriteString(d.out, s) }
