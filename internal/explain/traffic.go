package explain

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/core/plan"
)

// GBPerMonth is an amount of traffic: 10^9 bytes in a month of 730 hours, as clouds bill it.
type GBPerMonth float64

// DefaultPrice is the price of a GB per cost unit in dollars: the large clouds bill 0.01 $ on each side of a crossing
// between zones.
const DefaultPrice = 0.02

// Traffic is what a plan costs at a given traffic, in both directions together.
type Traffic struct {
	GBPerMonth   float64 `json:"gbPerMonth"`
	CrossZoneGB  float64 `json:"crossZoneGB"`  // per month: what leaves its zone
	Price        float64 `json:"price"`        // dollars of a GB per cost unit
	Dollars      float64 `json:"dollars"`      // per month
	WithoutHints float64 `json:"withoutHints"` // dollars per month if every request went anywhere
}

// bill estimates what a plan costs, and what it would cost without hints.
func (o *Options) bill(p, blind *plan.Plan) *Traffic {
	gb := float64(o.Traffic)
	return &Traffic{
		GBPerMonth:   gb,
		CrossZoneGB:  gb * (1 - float64(p.InZone)),
		Price:        o.Price,
		Dollars:      gb * float64(p.Cost) * o.Price,
		WithoutHints: gb * float64(blind.Cost) * o.Price,
	}
}

const (
	secondsPerMonth = 730 * 3600 // the mean month, as clouds bill it
	bitsPerByte     = 8
)

// ParseTraffic reads an amount per month (1000, 1000GB, 1.5TB) or a rate (25MB/s, 200Mbit/s). A bare number is GB per
// month; units are decimal, as bills are.
func ParseTraffic(s string) (GBPerMonth, error) {
	text, perSecond := strings.CutSuffix(strings.TrimSpace(s), "/s")
	if !perSecond {
		text = strings.TrimSuffix(text, "/month")
	}
	number := strings.TrimRight(text, "GMTkBbit")
	value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	unit, ok := gigabytes(text[len(number):])
	if err != nil || !ok || !(value >= 0) || value > maxTraffic {
		return 0, fmt.Errorf("traffic %q: want an amount per month, as in 1000GB or 1.5TB, or a rate, as in 25MB/s", s)
	}
	if perSecond {
		unit *= secondsPerMonth
	}
	return GBPerMonth(value * unit), nil
}

// maxTraffic keeps sums finite and tables readable; no cluster has it.
const maxTraffic = 1e15

// gigabytes gives a unit in GB.
func gigabytes(unit string) (float64, bool) {
	bytes := 1.0
	prefix, isBits := strings.CutSuffix(unit, "bit")
	if isBits {
		bytes = 1.0 / bitsPerByte
	} else {
		prefix = strings.TrimSuffix(unit, "B")
	}
	switch prefix {
	case "k":
		return 1e-6 * bytes, true
	case "M":
		return 1e-3 * bytes, true
	case "G":
		return bytes, true
	case "T":
		return 1e3 * bytes, true
	case "":
		return 1, unit == "" // a bare number is GB
	default:
		return 0, false
	}
}
