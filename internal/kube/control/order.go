package control

import (
	"fmt"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-lb/weir/internal/kube/hints"
)

// edit is what has to be done to one EndpointSlice.
type edit struct {
	slice *discoveryv1.EndpointSlice
	ops   []hints.Op
}

// phase is when an edit of a service is written. A phase begins when the one before has succeeded whole.
//
// A consumer follows hints only while every ready endpoint has one that it understands; until then all zones use all
// endpoints, which costs money and latency but is never wrong. So the edit that ends this, or brings it about, is the
// moment at which all consumers change over, and the rest is best written while they do not follow the hints. Between two hinted states a
// zone must not be left with fewer endpoints than it has in either, so endpoints are added before others are taken.
type phase int

const (
	opens   phase = iota // leaves an endpoint without hints: from here on no consumer follows the service's hints
	widens               // gives zones (or nodes) more endpoints
	moves                // gives some and takes others, or changes nothing that a consumer follows
	narrows              // takes endpoints from zones
	closes               // gives an endpoint its first hints: after the last of these all consumers follow them
	phaseCount
)

// inOrder sorts edits by phase. Within a phase the order is the given one.
func inOrder(edits []edit) [phaseCount][]edit {
	var ordered [phaseCount][]edit
	for _, e := range edits {
		p := e.phase()
		ordered[p] = append(ordered[p], e)
	}
	return ordered
}

// phase finds the phase of an edit. Zones and nodes count alike: both are followed by the same rule.
func (e *edit) phase() phase {
	var losesAll, gainsFirst, adds, takes bool
	for _, op := range e.ops {
		var i int
		if _, err := fmt.Sscanf(op.Path, "/endpoints/%d/hints", &i); err != nil || i >= len(e.slice.Endpoints) {
			continue // weir's mark
		}
		have := names(e.slice.Endpoints[i].Hints)
		wanted, _ := op.Value.(*discoveryv1.EndpointHints) // nil for a removal
		want := names(wanted)
		losesAll = losesAll || len(have) > 0 && len(want) == 0
		gainsFirst = gainsFirst || len(have) == 0 && len(want) > 0
		adds = adds || lacks(have, want)
		takes = takes || lacks(want, have)
	}
	switch {
	case losesAll && gainsFirst: // unhinted before and after: no consumer follows them
		return moves
	case losesAll:
		return opens
	case gainsFirst:
		return closes
	case adds == takes:
		return moves
	case adds:
		return widens
	default:
		return narrows
	}
}

// names lists what hints name.
func names(h *discoveryv1.EndpointHints) []string {
	if h == nil {
		return nil
	}
	list := make([]string, 0, len(h.ForZones)+len(h.ForNodes))
	for _, z := range h.ForZones {
		list = append(list, "zone "+z.Name)
	}
	for _, n := range h.ForNodes {
		list = append(list, "node "+n.Name)
	}
	return list
}

// lacks tells whether some of the wanted names are not in have.
func lacks(have, want []string) bool {
	return slices.ContainsFunc(want, func(name string) bool { return !slices.Contains(have, name) })
}
