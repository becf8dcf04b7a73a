package kernel

import (
	"cmp"
	"slices"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/overflow"
)

// trialWeight is the part of its weight that an endpoint has whose pause is over: programs cannot count to one, and a quarter
// shows within a few connections whether it has recovered.
const trialWeight = 0.25

// weights gives the share of each endpoint of a decision. They sum to 1, or are all 0 when no endpoint is usable. The share of a
// group that has none goes to the first group that has, in the order of use.
func weights(d *balance.Decision) []float64 {
	all := make([]float64, len(d.Endpoints))
	lost := 1.0
	for _, r := range d.Routes {
		if r.Group >= 0 && r.Group < len(d.Groups) && share(d, r, all) {
			lost -= r.Share
		}
	}
	if lost <= 1e-9 {
		return all
	}
	for i := range d.Groups {
		if share(d, overflow.Route{Group: i, Share: lost}, all) {
			break
		}
	}
	return all
}

// share adds a route's share to the endpoints it names; false: none of them is usable.
func share(d *balance.Decision, r overflow.Route, all []float64) bool {
	g := &d.Groups[r.Group]
	members := r.Endpoints
	if members == nil {
		members = g.Members
	}
	parts := make(map[string]float64)
	for _, i := range members {
		if e := &d.Endpoints[i]; g.Parted && !e.Drained {
			parts[e.Affinity] += weightOf(e)
		}
	}
	own, sum := make([]float64, len(members)), 0.0
	for n, i := range members {
		e := &d.Endpoints[i]
		own[n] = usable(e, g.Panics)
		if g.Parted && own[n] > 0 {
			own[n] *= float64(e.AffinityWeight) / parts[e.Affinity]
		}
		sum += own[n]
	}
	if sum <= 0 {
		return false
	}
	for n, i := range members {
		all[i] += r.Share * own[n] / sum
	}
	return true
}

// usable is the weight that an endpoint has now; 0: it gets nothing.
func usable(e *balance.Endpoint, panics bool) float64 {
	switch {
	case e.Unready || e.Drained:
		return 0
	case e.Standing == balance.Serving || panics:
		return weightOf(e) * e.Ramp
	case e.Standing == balance.Due:
		return weightOf(e) * trialWeight
	default:
		return 0
	}
}

func weightOf(e *balance.Endpoint) float64 { return float64(max(1, e.Weight)) }

// apportion gives each weight its number of n slots: the largest remainders round up, and what has any weight has one slot at
// least, as long as there are as many slots.
func apportion(weights []float64, n int) []int {
	counts := make([]int, len(weights))
	sum, left := 0.0, n
	for _, w := range weights {
		sum += w
	}
	if sum <= 0 {
		return counts
	}
	order := make([]int, 0, len(weights))
	rest := make([]float64, len(weights))
	for i, w := range weights {
		if w <= 0 {
			continue
		}
		exact := w / sum * float64(n)
		counts[i] = min(max(1, int(exact)), left)
		rest[i] = exact - float64(counts[i])
		left -= counts[i]
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for _, i := range order {
		if left == 0 {
			break
		}
		counts[i]++
		left--
	}
	return counts
}

// The number of slots of a port: 16 for each endpoint let shares differ from what was decided by a few percent of an
// endpoint's, and 256 by half a percent of all.
const (
	slotsForEach = 16
	minSlots     = 256
	maxSlots     = 1 << 16
)

// slotsFor gives the number of slots for so many endpoints, a power of two.
func slotsFor(endpoints int) uint32 {
	n := uint32(minSlots)
	for n < maxSlots && n < uint32(min(endpoints, maxSlots)*slotsForEach) { //nolint:gosec // bounded.
		n *= 2
	}
	return n
}
