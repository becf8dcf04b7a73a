package explain

import (
	"io"

	"github.com/weir-lb/weir/internal/grid"
)

// How a cell is to be read at a glance.
const (
	good = grid.Green
	warn = grid.Yellow
	bad  = grid.Red
)

// printer writes tables and lines; it keeps the first error.
type printer struct {
	w       io.Writer
	painter grid.Painter
	err     error
}

func (p *printer) print(s string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, s)
	}
}

// bold gives a title within a line.
func (p *printer) bold(s string) string { return p.painter.Paint(grid.Cell{Text: s, Tone: grid.Bold}) }

// columnGap separates columns as kubectl does.
const columnGap = 3

// table writes rows with aligned columns; the first row is the head.
func (p *printer) table(rows [][]grid.Cell) {
	t := grid.Table{Columns: grid.Columns{Gap: columnGap}}
	for _, row := range rows {
		t.Add(row...)
	}
	for _, line := range t.Lines(0, p.painter) {
		p.print(line + "\n")
	}
}

// head makes a head row.
func head(names ...string) []grid.Cell {
	row := make([]grid.Cell, 0, len(names))
	for _, n := range names {
		row = append(row, grid.Cell{Text: n, Tone: grid.Bold})
	}
	return row
}
