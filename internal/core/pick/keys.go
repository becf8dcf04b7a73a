package pick

// keyRange is a piece of the interval [0, 2^32) on which keys lie, from where the one before ends.
type keyRange struct {
	end   uint64
	group *group // nil: keys that lie here are shed
	route int    // of the group, in the view
}

// allocation is how much of the interval a group is to have. The group is nil for what is shed.
type allocation struct {
	group *group
	size  uint64
}

// rangesEach bounds how many ranges a group has on average. More only come about when shares move to and fro between
// several groups; then all is laid out anew, which moves keys once.
const rangesEach = 4

// apportion gives each group as much as is wanted, and moves no key that need not move: a group with too much gives the excess
// up, a group with too little takes of that. Home keeps what lies lowest and the others what lies highest, so that
// as a rule home is one range from 0, and what it gives up and gets back are the same keys. wanted[0] is
// home, and they sum to 2^32.
func apportion(old []keyRange, wanted []allocation) []keyRange {
	kept, lack := keep(old, wanted)
	l := layout{wanted: wanted, lack: lack}
	begin := uint64(0)
	for i, o := range old {
		free := o.end - begin - kept[i]
		if o.group == wanted[0].group {
			l.add(o.group, kept[i])
			l.fill(free)
		} else {
			l.fill(free)
			l.add(o.group, kept[i])
		}
		begin = o.end
	}
	l.fill(whole - begin)
	if len(l.ranges) > rangesEach*len(wanted) {
		return apportion(nil, wanted)
	}
	return l.ranges
}

// keep tells how much of each range its group keeps, and how much each allocation lacks then.
func keep(old []keyRange, wanted []allocation) (kept, lack []uint64) {
	kept, lack = make([]uint64, len(old)), make([]uint64, len(wanted))
	for n, c := range wanted {
		lack[n] = c.size
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
			kept[i] = min(lack[n], old[i].end-begin)
			lack[n] -= kept[i]
		}
	}
	return kept, lack
}

// layout is a new division of the interval on its way.
type layout struct {
	wanted []allocation
	lack   []uint64 // what each allocation still misses
	end    uint64
	ranges []keyRange
}

// add gives the next range to a group.
func (l *layout) add(g *group, size uint64) {
	if size == 0 {
		return
	}
	l.end += size
	if n := len(l.ranges); n > 0 && l.ranges[n-1].group == g {
		l.ranges[n-1].end = l.end
		return
	}
	l.ranges = append(l.ranges, keyRange{end: l.end, group: g})
}

// fill gives the next range to the groups that lack something, the local one first.
func (l *layout) fill(size uint64) {
	for i := range l.wanted {
		n := min(size, l.lack[i])
		l.add(l.wanted[i].group, n)
		l.lack[i] -= n
		size -= n
	}
}
