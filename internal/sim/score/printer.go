package score

import (
	"io"
	"strings"

	"github.com/weir-lb/weir/internal/grid"
)

// best is the tone of the best.
const best = grid.BoldGreen

// columnGap separates columns.
const columnGap = 2

// isNumber tells which columns hold numbers: all but the first.
func isNumber(column int) bool { return column > 0 }

// printer writes cells and lines of at most a width; it keeps the first error.
type printer struct {
	w       io.Writer
	painter grid.Painter
	width   int // 0: no limit
	err     error
}

// line writes cells one after the other, without spaces at the end.
func (p *printer) line(cells ...grid.Cell) {
	if last := len(cells) - 1; last >= 0 {
		cells[last].Text = strings.TrimRight(cells[last].Text, " ") // before it is painted
	}
	if p.err == nil {
		_, p.err = io.WriteString(p.w, strings.TrimRight(p.painter.Line(p.width, cells...), " ")+"\n")
	}
}

// wrapped writes a text in lines of whole words; all but the first are indented by so many spaces.
func (p *printer) wrapped(s string, indent int) {
	const readable = 120 // longer lines are hard to follow, however wide the terminal is
	width := readable
	if p.width > 0 {
		width = min(p.width, readable)
	}
	for _, line := range grid.Wrap(s, width, indent) {
		p.line(grid.Text(line))
	}
}
