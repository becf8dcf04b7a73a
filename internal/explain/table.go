package explain

import (
	"io"
	"strings"
	"unicode/utf8"
)

// tone is how a cell is to be read at a glance.
type tone uint8

const (
	plain tone = iota
	good
	warn
	bad
	bold
)

// paint gives the terminal's sequence that begins a tone.
func (t tone) paint() string {
	return [...]string{"", "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[1m"}[t]
}

// cell is a text in a table.
type cell struct {
	text string
	tone tone
}

func text(s string) cell { return cell{text: s} }

// printer writes tables and lines; it keeps the first error.
type printer struct {
	w      io.Writer
	colour bool
	err    error
}

func (p *printer) print(s string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, s)
	}
}

func (p *printer) paint(c cell) string {
	if !p.colour || c.tone == plain || c.text == "" {
		return c.text
	}
	return c.tone.paint() + c.text + "\x1b[0m"
}

// columnGap separates columns as kubectl does.
const columnGap = 3

// table writes rows with aligned columns; the first row is the head. Colours take no room.
func (p *printer) table(rows [][]cell) {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, c := range row {
			line.WriteString(p.paint(c))
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+columnGap))
			}
		}
		p.print(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// head makes a head row.
func head(names ...string) []cell {
	row := make([]cell, 0, len(names))
	for _, n := range names {
		row = append(row, cell{text: n, tone: bold})
	}
	return row
}
