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

// singles gives every endpoint one hint, so that each zone has at least what it needs, as cheaply as possible. The needs
// must not be more than there are endpoints.
//
// With one cost for all crossings no layout within the limit is cheaper: a zone that needs n endpoints and has k keeps
// k/n of its traffic, and no hint can keep more.
func (p *puzzle) singles(needs []int) *layout {
	t := transportation{
		supply: make([]float64, len(p.demand)),
		room:   make([]float64, len(p.ready)),
		cost:   make([][]float64, len(p.demand)),
	}
	costs := make([]float64, len(p.demand)*len(p.ready))
	for z, need := range needs {
		t.supply[z] = float64(need)
		t.cost[z] = costs[z*len(p.ready) : (z+1)*len(p.ready)]
		for h := range p.ready {
			t.cost[z][h] = p.demand[z] / float64(max(need, 1)) * p.cost[z][h]
		}
	}
	for h, ready := range p.ready {
		t.room[h] = float64(ready)
	}
	flow := t.solve()
	l := newLayout(p)
	spare := slices.Clone(p.ready)
	for z := range flow {
		for h, endpoints := range flow[z] {
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

// spare places endpoints that nobody needs where they add least to the cost, mostly at home, and among such places where
// they help most.
func (p *puzzle) spare(l *layout, home, count int) {
	if own := p.own[home]; own >= 0 && !l.freeToHelp(home) {
		l.add(home, zoneSet(0).with(own), count)
		return
	}
	for range count {
		best, least, most := 0, math.Inf(1), 0.0
		for z, demand := range p.demand {
			if demand == 0 && p.own[home] != z {
				continue
			}
			rate := demand / float64(l.hinted[z]+1)
			more := rate * (p.cost[z][home] - l.costOf(z))
			if more < least-dust || more < least+dust && rate > most+dust {
				best, least, most = z, more, rate
			}
		}
		l.add(home, zoneSet(0).with(best), 1)
	}
}

// freeToHelp tells whether some zone other than its own would pay no more with an endpoint of this home than without.
func (l *layout) freeToHelp(home int) bool {
	for z, demand := range l.demand {
		if demand > 0 && z != l.own[home] && l.cost[z][home] <= l.costOf(z)+dust {
			return true
		}
	}
	return false
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
