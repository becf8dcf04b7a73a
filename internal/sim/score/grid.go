package score

import (
	"io"
	"strings"
	"unicode/utf8"
)

// tone is how a cell stands out on a terminal that has colours.
type tone string

// The tones, as SGR parameters (ECMA-48, 8.3.117). Only the eight basic colours: they follow the user's theme.
const (
	plain tone = ""
	bold  tone = "1"
	dim   tone = "2"
	red   tone = "31"
	green tone = "32"
	best  tone = "1;32" // bold, too, for those who do not see green
)

// cell is a text in a table.
type cell struct {
	text string
	tone tone
}

func text(s string) cell { return cell{text: s} }

// columnGap separates columns.
const columnGap = 2

// printer writes cells and lines of at most a width; it keeps the first error.
type printer struct {
	w      io.Writer
	colour bool
	width  int // 0: no limit
	err    error
}

// line writes cells one after the other. What does not fit is cut, so that a terminal never wraps.
func (p *printer) line(cells ...cell) {
	var b strings.Builder
	left := p.width
	for i, c := range cells {
		if p.width > 0 {
			c.text = cut(c.text, left)
			left -= utf8.RuneCountInString(c.text)
		}
		if i == len(cells)-1 {
			c.text = strings.TrimRight(c.text, " ")
		}
		b.WriteString(p.paint(c))
	}
	if p.err == nil {
		_, p.err = io.WriteString(p.w, strings.TrimRight(b.String(), " ")+"\n")
	}
}

func (p *printer) paint(c cell) string {
	if !p.colour || c.tone == plain || strings.TrimSpace(c.text) == "" {
		return c.text
	}
	return "\x1b[" + string(c.tone) + "m" + c.text + "\x1b[0m"
}

// row writes cells under each other: the first aligned left, the others right, as numbers should be, then a last one that
// is aligned left.
func (p *printer) row(cells []cell, widths []int, last cell) {
	gap := text(strings.Repeat(" ", columnGap))
	var line []cell
	for i, c := range cells {
		fill := text(strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(c.text), 0)))
		if i == 0 {
			c.text = cut(c.text, widths[i])
			line = append(line, c, fill)
			continue
		}
		line = append(line, gap, fill, c)
	}
	if last.text != "" {
		line = append(line, gap, last)
	}
	p.line(line...)
}

// wrapped writes a text in lines of whole words; all but the first are indented by so many spaces.
func (p *printer) wrapped(s string, indent int) {
	const readable = 120 // longer lines are hard to follow, however wide the terminal is
	width := readable
	if p.width > 0 {
		width = min(p.width, readable)
	}
	line := ""
	for word := range strings.FieldsSeq(s) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			p.line(text(line))
			line = strings.Repeat(" ", indent) + word
		default:
			line += " " + word
		}
	}
	p.line(text(line))
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
