package hints_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/hints"
	"github.com/weir-lb/weir/internal/kube/plans"
)

// decide plans a service in the given mode over slices; without a mode it is not managed. There is one equal node in
// each of three zones.
func decide(mode topology.Mode, list ...*discoveryv1.EndpointSlice) *plans.Decision {
	object := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	if mode != topology.ModeUnset {
		object.Labels = map[string]string{api.LabelDistribution: string(mode)}
	}
	r := &feed.Record{
		Name: topology.ServiceName{Namespace: "shop", Name: "web"}, Object: object, Slices: list,
		Managed: mode != topology.ModeUnset,
	}
	r.Service, _ = convert.Service(object, convert.Options{})
	nodes := []topology.Node{
		{Name: "node-a", Zone: "zone-a", CPU: 4000, Ready: true},
		{Name: "node-b", Zone: "zone-b", CPU: 4000, Ready: true},
		{Name: "node-c", Zone: "zone-c", CPU: 4000, Ready: true},
	}
	r.Service.Endpoints, _ = convert.Slices(list, convert.ZonesOf(nodes))
	b := plans.NewStore(func() time.Time { return time.Time{} })
	b.Update(&feed.State{
		Snapshot: topology.NewSnapshot(nodes, []*topology.Service{r.Service}, topology.Costs{}),
		Records:  []*feed.Record{r},
	}, nil)
	d, _ := b.Lookup(r.Name)
	return d
}

// endpoint makes a ready endpoint on the node of zone-a, zone-b or zone-c.
func endpoint(n int, zone string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses: []string{fmt.Sprintf("10.0.0.%d", n)}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		Zone: new("zone-" + zone), NodeName: new("node-" + zone),
	}
}

func slice(endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{api.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(80))}},
		Endpoints:   endpoints,
	}
}

// hint puts hints on an endpoint: zones, and nodes after a dash.
func hint(e discoveryv1.Endpoint, zones ...string) discoveryv1.Endpoint {
	e.Hints = new(discoveryv1.EndpointHints)
	for _, z := range zones {
		e.Hints.ForZones = append(e.Hints.ForZones, discoveryv1.ForZone{Name: z})
	}
	return e
}

func unready(e discoveryv1.Endpoint) discoveryv1.Endpoint {
	e.Conditions.Ready = new(false)
	return e
}

// apply gives the slice as the API server would hold it after the operations.
func apply(t *testing.T, s *discoveryv1.EndpointSlice, ops []hints.Op) *discoveryv1.EndpointSlice {
	t.Helper()
	object, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	result := new(discoveryv1.EndpointSlice)
	if err := json.Unmarshal(patched(t, object, ops), result); err != nil {
		t.Fatal(err)
	}
	return result
}

func patched(t *testing.T, object []byte, ops []hints.Op) []byte {
	t.Helper()
	if len(ops) == 0 {
		return object
	}
	raw, err := json.Marshal(ops)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		t.Fatal(err)
	}
	object, err = patch.Apply(object)
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return object
}

func text(t *testing.T, ops []hints.Op) []string {
	t.Helper()
	var lines []string
	for _, op := range ops {
		raw, err := json.Marshal(op)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(raw))
	}
	return lines
}

func TestEdit(t *testing.T) {
	const annotation = "/metadata/annotations/weir.dev~1hints"
	annotated := func(s *discoveryv1.EndpointSlice, annotations map[string]string) *discoveryv1.EndpointSlice {
		s.Annotations = annotations
		return s
	}
	marked := func(s *discoveryv1.EndpointSlice, mode string) *discoveryv1.EndpointSlice {
		return annotated(s, map[string]string{api.AnnotationHints: mode})
	}
	own := []string{
		`{"op":"add","path":"/endpoints/0/hints","value":{"forZones":[{"name":"zone-a"}]}}`,
		`{"op":"add","path":"/endpoints/1/hints","value":{"forZones":[{"name":"zone-b"}]}}`,
	}
	first := `{"op":"add","path":"/metadata/annotations","value":{"weir.dev/hints":"PreferSameZone"}}`
	cases := map[string]struct {
		mode topology.Mode
		s    *discoveryv1.EndpointSlice
		want []string
	}{
		"no hints yet": {
			topology.ModePreferSameZone, slice(endpoint(1, "a"), endpoint(2, "b")), append(slices.Clone(own), first),
		},
		"annotations that are empty": {
			topology.ModePreferSameZone,
			annotated(slice(endpoint(1, "a"), endpoint(2, "b")), map[string]string{}), append(slices.Clone(own), first),
		},
		"annotations of others": {
			topology.ModePreferSameZone,
			annotated(slice(endpoint(1, "a"), endpoint(2, "b")), map[string]string{"a": "b"}),
			append(slices.Clone(own), `{"op":"add","path":"`+annotation+`","value":"PreferSameZone"}`),
		},
		"all said": {
			topology.ModePreferSameZone, marked(slice(hint(endpoint(1, "a"), "zone-a")), "PreferSameZone"), nil,
		},
		"the mark of another mode": {
			topology.ModePreferSameZone, marked(slice(hint(endpoint(1, "a"), "zone-a")), "Auto"),
			[]string{`{"op":"add","path":"` + annotation + `","value":"PreferSameZone"}`},
		},
		"node hints": {
			topology.ModePreferSameNode, slice(endpoint(1, "a")),
			[]string{
				`{"op":"add","path":"/endpoints/0/hints","value":{"forZones":[{"name":"zone-a"}],"forNodes":[{"name":"node-a"}]}}`,
				`{"op":"add","path":"/metadata/annotations","value":{"weir.dev/hints":"PreferSameNode"}}`,
			},
		},
		"wrong hints": {
			topology.ModePreferSameZone,
			marked(slice(hint(endpoint(1, "a"), "zone-b"), hint(endpoint(2, "b"), "zone-b", "zone-a")), "PreferSameZone"), own,
		},
		"empty hints are taken off": {
			topology.ModeDisabled, slice(hint(endpoint(1, "a"))), []string{`{"op":"remove","path":"/endpoints/0/hints"}`},
		},
		"an unready endpoint keeps its hints": {
			topology.ModePreferSameZone,
			marked(slice(hint(endpoint(1, "a"), "zone-a"), unready(hint(endpoint(2, "b"), "zone-c", "zone-a")), unready(endpoint(3, "c"))), "PreferSameZone"),
			nil,
		},
		"an unready endpoint keeps even hints that are none": {
			topology.ModePreferSameZone,
			marked(slice(hint(endpoint(1, "a"), "zone-a"), unready(hint(endpoint(2, "b"))), unready(hint(endpoint(2, "b"), "zone-c", "zone-c"))), "PreferSameZone"),
			nil,
		},
		"an unready endpoint loses its hints with the others": {
			topology.ModeDisabled, marked(slice(hint(endpoint(1, "a"), "zone-a"), unready(hint(endpoint(2, "b"), "zone-c"))), "Auto"),
			[]string{
				`{"op":"remove","path":"/endpoints/0/hints"}`, `{"op":"remove","path":"/endpoints/1/hints"}`,
				`{"op":"remove","path":"` + annotation + `"}`,
			},
		},
		"not managed and ours": {
			topology.ModeUnset, marked(slice(hint(endpoint(1, "a"), "zone-a"), endpoint(2, "b")), "Auto"),
			[]string{`{"op":"remove","path":"/endpoints/0/hints"}`, `{"op":"remove","path":"` + annotation + `"}`},
		},
		"not managed and not ours": {topology.ModeUnset, slice(hint(endpoint(1, "a"), "zone-a")), nil},
		"nothing in it":            {topology.ModePreferSameZone, marked(slice(), "Auto"), []string{`{"op":"remove","path":"` + annotation + `"}`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := decide(c.mode, c.s)
			ops := hints.Edit(c.s, d)
			if diff := cmp.Diff(c.want, text(t, ops)); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
			if again := hints.Edit(apply(t, c.s, ops), d); len(again) > 0 {
				t.Errorf("edited again: %v", text(t, again))
			}
		})
	}
}

// random makes any slice that the API server may hold, of few addresses and zones.
func random(r *rand.Rand) *discoveryv1.EndpointSlice {
	one := func(names ...string) string { return names[r.IntN(len(names))] }
	maybe := func(s string) *string {
		if r.IntN(4) == 0 {
			return nil
		}
		return &s
	}
	s := slice()
	if r.IntN(2) == 0 {
		s.Annotations = map[string]string{"other.example/key": "kept"}
	}
	if r.IntN(2) == 0 {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, api.AnnotationHints, one("Auto", "Balanced", "PreferSameZone", ""))
	}
	for range r.IntN(12) {
		zone := one("a", "b", "c")
		e := endpoint(1+r.IntN(20), zone)
		e.Zone, e.NodeName = maybe("zone-"+zone), maybe("node-"+zone)
		e.Conditions = discoveryv1.EndpointConditions{Ready: []*bool{nil, new(true), new(false)}[r.IntN(3)], Terminating: new(r.IntN(3) == 0)}
		if r.IntN(2) == 0 {
			for range r.IntN(4) {
				e = hint(e, one("zone-c", "zone-b", "zone-a", "elsewhere", ""), one("zone-a", "zone-z"))
			}
			if r.IntN(3) == 0 {
				e = hint(e)
				e.Hints.ForNodes = []discoveryv1.ForNode{{Name: one("node-b", "node-a")}, {Name: "node-a"}}
			}
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

// bare gives a slice without hints and mark.
func bare(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	s = s.DeepCopy()
	for i := range s.Endpoints {
		s.Endpoints[i].Hints = nil
	}
	delete(s.Annotations, api.AnnotationHints)
	if len(s.Annotations) == 0 {
		s.Annotations = nil
	}
	return s
}

func TestEditProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	modes := append(topology.Modes(), topology.ModeUnset)
	for range 3000 {
		mode := modes[r.IntN(len(modes))]
		seen, now := random(r), random(r) // what was planned, and what is there by now
		if r.IntN(2) == 0 {
			now = seen
		}
		d := decide(mode, seen)
		ops := hints.Edit(now, d)
		after := apply(t, now, ops)
		if again := hints.Edit(after, d); len(again) > 0 {
			t.Fatalf("%s: edited again by %v\nafter %v", mode, text(t, again), text(t, ops))
		}
		if diff := cmp.Diff(bare(now), bare(after)); diff != "" {
			t.Fatalf("%s: changed more than hints and the mark (-before +after):\n%s", mode, diff)
		}
		check(t, d, now, after)
	}
}

// check wants of an edited slice what the mark promises, and on each endpoint what was decided.
func check(t *testing.T, d *plans.Decision, before, after *discoveryv1.EndpointSlice) {
	t.Helper()
	_, wasMarked := before.Annotations[api.AnnotationHints]
	mark, isMarked := after.Annotations[api.AnnotationHints]
	if !d.Record.Managed {
		if isMarked {
			t.Fatal("marked, but not managed")
		}
		for i, e := range after.Endpoints {
			if had := before.Endpoints[i].Hints; wasMarked && e.Hints != nil || !wasMarked && !cmp.Equal(had, e.Hints) {
				t.Fatalf("not managed, marked %v: hints %v became %v", wasMarked, had, e.Hints)
			}
		}
		return
	}
	hinted := false
	for i, e := range convert.Endpoints(after) {
		want := d.Hints(e)
		if p := d.Plan(topology.IPv4); !e.IsReady() && p != nil && p.Hinted {
			if !cmp.Equal(before.Endpoints[i].Hints, after.Endpoints[i].Hints) {
				t.Fatalf("unready endpoint %d was touched", i)
			}
			hinted = hinted || after.Endpoints[i].Hints != nil
			continue
		}
		if got := sorted(e.Hints); !got.Equal(want) {
			t.Fatalf("endpoint %d has hints %v, want %v", i, got, want)
		}
		hinted = hinted || !want.IsZero()
	}
	if isMarked && mark != string(d.Record.Service.Mode) || isMarked != hinted {
		t.Fatalf("mark %q (there: %v), want one for %s: %v", mark, isMarked, d.Record.Service.Mode, hinted)
	}
}

func sorted(h topology.Hints) topology.Hints {
	slices.Sort(h.Zones)
	slices.Sort(h.Nodes)
	return h
}

// FuzzEdit feeds whatever JSON gives a slice: the operations must apply to that very JSON, and nothing is left to do
// then.
func FuzzEdit(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 20 {
		raw, err := json.Marshal(random(r))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, uint8(i))
	}
	for _, raw := range []string{
		`{"metadata":{"annotations":{}},"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"],"hints":null,"zone":"zone-a"}]}`,
		`{"metadata":{"annotations":null},"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"],"hints":{},"zone":"zone-a"}]}`,
		`{"metadata":{},"addressType":"FQDN","endpoints":[{"addresses":["a.example"]}]}`,
		`{"metadata":{},"addressType":"IPv6","endpoints":[{"addresses":["::ffff:10.0.0.1"]},{"addresses":[]},{}]}`,
	} {
		f.Add([]byte(raw), uint8(3))
	}
	modes := append(topology.Modes(), topology.ModeUnset)
	f.Fuzz(func(t *testing.T, raw []byte, which uint8) {
		s := new(discoveryv1.EndpointSlice)
		if json.Unmarshal(raw, s) != nil {
			return // no slice
		}
		// What the API server holds has been through its types.
		canonical, err := json.Marshal(s)
		if err != nil {
			return // no slice that could be written
		}
		d := decide(modes[int(which)%len(modes)], s)
		after := new(discoveryv1.EndpointSlice)
		if err := json.Unmarshal(patched(t, canonical, hints.Edit(s, d)), after); err != nil {
			t.Fatal(err)
		}
		if again := hints.Edit(after, d); len(again) > 0 {
			t.Fatalf("edited again: %v", text(t, again))
		}
	})
}
