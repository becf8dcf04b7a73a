package plan

// keepFor is how much cheaper new hints have to be, as mean cost of a request, before those from before are given up:
// it spares writes to every node for differences that no bill shows. What it does to churn is in ADR-0005.
const keepFor = 0.01

// keep looks at what is there: endpoints keep their hints, new ones serve their own zone. It stays while the expected
// overload is at most Limits.Stop, or no worse than that of the new layout, and the cost is about the same; b.layout is
// then what is there. The answer has a set for each ready endpoint; nil: it goes.
func (b *balance) keep() []zoneSet {
	if !b.hinted {
		return nil
	}
	there := newLayout(b.puzzle)
	sets := make([]zoneSet, len(b.ready))
	for k, i := range b.ready {
		if sets[k] = b.t.set(b.prepared, b.before[i]); sets[k] == 0 || sets[k].len() > maxHints {
			home := b.t.home[k]
			if b.puzzle.own[home] < 0 {
				return nil
			}
			sets[k] = zoneSet(0).with(b.puzzle.own[home])
		}
		there.add(b.t.home[k], sets[k], 1)
	}
	for z, demand := range b.puzzle.demand {
		if demand > 0 && there.hinted[z] == 0 {
			return nil
		}
	}
	there.sort()
	sc := there.score()
	stop := (1 + b.Limits.Stop) / float64(b.puzzle.total)
	if sc.peak > max(stop, b.score.peak)+dust || sc.cost > b.score.cost+keepFor {
		return nil
	}
	b.layout, b.score = there, sc
	return sets
}

// assign gives the layout's hints to endpoints: first to those that carry them already, then to the others in order.
func (b *balance) assign() []zoneSet {
	sets := make([]zoneSet, len(b.ready))
	left := b.layout.clone()
	for k, i := range b.ready {
		if before := b.t.set(b.prepared, b.before[i]); before != 0 && left.take(b.t.home[k], before) {
			sets[k] = before
		}
	}
	for k := range b.ready {
		if sets[k] == 0 {
			sets[k] = left.takeAny(b.t.home[k])
		}
	}
	return sets
}

// take removes one endpoint with these hints, if there is one.
func (l *layout) take(home int, hints zoneSet) bool {
	for i := range l.groups {
		if g := &l.groups[i]; g.home == home && g.hints == hints && g.count > 0 {
			g.count--
			return true
		}
	}
	return false
}

// takeAny removes one endpoint of a home, which must have one, and gives its hints.
func (l *layout) takeAny(home int) zoneSet {
	for i := range l.groups {
		if g := &l.groups[i]; g.home == home && g.count > 0 {
			g.count--
			return g.hints
		}
	}
	panic("a layout has fewer endpoints than its puzzle")
}
