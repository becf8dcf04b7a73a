package pick

import (
	"cmp"
	"slices"
	"strings"
)

// hashTable says which endpoint each key belongs to. It knows endpoints by their index only, so that it can be made ahead of
// them, and serves any endpoints of the same keys and weights in the same order. It is immutable.
type hashTable interface {
	// over makes the picker for endpoints, which are those that the table was made for, in that order; nil in place of one
	// makes the picker give nil for its keys, and never find it for others.
	over(endpoints []*endpoint) picker
}

// newHashTable makes the table of a hashing algorithm for targets, of which there is at least one. It may take long: 10 ns for
// each entry of a ring, as much for each probe of a table.
func newHashTable(c *Config, targets []Target) hashTable {
	if c.Algorithm == Maglev {
		return newMaglevTable(c, weightedKeys(targets))
	}
	return newHashRing(c, weightedKeys(targets))
}

// weightedKey is a target's part of a hash table or ring.
type weightedKey struct {
	key    string
	weight float64 // all of them add up to 1
	index  uint32  // among the targets
}

// weightedKeys gives the parts of the targets, by key, so that the order of targets changes nothing. If some targets have a
// part's weight (Target.AffinityWeight), each part has its share of the table, whichever of its endpoints serve: a key stays where it
// is while an endpoint is ejected. Endpoints without a weight are not in the table then.
//
// Source: Envoy's locality weights with consistent hashing. Envoy goes through the endpoints by locality for a ring, gRPC
// through all of them by key; so do we, for rings and tables.
func weightedKeys(targets []Target) []weightedKey {
	type part struct {
		weight float64
		sum    uint64 // of the weights in it
	}
	parts, total := make(map[string]part), uint64(0)
	split := slices.ContainsFunc(targets, func(t Target) bool { return t.AffinityWeight > 0 })
	name := func(t *Target) string {
		if split {
			return t.Affinity
		}
		return "" // one part, with all the weight
	}
	for i := range targets {
		t := &targets[i]
		p, known := parts[name(t)]
		if !known && split {
			p.weight = float64(t.AffinityWeight)
			total += uint64(t.AffinityWeight)
		}
		p.sum += weightOf(t)
		parts[name(t)] = p
	}
	list := make([]weightedKey, 0, len(targets))
	for i := range targets {
		t := &targets[i]
		p, share := parts[name(t)], 1.0
		if split {
			share = p.weight / float64(total)
		}
		if share == 0 {
			continue
		}
		s := weightedKey{key: t.HashKey, index: uint32(i)} //nolint:gosec // endpoints of one service.
		if s.key == "" {
			s.key = t.Addr.String()
		}
		s.weight = float64(weightOf(t)) * share / float64(p.sum)
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b weightedKey) int {
		return cmp.Or(strings.Compare(a.key, b.key), targets[a.index].Addr.Compare(targets[b.index].Addr))
	})
	return list
}

// around gives the first acceptable endpoint of a circle, from a place that depends on the key alone.
func around(endpoints []*endpoint, q *query) *endpoint {
	n := uint64(len(endpoints))
	start := below(upper(q.key), n)
	for i := range n {
		if e := endpoints[(start+i)%n]; q.accepts(e) {
			return e
		}
	}
	return nil
}
