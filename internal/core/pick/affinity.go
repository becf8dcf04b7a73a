package pick

import (
	"slices"
	"strings"
)

// affinity divides requests among the parts of a group by their weights, and leaves the choice within a part to the
// algorithm. A part loses its share with its endpoints: effective weight = weight × min(1, 1.4 × usable/all), as it was
// when the picker was made.
//
// Source: Envoy's locality weights. Departure: a part is drawn at random instead of by a schedule, so that parts share
// no counter.
type affinity struct {
	index weightedIndex // by effective weight
	parts []picker
}

// overprovisioning is how many times its usable endpoints a part is trusted to carry: Envoy's default.
const overprovisioning = 1.4

// newAffinity makes the picker for endpoints some of which have a part's weight, whether they serve or not; one is ready
// at least. Those that have no weight get no requests, unless no other can serve.
func newAffinity(c *Config, endpoints []*endpoint, counter *counter) picker {
	order := slices.Clone(endpoints)
	slices.SortStableFunc(order, func(a, b *endpoint) int { return strings.Compare(a.target.Affinity, b.target.Affinity) })
	p := &affinity{}
	var weights []float64
	for rest := order; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].target.Affinity == rest[0].target.Affinity {
			n++
		}
		part := rest[:n:n]
		rest = rest[n:]
		usable := usable(part)
		if part[0].target.AffinityWeight == 0 || len(usable) == 0 {
			continue
		}
		health := min(1, overprovisioning*float64(len(usable))/float64(n))
		weights = append(weights, float64(part[0].target.AffinityWeight)*health)
		p.parts = append(p.parts, newPlain(c, usable, counter.branch()))
	}
	switch len(p.parts) {
	case 0:
		return newPlain(c, slices.DeleteFunc(order, func(e *endpoint) bool { return e.target.Unready }), counter)
	case 1:
		return p.parts[0]
	default:
		p.index = sharedIndex(weights)
		return p
	}
}

// usable gives the endpoints that can be picked.
func usable(endpoints []*endpoint) []*endpoint {
	return slices.DeleteFunc(slices.Clone(endpoints), func(e *endpoint) bool {
		return e.target.Unready || e.standing.Load() != serving
	})
}

// branch makes a counter for a part, which goes on from another place each time that the parts are made again.
func (t *counter) branch() *counter {
	b := new(counter)
	b.n.Store(scatter(t.n.Add(golden)))
	return b
}

// pick takes the part and the endpoint from numbers of their own: random is already used for the choice of the group.
func (p *affinity) pick(random, key uint64) *endpoint {
	number := mix(random + golden)
	return p.parts[p.index.at(upper(number))].pick(mix(number+golden), key)
}
