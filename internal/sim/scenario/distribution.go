package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxMean bounds mean service times.
const maxMean = 10 * time.Minute

// distribution is how a Distribution is written: KIND:MEAN and the shape, as in lognormal:20ms,cv=1.
func distribution() kind[Distribution] {
	return kind[Distribution]{parseDistribution, formatDistribution, checkDistribution}
}

// shape is a further number of a distribution: which family has it, its name, and what it is when it is not written.
type shape struct {
	of    Kind
	name  string
	at    *float64
	usual float64
	kind  kind[float64]
}

func shapes(d *Distribution) []shape {
	return []shape{
		{Lognormal, "cv", &d.CV, 1, above(0, 10)},
		{Bimodal, "heavy", &d.Heavy, 0.1, above(0, 0.99)},
		{Bimodal, "factor", &d.Factor, 10, above(1, maxFactor)},
	}
}

func (k Kind) isKnown() bool {
	return slices.Contains([]Kind{Constant, Exponential, Lognormal, Bimodal}, k)
}

func formatDistribution(d Distribution) string {
	parts := []string{string(d.Kind) + ":" + formatTime(d.Mean)}
	for _, sh := range shapes(&d) {
		if sh.of == d.Kind {
			parts = append(parts, sh.name+"="+formatNumber(*sh.at))
		}
	}
	return strings.Join(parts, ",")
}

func parseDistribution(text string) (Distribution, error) {
	parts := strings.Split(text, ",")
	family, mean, found := strings.Cut(parts[0], ":")
	d := Distribution{Kind: Kind(family)}
	if !found || !d.Kind.isKnown() {
		return d, fmt.Errorf("bad distribution %q: want KIND:MEAN with constant, exponential, lognormal or bimodal, as in "+
			"lognormal:20ms,cv=1", text)
	}
	all := slices.DeleteFunc(shapes(&d), func(sh shape) bool { return sh.of != d.Kind })
	for _, sh := range all {
		*sh.at = sh.usual
	}
	var err error
	if d.Mean, err = parseTime(mean); err != nil {
		return d, err
	}
	for _, part := range parts[1:] {
		name, value, _ := strings.Cut(part, "=")
		i := slices.IndexFunc(all, func(sh shape) bool { return sh.name == name })
		if i < 0 {
			return d, fmt.Errorf("unknown %q of a %s distribution: lognormal has cv=, bimodal has heavy= and factor=", part, d.Kind)
		}
		if *all[i].at, err = parseNumber(value); err != nil {
			return d, err
		}
	}
	return d, nil
}

// checkDistribution refuses what nothing can be drawn from.
func checkDistribution(d Distribution) error {
	if !d.Kind.isKnown() {
		return fmt.Errorf("has the unknown kind %q: want constant, exponential, lognormal or bimodal", d.Kind)
	}
	if d.Mean <= 0 || d.Mean > maxMean {
		return fmt.Errorf("has a mean of %s: want more than 0s and at most %s", formatTime(d.Mean), formatTime(maxMean))
	}
	for _, sh := range shapes(&d) {
		if err := sh.kind.check(*sh.at); err != nil && sh.of == d.Kind {
			return fmt.Errorf("has a %s that %w", sh.name, err)
		}
		if sh.of != d.Kind && *sh.at != 0 {
			return fmt.Errorf("has %s, which only %s has: leave it out", sh.name, sh.of)
		}
	}
	return nil
}
