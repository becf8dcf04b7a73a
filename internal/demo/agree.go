package demo

import (
	"fmt"
	"math"
	"strings"

	"github.com/weir-lb/weir/internal/grid"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/score"
)

// Agreement is what was measured on real sockets beside what the simulator says of the same scenario.
type Agreement struct {
	Seeds  int            `json:"seeds"` // simulated ones, whose mean is compared
	Rows   []AgreementRow `json:"rows"`
	Agrees bool           `json:"agrees"` // in each row that is judged

	scenario, strategy string
	requests           int64 // on sockets
}

// AgreementRow is one measure of weir simulate, in its unit.
type AgreementRow struct {
	Measure   string  `json:"measure"` // its key
	Measured  float64 `json:"measured"`
	Simulated float64 `json:"simulated"`
	Half      float64 `json:"half"` // of the 95 % confidence interval of Simulated
	// Difference is (measured − simulated) / simulated; nil where nothing was simulated, or 0 and something was measured:
	// no finite number says that.
	Difference *float64 `json:"difference"`
	Allowed    float64  `json:"allowed,omitempty"` // of the difference's size; 0: shown, not judged
	Agrees     bool     `json:"agrees"`

	title, measured, simulated, half string // as tables have them
}

// allowed is how far a measure may be from the simulated one, as a fraction of that, by the measure's key. Others are shown
// only.
func allowed(key string) float64 {
	return map[string]float64{"inZone": 0.10, "success": 0.10, "p99": 0.25}[key]
}

// Agree compares a measured run with simulated ones of the same scenario: one for each of several seeds. Without any it
// judges nothing.
func Agree(measured *sim.Result, simulated []*sim.Result) Agreement {
	a := Agreement{
		scenario: measured.Scenario, strategy: measured.Strategy, Seeds: len(simulated), requests: measured.Whole.Requests, Agrees: true,
	}
	cells := func(results ...*sim.Result) map[string]score.Cell {
		if len(results) == 0 {
			return nil
		}
		return score.Compare(results, score.Options{}).Tables[0].Rows[0].Cells
	}
	one, many := cells(measured), cells(simulated...)
	for _, m := range score.Measures() {
		measured, simulated := one[m.Key], many[m.Key]
		text := func(c score.Cell) string {
			if c.Known == 0 {
				return m.Text(c)
			}
			return strings.TrimSpace(m.Text(c) + " " + string(m.Unit))
		}
		r := AgreementRow{
			Measure: m.Key, Measured: measured.Mean, Simulated: simulated.Mean, Half: simulated.Half, Agrees: true,
			title: m.Title, measured: text(measured), simulated: text(simulated), half: m.Interval(simulated),
		}
		if measured.Known > 0 && simulated.Known > 0 {
			r.Difference = relative(r.Measured, r.Simulated)
		}
		if r.Allowed = allowed(m.Key); r.Allowed > 0 && a.Seeds > 0 {
			r.Agrees = r.Difference != nil && math.Abs(*r.Difference) <= r.Allowed
		}
		a.Agrees = a.Agrees && r.Agrees
		a.Rows = append(a.Rows, r)
	}
	return a
}

// relative gives the difference of measured from simulated, in parts of that; nil when it is infinite.
func relative(measured, simulated float64) *float64 {
	if measured == simulated {
		return new(0.0)
	}
	if simulated == 0 {
		return nil
	}
	return new((measured - simulated) / simulated)
}

// Lines renders the agreement as a table for a terminal.
func (a *Agreement) Lines() []string {
	g, end := numbers(5), fmt.Sprintf("%d requests on sockets", a.requests)
	head := texts(a.scenario+", "+a.strategy, "sockets", "simulated", "", "difference", "")
	width := len(head)
	if a.Seeds == 0 {
		width = 2
	} else {
		end = fmt.Sprintf("%s: %s, %d simulated seeds", either(a.Agrees, "sockets and simulator agree", "sockets and simulator do not agree"), end, a.Seeds)
	}
	g.Add(head[:width]...)
	for i := range a.Rows {
		r := &a.Rows[i]
		g.Add(texts(r.title, r.measured, r.simulated, r.half, r.difference(), r.verdict())[:width]...)
	}
	return append(g.Lines(0, grid.Painter{}), "", end)
}

// MarkdownHead is the head of the table that Markdown gives rows of.
const MarkdownHead = "| scenario | requests | in zone: sockets, simulated | | success: sockets, simulated | | p99: sockets, simulated | | |\n" +
	"|---|---|---|---|---|---|---|---|---|"

// Markdown is the agreement as a row of a table: what is judged.
func (a *Agreement) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | %d |", a.scenario, a.requests)
	for i := range a.Rows {
		if r := &a.Rows[i]; r.Allowed > 0 {
			fmt.Fprintf(&b, " %s, %s | %s |", r.measured, r.simulated, r.difference())
		}
	}
	return b.String() + " " + either(a.Agrees, "agrees", "**does not agree**") + " |"
}

func (r *AgreementRow) difference() string {
	if r.Difference == nil {
		return "-"
	}
	return fmt.Sprintf("%+.1f %%", *r.Difference*100)
}

func (r *AgreementRow) verdict() string {
	if r.Allowed == 0 {
		return ""
	}
	return fmt.Sprintf(either(r.Agrees, "ok, within %.0f %%", "OUT of %.0f %%"), r.Allowed*100)
}
