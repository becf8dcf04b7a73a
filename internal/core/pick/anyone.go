package pick

// anyone takes any endpoint.
type anyone struct{ endpoints []*endpoint }

func (p *anyone) pick(random, _ uint64) *endpoint {
	return p.endpoints[below(upper(random), uint64(len(p.endpoints)))]
}
