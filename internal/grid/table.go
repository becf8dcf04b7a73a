package grid

import "strings"

// Columns say how cells stand under each other. The zero value is aligned left and leaves no gap.
type Columns struct {
	Gap    int                   // spaces between two columns
	Right  func(column int) bool // which are aligned right, as numbers should be; nil: none
	Widths []int                 // a cell that is wider sticks out; one that is aligned left is cut
}

// Fit widens the columns to the cells of a row.
func (c *Columns) Fit(row []Cell) {
	for i, cell := range row {
		if i == len(c.Widths) {
			c.Widths = append(c.Widths, 0)
		}
		c.Widths[i] = max(c.Widths[i], cell.width())
	}
}

// Align gives a row, of at most as many cells as there are columns, with the spaces between them.
func (c *Columns) Align(row []Cell) []Cell {
	var line []Cell
	for i, cell := range row {
		if i > 0 {
			line = append(line, spaces(c.Gap))
		}
		fill := spaces(c.Widths[i] - cell.width())
		if c.Right != nil && c.Right(i) {
			line = append(line, fill, cell)
			continue
		}
		cell.Text = Cut(cell.Text, c.Widths[i])
		line = append(line, cell)
		if i < len(row)-1 { // a cut line must not count the rest as text
			line = append(line, fill)
		}
	}
	return line
}

func spaces(n int) Cell { return Text(strings.Repeat(" ", max(n, 0))) }

// Table is rows in columns that are as wide as their widest cells.
type Table struct {
	Columns

	rows [][]Cell
}

// Add appends a row.
func (t *Table) Add(cells ...Cell) {
	t.Fit(cells)
	t.rows = append(t.rows, cells)
}

// Lines gives a line for each row, as Painter.Line does, without spaces at their ends.
func (t *Table) Lines(width int, p Painter) []string {
	lines := make([]string, len(t.rows))
	for i, row := range t.rows {
		lines[i] = strings.TrimRight(p.Line(width, t.Align(row)...), " ")
	}
	return lines
}
