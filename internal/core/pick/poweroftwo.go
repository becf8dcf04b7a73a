package pick

import "math"

// powerOfTwo compares two endpoints at random by requests in flight times recent slowdown: nearly as good as the least
// loaded of all, and without its stampedes when what is known is a little old (Mitzenmacher 2001).
//
// Slowdowns are estimates: where they differ by less than tolerance the choice is by the requests in flight alone. Otherwise
// one of two equal endpoints with a request at a time would get nearly all of them, for the chance of its last answers.
type powerOfTwo struct{ endpoints []*endpoint }

func (p *powerOfTwo) pick(random, _ uint64) *endpoint {
	n := uint64(len(p.endpoints))
	i := below(upper(random), n)
	a := p.endpoints[i]
	if n == 1 {
		return a
	}
	j := below(lower(random), n-1)
	if j >= i {
		j++
	}
	if b := p.endpoints[j]; isLess(b.load(), a.load()) {
		return b
	}
	return a
}

// tolerance is the part of a slowdown by which equal endpoints differ by chance: the standard error of a mean of 16 answers with
// a variation of 1.
const tolerance = 4 // a quarter

// isLess tells whether the load a is less than b by more than chance, which is tolerance of the smaller slowdown.
func isLess(a, b load) bool {
	return a.product != math.MaxUint64 && a.product+uint64(min(a.weight, b.weight))/tolerance < b.product
}
