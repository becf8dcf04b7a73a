package plots

import (
	"math"
	"strconv"
	"time"

	"gonum.org/v1/plot"

	"github.com/weir-lb/weir/internal/sim/score"
)

// step is the smallest of 1, 2 and 5 times a power of ten with which at most that many steps cover a span.
func step(span float64, most int) float64 {
	if span <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(span/float64(most))))
	for _, factor := range []float64{1, 2, 5} {
		if span <= factor*power*float64(most)*(1+1e-9) {
			return factor * power
		}
	}
	return 10 * power
}

// ladder is ticks at the multiples of a step from low to high, both included.
func ladder(low, high, step float64, label func(float64) string) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for i := math.Ceil(low/step - 1e-9); i*step <= high*(1+1e-9)+1e-12; i++ {
		value := i*step + 0 // a negative zero would show its sign
		ticks = append(ticks, plot.Tick{Value: value, Label: label(value)})
	}
	return ticks
}

// short writes a number with as few digits as it has, after the rounding that sums of steps need.
func short(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)
}

// upTo sets an axis from zero to the first tick at or above the largest value.
func upTo(axis *plot.Axis, largest float64, label func(float64) string) {
	if largest <= 0 || math.IsNaN(largest) {
		largest = 1
	}
	s := step(largest, 5)
	axis.Min, axis.Max = 0, math.Ceil(largest/s-1e-9)*s
	axis.Tick.Marker = ladder(axis.Min, axis.Max, s, label)
}

// fractionsFrom sets an axis of a fraction that is best at 1, with at most that many steps: from a round number below
// the smallest value.
func fractionsFrom(axis *plot.Axis, smallest float64, most int) {
	axis.Min, axis.Max = 0, 1
	for _, floor := range []float64{0.99, 0.96, 0.9, 0.8, 0.6} {
		if smallest >= floor {
			axis.Min = floor
			break
		}
	}
	axis.Tick.Marker = ladder(axis.Min, 1, step(1-axis.Min, most), percent)
}

// percent writes a fraction as a tick.
func percent(v float64) string { return short(100*v) + " " + string(score.Percent) }

// dollars writes an amount as a tick.
func dollars(v float64) string { return "$" + short(v) }

// overTime sets an axis to the seconds of a run, or to minutes and hours when it is long.
func overTime(axis *plot.Axis, length time.Duration) {
	axis.Min, axis.Max = 0, math.Max(length.Seconds(), 1)
	unit, name := time.Second, "s"
	switch {
	case length >= 5*time.Hour:
		unit, name = time.Hour, "h"
	case length >= 10*time.Minute:
		unit, name = time.Minute, "min"
	}
	per := unit.Seconds()
	axis.Label.Text = "time since the start (" + name + ")"
	steps := step(axis.Max/per, 10)
	if unit == time.Hour && axis.Max <= 48*per { // parts of a day
		for _, steps = range []float64{1, 2, 3, 6} {
			if axis.Max/per <= 10*steps {
				break
			}
		}
	}
	axis.Tick.Marker = ladder(0, axis.Max, per*steps, func(v float64) string { return short(v / per) })
}

// logTicks are at 1, 2 and 5 times the powers of ten.
func logTicks(low, high float64) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	isLong := high/low > 1000 // then only the powers have a label
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high*(1+1e-9); power *= 10 {
		for _, factor := range []float64{1, 2, 5} {
			v := factor * power
			if v < low*(1-1e-9) || v > high*(1+1e-9) {
				continue
			}
			label := latency(time.Duration(math.Round(v * float64(time.Second))))
			if isLong && factor != 1 {
				label = ""
			}
			ticks = append(ticks, plot.Tick{Value: v, Label: label})
		}
	}
	return ticks
}

// overLatency sets a logarithmic axis from the tick below the smallest to the tick above the largest value, in seconds.
func overLatency(axis *plot.Axis, smallest, largest float64) {
	if !(smallest > 0) || math.IsInf(smallest, 0) {
		smallest, largest = 0.01, 1
	}
	all := logTicks(smallest/10, largest*10)
	axis.Min, axis.Max = all[0].Value, all[len(all)-1].Value
	for _, t := range all {
		if t.Value <= smallest*0.98 {
			axis.Min = t.Value
		}
		if t.Value >= largest*1.02 {
			axis.Max = t.Value
			break
		}
	}
	axis.Scale = plot.LogScale{}
	axis.Tick.Marker = logTicks(axis.Min, axis.Max)
}
