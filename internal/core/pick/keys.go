package pick

// stretch is a piece of the interval [0, 2^32) on which keys lie, from where the one before ends.
type stretch struct {
	end   uint64
	group *group // nil: keys that lie here are shed
	route int    // of the group, in the view
}

// claim is how much of the interval a group is to have. The group is nil for what is shed.
type claim struct {
	group *group
	size  uint64
}

// stretchesEach bounds how many stretches a group has on average. More only come about when shares move to and fro between
// several groups; then all is laid out anew, which moves keys once.
const stretchesEach = 4

// apportion gives each group as much as it claims, and moves no key that need not move: who has too much gives the excess
// up, who has too little takes of that. Home keeps what lies lowest and the others what lies highest, so that as a rule
// home is one stretch from 0, and what it gives up and gets back are the same keys. claims[0] is home, and they sum to 2^32.
func apportion(old []stretch, claims []claim) []stretch {
	kept := keep(old, claims)
	lack := make([]uint64, len(claims))
	index := make(map[*group]int, len(claims))
	for i, c := range claims {
		index[c.group], lack[i] = i, c.size
	}
	for i, k := range kept {
		if k > 0 {
			lack[index[old[i].group]] -= k
		}
	}
	l := layout{claims: claims, lack: lack}
	begin := uint64(0)
	for i, o := range old {
		free := o.end - begin - kept[i]
		if o.group == claims[0].group {
			l.add(o.group, kept[i])
			l.fill(free)
		} else {
			l.fill(free)
			l.add(o.group, kept[i])
		}
		begin = o.end
	}
	l.fill(whole - begin)
	if len(l.stretches) > stretchesEach*len(claims) {
		return apportion(nil, claims)
	}
	return l.stretches
}

// keep tells how much of each stretch its group keeps.
func keep(old []stretch, claims []claim) []uint64 {
	kept := make([]uint64, len(old))
	for n, c := range claims {
		left := c.size
		for i := range old {
			if n > 0 {
				i = len(old) - 1 - i
			}
			if old[i].group != c.group {
				continue
			}
			begin := uint64(0)
			if i > 0 {
				begin = old[i-1].end
			}
			kept[i] = min(left, old[i].end-begin)
			left -= kept[i]
		}
	}
	return kept
}

// layout is a new division of the interval on its way.
type layout struct {
	claims    []claim
	lack      []uint64 // what each claim still misses
	end       uint64
	stretches []stretch
}

// add gives the next stretch to a group.
func (l *layout) add(g *group, size uint64) {
	if size == 0 {
		return
	}
	l.end += size
	if n := len(l.stretches); n > 0 && l.stretches[n-1].group == g {
		l.stretches[n-1].end = l.end
		return
	}
	l.stretches = append(l.stretches, stretch{end: l.end, group: g})
}

// fill gives the next stretch to those who miss something, home first.
func (l *layout) fill(size uint64) {
	for i := range l.claims {
		n := min(size, l.lack[i])
		l.add(l.claims[i].group, n)
		l.lack[i] -= n
		size -= n
	}
}
