package simulate

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"

	"github.com/weir-lb/weir/internal/grid"
	"github.com/weir-lb/weir/internal/sim/score"
)

// Table is text in columns, for people and for other programs.
type Table struct {
	Columns []string
	Rows    [][]string // as wide as Columns
}

// cells are all rows, the titles first.
func (t *Table) cells() [][]grid.Cell {
	var all [][]grid.Cell
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		cells := make([]grid.Cell, 0, len(row))
		for _, cell := range row {
			cells = append(cells, grid.Text(cell))
		}
		all = append(all, cells)
	}
	return all
}

// Print writes the table with aligned columns: the first ones, left of them, to the left, and numbers to the right.
func (t *Table) Print(w io.Writer, left int) error {
	var g grid.Table
	g.Gap, g.Right = 3, func(column int) bool { return column >= left }
	for _, row := range t.cells() {
		g.Add(row...)
	}
	_, err := io.WriteString(w, strings.Join(g.Lines(0, grid.Painter{}), "\n")+"\n")
	return err
}

// Markdown writes the table for documents; its first columns are aligned as by Print.
func (t *Table) Markdown(w io.Writer, left int) error {
	_, err := io.WriteString(w, score.MarkdownTable(t.cells(), left))
	return err
}

// CSV writes the table as RFC 4180 has it.
func (t *Table) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.WriteAll(append([][]string{t.Columns}, t.Rows...)); err != nil {
		return fmt.Errorf("write csv: %w", err)
	}
	return nil
}

// percent writes a fraction times 100, without the sign.
func percent(fraction float64, digits int) string { return fmt.Sprintf("%.*f", digits, 100*fraction) }
