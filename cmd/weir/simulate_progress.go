package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/weir-lb/weir/internal/simulate"
)

// bar shows progress on one line of a terminal. One goroutine at a time.
type bar struct {
	w     io.Writer     // nil: not shown
	width func() int    // columns; 0: the terminal does not say
	shown time.Duration // elapsed when it was drawn last
	drawn bool
}

// bar shows progress where a person would see it.
func (f *simulateFlags) bar(c *cobra.Command) *bar {
	file, ok := c.ErrOrStderr().(*os.File)
	if f.quiet || !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" { //nolint:gosec // a file descriptor.
		return &bar{}
	}
	return &bar{w: file, width: func() int { return terminalWidth(file) }}
}

// barEvery is how often the bar moves: ten times a second reads as movement.
const barEvery = 100 * time.Millisecond

// show draws the bar, if it is time to.
func (b *bar) show(p simulate.Progress) {
	if b.w == nil || b.drawn && p.Elapsed-b.shown < barEvery {
		return
	}
	b.drawn, b.shown = true, p.Elapsed
	const usual = 80 // what a serial console has that does not say
	width := cmp.Or(b.width(), usual)
	_, _ = io.WriteString(b.w, "\r\x1b[K"+barText(p, width-1)) // a viewer that is gone does not end the run
}

// clear takes the bar away.
func (b *bar) clear() {
	if b.drawn {
		_, _ = io.WriteString(b.w, "\r\x1b[K")
	}
}

// barText is the bar in at most width columns.
func barText(p simulate.Progress, width int) string {
	text := fmt.Sprintf(" %3.0f %%  %d of %d runs", 100*p.Done, p.Runs, p.Of)
	const known = 2 * time.Second // what is left is a guess before that
	if p.Elapsed >= known {
		text += fmt.Sprintf(", %v left", p.Left().Round(time.Second))
	}
	const narrow, wide = 10, 40
	room := min(width-len(text), wide)
	if room < narrow {
		return text[:max(0, min(len(text), width))]
	}
	full := int(p.Done * float64(room))
	return strings.Repeat("█", full) + strings.Repeat("░", room-full) + text
}
