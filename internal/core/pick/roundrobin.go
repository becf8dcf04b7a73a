package pick

// roundRobin takes the endpoints one after the other. Its counter is one word for all processors; that is what the
// order costs. It outlives the picker, so that a change of endpoints does not start again from the first.
type roundRobin struct {
	endpoints []*endpoint
	turn      *turn
}

func (p *roundRobin) pick(_, _ uint64) *endpoint {
	return p.endpoints[p.turn.n.Add(1)%uint64(len(p.endpoints))]
}
