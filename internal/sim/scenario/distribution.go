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

// shapes are the further numbers of a family.
func shapes(d *Distribution) []key {
	switch d.Kind {
	case Lognormal:
		return []key{at("cv", &d.CV, above(0, 10))}
	case Bimodal:
		return []key{at("heavy", &d.Heavy, above(0, 0.99)), at("factor", &d.Factor, above(1, maxFactor))}
	default:
		return nil
	}
}

// usualDistribution has the shape that is not written.
func usualDistribution(family Kind) Distribution {
	switch family {
	case Lognormal:
		return Distribution{Kind: family, CV: 1}
	case Bimodal:
		return Distribution{Kind: family, Heavy: 0.1, Factor: 10}
	default:
		return Distribution{Kind: family}
	}
}

func (k Kind) isKnown() bool {
	return slices.Contains([]Kind{Constant, Exponential, Lognormal, Bimodal}, k)
}

func formatDistribution(d Distribution) string {
	parts := []string{string(d.Kind) + ":" + formatTime(d.Mean)}
	for _, k := range shapes(&d) {
		parts = append(parts, k.name+"="+k.print())
	}
	return strings.Join(parts, ",")
}

func parseDistribution(text string) (Distribution, error) {
	parts := strings.Split(text, ",")
	family, mean, found := strings.Cut(parts[0], ":")
	d := usualDistribution(Kind(family))
	if !found || !d.Kind.isKnown() {
		return d, fmt.Errorf("bad distribution %q: want KIND:MEAN with constant, exponential, lognormal or bimodal, as in "+
			"lognormal:20ms,cv=1", text)
	}
	var err error
	if d.Mean, err = parseTime(mean); err != nil {
		return d, err
	}
	own := shapes(&d)
	for _, part := range parts[1:] {
		name, value, _ := strings.Cut(part, "=")
		k, _ := named(own, name)
		if k == nil {
			return d, fmt.Errorf("unknown %q of a %s distribution: lognormal has cv=, bimodal has heavy= and factor=", part, d.Kind)
		}
		if err := k.parse(value); err != nil {
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
	for _, k := range shapes(&d) {
		if err := k.check(); err != nil {
			return fmt.Errorf("has a %s that %w", k.name, err)
		}
	}
	return nil
}
