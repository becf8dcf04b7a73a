package score

import (
	"encoding/json"
	"math"
)

// MarshalJSON writes numbers that are not there as null: the mean if no run had it, half of the interval with one seed.
func (c Cell) MarshalJSON() ([]byte, error) {
	v := struct {
		Mean  *float64 `json:"mean"` // at least this much where Known is less than Runs
		Half  *float64 `json:"half"`
		Known int      `json:"known"` // runs that had the number
		Runs  int      `json:"runs"`  // Known, and those that never got there
		Best  bool     `json:"best"`
	}{Known: c.Known, Runs: c.Runs, Best: c.Best}
	if c.Known > 0 {
		v.Mean = new(rounded(c.Mean))
	}
	if c.Known > 0 && c.Seeds > 1 {
		v.Half = new(rounded(c.Half))
	}
	return json.Marshal(v)
}

// rounded keeps six digits after the point: more than means anything, and few enough to be the same on processors that
// multiply and add in one step.
func rounded(value float64) float64 {
	const scale = 1e6
	return math.Round(value*scale) / scale
}

// MarshalText gives the unit as JSON and CSV have it.
func (u Unit) MarshalText() ([]byte, error) { return []byte(u.name()), nil }

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

// MarshalText gives higher, lower or neither.
func (d Direction) MarshalText() ([]byte, error) {
	switch d {
	case Higher:
		return []byte("higher"), nil
	case Lower:
		return []byte("lower"), nil
	default:
		return []byte("neither"), nil
	}
}
