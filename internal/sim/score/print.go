package score

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/grid"
)

// Style is how a board is printed. The zero value is for a file: no colours, lines of any length.
type Style struct {
	Colour bool // the reader is a terminal: the best stand out by colour, otherwise by a *
	Wide   bool // with half of each 95 % confidence interval
	Width  int  // of the terminal; columns that do not fit are left out, the least important first. 0: no limit
	// Against is the strategy that a last table compares with each other one; empty: there is no such table.
	Against string
	Notes   []string // the model's assumptions, a sentence each
}

// Print writes a table for each scenario, one for all of them, and what a reader has to know.
func (b *Board) Print(w io.Writer, s Style) error {
	p := &printer{w: w, painter: grid.Painter{Colour: s.Colour}, width: s.Width}
	l := b.layout(s)
	if b.Drawn != nil {
		kinds, rivals := b.drawnTables()
		p.rows("good answers by kind", "means over the scenarios of each", kinds)
		p.rows(b.Drawn.Strategy+" against the others", "and its worst scenarios", rivals)
	}
	for i := range b.shownTables(s) {
		t := &b.Tables[i]
		p.title(t.Scenario, t.Title)
		l.table(p, t)
		p.line()
	}
	if len(b.Tables) != 1 { // one has said all already
		p.title("overall", b.overallTitle())
		l.table(p, &b.Overall)
		p.line()
		if title, rows := l.duels(); rows != nil {
			p.rows(title, duelsMean, rows)
		}
	}
	mark := "*"
	if s.Colour {
		mark = "green"
	}
	for _, line := range l.foot(mark) {
		p.wrapped(line, 0)
	}
	for _, note := range s.Notes {
		p.wrapped("- "+note, len("- "))
	}
	return p.err
}

func (p *printer) title(name, title string) {
	if title == "" || title == name {
		p.line(grid.Cell{Text: name, Tone: grid.Bold})
		return
	}
	p.line(grid.Cell{Text: name, Tone: grid.Bold}, grid.Text(": "+title))
}

// shownTables are those that are printed: of drawn scenarios there are many, which say little more than the table by kind.
func (b *Board) shownTables(s Style) []Table {
	if b.Drawn != nil && !s.Wide {
		return nil
	}
	return b.Tables
}

func (b *Board) overallTitle() string {
	if b.Drawn != nil {
		return fmt.Sprintf("means over %s drawn with seed %d", count(b.Drawn.Scenarios, "scenario"), b.Drawn.Seed)
	}
	title := "means over " + count(b.Common, "scenario")
	if b.Common < len(b.Tables) {
		title = fmt.Sprintf("means over the %d of %s that every strategy ran", b.Common, count(len(b.Tables), "scenario"))
	}
	if b.commonSeeds < b.Seeds {
		title += fmt.Sprintf(", with %d of %s", b.commonSeeds, count(b.Seeds, "seed"))
	}
	return title
}

// layout is the columns of all tables of a board: the same in each, as wide as the widest cell.
type layout struct {
	board   *Board
	style   Style
	shown   []int // indices of measures
	dropped []string
	columns grid.Columns // the strategy's name and shown
	spark   int          // how many blocks wide the spill is; 0: no room
}

// The width of the spill: fewer blocks than the least show nothing of a run, more than the most nothing more.
const (
	leastSpark = 12
	mostSpark  = 40
)

func (b *Board) layout(s Style) layout {
	l := layout{board: b, style: s}
	for m := range b.Measures {
		if b.Measures[m].Priority > 0 {
			l.shown = append(l.shown, m)
		}
	}
	l.measure()
	for s.Width > 0 && l.total() > s.Width && len(l.shown) > 1 {
		least := slices.MaxFunc(l.shown, func(i, j int) int { return cmp.Compare(b.Measures[i].Priority, b.Measures[j].Priority) })
		l.shown = slices.DeleteFunc(l.shown, func(m int) bool { return m == least })
		l.dropped = append(l.dropped, b.Measures[least].Title)
		l.measure()
	}
	switch room := s.Width - l.total() - columnGap; {
	case s.Width == 0:
		l.spark = mostSpark
	case len(l.dropped) == 0 && room >= leastSpark:
		l.spark = min(room, mostSpark)
	}
	return l
}

// measure finds the widths. A name takes at most a third of the line.
func (l *layout) measure() {
	l.columns = grid.Columns{Gap: columnGap, Right: isNumber}
	for _, t := range append(slices.Clip(l.board.Tables), l.board.Overall) {
		for _, row := range append(l.head(), l.rows(&t)...) {
			l.columns.Fit(row)
		}
	}
	const part = 3
	if l.style.Width > 0 {
		name := &l.columns.Widths[0]
		*name = min(*name, max(l.style.Width/part, 1))
	}
}

func (l *layout) total() int {
	sum := columnGap * len(l.shown)
	for _, w := range l.columns.Widths {
		sum += w
	}
	return sum
}

// head is two lines, so that short numbers have narrow columns: titles, and units below them.
func (l *layout) head() [][]grid.Cell {
	titles, units := []grid.Cell{{Text: "strategy", Tone: grid.Dim}}, []grid.Cell{{}}
	for _, m := range l.shown {
		titles = append(titles, grid.Cell{Text: l.board.Measures[m].Title + l.unmarked(), Tone: grid.Dim})
		units = append(units, grid.Cell{Text: string(l.board.Measures[m].Unit) + l.unmarked(), Tone: grid.Dim})
	}
	return [][]grid.Cell{titles, units}
}

// unmarked is the room that a mark takes beside the other cells.
func (l *layout) unmarked() string {
	if l.style.Colour {
		return ""
	}
	return " "
}

func (l *layout) rows(t *Table) [][]grid.Cell {
	rows := make([][]grid.Cell, 0, len(t.Rows))
	for i := range t.Rows {
		r := &t.Rows[i]
		row := []grid.Cell{grid.Text(l.name(r))}
		for _, m := range l.shown {
			row = append(row, l.cell(m, r.Cells[l.board.Measures[m].Key]))
		}
		rows = append(rows, row)
	}
	return rows
}

// name says of a strategy that it was not run, or not with each seed.
func (l *layout) name(r *Row) string {
	switch {
	case r.Runs == 0:
		return r.Title + " (no run)"
	case r.Runs < l.board.Seeds && l.board.Drawn == nil: // a kind has only some of the drawn scenarios
		return fmt.Sprintf("%s (%d of %s)", r.Title, r.Runs, count(l.board.Seeds, "seed"))
	default:
		return r.Title
	}
}

func (l *layout) cell(m int, c Cell) grid.Cell {
	measure := &l.board.Measures[m]
	s := grid.Cell{Text: measure.Text(c)}
	if half := measure.Interval(c); l.style.Wide && half != "" {
		s.Text += " " + half
	}
	switch {
	case c.Best && l.style.Colour:
		s.Tone = best
	case c.Best:
		s.Text += "*"
	default:
		s.Text += l.unmarked()
	}
	if c.Never() {
		s.Tone = grid.Red
	}
	return s
}

// leastTop is the least scale of the spill: below it, what is noise would be drawn as mountains.
const leastTop = 0.05

func (l *layout) table(p *printer, t *Table) {
	top := leastTop
	drawn := false
	for i := range t.Rows {
		drawn = drawn || len(t.Rows[i].Spill) > 0
		for _, v := range t.Rows[i].Spill {
			top = max(top, v)
		}
	}
	var beside []grid.Cell // of each line
	if drawn && l.spark > 0 {
		beside = []grid.Cell{{Text: "spill", Tone: grid.Dim}, {Text: fmt.Sprintf("0–%.0f %%", top*hundred), Tone: grid.Dim}}
		for i := range t.Rows {
			beside = append(beside, grid.Text(Spark(t.Rows[i].Spill, top, l.spark)))
		}
	}
	for i, row := range append(l.head(), l.rows(t)...) {
		line := l.columns.Align(row)
		if beside != nil {
			line = append(line, grid.Text(strings.Repeat(" ", columnGap)), beside[i])
		}
		p.line(line...)
	}
	if distance := t.distance(l.style.Against); distance != "" {
		p.line(grid.Cell{Text: distance, Tone: grid.Dim})
	}
}

// rows writes a table of its own, with a title.
func (p *printer) rows(name, title string, rows [][]grid.Cell) {
	p.title(name, title)
	columns := grid.Columns{Gap: columnGap, Right: isNumber}
	for _, row := range rows {
		columns.Fit(row)
	}
	for _, row := range rows {
		p.line(columns.Align(row)...)
	}
	p.line()
}

const duelsMean = "scenarios in which it is better–worse beyond noise"

// duels gives the table of the strategy that is compared with each other one; nil: there is none.
func (l *layout) duels() (title string, rows [][]grid.Cell) {
	b := l.board
	at := slices.IndexFunc(b.Overall.Rows, func(r Row) bool { return r.Strategy == l.style.Against })
	if at < 0 || b.Seeds < 2 || b.Drawn != nil {
		return "", nil
	}
	head := []grid.Cell{{Text: "other", Tone: grid.Dim}}
	for _, m := range l.shown {
		head = append(head, grid.Cell{Text: b.Measures[m].Title, Tone: grid.Dim})
	}
	rows = [][]grid.Cell{head}
	for i := range b.Overall.Rows {
		if i == at {
			continue
		}
		other := &b.Overall.Rows[i]
		row := []grid.Cell{grid.Text(other.Title)}
		for _, m := range l.shown {
			row = append(row, duel(b.Versus(l.style.Against, other.Strategy, b.Measures[m].Key)))
		}
		rows = append(rows, row)
	}
	return b.Overall.Rows[at].Title + " against the others", rows
}

func duel(better, worse, alike int) grid.Cell {
	if better+worse+alike == 0 {
		return grid.Text("-")
	}
	c := grid.Text(strconv.Itoa(better) + "–" + strconv.Itoa(worse))
	switch {
	case better > 0 && worse == 0:
		c.Tone = grid.Green
	case worse > 0 && better == 0:
		c.Tone = grid.Red
	}
	return c
}

// foot says what the marks mean, what is missing, and what all of it is worth.
func (l *layout) foot(mark string) []string {
	var lines []string
	if l.board.Drawn != nil {
		lines = l.board.drawnNotes()
	}
	switch l.board.Seeds {
	case 0:
		lines = append(lines, "Nothing was run.")
	case 1:
		lines = append(lines, "One seed: there are no intervals and nothing is marked as best. Comparing needs several seeds.")
	default:
		lines = append(lines, mark+": the best: no other is better beyond noise, and some other is worse.")
	}
	lines = append(lines, l.legend()...)
	if len(l.dropped) > 0 {
		lines = append(lines, "Left out for want of room: "+strings.Join(l.dropped, ", ")+".")
	}
	if seeds := l.board.Seeds; seeds > 1 && l.board.Drawn == nil {
		means := count(seeds, "seed") + "; means over seeds, compared seed by seed."
		if l.style.Wide {
			means += " ±: half of the 95 % confidence interval."
		}
		lines = append(lines, means)
	}
	lines = append(lines, l.board.Notice)
	if len(l.style.Notes) > 0 {
		lines = append(lines, "Assumptions:")
	}
	return lines
}

// notice is on every report.
const notice = "Simulation, not a measurement."

// legend explains the marks that are in the tables.
func (l *layout) legend() []string {
	b := l.board
	var never, some, none bool
	for _, t := range append(slices.Clip(b.Tables), b.Overall) {
		for i := range t.Rows {
			for _, m := range l.shown {
				c := t.Rows[i].Cells[b.Measures[m].Key]
				never = never || c.Never()
				some = some || (c.Known < c.Runs && !c.Never())
				none = none || c.Runs == 0
			}
		}
	}
	var lines []string
	if never {
		lines = append(lines, "never: not while the stress lasted, in any run; worse than any time.")
	}
	if some {
		lines = append(lines, ">: not in each run; those that never got there count as the whole stress.")
	}
	if none {
		lines = append(lines, "-: there is nothing to show.")
	}
	return lines
}

// count writes a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
