// Package score compares results: means over seeds, confidence intervals, and who is better than the others beyond noise.
package score

import (
	"github.com/weir-lb/weir/internal/sim"
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
	Key    string // as JSON and CSV have it: inZone, dollarsPerHour, success, …
	Title  string // as tables have it
	Unit   Unit
	Better Direction
	// Of reads the number; false: there is none, as with a reaction that never came.
	Of func(*sim.Result) (float64, bool)
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
)

// Cell is one measure of one contender in one scenario, over all seeds.
type Cell struct {
	Mean  float64
	Half  float64 // half of the 95 % confidence interval; 0 with one seed
	Known int     // of the seeds: how many had the number; Mean is over those
	// Best: nobody is better than this beyond noise, and somebody is worse beyond noise.
	Best bool
}

// Row is one contender in one scenario.
type Row struct {
	Contender string // name
	Title     string
	Cells     []Cell // in the order of Board.Measures
}

// Table is one scenario.
type Table struct {
	Scenario string
	Title    string
	Rows     []Row // in the order in which the contenders were given
}

// Board is a whole comparison.
type Board struct {
	Measures []Measure
	Seeds    int
	Tables   []Table // in the order in which the scenarios were given
	Overall  Table   // means over all scenarios
}
