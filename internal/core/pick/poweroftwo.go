package pick

// powerOfTwo compares two endpoints at random by requests in flight times recent slowdown: nearly as good as the least
// loaded of all, and without its stampedes when what is known is a little old (Mitzenmacher 2001).
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
	if b := p.endpoints[j]; b.load() < a.load() {
		return b
	}
	return a
}
