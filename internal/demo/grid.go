package demo

import (
	"strings"
	"unicode/utf8"
)

// style is how a cell stands out on a terminal that has colours.
type style string

// The styles, as SGR parameters (ECMA-48, 8.3.117). Only the eight basic colours: they follow the user's theme.
const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

// cell is one field of a grid.
type cell struct {
	text  string
	style style
}

func text(s string) cell { return cell{text: s} }

// grid is a table whose columns are as wide as their widest cell. The first column and those in left are aligned left,
// the others right, as numbers should be.
type grid struct {
	rows [][]cell
	left map[int]bool
}

func (g *grid) add(cells ...cell) { g.rows = append(g.rows, cells) }

// lines renders the grid, each line at most width runes wide (0: no limit), with colours if the painter has them.
func (g *grid) lines(width int, p painter) []string {
	var widths []int
	for _, row := range g.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	lines := make([]string, len(g.rows))
	for i, row := range g.rows {
		lines[i] = g.line(row, widths, line{left: width, limited: width > 0, painter: p})
	}
	return lines
}

func (g *grid) line(row []cell, widths []int, l line) string {
	for i, c := range row {
		if i > 0 {
			l.write(text("  "))
		}
		gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text))
		if i == 0 || g.left[i] {
			l.write(c)
			if i < len(row)-1 {
				l.write(text(gap))
			}
			continue
		}
		l.write(text(gap))
		l.write(c)
	}
	return strings.TrimRight(l.String(), " ")
}

// painter puts colours around text, if the output has them.
type painter struct{ colour bool }

func (p painter) paint(c cell) string {
	if !p.colour || c.style == plain || c.text == "" {
		return c.text
	}
	return "\x1b[" + string(c.style) + "m" + c.text + "\x1b[0m"
}

// line gathers painted cells up to a width in runes; the rest is cut, so that a terminal never wraps.
type line struct {
	strings.Builder
	left    int
	limited bool
	painter painter
}

func (l *line) write(c cell) {
	if l.limited {
		c.text = cut(c.text, l.left)
		l.left -= utf8.RuneCountInString(c.text)
	}
	l.WriteString(l.painter.paint(c))
}

// cut keeps at most n runes of s, and shows with an ellipsis that there was more.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	if n <= 0 {
		return ""
	}
	return string([]rune(s)[:n-1]) + "…"
}
