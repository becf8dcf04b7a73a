package explain

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/grid"
)

const hundred = 100

// percent prints a fraction, and never rounds something to nothing or to everything.
func percent(f float64) string {
	const least = 0.005 // rounds to 1 % or 99 %
	switch {
	case f > 0 && f < least:
		return "<1 %"
	case f < 1 && f > 1-least && f < 1-1e-9:
		return ">99 %"
	default:
		return strconv.FormatFloat(math.Round(f*hundred), 'f', 0, 64) + " %"
	}
}

// The bounds of KEP-2433 colour overload: below the first hints may start, above the second they have to go.
const (
	overloadWarn = 0.20
	overloadBad  = 0.30
)

// overload prints an expected overload; -1 is an endpoint that gets nothing.
func overload(ratio float64) grid.Cell {
	switch {
	case ratio <= -1:
		return grid.Cell{Text: "idle", Tone: warn}
	case ratio > overloadBad:
		return grid.Cell{Text: fmt.Sprintf("%+.0f %%", ratio*hundred), Tone: bad}
	case ratio >= overloadWarn:
		return grid.Cell{Text: fmt.Sprintf("%+.0f %%", ratio*hundred), Tone: warn}
	case math.Abs(ratio) < overloadNone:
		return grid.Text("0 %")
	default:
		return grid.Text(fmt.Sprintf("%+.0f %%", ratio*hundred))
	}
}

// overloadNone is what rounds to 0 %.
const overloadNone = 0.005

func hints(v *Plan) grid.Cell {
	if v.Hinted {
		return grid.Cell{Text: "yes", Tone: good}
	}
	return grid.Cell{Text: "no", Tone: warn}
}

func cores(c float64) string {
	if c == 0 {
		return "?"
	}
	return strconv.FormatFloat(c, 'f', -1, 64)
}

// amount prints a number of GB with as many digits as are worth reading.
func amount(gb float64) string {
	if gb >= hundred || gb == math.Trunc(gb) {
		return strconv.FormatFloat(gb, 'f', 0, 64)
	}
	return strconv.FormatFloat(gb, 'g', 3, 64)
}

func zoneName(z topology.Zone) string { return cmp.Or(string(z), "(no zone)") }

func orDash(s string) string { return cmp.Or(s, "-") }
