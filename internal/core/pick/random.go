package pick

// uniform takes any endpoint, all with the same probability.
type uniform struct{ endpoints []*endpoint }

func (p *uniform) pick(random, _ uint64) *endpoint {
	return p.endpoints[below(upper(random), uint64(len(p.endpoints)))]
}
