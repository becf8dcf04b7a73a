package plan

import (
	"cmp"
	"slices"
)

// effort is how many layouts one descent may look at. Twice as many keep another 0.1 % of the requests in zone where four
// zones share, and nothing where three do.
const effort = 250

// fewZones is how many zones are searched together: the number of descents grows with its square, and the layouts to
// look at in each of their steps too. More zones are first cut into clusters.
const fewZones = 4

// solve finds a good layout: of the least excess over the limit, then of the least cost.
//
// Where one hint for each endpoint does (always from six endpoints for each zone on, at a limit of 20 %), the answer is
// exact. Otherwise zones have to share endpoints, and descents from several starts look for the best way.
func (p *puzzle) solve() *layout {
	// Endpoints without a zone belong to no cluster.
	if _, sum := p.needs(); sum <= p.total || len(p.demand) <= fewZones || slices.Contains(p.own, -1) {
		return p.search()
	}
	whole := newLayout(p)
	for _, zones := range p.clusters() {
		part, t := p.part(zones)
		for _, g := range part.search().groups {
			whole.add(t.homes[g.home], t.names(g.hints), g.count)
		}
	}
	return whole
}

// search finds a good layout for zones that are looked at together.
func (p *puzzle) search() *layout {
	needs, sum := p.needs()
	if sum <= p.total {
		return p.thrifty(p.singles(needs))
	}
	best, least := descend(p.starts())
	if best != nil && least.excess <= dust {
		return best
	}
	// Rare: all zones together keep to the limit whenever that is possible, unless there are too many for that.
	other, otherwise := descend([]*layout{p.pooled(p.everything()), p.packed(needs)})
	if best != nil && !otherwise.less(least) {
		return best
	}
	return other
}

// starts lists the layouts to descend from: every zone by itself, and, of a few zones, any two together. One that cannot
// be is nil.
func (p *puzzle) starts() []*layout {
	starts := []*layout{p.pooled(0)}
	if len(p.demand) > fewZones {
		return starts
	}
	for z := range p.demand {
		for y := range z {
			starts = append(starts, p.pooled(zoneSet(0).with(y).with(z)))
		}
	}
	return starts
}

// descend improves each layout that is not nil and gives the first of the best; nil when all are.
func descend(starts []*layout) (best *layout, least score) {
	for _, l := range starts {
		if l == nil {
			continue
		}
		if sc := l.improve(effort); best == nil || sc.less(least) {
			best, least = l, sc
		}
	}
	return best, least
}

// thrifty looks for a cheaper layout than one of single hints where crossings differ in cost: endpoints that are shared
// may spare a dear crossing. It takes none that keeps less traffic in zone.
func (p *puzzle) thrifty(singles *layout) *layout {
	now := singles.score()
	if len(p.demand) > fewZones || now.cost <= dust || p.oneCost() {
		return singles
	}
	best, least := singles, now
	for _, l := range append(p.starts(), singles.clone()) {
		if l == nil {
			continue
		}
		if sc := l.improve(effort); sc.less(least) && sc.inZone >= now.inZone-dust {
			best, least = l, sc
		}
	}
	return best
}

// oneCost tells whether all crossings cost the same.
func (p *puzzle) oneCost() bool {
	seen := 0.0
	for _, row := range p.cost {
		for _, cost := range row {
			if cost != 0 && seen != 0 && cost != seen {
				return false
			}
			seen = max(seen, cost)
		}
	}
	return true
}

// everything is the set of all zones.
func (p *puzzle) everything() zoneSet { return zoneSet(1)<<(len(p.demand)-1)<<1 - 1 }

// clusters cuts the zones into sets that cope by themselves, as small as they come: the zone that is worst off joins the
// others that help it most cheaply, until no set is above the limit.
func (p *puzzle) clusters() []zoneSet {
	sets := make([]zoneSet, len(p.demand))
	for z := range sets {
		sets[z] = zoneSet(0).with(z)
	}
	for {
		worst := slices.IndexFunc(sets, func(s zoneSet) bool { return p.lack(s) > dust })
		if worst < 0 {
			return sets
		}
		for i, s := range sets {
			if p.lack(s) > p.lack(sets[worst])+dust {
				worst = i
			}
		}
		needy := sets[worst]
		sets = slices.Delete(sets, worst, worst+1)
		if len(sets) == 0 {
			return []zoneSet{needy}
		}
		best := 0
		for i := range sets {
			if p.compareHelp(needy, sets[i], sets[best]) < 0 {
				best = i
			}
		}
		sets[best] |= needy
	}
}

// lack is how much the traffic of a set of zones exceeds what its endpoints may take; negative: what is left.
func (p *puzzle) lack(set zoneSet) float64 {
	lack := 0.0
	for z, demand := range p.demand {
		if set.has(z) {
			lack += demand
		}
	}
	for h, own := range p.own {
		if own >= 0 && set.has(own) {
			lack -= float64(p.ready[h]) * p.room()
		}
	}
	return lack
}

// compareHelp orders two sets by how well they help a needy one: those that can, the cheaper, the fewer zones, and the
// one that has more left.
func (p *puzzle) compareHelp(needy, a, b zoneSet) int {
	lackA, lackB := p.lack(needy|a), p.lack(needy|b)
	if canA, canB := lackA <= dust, lackB <= dust; canA != canB {
		if canA {
			return -1
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(p.crossing(needy, a), p.crossing(needy, b)),
		cmp.Compare(a.len(), b.len()),
		cmp.Compare(lackA, lackB),
	)
}

// crossing is the least cost between zones of two sets.
func (p *puzzle) crossing(from, to zoneSet) float64 {
	least := -1.0
	for h, own := range p.own {
		if own < 0 || !to.has(own) {
			continue
		}
		for z := range p.demand {
			if from.has(z) && (least < 0 || p.cost[z][h] < least) {
				least = p.cost[z][h]
			}
		}
	}
	return least
}

// excerpt is between a puzzle and a part of it.
type excerpt struct{ zones, homes []int }

// part is the puzzle of some zones and the endpoints in them.
func (p *puzzle) part(set zoneSet) (*puzzle, *excerpt) {
	t := &excerpt{}
	part := &puzzle{limit: p.room()}
	at := make([]int, len(p.demand))
	for z, demand := range p.demand {
		if at[z] = -1; set.has(z) {
			at[z] = len(t.zones)
			t.zones = append(t.zones, z)
			part.demand = append(part.demand, demand)
		}
	}
	for h, own := range p.own {
		if own < 0 || at[own] < 0 {
			continue
		}
		t.homes = append(t.homes, h)
		part.own = append(part.own, at[own])
		part.ready = append(part.ready, p.ready[h])
		part.total += p.ready[h]
	}
	for _, z := range t.zones {
		row := make([]float64, len(t.homes))
		for i, h := range t.homes {
			row[i] = p.cost[z][h]
		}
		part.cost = append(part.cost, row)
	}
	return part, t
}

// names gives a set of the part in the zones of the whole.
func (t *excerpt) names(set zoneSet) zoneSet {
	var names zoneSet
	for set != 0 {
		var z int
		z, set = set.pop()
		names = names.with(t.zones[z])
	}
	return names
}
