package hints_test

import (
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/hints"
)

// BenchmarkEdit is what a webhook does for one call: one slice of 100 endpoints of a service with 5,000.
func BenchmarkEdit(b *testing.B) {
	var list []*discoveryv1.EndpointSlice
	for i := range 50 {
		s := slice()
		s.Name = fmt.Sprintf("web-%d", i)
		for k := range 100 {
			e := endpoint(1, string(rune('a'+k%3)))
			e.Addresses[0] = fmt.Sprintf("10.0.%d.%d", i, k+1)
			s.Endpoints = append(s.Endpoints, e)
		}
		list = append(list, s)
	}
	for _, mode := range []topology.Mode{topology.ModeAuto, topology.ModeBalanced, topology.ModePreferSameNode} {
		d := decide(mode, list...)
		b.Run(string(mode), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if len(hints.Edit(list[25], d)) != 101 {
					b.Fatal("want an operation for each endpoint and the mark")
				}
			}
		})
	}
}
