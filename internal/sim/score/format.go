package score

import (
	"math"
	"strconv"
)

const hundred = 100

// scaled gives a value as it is written, and the digits after its point that are worth reading.
func (u Unit) scaled(value float64) (number float64, digits int) {
	switch u {
	case Percent:
		return value * hundred, 2
	case Points:
		return value * hundred, 1
	case Millis:
		const exact = 9.95 // from here on a tenth of a millisecond is less than 1 %
		if math.Abs(value) < exact {
			return value, 1
		}
		return value, 0
	case Seconds:
		return value, 1
	case Dollars:
		if math.Abs(value) >= hundred {
			return value, 0
		}
		return value, 2
	case Ratio:
		return value, 2
	default:
		if value == math.Trunc(value) || math.Abs(value) >= hundred {
			return value, 0
		}
		return value, 3
	}
}

// format writes a value without its unit, which the head of the column has. A share is never rounded to nothing or to
// everything, nor money to nothing.
func (u Unit) format(value float64) string {
	const least, most = 0.00005, 0.99995 // round to 0.01 % and 100.00 %
	switch {
	case u == Percent && value > 0 && value < least:
		return "<0.01"
	case u == Percent && value >= most && value < 1:
		return ">99.99"
	case u == Dollars && value > 0 && value < leastDollars/2:
		return "<0.01"
	}
	number, digits := u.scaled(value)
	return fixed(number, digits)
}

// half writes half of an interval with the digits of its mean.
func (u Unit) half(half, mean float64) string {
	_, digits := u.scaled(mean)
	number, _ := u.scaled(half)
	return "±" + fixed(number, digits)
}

// fixed writes no negative zero.
func fixed(number float64, digits int) string {
	s := strconv.FormatFloat(number, 'f', digits, 64)
	if zero := strconv.FormatFloat(0, 'f', digits, 64); s == "-"+zero {
		return zero
	}
	return s
}

// Text writes a cell without its unit: never when no run got there, with a > when some did not, a dash when there is nothing to show.
func (m *Measure) Text(c Cell) string {
	switch {
	case c.Runs == 0:
		return "-"
	case c.Never():
		return "never"
	case c.Known < c.Runs:
		return ">" + m.Unit.format(c.Mean)
	default:
		return m.Unit.format(c.Mean)
	}
}

// Interval writes half of a cell's interval, as ±0.12; empty where there is none.
func (m *Measure) Interval(c Cell) string {
	if c.Seeds < 2 || c.Never() {
		return ""
	}
	return m.Unit.half(c.Half, c.Mean)
}
