package plan_test

import (
	"fmt"
	"testing"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/topology"
)

// crowd makes a service with n endpoints, unevenly over the zones, on nodes of 20 endpoints each.
func crowd(mode topology.Mode, n, zones int) plan.Input {
	random := newRandomSeeded(uint64(n))
	var nodes []topology.Node
	for i := range max(n/20, zones) {
		nodes = append(nodes, node(fmt.Sprintf("node-%d", i), zoneOf(i%zones), topology.MilliCPU(4000+1000*(i%3))))
	}
	endpoints := make([]topology.Endpoint, n)
	for i := range endpoints {
		on := nodes[random.IntN(len(nodes))]
		endpoints[i] = endpoint(i+1, on.Zone)
		endpoints[i].Node = on.Name
	}
	in := inputOf(mode, nodes, endpoints)
	in.Service = topology.NewSnapshot(nil, []*topology.Service{in.Service}, topology.Costs{}).Services[0]
	return in
}

func BenchmarkCompute(b *testing.B) {
	for _, mode := range []topology.Mode{topology.ModeAuto, topology.ModeBalanced, topology.ModePreferSameZone, topology.ModePreferSameNode} {
		for _, n := range []int{10, 100, 1000, 5000} {
			for _, zones := range []int{3, 10} {
				b.Run(fmt.Sprintf("%s/endpoints=%d/zones=%d", mode, n, zones), func(b *testing.B) {
					in := crowd(mode, n, zones)
					before := plan.Compute(in)
					in.Previous = &before
					b.ReportAllocs()
					for b.Loop() {
						plan.Compute(in)
					}
				})
			}
		}
	}
}

// BenchmarkComputeFirst is the plan without one before it: endpoints have to be moved.
func BenchmarkComputeFirst(b *testing.B) {
	for _, n := range []int{100, 5000} {
		b.Run(fmt.Sprintf("Auto/endpoints=%d/zones=3", n), func(b *testing.B) {
			in := crowd(topology.ModeAuto, n, 3)
			for i := range in.Service.Endpoints {
				in.Service.Endpoints[i].Zone = "zone-a"
			}
			b.ReportAllocs()
			for b.Loop() {
				plan.Compute(in)
			}
		})
	}
}

func BenchmarkSurveyNodes(b *testing.B) {
	var nodes []topology.Node
	for i := range 5000 {
		nodes = append(nodes, node(fmt.Sprintf("node-%04d", i), zoneOf(i%3), 4000))
	}
	b.ReportAllocs()
	for b.Loop() {
		plan.SurveyNodes(nodes)
	}
}

func BenchmarkChoose(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 5000} {
		b.Run(fmt.Sprintf("endpoints=%d/zones=3", n), func(b *testing.B) {
			in := crowd(topology.ModeAuto, n, 3)
			p := plan.Compute(in)
			port := topology.Port{Name: "http", Protocol: topology.TCP}
			b.ReportAllocs()
			for b.Loop() {
				plan.Choose(in.Service, p.Endpoints, port, plan.Client{Node: "node-1", Zone: "zone-b"})
			}
		})
	}
}
