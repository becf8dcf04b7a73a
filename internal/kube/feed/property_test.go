package feed_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
	"github.com/weir-lb/weir/internal/kube/feed"
)

// random changes one object of a fixture, to one of few names so that they meet.
func (w *fixture) random(random *rand.Rand) {
	one := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	switch random.IntN(7) {
	case 0, 1:
		name := one("n1", "n2", "n3")
		if old := w.nodes["/"+name]; old != nil && random.IntN(3) == 0 {
			w.drop(old)
			return
		}
		w.set(node(name, one("a", "b", "")))
	case 2, 3:
		name := one("s1", "s2", "s3", "s4")
		if old := w.services["shop/"+name]; old != nil && random.IntN(3) == 0 {
			w.drop(old)
			return
		}
		s := service(name, api.LabelDistribution+"="+one("Auto", "Balanced", "PreferSameZone"))
		if random.IntN(4) == 0 {
			s.Spec.Type = "ExternalName"
		}
		w.set(s)
	default:
		name := one("e1", "e2", "e3", "e4", "e5")
		if old := w.slices["shop/"+name]; old != nil && random.IntN(3) == 0 {
			w.drop(old)
			return
		}
		var endpoints []string
		for range random.IntN(4) {
			endpoints = append(endpoints, fmt.Sprintf("10.1.0.%d%s%s", random.IntN(6), one("", "@n1", "@n2", "@n3", "@n9"), one("", "/a", "/b")))
		}
		w.set(slice(name, one("", "s1", "s2", "s3", "s4"), endpoints...))
	}
}

// twin makes the state that a feed should have from nothing.
func (w *fixture) twin() ([]topology.Node, []*topology.Service, []string) {
	var o convert.Objects
	o.Nodes = slices.Collect(maps.Values(w.nodes))
	o.Services = slices.Collect(maps.Values(w.services))
	o.Slices = slices.Collect(maps.Values(w.slices))
	nodes, services, problems := convert.Cluster(o, convert.Options{})
	s := topology.NewSnapshot(nodes, services, topology.Costs{})
	var texts []string
	for _, p := range problems {
		isOrphan := p.Object.Kind == "EndpointSlice" && p.Field != "" && p.Field[0] == 'm' // its labels name no Service
		if p.Object.Kind != "Node" && !isOrphan {
			texts = append(texts, p.String())
		}
	}
	slices.Sort(texts)
	return s.Nodes, s.Services, texts
}

func TestStatesAreThoseOfAClusterReadAnew(t *testing.T) {
	for seed := range uint64(12) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			w := start(t, feed.Options{})
			before := &feed.State{}
			for step := range 60 {
				for range 1 + random.IntN(3) {
					w.random(random)
				}
				now := w.state()
				w.compare(now)
				samePointers(t, before, now)
				if t.Failed() {
					t.Fatalf("with seed %d after step %d", seed, step)
				}
				before = now
			}
		})
	}
}

// compare checks a state against the twin.
func (w *fixture) compare(s *feed.State) {
	w.t.Helper()
	nodes, services, problems := w.twin()
	equal(w.t, "nodes", nodes, s.Snapshot.Nodes)
	equal(w.t, "services", services, s.Snapshot.Services)
	var texts []string
	known := make(map[string]bool)
	for _, r := range s.Records {
		known[r.Name.Name] = true
		for _, p := range r.Problems {
			texts = append(texts, p.String())
		}
		if r.Object != w.services["shop/"+r.Name.Name] {
			w.t.Errorf("%s has another Service than the cluster", r.Name)
		}
		for _, e := range r.Slices {
			if w.slices["shop/"+e.Name] != e || e.Labels[api.LabelServiceName] != r.Name.Name {
				w.t.Errorf("%s has the slice %s of another Service", r.Name, e.Name)
			}
		}
	}
	slices.Sort(texts)
	equal(w.t, "problems", problems, texts)
	for _, e := range w.slices {
		if owner := e.Labels[api.LabelServiceName]; owner != "" && !known[owner] {
			w.t.Errorf("the slice %s of the absent service %s is in no record", e.Name, owner)
		}
	}
	if !slices.IsSortedFunc(s.Records, func(a, b *feed.Record) int { return a.Name.Compare(b.Name) }) {
		w.t.Error("records are not sorted")
	}
}

// samePointers checks that what did not change is the same and not only equal.
func samePointers(t *testing.T, before, now *feed.State) {
	t.Helper()
	for _, r := range now.Records {
		old := before.Record(r.Name)
		if old == nil || old == r {
			continue
		}
		if cmp.Equal(old, r, sameAddr()) && old.Object == r.Object && slices.Equal(old.Slices, r.Slices) {
			t.Errorf("the record of %s was made anew without need", r.Name)
		}
		if old.Service != r.Service && cmp.Equal(old.Service, r.Service, sameAddr()) {
			t.Errorf("the service %s was made anew without need", r.Name)
		}
	}
}

func sameAddr() cmp.Option { return cmp.Comparer(func(a, b netip.Addr) bool { return a == b }) }

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), sameAddr()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
