package pick

import "github.com/weir-lb/weir/internal/core/route"

// Prepared is a Config and the endpoints it is for, with what takes long to make: the wheels of hashing algorithms. It is
// immutable; any number of pools may take it over, and no tick builds a wheel.
type Prepared struct {
	config  Config
	targets []Target // each address once, as it was named first
	make    maker
	lookups map[route.GroupKey]lookup
}

// Prepare makes what Apply takes over. It may take long for an algorithm with large wheels, and needs no pool, so that it
// can be called on any goroutine.
func Prepare(c Config, targets []Target) *Prepared { return prepare(c, targets, c.wheels()) }

func prepare(c Config, targets []Target, make maker) *Prepared {
	x := &Prepared{config: c, targets: route.Distinct(targets), make: make}
	if make != nil {
		x.lookups = lookups(x.targets, make)
	}
	return x
}

// maker makes the wheel of some targets, at least one. It is nil for algorithms that have none.
type maker func([]Target) wheel

// wheels gives the maker of the algorithm's wheels.
func (c Config) wheels() maker {
	if !c.Algorithm.hashes() {
		return nil
	}
	return func(targets []Target) wheel { return newWheel(&c, targets) }
}

// lookup is the wheel of a group with all that may serve there.
type lookup struct {
	ready []int // indexes into Prepared.targets, rising
	wheel wheel
}

// lookups makes the wheel of each group. All that are ready are in it, whoever sits out, so that a pause moves the keys of
// one endpoint and builds nothing.
func lookups(targets []Target, make maker) map[route.GroupKey]lookup {
	all := map[route.GroupKey]lookup{}
	for i, t := range targets {
		if !t.Unready {
			l := all[t.Key()]
			l.ready = append(l.ready, i)
			all[t.Key()] = l
		}
	}
	for key, l := range all {
		l.wheel = make(at(targets, l.ready))
		all[key] = l
	}
	return all
}

// at gives the elements at those indexes.
func at[T any](all []T, indexes []int) []T {
	some := make([]T, 0, len(indexes))
	for _, i := range indexes {
		some = append(some, all[i])
	}
	return some
}

// hashed gives the picker of a hashing algorithm for a group's members, by index. Its wheel is the one that was prepared for
// all of the group that are ready. Who is ready and not wanted, in a zone that is drained or beyond those that the strategy
// names, is nobody there: his keys go where they go in a pause, all others stay, and nothing is built. It is nil without
// members.
func (p *Pool) hashed(g *group, members []int) picker {
	l := p.prepared.lookups[g.Key]
	if len(members) == 0 || l.wheel == nil {
		return nil
	}
	wanted := make(map[int]bool, len(members))
	for _, i := range members {
		wanted[i] = true
	}
	endpoints := make([]*endpoint, len(l.ready))
	for at, i := range l.ready {
		if wanted[i] {
			endpoints[at] = p.members[i].endpoint
		}
	}
	return l.wheel.over(endpoints)
}
