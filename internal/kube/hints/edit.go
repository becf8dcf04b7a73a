// Package hints turns a decision into the changes that make EndpointSlices say it.
//
// It is pure: an EndpointSlice and a decision in, the operations of a JSON patch out; none where the slice says it
// already. The controller and the webhook apply the same operations, and nothing but hints and weir's mark is touched.
package hints

import (
	"slices"
	"strconv"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
	"github.com/weir-lb/weir/internal/kube/plans"
)

// Op is one operation of a JSON patch (RFC 6902).
type Op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Edit gives what has to be done to a slice of a decided service, in the order of its endpoints, the mark last.
//
// An endpoint that is not ready keeps whatever hints it has while the service is hinted: no consumer reads them, and
// they are remembered for when it is ready again. A service that is not managed loses the hints of slices that carry
// weir's mark, and no others.
func Edit(s *discoveryv1.EndpointSlice, d *plans.Decision) []Op {
	_, marked := s.Annotations[api.AnnotationHints]
	if !d.Record.Managed && !marked {
		return nil
	}
	var ops []Op
	remain := false
	for i, e := range convert.Endpoints(s) {
		if p := d.Plan(e.Family()); p != nil && p.Hinted && !e.IsReady() {
			remain = remain || s.Endpoints[i].Hints != nil
			continue
		}
		want := d.Hints(e)
		remain = remain || !want.IsZero()
		if op, differs := edit(i, s.Endpoints[i].Hints, want); differs {
			ops = append(ops, op)
		}
	}
	want := topology.ModeUnset
	if remain && d.Record.Managed {
		want = d.Record.Service.Mode
	}
	return append(ops, mark(s, want)...)
}

// edit gives the operation that makes endpoint i, which has the given hints, carry those that are wanted.
func edit(i int, have *discoveryv1.EndpointHints, want topology.Hints) (Op, bool) {
	path := "/endpoints/" + strconv.Itoa(i) + "/hints"
	switch {
	case says(have, want):
		return Op{}, false
	case want.IsZero():
		return Op{Op: "remove", Path: path}, true
	default:
		return Op{Op: "add", Path: path, Value: spell(want)}, true // add replaces what is there
	}
}

// says tells whether hints as they stand are those that are wanted, in whatever order. Hints that are there and empty
// count as different from none: kube-proxy reads both alike, but the difference should not raise questions.
func says(have *discoveryv1.EndpointHints, want topology.Hints) bool {
	if have == nil {
		return want.IsZero()
	}
	if want.IsZero() {
		return false
	}
	zones := make([]topology.Zone, 0, len(have.ForZones))
	for _, z := range have.ForZones {
		zones = append(zones, topology.Zone(z.Name))
	}
	nodes := make([]string, 0, len(have.ForNodes))
	for _, n := range have.ForNodes {
		nodes = append(nodes, n.Name)
	}
	slices.Sort(zones)
	slices.Sort(nodes)
	return want.Equal(topology.Hints{Zones: zones, Nodes: nodes})
}

// spell writes hints as the API has them.
func spell(h topology.Hints) *discoveryv1.EndpointHints {
	spelt := new(discoveryv1.EndpointHints)
	for _, z := range h.Zones {
		spelt.ForZones = append(spelt.ForZones, discoveryv1.ForZone{Name: string(z)})
	}
	for _, n := range h.Nodes {
		spelt.ForNodes = append(spelt.ForNodes, discoveryv1.ForNode{Name: n})
	}
	return spelt
}

// mark gives the operations that make a slice carry the mark that is wanted; empty: none.
func mark(s *discoveryv1.EndpointSlice, want topology.Mode) []Op {
	path := "/metadata/annotations/" + strings.ReplaceAll(api.AnnotationHints, "/", "~1")
	have, marked := s.Annotations[api.AnnotationHints]
	switch {
	case want == topology.ModeUnset && marked:
		return []Op{{Op: "remove", Path: path}}
	case want == topology.ModeUnset || have == string(want):
		return nil
	case len(s.Annotations) == 0: // an empty map is left out of the JSON that the patch is applied to
		return []Op{{Op: "add", Path: "/metadata/annotations", Value: map[string]string{api.AnnotationHints: string(want)}}}
	default:
		return []Op{{Op: "add", Path: path, Value: string(want)}}
	}
}
