package pick

import (
	"slices"

	"github.com/weir-lb/weir/internal/core/route"
)

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

// hashed gives the picker of a hashing algorithm for a group, or a subset of it. Its table is the one that was prepared for
// all of the group that are ready. In place of an endpoint that is ready and not to be used, in a zone that is drained or
// beyond the subset, there is none: its keys go where they go in a pause, all others stay, and nothing is built. It is nil
// without endpoints.
func (p *Pool) hashed(group int, subset []int) picker {
	l := p.prepared.lookups[p.decision.Groups[group].Key]
	endpoints := make([]*endpoint, len(l.ready))
	found := false
	for at, i := range l.ready {
		if !p.endpoints[i].drained && (subset == nil || slices.Contains(subset, i)) {
			endpoints[at], found = p.endpoints[i], true
		}
	}
	if !found {
		return nil
	}
	return l.wheel.over(endpoints)
}
