package plots

import (
	_ "embed" // for the page
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/score"
)

//go:embed page.html
var pageText string

// page is what the template is filled with.
type page struct {
	Title       string
	Summary     string
	Disclaimer  string
	Strategies  []pageContender
	Overall     []pageTable // empty: there is no board, or a single scenario
	Figures     []pageFigure
	Scenarios   []pageScenario
	Assumptions []string
}

// pageContender is a line of the list of who is compared.
type pageContender struct{ Name, Title, Source string }

// pageScenario is a section.
type pageScenario struct {
	ID      string
	Name    string
	Title   string
	About   []string // paragraphs
	Steps   []pageStep
	Tables  []pageTable // empty: the board has none
	Figures []pageFigure
}

// pageStep is a moment of a scenario.
type pageStep struct{ At, What string }

// pageFigure is a picture.
type pageFigure struct {
	ID      string
	Caption string
	SVG     template.HTML
}

// pageTable is a table of the board: some of its measures.
type pageTable struct {
	IsMore  bool // shown on demand, and not printed
	Caption string
	Columns []pageColumn
	Rows    []pageRow
}

// pageColumn is the head of a column.
type pageColumn struct {
	Title, Unit string
	Better      string // in words; empty: neither direction is
}

// pageRow is a strategy.
type pageRow struct {
	Title  string
	IsOurs bool
	Cells  []pageCell
}

// pageCell is a number.
type pageCell struct {
	Number string // as the tables of score have it
	Half   string // with ±; empty with one seed
	Known  string // "2 of 3 runs" when not all had it
	IsBest bool
}

// Page writes the report as one HTML file that needs no network, no script and no other file.
//
// Errors: those of the writer.
func Page(w io.Writer, r Report) error {
	text, err := template.New("page").Parse(pageText)
	if err != nil {
		panic(fmt.Sprintf("plots: the page's own template: %v", err)) // every test of the page would see it
	}
	if err := text.Execute(w, r.page()); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// page fills in everything.
func (r Report) page() page {
	looks := r.looks()
	p := page{
		Title: fmt.Sprintf("%s in %s", count(len(r.Strategies), "way")+" to balance", count(len(r.Scenarios), "scenario")),
		// The words are the same as on each picture, but begin a sentence here.
		Disclaimer:  strings.ToUpper(disclaimer[:1]) + disclaimer[1:] + ".",
		Assumptions: r.Assumptions,
	}
	if len(r.Scenarios) == 1 {
		p.Title = count(len(r.Strategies), "way") + " to balance: " + title(r.Scenarios[0])
	}
	p.Summary = r.summary()
	for i, l := range looks {
		p.Strategies = append(p.Strategies, pageContender{Name: l.name, Title: l.title, Source: r.Strategies[i].Source})
	}
	if r.Board != nil && len(r.Scenarios) > 1 {
		p.Overall = r.tables(&r.Board.Overall, looks)
		o := r.overall(looks)
		p.Figures = figures("overall", []drawing{o.cost(), o.tradeoff()})
	}
	for i, sc := range r.Scenarios {
		p.Scenarios = append(p.Scenarios, r.section(sc, fmt.Sprintf("scenario-%d", i+1), looks))
	}
	return p
}

// summary says what was compared and how often.
func (r Report) summary() string {
	names := make([]string, 0, len(r.Strategies))
	for _, l := range r.looks() {
		names = append(names, l.title)
	}
	seeds := map[uint64]bool{}
	for _, result := range r.Results {
		seeds[result.Seed] = true
	}
	words := fmt.Sprintf("Compared: %s. Each ran with %s of random numbers, the same for all.", strings.Join(names, "; "), count(len(seeds), "seed"))
	if len(seeds) > 1 {
		words += " Numbers are means over the seeds, ± is half of the 95 % confidence interval, and what is drawn over time and by endpoint is of one seed."
	}
	return words
}

// section is all of one scenario.
func (r Report) section(sc *scenario.Scenario, id string, looks []look) pageScenario {
	s := pageScenario{ID: id, Name: sc.Name, Title: title(sc)}
	for paragraph := range strings.SplitSeq(sc.About, "\n\n") {
		if trimmed := strings.TrimSpace(paragraph); trimmed != "" {
			s.About = append(s.About, trimmed)
		}
	}
	for _, m := range moments(sc) {
		s.Steps = append(s.Steps, pageStep{At: seconds(m.at), What: strings.Join(m.full, "; ")})
	}
	if r.Board != nil {
		i := slices.IndexFunc(r.Board.Tables, func(t score.Table) bool { return t.Scenario == sc.Name })
		if i >= 0 {
			s.Tables = r.tables(&r.Board.Tables[i], looks)
		}
	}
	told := r.story(sc, looks)
	s.Figures = figures(id, told.drawings())
	return s
}

// figures draws pictures for the page.
func figures(section string, drawings []drawing) []pageFigure {
	all := make([]pageFigure, 0, len(drawings))
	for i := range drawings {
		d := &drawings[i]
		all = append(all, pageFigure{
			ID:      section + "-" + d.name,
			Caption: d.alt,
			SVG:     template.HTML(d.svg()), //nolint:gosec // svg escapes all text that it writes.
		})
	}
	return all
}

// tables writes a table of the board: one of the main measures, and one of the others if there are any.
func (r Report) tables(t *score.Table, looks []look) []pageTable {
	var main, more []int
	for i := range r.Board.Measures {
		if r.Board.Measures[i].Priority > 0 { // as the tables of a terminal have it
			main = append(main, i)
		} else {
			more = append(more, i)
		}
	}
	var all []pageTable
	s := r.scores(t, looks)
	if len(main) > 0 {
		all = append(all, r.table(&s, main))
	}
	if len(more) > 0 {
		table := r.table(&s, more)
		table.IsMore = len(main) > 0
		all = append(all, table)
	}
	return all
}

// table writes the numbers of some measures.
func (r Report) table(s *scores, measures []int) pageTable {
	p := pageTable{Caption: "Of the stress, unless a column says otherwise. ★: nobody is better beyond noise, and somebody is worse."}
	for _, i := range measures {
		m := &r.Board.Measures[i]
		c := pageColumn{Title: m.Title, Unit: string(m.Unit)}
		switch m.Better {
		case score.Higher:
			c.Better = "higher is better"
		case score.Lower:
			c.Better = "lower is better"
		case score.Neither:
		}
		p.Columns = append(p.Columns, c)
	}
	for i := range s.rows {
		row := pageRow{Title: s.rows[i].look.title, IsOurs: s.rows[i].look.name == favourite}
		for _, j := range measures {
			row.Cells = append(row.Cells, r.cell(&s.rows[i], j))
		}
		p.Rows = append(p.Rows, row)
	}
	return p
}

// cell writes a number of a row.
func (r Report) cell(row *scoreRow, column int) pageCell {
	if column >= len(row.cells) {
		return pageCell{Number: "-"}
	}
	m, from := &r.Board.Measures[column], row.cells[column]
	c := pageCell{Number: m.Text(from), Half: m.Interval(from), IsBest: from.Best}
	if from.Known < from.Runs && !from.Never() {
		c.Known = fmt.Sprintf("%d of %s", from.Known, count(from.Runs, "run"))
	}
	return c
}
