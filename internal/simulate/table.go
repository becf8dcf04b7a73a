package simulate

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Table is text in columns, for people and for other programs.
type Table struct {
	Columns []string
	Rows    [][]string // as wide as Columns
}

// Print writes the table with aligned columns: the first ones, left of them, to the left, and numbers to the right.
func (t *Table) Print(w io.Writer, left int) error {
	width := make([]int, len(t.Columns))
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		var line strings.Builder
		for i, cell := range row {
			fill := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString("   ")
			}
			if i < left {
				line.WriteString(cell + fill)
			} else {
				line.WriteString(fill + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Markdown writes the table for documents; its first columns are aligned as by Print.
func (t *Table) Markdown(w io.Writer, left int) error {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("|")
		for _, cell := range cells {
			b.WriteString(" " + strings.ReplaceAll(cell, "|", `\|`) + " |")
		}
		b.WriteString("\n")
	}
	line(t.Columns)
	rule := make([]string, len(t.Columns))
	for i := range rule {
		rule[i] = "---"
		if i >= left {
			rule[i] = "---:"
		}
	}
	line(rule)
	for _, row := range t.Rows {
		line(row)
	}
	_, err := io.WriteString(w, b.String())
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
