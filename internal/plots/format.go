package plots

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/score"
)

// number writes a number without its unit, as the tables of score do.
func number(u score.Unit, value float64) string {
	m := score.Measure{Unit: u}
	return m.Text(score.Cell{Mean: value, Known: 1, Runs: 1})
}

// quantity writes a number with its unit.
func quantity(u score.Unit, value float64) string {
	switch u {
	case score.Dollars:
		if bound, ok := strings.CutPrefix(number(u, value), "<"); ok {
			return "<$" + bound + "/h"
		}
		return "$" + number(u, value) + "/h"
	case score.Ratio, "":
		return number(u, value) + string(u)
	default:
		return number(u, value) + " " + string(u)
	}
}

// latency writes a time as people say it: 850 µs, 110 ms, 1.5 s.
func latency(d time.Duration) string {
	var value float64
	unit := " s"
	switch {
	case d < time.Millisecond:
		value, unit = float64(d)/float64(time.Microsecond), " µs"
	case d < time.Second:
		value, unit = float64(d)/float64(time.Millisecond), " ms"
	default:
		value = d.Seconds()
	}
	return strconv.FormatFloat(threeDigits(value), 'f', -1, 64) + unit
}

// threeDigits rounds to three significant digits.
func threeDigits(v float64) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// seconds writes a moment of a run: 30 s, 12 min.
func seconds(d time.Duration) string {
	if d >= 10*time.Minute && d%time.Minute == 0 {
		return strconv.FormatFloat(d.Minutes(), 'f', -1, 64) + " min"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}

// moment is what happens at one time.
type moment struct {
	at   time.Duration
	what []string // short, each once
	full []string
}

// moments are the steps of a scenario by time.
func moments(sc *scenario.Scenario) []moment {
	var all []moment
	for i := range sc.Steps {
		st := &sc.Steps[i]
		if len(all) == 0 || all[len(all)-1].at != st.At {
			all = append(all, moment{at: st.At})
		}
		m := &all[len(all)-1]
		brief := strings.TrimSpace(string(st.Verb) + " " + string(st.Where.Zone))
		if st.Factor != 0 {
			brief += " ×" + strconv.FormatFloat(st.Factor, 'f', -1, 64)
		}
		if !slices.Contains(m.what, brief) {
			m.what = append(m.what, brief)
		}
		m.full = append(m.full, describe(st))
	}
	return all
}

// describe is a step in a few words: slow ×10, zone a, endpoints 1 to 3.
func describe(st *scenario.Step) string {
	words := string(st.Verb)
	if st.Factor != 0 {
		words += " ×" + strconv.FormatFloat(st.Factor, 'f', -1, 64)
	}
	if st.Ratio != 0 {
		words += " " + percent(st.Ratio)
	}
	if st.Time != 0 {
		words += " " + latency(st.Time)
	}
	if st.Count != 0 {
		words += " " + strconv.Itoa(st.Count)
	}
	parts := []string{words}
	if st.Where.Zone != "" {
		parts = append(parts, "zone "+string(st.Where.Zone))
	}
	if st.Where.Cluster != "" {
		parts = append(parts, "cluster "+st.Where.Cluster)
	}
	switch {
	case st.Where.First != 0 && st.Where.First == st.Where.Last:
		parts = append(parts, "endpoint "+strconv.Itoa(st.Where.First))
	case st.Where.First != 0:
		parts = append(parts, "endpoints "+strconv.Itoa(st.Where.First)+" to "+strconv.Itoa(st.Where.Last))
	case st.Where.Part != 0:
		parts = append(parts, percent(st.Where.Part)+" of the endpoints")
	}
	if st.Over != 0 {
		parts = append(parts, "over "+seconds(st.Over))
	}
	return strings.Join(parts, ", ")
}
