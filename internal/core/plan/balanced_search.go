package plan

// move gives one endpoint of a home other hints.
type move struct {
	home     int
	from, to zoneSet
}

func (l *layout) do(m move) {
	l.add(m.home, m.from, -1)
	l.add(m.home, m.to, 1)
}

func (l *layout) undo(m move) { l.do(move{home: m.home, from: m.to, to: m.from}) }

// improve goes downhill, one best move after the other, or a pair of moves where none alone helps, until nothing helps
// or the budget of layouts to look at is spent.
func (l *layout) improve(budget int) score {
	now := l.score()
	var moves []move
	for budget > 0 {
		l.compact()
		moves = l.moves(moves[:0])
		best, steps := now, [2]move{}
		for _, m := range moves {
			l.do(m)
			if sc := l.score(); sc.less(best) {
				best, steps = sc, [2]move{m}
			}
			l.undo(m)
		}
		budget -= len(moves)
		if !best.less(now) {
			best, steps = l.bestPair(moves, now, &budget)
		}
		if !best.less(now) {
			break
		}
		for _, m := range steps {
			if m.from != m.to {
				l.do(m)
			}
		}
		now = best
	}
	l.compact()
	return now
}

// bestPair looks at two moves at once.
func (l *layout) bestPair(moves []move, now score, budget *int) (best score, steps [2]move) {
	best = now
	for i, a := range moves {
		if *budget <= 0 {
			break
		}
		l.do(a)
		for _, b := range moves[i:] {
			if !l.allows(b) {
				continue
			}
			l.do(b)
			if sc := l.score(); sc.less(best) {
				best, steps = sc, [2]move{a, b}
			}
			l.undo(b)
		}
		l.undo(a)
		*budget -= len(moves) - i
	}
	return best, steps
}

// allows tells whether a move that was listed before another one was made is still possible.
func (l *layout) allows(m move) bool {
	for lost := m.from &^ m.to; lost != 0; {
		var z int
		if z, lost = lost.pop(); !l.canLose(z) {
			return false
		}
	}
	for _, g := range l.groups {
		if g.home == m.home && g.hints == m.from {
			return g.count > 0
		}
	}
	return false
}

// moves appends what one endpoint of each group could do: carry one hint more, one less, or another one. None takes away
// the last hint of an endpoint, or of a zone with demand.
func (l *layout) moves(list []move) []move {
	for _, g := range l.groups {
		for z, demand := range l.demand {
			switch {
			case g.hints.has(z):
				if g.hints.len() > 1 && l.canLose(z) {
					list = append(list, move{g.home, g.hints, g.hints.without(z)})
				}
			case demand > 0 || l.own[g.home] == z:
				list = l.gains(list, g, z)
			}
		}
	}
	return list
}

// gains appends the moves that give an endpoint of a group the hint of a zone, besides its others or for one of them.
// A zone without demand is only worth a hint for lack of another.
func (l *layout) gains(list []move, g group, z int) []move {
	if g.hints.len() < maxHints && l.demand[z] > 0 {
		list = append(list, move{g.home, g.hints, g.hints.with(z)})
	}
	for rest := g.hints; rest != 0; {
		var old int
		if old, rest = rest.pop(); l.canLose(old) {
			list = append(list, move{g.home, g.hints, g.hints.without(old).with(z)})
		}
	}
	return list
}

// canLose tells whether a hint of the zone may go: what no hint names falls back to all endpoints.
func (l *layout) canLose(z int) bool { return l.demand[z] == 0 || l.hinted[z] > 1 }
