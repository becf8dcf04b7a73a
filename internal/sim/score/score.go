// Package score compares results: means over seeds, confidence intervals, and which strategies are better than others beyond noise.
//
// Runs of the same seed share arrivals and work, with every strategy, so strategies are compared seed by seed. One is
// better than another if three things hold: the mean of the differences points the better way, its 95 % confidence interval
// (Student's t) does not include zero, and it is larger than the measure's smallest difference that matters. The last one
// is not statistics: a board makes thousands of comparisons, one in twenty of which would find a difference between equals.
//
// The package knows no file and no terminal: it writes text to a writer. Nothing that it gives out is NaN or infinite, and
// the order of the results changes nothing.
package score

import (
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// Direction says which values of a measure are better.
type Direction int8

// The directions.
const (
	Neither Direction = iota // shown only
	Higher
	Lower
)

// Measure is a column: one number of a Result.
type Measure struct {
	Key    string    `json:"key"`   // inZone, dollarsPerHour, success, …
	Title  string    `json:"title"` // as tables have it
	Unit   Unit      `json:"unit"`
	Better Direction `json:"better"`
	// Least and Part are the smallest difference that matters: in the measure's unit, and as a fraction of the larger of
	// the two means. A difference has to be larger than both.
	Least float64 `json:"least"`
	Part  float64 `json:"part"`

	// Of reads the number in the measure's unit; false: there is none. NaN and infinite count as none.
	Of func(*sim.Result) (float64, bool) `json:"-"`
	// Never: a number that is missing means that something never came, which is worse than any number. It counts as what
	// Never gives, or as the scenario's worst number if that is worse. Nil: a missing number says nothing, as the others'
	// latency does where there are no others; such runs are left out.
	Never func(Label) float64 `json:"-"`
	// Priority: 1 is the last column to go when a table is too wide; 0 is in no table of Print and Markdown.
	Priority int `json:"-"`
}

// Unit says how a number is written.
type Unit string

// The units.
const (
	Percent Unit = "%"  // a fraction, written times 100
	Millis  Unit = "ms" // milliseconds
	Seconds Unit = "s"
	Dollars Unit = "$/h"
	Ratio   Unit = "×"
	Points  Unit = "pt" // a fraction, written times 100 as percentage points
	Number  Unit = ""   // a count, or a mean of counts
)

// Cell is one measure of one strategy in one scenario, over all seeds.
type Cell struct {
	// Mean counts a run that never got there as Measure.Never says, so with such runs it is less than the truth.
	Mean  float64
	Half  float64 // half of the 95 % confidence interval; 0 with one seed
	Seeds int     // that Mean and Half are over
	Known int     // runs that had the number
	Runs  int     // Known, and those that never got there; 0: there is nothing to show
	// Best: no other is better than this beyond noise, and some other is worse beyond noise. So several may be best, and
	// none is where all are alike, or where there is one seed.
	Best bool
}

// Never tells that no run got there.
func (c Cell) Never() bool { return c.Runs > 0 && c.Known == 0 }

// Row is one strategy in one scenario.
type Row struct {
	Strategy string          `json:"strategy"` // name
	Title    string          `json:"title"`
	Runs     int             `json:"runs"`  // 0: it was not run, and no cell has anything to show
	Cells    map[string]Cell `json:"cells"` // by the measure's key
	// Spill is the fraction of the affected clients' requests that crossed, for each second of the run: the mean over
	// seeds. Nil in Board.Overall.
	Spill []float64 `json:"spill,omitempty"`

	Limit    bool      `json:"limit,omitempty"`    // no strategy that could be run: the best possible
	Distance *Distance `json:"distance,omitempty"` // from the limit; nil: the table has none

	// After AddDetails: Source in Overall, Timeline and Zones in the scenarios.
	Source   string     `json:"source,omitempty"`
	Timeline *Timeline  `json:"timeline,omitempty"`
	Zones    []ZoneLoad `json:"zones,omitempty"`
}

// Table is one scenario.
type Table struct {
	Scenario string   `json:"scenario"`
	Title    string   `json:"title"`
	Rows     []Row    `json:"strategies"`        // in the order in which the strategies were given
	Details  *Details `json:"details,omitempty"` // after AddDetails

	pairs map[pair]Difference
}

// Board is a whole comparison: the result document that weir simulate -o json prints and its page embeds. Its names in JSON
// are promised; shares are fractions, latencies are milliseconds. Numbers have six digits after the point there, so that they
// are the same on every machine.
type Board struct {
	Notice string `json:"notice"`
	// Assumptions are the model's, a sentence each; Compare leaves them to the caller.
	Assumptions []string `json:"assumptions,omitempty"`

	Seeds      int       `json:"seeds"`
	Confidence float64   `json:"confidence"` // of the intervals
	Measures   []Measure `json:"measures"`
	Tables     []Table   `json:"scenarios"` // in the order in which the scenarios were given
	// Overall has the means over the scenarios that every strategy ran, seed by seed; each scenario counts alike.
	Overall Table `json:"overall"`
	// Common is how many of Tables that are.
	Common int `json:"common"`
	// Drawn is set by CompareDrawn: then the tables are by kind, and Overall is over all scenarios alike.
	Drawn *Drawn `json:"drawn,omitempty"`

	commonSeeds int // with which all strategies ran all of these
}

// Label names a strategy or a scenario, as options and tables have it.
type Label struct {
	Name, Title string
	Limit       bool // of a strategy: see Row.Limit; it is never marked as best, and hides no other

	// What follows is of scenarios only. Without Stress and Length, what never came counts as the worst that came;
	// without Affected, spill is of all clients.
	Stress   scenario.Window
	Length   time.Duration
	Affected []topology.Zone
}

// LabelOf labels a scenario.
func LabelOf(s *scenario.Scenario) Label {
	return Label{Name: s.Name, Title: s.Title, Stress: s.Stress, Length: s.Length, Affected: s.Affected}
}
