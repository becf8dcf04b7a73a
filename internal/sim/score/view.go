package score

import (
	"encoding/json"
	"math"
)

// View is a board as JSON has it. Its names are promised; shares are fractions, latencies are milliseconds. Numbers have
// six digits after the point, so that they are the same on every machine.
type View struct {
	Notice string `json:"notice"`
	// Assumptions are the model's, a sentence each; View leaves them to the caller.
	Assumptions []string `json:"assumptions,omitempty"`

	Seeds      int           `json:"seeds"`
	Confidence float64       `json:"confidence"` // of the intervals
	Measures   []MeasureView `json:"measures"`
	Scenarios  []TableView   `json:"scenarios"`
	Overall    TableView     `json:"overall"` // means over the scenarios that every strategy ran
	// Common is how many scenarios every strategy ran.
	Common int `json:"common"`
}

// MeasureView is what a measure is.
type MeasureView struct {
	Key    string `json:"key"`
	Title  string `json:"title"`
	Unit   string `json:"unit"`   // fraction, milliseconds, seconds, dollarsPerHour, ratio or number
	Better string `json:"better"` // higher, lower or neither
	// The smallest difference that matters, in the unit and as a fraction of the larger of two means.
	Least float64 `json:"least"`
	Part  float64 `json:"part"`
}

// TableView is one scenario.
type TableView struct {
	Scenario   string    `json:"scenario"`
	Title      string    `json:"title"`
	Strategies []RowView `json:"strategies"`
	Details    *Details  `json:"details,omitempty"` // nil but after AddDetails
}

// RowView is one strategy in one scenario.
type RowView struct {
	Strategy string              `json:"strategy"`
	Title    string              `json:"title"`
	Runs     int                 `json:"runs"`
	Cells    map[string]CellView `json:"cells"` // by the measure's key
	// Spill is the fraction of the affected clients' requests that crossed, for each second.
	Spill []float64 `json:"spill,omitempty"`
	// Source, in Overall only, Timeline and Zones are there after AddDetails.
	Source   string     `json:"source,omitempty"`
	Timeline *Timeline  `json:"timeline,omitempty"`
	Zones    []ZoneLoad `json:"zones,omitempty"`
}

// CellView is one measure of one strategy in one scenario.
type CellView struct {
	Mean  *float64 `json:"mean"`  // null: no run had the number; at least this much where Known is less than Runs
	Half  *float64 `json:"half"`  // null: there is no interval
	Known int      `json:"known"` // runs that had the number
	Runs  int      `json:"runs"`  // Known, and those that never got there
	Best  bool     `json:"best"`
}

// View gives the board as JSON has it.
func (b *Board) View() View {
	v := View{
		Notice: notice, Seeds: b.Seeds, Confidence: confidence, Common: b.Common,
		Measures: make([]MeasureView, 0, len(b.Measures)), Overall: b.tableView(&b.Overall),
	}
	for i := range b.Measures {
		m := &b.Measures[i]
		v.Measures = append(v.Measures, MeasureView{
			Key: m.Key, Title: m.Title, Unit: m.Unit.name(), Better: m.Better.name(), Least: m.Least, Part: m.Part,
		})
	}
	v.Scenarios = make([]TableView, 0, len(b.Tables))
	for i := range b.Tables {
		v.Scenarios = append(v.Scenarios, b.tableView(&b.Tables[i]))
	}
	return v
}

// MarshalJSON writes the View.
func (b Board) MarshalJSON() ([]byte, error) { return json.Marshal(b.View()) }

func (b *Board) tableView(t *Table) TableView {
	v := TableView{Scenario: t.Scenario, Title: t.Title, Strategies: make([]RowView, 0, len(t.Rows))}
	for i := range t.Rows {
		r := &t.Rows[i]
		row := RowView{Strategy: r.Strategy, Title: r.Title, Runs: r.Runs, Cells: make(map[string]CellView, len(r.Cells))}
		for m, c := range r.Cells {
			cell := CellView{Known: c.Known, Runs: c.Runs, Best: c.Best}
			if c.Known > 0 {
				cell.Mean = new(rounded(c.Mean))
			}
			if c.Known > 0 && c.Seeds > 1 {
				cell.Half = new(rounded(c.Half))
			}
			row.Cells[b.Measures[m].Key] = cell
		}
		for _, s := range r.Spill {
			row.Spill = append(row.Spill, rounded(s))
		}
		v.Strategies = append(v.Strategies, row)
	}
	return v
}

// rounded keeps six digits after the point: more than means anything, and few enough to be the same on processors that
// multiply and add in one step.
func rounded(value float64) float64 {
	const scale = 1e6
	return math.Round(value*scale) / scale
}

// name is the unit in JSON and CSV.
func (u Unit) name() string {
	switch u {
	case Percent, Points:
		return "fraction"
	case Millis:
		return "milliseconds"
	case Seconds:
		return "seconds"
	case Dollars:
		return "dollarsPerHour"
	case Ratio:
		return "ratio"
	default:
		return "number"
	}
}

func (d Direction) name() string {
	switch d {
	case Higher:
		return "higher"
	case Lower:
		return "lower"
	default:
		return "neither"
	}
}
