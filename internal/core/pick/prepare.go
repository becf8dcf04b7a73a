package pick

import (
	"slices"

	"github.com/weir-lb/weir/internal/core/route"
)

// Prepared is a Config and the endpoints it is for, with what takes long to make: the tables of hashing algorithms. It is
// immutable; any number of pools may take it over, and no tick builds a table.
type Prepared struct {
	config  Config
	targets []Target // each address once, as it was named first
	make    maker
	tables  map[route.GroupKey]hashTable // of all in the group that are ready, in order
}

// maker makes the table of some targets, at least one. It is nil for algorithms that have none.
type maker func([]Target) hashTable

// Prepare makes what Apply takes over. It may take long for an algorithm with large tables, and needs no pool, so that it
// can be called on any goroutine.
func Prepare(c Config, targets []Target) *Prepared {
	if !c.Algorithm.hashes() {
		return prepare(c, targets, nil)
	}
	return prepare(c, targets, func(targets []Target) hashTable { return newHashTable(&c, targets) })
}

func prepare(c Config, targets []Target, make maker) *Prepared {
	x := &Prepared{config: c, targets: route.Distinct(targets), make: make, tables: map[route.GroupKey]hashTable{}}
	if make == nil {
		return x
	}
	for _, g := range route.Groups(x.targets, 0) {
		// Ejected endpoints are in the table, too, so that an ejection moves the keys of one endpoint and builds nothing.
		var ready []Target
		for _, i := range g.Ready {
			ready = append(ready, x.targets[i])
		}
		if len(ready) > 0 {
			x.tables[g.Key] = make(ready)
		}
	}
	return x
}

// hashed gives the picker of a hashing algorithm for a group, or a subset of it. An endpoint that is ready and not to be used,
// in a drained zone or beyond the subset, is not found: its keys go where they go in a pause, all others stay, and no table is
// built. It is nil without endpoints.
func (p *Pool) hashed(at int, subset []int) picker {
	g := &p.decision.Groups[at]
	endpoints := make([]*endpoint, len(g.Ready))
	found := false
	for k, i := range g.Ready {
		if !p.endpoints[i].drained && (subset == nil || slices.Contains(subset, i)) {
			endpoints[k], found = p.endpoints[i], true
		}
	}
	if !found {
		return nil
	}
	return p.prepared.tables[g.Key].over(endpoints)
}
