package plan

import (
	"math"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// allocation allots each ready endpoint to one zone. Zones are rows of prepared.zones; those without demand get nothing.
type allocation struct {
	p       *prepared
	desired []float64 // for each zone the endpoints that its demand asks for; sums to the number of ready endpoints
	count   []int     // for each zone the endpoints allotted to it
	to      []int     // for each endpoint its zone, or nowhere
	kept    []bool    // for each endpoint whether it is where it was before
}

func newAllocation(p *prepared) *allocation {
	a := &allocation{
		p:       p,
		desired: make([]float64, len(p.zones)),
		count:   make([]int, len(p.zones)),
		to:      make([]int, len(p.endpoints)),
		kept:    make([]bool, len(p.endpoints)),
	}
	for z, d := range p.demand {
		a.desired[z] = float64(d) * float64(len(p.ready))
	}
	for i := range a.to {
		a.to[i] = nowhere
	}
	return a
}

// minimums gives, for each zone with demand, the fewest endpoints that keep its expected overload from exceeding limit.
// They are at least 1: no zone may be left without. It is upstream's ceil(desired / 1.2) but for the boundary.
func (a *allocation) minimums(limit float64) []int {
	minimums := make([]int, len(a.desired))
	for z, desired := range a.desired {
		if desired == 0 {
			continue
		}
		n := max(1, int(desired/(1+limit)))
		for desired/float64(n)-1 > limit {
			n++
		}
		minimums[z] = n
	}
	return minimums
}

// keep leaves endpoints where they were, if they were in one zone that has demand. It returns how many.
func (a *allocation) keep() int {
	rows := make(map[topology.Zone]int, len(a.p.zones))
	for z, zone := range a.p.zones {
		if a.desired[z] > 0 {
			rows[zone] = z
		}
	}
	kept := 0
	for _, i := range a.p.ready {
		zones := a.p.before[i].Zones
		if len(zones) != 1 {
			continue
		}
		if z, ok := rows[zones[0]]; ok {
			a.move(i, z)
			a.kept[i] = true
			kept++
		}
	}
	return kept
}

// rest allots the others to their own zones, and those in zones without demand to the zone that needs them most.
func (a *allocation) rest() {
	var homeless []int
	for _, i := range a.p.ready {
		if a.to[i] != nowhere {
			continue
		}
		if z := a.p.home[i]; z >= 0 && a.desired[z] > 0 {
			a.move(i, z)
			continue
		}
		homeless = append(homeless, i)
	}
	for _, i := range homeless {
		a.move(i, largest(len(a.desired), func(z int) float64 { return a.desired[z] - float64(a.count[z]) }))
	}
}

// level moves endpoints from the zone with the most above its target to the one with the most below, until less than a
// whole endpoint is to be gained. The target is what demand asks for, or the minimum where that is more.
func (a *allocation) level(minimums []int) {
	above := make([]float64, len(a.desired))
	for z, desired := range a.desired {
		above[z] = float64(a.count[z]) - max(desired, float64(minimums[z]))
	}
	moves := newMoves(len(a.desired))
	for {
		from := largest(len(above), func(z int) float64 { return above[z] })
		into := largest(len(above), func(z int) float64 { return -above[z] })
		give, take := above[from], -above[into]
		// The same stop as upstream's, so that the counts are the same: half an endpoint is not worth a move.
		if max(give, take) < 1-tolerance || min(give, take) < 0.5-tolerance {
			break
		}
		above[from]--
		above[into]++
		moves.add(from, into)
	}
	a.carryOut(moves)
}

// fill brings every zone to its minimum with the fewest moves, from the zones that can spare the most. The minimums
// must not sum to more than the ready endpoints.
func (a *allocation) fill(minimums []int) {
	spare := make([]int, len(minimums))
	for z := range spare {
		spare[z] = a.count[z] - minimums[z]
	}
	moves := newMoves(len(minimums))
	for into := range spare {
		for spare[into] < 0 {
			from := largest(len(spare), func(z int) float64 { return float64(spare[z]) })
			spare[from]--
			spare[into]++
			moves.add(from, into)
		}
	}
	a.carryOut(moves)
}

// carryOut picks the endpoints that move: first those that return to their own zone, then those without an earlier hint,
// then those that are in another zone already, and the others last; among equals in the service's order.
func (a *allocation) carryOut(m moves) {
	if m.left == 0 {
		return
	}
	home := func(i int) int { return m.exactly(a.to[i], a.p.home[i]) }
	unknown := func(i int) int {
		if a.kept[i] {
			return nowhere
		}
		return m.anywhere(a.to[i])
	}
	away := func(i int) int {
		if a.to[i] == a.p.home[i] {
			return nowhere
		}
		return m.anywhere(a.to[i])
	}
	others := func(i int) int { return m.anywhere(a.to[i]) }
	moved := make([]bool, len(a.to)) // an endpoint moves once: what arrives is not passed on
	for _, move := range []func(i int) int{home, unknown, away, others} {
		for _, i := range a.p.ready {
			if moved[i] {
				continue
			}
			if into := move(i); into != nowhere {
				m.done(a.to[i], into)
				a.move(i, into)
				moved[i] = true
			}
		}
	}
}

func (a *allocation) move(i, into int) {
	if a.to[i] != nowhere {
		a.count[a.to[i]]--
	}
	a.to[i] = into
	a.count[into]++
}

// overload gives the highest expected overload of a zone.
func (a *allocation) overload() float64 {
	worst := math.Inf(-1)
	for z, desired := range a.desired {
		if desired > 0 {
			worst = max(worst, desired/float64(a.count[z])-1)
		}
	}
	return worst
}

// tooHigh explains why no split is good enough, by the best there is: it does not say whether hints were there before,
// so that the same cluster gives the same reason.
func (a *allocation) tooHigh() reason.Reason {
	best := make([]int, len(a.desired))
	left := len(a.p.ready)
	for z, desired := range a.desired {
		if desired > 0 {
			best[z] = 1
			left--
		}
	}
	ratio := func(z int) float64 { return a.desired[z] / float64(max(best[z], 1)) }
	for ; left > 0; left-- {
		best[largest(len(best), ratio)]++
	}
	worst := ratio(largest(len(best), ratio))
	var zones []string
	for z := range best {
		if ratio(z) > worst-tolerance {
			zones = append(zones, string(a.p.zones[z]))
		}
	}
	return reason.New(reason.OverloadTooHigh, zones...).
		With("endpoints", float64(len(a.p.ready)), reason.Count).
		With("overload", worst-1, reason.Ratio).
		With("limit", a.p.Limits.Start, reason.Ratio)
}

// hints writes the allotment down. Endpoints of one zone share one list.
func (a *allocation) hints() []topology.Hints {
	hints := make([]topology.Hints, len(a.to))
	for _, i := range a.p.ready {
		z := a.to[i]
		hints[i].Zones = a.p.zones[z : z+1 : z+1]
	}
	return hints
}

// largest finds which of n has the highest value; the first of equals, which is the first zone by name.
func largest(n int, value func(int) float64) int {
	best := 0
	for i := range n {
		if value(i) > value(best)+tolerance {
			best = i
		}
	}
	return best
}

func total(counts []int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

// moves counts how many endpoints are to go from one zone to another.
type moves struct {
	count [][]int // by the zone that gives, then the one that takes
	left  int
}

func newMoves(zones int) moves {
	m := moves{count: make([][]int, zones)}
	for z := range m.count {
		m.count[z] = make([]int, zones)
	}
	return m
}

func (m *moves) add(from, into int) {
	m.count[from][into]++
	m.left++
}

func (m *moves) done(from, into int) {
	m.count[from][into]--
	m.left--
}

// exactly gives into if a move from there to here is left, else nowhere.
func (m *moves) exactly(from, into int) int {
	if into == nowhere || m.count[from][into] == 0 {
		return nowhere
	}
	return into
}

// anywhere gives the first zone that still takes from this one, else nowhere.
func (m *moves) anywhere(from int) int {
	for into, n := range m.count[from] {
		if n > 0 {
			return into
		}
	}
	return nowhere
}
