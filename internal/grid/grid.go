// Package grid lays out text for terminals: tables of cells, with colours where the reader has them, in lines that never
// wrap. Widths are in runes; wide and combining characters are not known.
package grid

import (
	"strings"
	"unicode/utf8"
)

// Tone is how a cell stands out on a terminal that has colours.
type Tone string

// The tones, as SGR parameters (ECMA-48, 8.3.117). Only the eight basic colours: they follow the user's theme.
const (
	Plain     Tone = ""
	Bold      Tone = "1"
	Dim       Tone = "2"
	Red       Tone = "31"
	Green     Tone = "32"
	Yellow    Tone = "33"
	BoldGreen Tone = "1;32" // also for readers who do not see green
)

// Cell is a text and its tone.
type Cell struct {
	Text string
	Tone Tone
}

// Text is a plain cell.
func Text(s string) Cell { return Cell{Text: s} }

func (c Cell) width() int { return utf8.RuneCountInString(c.Text) }

// Painter puts colours around text, if the output has them.
type Painter struct{ Colour bool }

// Paint gives the text of a cell in its tone. Colours take no room.
func (p Painter) Paint(c Cell) string {
	if !p.Colour || c.Tone == Plain || strings.TrimSpace(c.Text) == "" {
		return c.Text
	}
	return "\x1b[" + string(c.Tone) + "m" + c.Text + "\x1b[0m"
}

// Line gives cells one after the other. What goes beyond the width is cut, so that a terminal never wraps; up to 0: there
// is no limit.
func (p Painter) Line(width int, cells ...Cell) string {
	var b strings.Builder
	left := width
	for _, c := range cells {
		if width > 0 {
			c.Text = Cut(c.Text, left)
			left -= c.width()
		}
		b.WriteString(p.Paint(c))
	}
	return b.String()
}

// Cut keeps at most n runes of s, and shows with an ellipsis that there was more.
func Cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	if n <= 0 {
		return ""
	}
	return string([]rune(s)[:n-1]) + "…"
}

// Wrap breaks a text into lines of whole words, of at most width runes where words allow it; all but the first are indented.
func Wrap(s string, width, indent int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, line)
			line = strings.Repeat(" ", indent) + word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
