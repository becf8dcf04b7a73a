package score

import (
	"io"
	"strings"

	"github.com/weir-lb/weir/internal/grid"
)

// Markdown writes the tables of Print in GitHub's markup with all their columns, the best in bold. Of the style it heeds
// Wide, Against and Notes.
func (b *Board) Markdown(w io.Writer, s Style) error {
	p := &printer{w: w}
	// With colours the best are told by their tone and not by the text.
	l := b.layout(Style{Wide: s.Wide, Against: s.Against, Notes: s.Notes, Colour: true})
	table := func(name, title string, t *Table) {
		p.heading(name, title)
		p.markdown(append(l.markdownHead(), l.rows(t)...))
		if distance := t.distance(s.Against); distance != "" {
			p.line(grid.Text(escaped(distance)))
			p.line()
		}
	}
	if b.Drawn != nil {
		kinds, rivals := b.drawnTables()
		p.heading("good answers by kind", "means over the scenarios of each")
		p.markdown(kinds)
		p.heading(b.Drawn.Strategy+" against the others", "and its worst scenarios")
		p.markdown(rivals)
	}
	for i := range b.shownTables(s) {
		table(b.Tables[i].Scenario, b.Tables[i].Title, &b.Tables[i])
	}
	if len(b.Tables) != 1 {
		table("overall", b.overallTitle(), &b.Overall)
		if title, rows := l.duels(); rows != nil {
			p.heading(title, duelsMean)
			p.markdown(rows)
		}
	}
	for i, line := range l.foot("**bold**") {
		if i > 0 {
			p.line()
		}
		p.line(grid.Text(escaped(line)))
	}
	if len(s.Notes) > 0 {
		p.line()
	}
	for _, note := range s.Notes {
		p.line(grid.Text("- " + escaped(note)))
	}
	return p.err
}

// markdownHead is one line, as GitHub's tables have one.
func (l *layout) markdownHead() [][]grid.Cell {
	head := []grid.Cell{grid.Text("strategy")}
	for _, m := range l.shown {
		head = append(head, grid.Text(strings.TrimSpace(l.board.Measures[m].Title+" "+string(l.board.Measures[m].Unit))))
	}
	return [][]grid.Cell{head}
}

func (p *printer) heading(name, title string) {
	line := "### " + escaped(name)
	if title != "" && title != name {
		line += ": " + escaped(title)
	}
	p.line(grid.Text(line))
	p.line()
}

func (p *printer) markdown(rows [][]grid.Cell) {
	p.line(grid.Text(MarkdownTable(rows, 1)))
}

// MarkdownTable writes rows in GitHub's markup, the first as head: bold what has the tone of the best, the first left
// columns aligned to the left, the others to the right.
func MarkdownTable(rows [][]grid.Cell, left int) string {
	var b strings.Builder
	for i, row := range rows {
		for _, c := range row {
			s := escaped(c.Text)
			if c.Tone == best {
				s = "**" + s + "**"
			}
			b.WriteString("| " + s + " ")
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat(" --- |", left) + strings.Repeat(" ---: |", len(row)-left) + "\n")
		}
	}
	return b.String()
}

// escaped keeps a text from being markup, as far as titles and names go. The marks of this package's own bold stay.
func escaped(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "\n", " ").Replace(s)
}
