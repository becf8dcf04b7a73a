package plan

import (
	"cmp"
	"slices"
)

// group is how many endpoints of one home carry the same hints.
type group struct {
	home  int
	hints zoneSet
	count int
}

// layout is a solution of a puzzle: the hints of all endpoints, as groups that differ in home or hints.
type layout struct {
	*puzzle
	groups []group
	hinted []int // of each zone: endpoints that carry its hint
}

// score is how good a layout is.
type score struct {
	excess float64 // traffic above the limit, summed over the endpoints: fraction of all requests
	cost   float64 // mean of a request
	peak   float64 // traffic of the most loaded endpoint: fraction of all requests
	inZone float64 // fraction of all requests
}

// less tells whether s is better than o by more than rounding: less excess, then less cost.
func (s score) less(o score) bool {
	if s.excess < o.excess-dust || s.excess > o.excess+dust {
		return s.excess < o.excess
	}
	if s.cost < o.cost-dust || s.cost > o.cost+dust {
		return s.cost < o.cost
	}
	return s.peak < o.peak-dust
}

func newLayout(p *puzzle) *layout {
	return &layout{puzzle: p, groups: make([]group, 0, 2*len(p.ready)+2), hinted: make([]int, len(p.demand))}
}

func (l *layout) clone() *layout {
	return &layout{puzzle: l.puzzle, groups: slices.Clone(l.groups), hinted: slices.Clone(l.hinted)}
}

// add puts count more endpoints with the same home and hints into the layout; a negative count takes them out.
func (l *layout) add(home int, hints zoneSet, count int) {
	if count == 0 {
		return
	}
	for rest := hints; rest != 0; {
		var z int
		z, rest = rest.pop()
		l.hinted[z] += count
	}
	for i := range l.groups {
		if g := &l.groups[i]; g.home == home && g.hints == hints {
			g.count += count
			return
		}
	}
	l.groups = append(l.groups, group{home: home, hints: hints, count: count})
}

// compact forgets the groups without endpoints.
func (l *layout) compact() {
	kept := l.groups[:0]
	for _, g := range l.groups {
		if g.count > 0 {
			kept = append(kept, g)
		}
	}
	l.groups = kept
}

// sort brings the groups into one order, so that equal layouts are equal, and sum up to equal scores, bit for bit.
func (l *layout) sort() {
	l.compact()
	slices.SortFunc(l.groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.home, b.home), cmp.Compare(a.hints, b.hints))
	})
}

// overload is by how much the most loaded endpoint gets more than its fair part.
func (p *puzzle) overload(s score) float64 { return s.peak*float64(p.total) - 1 }

// score evaluates the layout: what a zone sends goes evenly to the endpoints that carry its hint, or to all endpoints
// when there are none.
func (l *layout) score() score {
	var rates [maxZones]float64 // what each zone sends to each of its endpoints
	sum, base := score{cost: l.unnamedCost}, l.unnamed
	for z, demand := range l.demand {
		if n := l.hinted[z]; n > 0 {
			rates[z] = demand / float64(n)
		} else if demand > 0 {
			base += demand
			sum.cost += demand * l.meanCost(l.cost[z])
			sum.inZone += demand * l.meanOwn(z)
		}
	}
	base /= float64(l.total)
	for _, g := range l.groups {
		if g.count == 0 {
			continue
		}
		load, cost := base, 0.0
		for rest := g.hints; rest != 0; {
			var z int
			z, rest = rest.pop()
			load += rates[z]
			cost += rates[z] * l.cost[z][g.home]
		}
		sum.cost += cost * float64(g.count)
		sum.peak = max(sum.peak, load)
		if over := load - l.limit; over > dust {
			sum.excess += over * float64(g.count)
		}
		if own := l.own[g.home]; own >= 0 && g.hints.has(own) {
			sum.inZone += rates[own] * float64(g.count)
		}
	}
	return sum
}

// meanOwn is the fraction of endpoints that live in zone z.
func (p *puzzle) meanOwn(z int) float64 {
	own := 0
	for h, zone := range p.own {
		if zone == z {
			own += p.ready[h]
		}
	}
	return float64(own) / float64(p.total)
}
