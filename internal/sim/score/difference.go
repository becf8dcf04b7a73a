package score

import "math"

// Verdict says how one strategy stands to another in one measure.
type Verdict int8

// The verdicts.
const (
	Unknown Verdict = iota // fewer than two seeds that both have, or a measure that has no better
	Alike                  // the difference is noise, or does not matter
	Better
	Worse
)

// Difference is one strategy's number minus another's, seed by seed.
type Difference struct {
	Scenario string
	Seeds    int     // that both have
	Mean     float64 // in the measure's unit
	Half     float64 // half of its 95 % confidence interval
	Verdict  Verdict // on the first of the two
}

// pair names a comparison.
type pair struct{ a, other, measure string }

// difference compares a with other.
func (m *Measure) difference(a, other *series) Difference {
	var differences []float64
	var sumA, sumOther float64
	for _, p := range a.points {
		if q, ok := other.at(p.seed); ok {
			differences = append(differences, p.value-q.value)
			sumA += p.value
			sumOther += q.value
		}
	}
	d := Difference{Seeds: len(differences)}
	d.Mean, d.Half = meanAndHalf(differences)
	if d.Seeds < 2 || m.Better == Neither {
		return d
	}
	size := math.Max(math.Abs(sumA), math.Abs(sumOther)) / float64(d.Seeds)
	far := math.Abs(d.Mean)
	switch {
	case far <= d.Half || far <= m.Least || far <= m.Part*size:
		d.Verdict = Alike
	case (d.Mean > 0) == (m.Better == Higher):
		d.Verdict = Better
	default:
		d.Verdict = Worse
	}
	return d
}

// Differences compares two strategies by the key of a measure: one difference for each scenario that both ran, in the
// order of Tables.
func (b *Board) Differences(a, other, measure string) []Difference {
	var all []Difference
	for i := range b.Tables {
		if d := b.Tables[i].pairs[pair{a, other, measure}]; d.Seeds > 0 {
			d.Scenario = b.Tables[i].Scenario
			all = append(all, d)
		}
	}
	return all
}

// Versus counts the scenarios in which strategy a is better than, worse than, and like the other beyond noise, by the key
// of a measure. What cannot be compared (fewer than two seeds that both have) is in none of them.
func (b *Board) Versus(a, other, measure string) (better, worse, alike int) {
	for _, d := range b.Differences(a, other, measure) {
		switch d.Verdict {
		case Better:
			better++
		case Worse:
			worse++
		case Alike:
			alike++
		case Unknown:
		}
	}
	return better, worse, alike
}
