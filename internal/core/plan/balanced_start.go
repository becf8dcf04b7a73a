package plan

import (
	"cmp"
	"math"
	"slices"
)

// room is how much of the named zones' traffic an endpoint should get at most.
func (p *puzzle) room() float64 { return p.limit - p.unnamed/float64(p.total) }

// needs gives, for each zone, how many endpoints have to carry its hint so that none exceeds the limit when it carries
// no other; and how many that makes together.
func (p *puzzle) needs() (needs []int, sum int) {
	needs = make([]int, len(p.demand))
	for z, demand := range p.demand {
		if demand > 0 {
			needs[z] = max(1, int(math.Ceil(demand/p.room()-dust)))
		}
		sum += needs[z]
	}
	return needs, sum
}

// singles gives every endpoint one hint, so that each zone has at least what it needs: its own endpoints first, then
// others as cheaply as possible. The needs must not be more than there are endpoints.
//
// No layout within the limit keeps more in zone: a zone that needs n endpoints and has k keeps k/n of its traffic, and
// no hint can keep more. With one cost for all crossings none is cheaper either.
func (p *puzzle) singles(needs []int) *layout {
	l := newLayout(p)
	spare, lack := slices.Clone(p.ready), slices.Clone(needs)
	for h, own := range p.own {
		if own >= 0 {
			n := min(spare[h], lack[own])
			l.add(h, zoneSet(0).with(own), n)
			spare[h] -= n
			lack[own] -= n
		}
	}
	for z, row := range p.lend(needs, lack, spare) {
		for h, endpoints := range row {
			n := int(math.Round(endpoints))
			l.add(h, zoneSet(0).with(z), n)
			spare[h] -= n
		}
	}
	for h, n := range spare {
		p.spare(l, h, n)
	}
	return l
}

// lend sends spare endpoints to the zones that lack some; nil when none does.
func (p *puzzle) lend(needs, lack, spare []int) [][]float64 {
	if !slices.ContainsFunc(lack, func(n int) bool { return n > 0 }) {
		return nil
	}
	t := transportation{
		supply: make([]float64, len(lack)),
		room:   make([]float64, len(spare)),
		cost:   make([][]float64, len(lack)),
	}
	costs := make([]float64, len(lack)*len(spare))
	for z, n := range lack {
		t.supply[z] = float64(n)
		t.cost[z] = costs[z*len(spare) : (z+1)*len(spare)]
		for h := range spare { // an endpoint gets this much of the zone's traffic
			t.cost[z][h] = p.demand[z] / float64(max(needs[z], 1)) * p.cost[z][h]
		}
	}
	for h, n := range spare {
		t.room[h] = float64(n)
	}
	return t.solve()
}

// spare places endpoints that no zone needs. They serve their own zone, unless they cost nothing in a zone that has no
// endpoints and help more there. Those without a zone go where they add least to the cost, and among such places where
// they help most.
func (p *puzzle) spare(l *layout, home, count int) {
	if own := p.own[home]; own >= 0 && !l.freeToHelp(home) {
		l.add(home, zoneSet(0).with(own), count)
		return
	}
	for range count {
		best, least, most := -1, math.Inf(1), 0.0
		for z, demand := range p.demand {
			if z != p.own[home] && (demand == 0 || p.own[home] >= 0 && !l.free(home, z)) {
				continue
			}
			rate := demand / float64(l.hinted[z]+1)
			more := rate * (p.cost[z][home] - l.costOf(z))
			if best < 0 || more < least-dust || more < least+dust && rate > most+dust {
				best, least, most = z, more, rate
			}
		}
		l.add(home, zoneSet(0).with(best), 1)
	}
}

// freeToHelp tells whether an endpoint of this home could help another zone for nothing.
func (l *layout) freeToHelp(home int) bool {
	for z, demand := range l.demand {
		if demand > 0 && z != l.own[home] && l.free(home, z) {
			return true
		}
	}
	return false
}

// free tells whether a zone would pay no more with an endpoint of this home than without, nor keep less.
func (l *layout) free(home, z int) bool {
	return !slices.Contains(l.own, z) && l.cost[z][home] <= l.costOf(z)+dust
}

// costOf is the mean cost of a zone's requests.
func (l *layout) costOf(z int) float64 {
	if l.hinted[z] == 0 {
		return l.meanCost(l.cost[z])
	}
	sum := 0.0
	for _, g := range l.groups {
		if g.hints.has(z) {
			sum += l.cost[z][g.home] * float64(g.count)
		}
	}
	return sum / float64(l.hinted[z])
}

// pooled lets the endpoints of each zone in pool serve all zones in it, and every other endpoint its own zone. Zones
// without endpoints outside the pool are served by all, endpoints without a zone serve the pool. It gives nil for a pool
// without endpoints, and where an endpoint would have too many hints.
func (p *puzzle) pooled(pool zoneSet) *layout {
	var homes, homeless zoneSet
	for _, own := range p.own {
		if own >= 0 {
			homes = homes.with(own)
		}
	}
	for z, demand := range p.demand {
		if demand > 0 && !pool.has(z) && !homes.has(z) {
			homeless = homeless.with(z)
		}
	}
	if pool != 0 && homes&pool == 0 {
		return nil
	}
	l := newLayout(p)
	for h, own := range p.own {
		hints := homeless
		if own >= 0 {
			hints = hints.with(own)
		}
		if own < 0 || pool.has(own) {
			hints |= pool
		}
		if hints == 0 {
			hints = p.everything()
		}
		if hints.len() > maxHints {
			return nil
		}
		l.add(h, hints, p.ready[h])
	}
	return l
}

// packed places zone after zone, the greatest demand first: as many hints as the zone needs, each on the endpoint where
// it costs least among those with enough left under the limit, else on the least loaded one.
func (p *puzzle) packed(needs []int) *layout {
	slots := make([]slot, 0, p.total)
	for h, ready := range p.ready {
		for range ready {
			slots = append(slots, slot{home: h})
		}
	}
	order := make([]int, 0, len(needs))
	for z, need := range needs {
		if need > 0 {
			order = append(order, z)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.demand[b], p.demand[a]) })
	for _, z := range order {
		n := min(needs[z], p.total)
		rate := p.demand[z] / float64(n)
		for range n {
			if s := p.bestSlot(slots, z, rate); s != nil {
				s.hints = s.hints.with(z)
				s.load += rate
			}
		}
	}
	l := newLayout(p)
	for _, s := range slots {
		if s.hints != 0 {
			l.add(s.home, s.hints, 1)
		}
	}
	for _, s := range slots {
		if s.hints == 0 {
			p.spare(l, s.home, 1)
		}
	}
	return l
}

// slot is one endpoint while hints are packed.
type slot struct {
	home  int
	hints zoneSet
	load  float64
}

// bestSlot finds where to put a hint of zone z; nil: every endpoint has it or carries as many hints as it can.
func (p *puzzle) bestSlot(slots []slot, z int, rate float64) *slot {
	var fitting, other *slot
	for i := range slots {
		s := &slots[i]
		if s.hints.has(z) || s.hints.len() == maxHints {
			continue
		}
		if other == nil || s.load < other.load-dust {
			other = s
		}
		if s.load+rate > p.room()+dust {
			continue
		}
		if fitting == nil || p.cost[z][s.home] < p.cost[z][fitting.home] ||
			p.cost[z][s.home] == p.cost[z][fitting.home] && s.load < fitting.load-dust {
			fitting = s
		}
	}
	if fitting != nil {
		return fitting
	}
	return other
}
