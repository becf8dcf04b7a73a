package scenario

import (
	"fmt"
	"strings"
	"time"
)

// maxMean bounds mean service times.
const maxMean = 10 * time.Minute

// shape is a further number of a distribution: which kind has it, its name, and what it is when it is not written.
type shape struct {
	kind    Kind
	name    string
	at      func(*Distribution) *float64
	usual   float64
	greater float64 // the value is above this
	most    float64
}

func shapes() []shape {
	return []shape{
		{Lognormal, "cv", func(d *Distribution) *float64 { return &d.CV }, 1, 0, 10},
		{Bimodal, "heavy", func(d *Distribution) *float64 { return &d.Heavy }, 0.1, 0, 0.99},
		{Bimodal, "factor", func(d *Distribution) *float64 { return &d.Factor }, 10, 1, maxFactor},
	}
}

// String gives KIND:MEAN and the shape, as in lognormal:20ms,cv=1.
func (d Distribution) String() string {
	parts := []string{string(d.Kind) + ":" + formatTime(d.Mean)}
	for _, sh := range shapes() {
		if sh.kind == d.Kind {
			parts = append(parts, sh.name+"="+formatNumber(*sh.at(&d)))
		}
	}
	return strings.Join(parts, ",")
}

// parseDistribution reads what Distribution.String writes; the shape may be left out.
func parseDistribution(text string) (Distribution, error) {
	parts := strings.Split(text, ",")
	kind, mean, found := strings.Cut(parts[0], ":")
	d := Distribution{Kind: Kind(kind)}
	if !found || !d.Kind.isKnown() {
		return d, fmt.Errorf("bad distribution %q: want KIND:MEAN with constant, exponential, lognormal or bimodal, as in "+
			"lognormal:20ms,cv=1", text)
	}
	var err error
	if d.Mean, err = parseTime(mean); err != nil {
		return d, err
	}
	for _, sh := range shapes() {
		if sh.kind == d.Kind {
			*sh.at(&d) = sh.usual
		}
	}
	for _, part := range parts[1:] {
		if err := d.parseShape(part); err != nil {
			return d, err
		}
	}
	return d, nil
}

func (d *Distribution) parseShape(part string) error {
	name, value, _ := strings.Cut(part, "=")
	for _, sh := range shapes() {
		if sh.kind != d.Kind || sh.name != name {
			continue
		}
		f, err := parseNumber(value)
		*sh.at(d) = f
		return err
	}
	return fmt.Errorf("unknown %q of a %s distribution: lognormal has cv=, bimodal has heavy= and factor=", part, d.Kind)
}

func (k Kind) isKnown() bool {
	switch k {
	case Constant, Exponential, Lognormal, Bimodal:
		return true
	default:
		return false
	}
}

// check refuses what nothing can be drawn from.
func (d Distribution) check() error {
	if !d.Kind.isKnown() {
		return fmt.Errorf("has the unknown kind %q: want constant, exponential, lognormal or bimodal", d.Kind)
	}
	if d.Mean <= 0 || d.Mean > maxMean {
		return fmt.Errorf("has a mean of %s: want more than 0s and at most %s", formatTime(d.Mean), formatTime(maxMean))
	}
	for _, sh := range shapes() {
		f := *sh.at(&d)
		if sh.kind != d.Kind && f != 0 {
			return fmt.Errorf("has %s, which only %s has: leave it out", sh.name, sh.kind)
		}
		if sh.kind == d.Kind && !(f > sh.greater && f <= sh.most) {
			return fmt.Errorf("has %s=%s: want more than %s and at most %s", sh.name, formatNumber(f), formatNumber(sh.greater), formatNumber(sh.most))
		}
	}
	return nil
}
