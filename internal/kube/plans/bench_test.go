package plans_test

import (
	"fmt"
	"testing"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/plans"
)

// large is a cluster of 10,000 services with 15 endpoints each, all hinted, and 5,000 nodes in three zones.
func large(b *testing.B, mode topology.Mode) (*cluster, *plans.Store) {
	b.Helper()
	c := newCluster()
	for i := range 5000 {
		c.nodes = append(c.nodes, topology.Node{Name: fmt.Sprintf("n%04d", i), Zone: zoneName(i % 3), CPU: 4000, Ready: true})
	}
	for i := range 10_000 {
		c.put(fmt.Sprintf("s%05d", i), mode, slice(i%200, 4+i%3, 6-i%2, 5))
	}
	store := plans.NewStore(newClock().now)
	store.Update(c.state(), nil)
	for _, d := range store.All() {
		c.write(d, 10)
	}
	return c, store
}

func BenchmarkUpdate(b *testing.B) {
	for _, mode := range []topology.Mode{topology.ModeAuto, topology.ModeBalanced} {
		c, store := large(b, mode)
		b.Run(fmt.Sprintf("%s/node-changed", mode), func(b *testing.B) {
			states := []*feed.State{nil, nil}
			for i := range states {
				c.nodes[0].Ready = i == 0
				states[i] = c.state()
			}
			store.Update(states[1], nil)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				store.Update(states[i%2], nil)
				i++
			}
		})
		b.Run(fmt.Sprintf("%s/service-changed", mode), func(b *testing.B) {
			states := []*feed.State{nil, nil}
			for i := range states {
				c.put("s00007", mode, slice(7, 5, 5, 5+i))
				states[i] = c.state()
			}
			store.Update(states[1], nil)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				if n := len(store.Update(states[i%2], nil)); n != 1 {
					b.Fatalf("%d services to look at, want 1", n)
				}
				i++
			}
		})
	}
}

func BenchmarkLookup(b *testing.B) {
	_, store := large(b, topology.ModeAuto)
	name := names("s04711")[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := store.Lookup(name); !ok {
			b.Fatal("not found")
		}
	}
}
