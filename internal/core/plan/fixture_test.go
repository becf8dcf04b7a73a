package plan_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// zoneOf names the nth zone: zone-a, zone-b and so on.
func zoneOf(n int) topology.Zone { return topology.Zone("zone-" + string(rune('a'+n))) }

// cores makes one ready node for each zone, with so many cores.
func cores(perZone ...int) []topology.Node {
	var nodes []topology.Node
	for z, n := range perZone {
		nodes = append(nodes, topology.Node{
			Name: "node-" + string(rune('a'+z)), Zone: zoneOf(z), CPU: topology.MilliCPU(1000 * n), Ready: true,
		})
	}
	return nodes
}

// endpointsIn makes so many ready endpoints in each zone, on the zone's one node.
func endpointsIn(perZone ...int) []topology.Endpoint {
	var endpoints []topology.Endpoint
	for z, n := range perZone {
		for range n {
			endpoints = append(endpoints, endpoint(len(endpoints)+1, zoneOf(z)))
		}
	}
	return endpoints
}

// endpoint makes the nth ready endpoint, on the one node of a zone.
func endpoint(n int, z topology.Zone) topology.Endpoint {
	return topology.Endpoint{
		Addr:       netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}),
		Ports:      []topology.EndpointPort{{Name: "http", Protocol: topology.TCP, Port: 8080}},
		Zone:       z,
		Node:       "node-" + strings.TrimPrefix(string(z), "zone-"),
		Conditions: topology.Conditions{Ready: topology.True, Serving: topology.True, Terminating: topology.False},
	}
}

// inputOf puts a service of the mode before the planner.
func inputOf(mode topology.Mode, nodes []topology.Node, endpoints []topology.Endpoint) plan.Input {
	return plan.Input{
		Service: &topology.Service{
			ServiceName: topology.ServiceName{Namespace: "default", Name: "web"},
			Mode:        mode,
			Endpoints:   endpoints,
		},
		Survey: plan.SurveyNodes(nodes),
	}
}

// after gives the input that follows: the same service with other nodes and endpoints, and the plan before.
func after(before plan.Plan, nodes []topology.Node, endpoints []topology.Endpoint) plan.Input {
	in := inputOf(before.Mode, nodes, endpoints)
	in.Previous = &before
	return in
}

// hintsByZone counts the endpoints hinted to each zone: "4/3/3" for zone-a to zone-c, "none" without any hint.
func hintsByZone(p *plan.Plan) string {
	var counts []string
	hinted := false
	for _, row := range p.Zones {
		n := 0
		for i := range p.Endpoints {
			if slices.Contains(p.Endpoints[i].Hints.Zones, row.Zone) {
				n++
			}
		}
		hinted = hinted || n > 0
		counts = append(counts, fmt.Sprint(n))
	}
	if !hinted {
		return "none"
	}
	return strings.Join(counts, "/")
}

// away counts the ready endpoints that do not serve their own zone.
func away(p *plan.Plan) int {
	n := 0
	for i := range p.Endpoints {
		e := &p.Endpoints[i]
		if e.IsReady() && !slices.Contains(e.Hints.Zones, e.Zone) {
			n++
		}
	}
	return n
}

// rehinted counts the endpoints that are in both plans with different hints.
func rehinted(before, now *plan.Plan) int {
	n := 0
	for i := range now.Endpoints {
		e := &now.Endpoints[i]
		j := slices.IndexFunc(before.Endpoints, func(b topology.Endpoint) bool {
			return topology.CompareEndpoints(b, *e) == 0
		})
		if j >= 0 && !before.Endpoints[j].Hints.Equal(e.Hints) {
			n++
		}
	}
	return n
}

// has tells whether a reason with the code is among them.
func has(reasons []reason.Reason, code reason.Code) bool {
	return slices.ContainsFunc(reasons, func(r reason.Reason) bool { return r.Code == code })
}

// codes lists the reasons' codes.
func codes(reasons []reason.Reason) string {
	var list []string
	for _, r := range reasons {
		list = append(list, string(r.Code))
	}
	return strings.Join(list, " ")
}

// newRandom gives the same numbers in every run; a failure can be repeated.
func newRandom(tb testing.TB) *rand.Rand {
	tb.Helper()
	return newRandomSeeded(2)
}

func newRandomSeeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(1, seed)) }
