package plans_test

import (
	"fmt"
	"testing"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/plans"
)

// large is a cluster of 10,000 services with 15 endpoints each, all hinted, and 5,000 nodes in three zones.
func large(b *testing.B, mode topology.Mode) (*cluster, *plans.Book) {
	b.Helper()
	c := newCluster()
	for i := range 5000 {
		c.nodes = append(c.nodes, topology.Node{Name: fmt.Sprintf("n%04d", i), Zone: zoneName(i % 3), CPU: 4000, Ready: true})
	}
	for i := range 10_000 {
		c.put(fmt.Sprintf("s%05d", i), mode, slice(i%200, 4+i%3, 6-i%2, 5))
	}
	book := plans.NewBook(newClock().now)
	book.Update(c.state())
	for _, d := range book.All() {
		c.write(d, 10)
	}
	return c, book
}

func BenchmarkUpdate(b *testing.B) {
	for _, mode := range []topology.Mode{topology.ModeAuto, topology.ModeBalanced} {
		c, book := large(b, mode)
		b.Run(fmt.Sprintf("%s/node-changed", mode), func(b *testing.B) {
			states := []*feed.State{nil, nil}
			for i := range states {
				c.nodes[0].Ready = i == 0
				states[i] = c.state()
			}
			book.Update(states[1])
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				book.Update(states[i%2])
				i++
			}
		})
		b.Run(fmt.Sprintf("%s/service-changed", mode), func(b *testing.B) {
			states := []*feed.State{nil, nil}
			for i := range states {
				c.put("s00007", mode, slice(7, 5, 5, 5+i))
				states[i] = c.state()
			}
			book.Update(states[1])
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				if n := len(book.Update(states[i%2])); n != 1 {
					b.Fatalf("%d services to look at, want 1", n)
				}
				i++
			}
		})
	}
}

func BenchmarkLookup(b *testing.B) {
	_, book := large(b, topology.ModeAuto)
	name := names("s04711")[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := book.Lookup(name); !ok {
			b.Fatal("not found")
		}
	}
}
