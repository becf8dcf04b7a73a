package plan_test

import (
	"math"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// The heuristics of KEP-4444.
func TestTrafficDistributionOfKEP4444(t *testing.T) {
	own := []topology.Endpoint{endpoint(1, "zone-a"), endpoint(2, "zone-b"), endpoint(3, "zone-b")}
	lost := []topology.Endpoint{endpoint(1, "zone-a"), endpoint(2, "")}
	lost[1].Node = "node-x"
	loose := []topology.Endpoint{endpoint(1, "zone-a"), endpoint(2, "zone-b")}
	loose[1].Node = ""
	wrong := []topology.Endpoint{endpoint(1, "zone-a")}
	wrong[0].Hints = topology.Hints{Zones: []topology.Zone{"zone-b", "zone-c"}, Nodes: []string{"node-q"}}
	unready := []topology.Endpoint{endpoint(1, "zone-a"), endpoint(2, "zone-b")}
	unready[1].Ready = topology.False
	for _, c := range []struct {
		name      string
		mode      topology.Mode
		endpoints []topology.Endpoint
		want      string
		because   string
	}{
		{"PreferClose gives each endpoint its own zone", topology.ModePreferClose, own, "a b b", "EndpointsServeOwnZone"},
		{"PreferSameZone is the same", topology.ModePreferSameZone, own, "a b b", "EndpointsServeOwnZone"},
		{"PreferSameNode gives zone and node", topology.ModePreferSameNode, own, "a+node-a b+node-b b+node-b", "EndpointsServeOwnNode"},
		{"an endpoint without a zone gets no zone", topology.ModePreferSameZone, lost, "a .", "EndpointsServeOwnZone EndpointsWithoutZone ZonesWithoutEndpoints"},
		{"an endpoint without a zone gets its node only", topology.ModePreferSameNode, lost, "a+node-a .+node-x", "EndpointsServeOwnNode EndpointsWithoutZone ZonesWithoutEndpoints"},
		{"an endpoint without a node gets its zone only", topology.ModePreferSameNode, loose, "a+node-a b", "EndpointsServeOwnNode EndpointsWithoutNode"},
		{"other hints are corrected", topology.ModePreferSameZone, wrong, "a", "EndpointsServeOwnZone ZonesWithoutEndpoints"},
		{"an unready endpoint gets none", topology.ModePreferSameZone, unready, "a .", "EndpointsServeOwnZone ZonesWithoutEndpoints"},
		{"no mode removes hints", topology.ModeUnset, wrong, ".", "HintsDisabled"},
		{"an unknown mode removes hints", "PreferFar", wrong, ".", "HintsDisabled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := plan.Compute(inputOf(c.mode, cores(4, 4), c.endpoints))
			if got := hintWords(&p); got != c.want {
				t.Errorf("hints %q, want %q", got, c.want)
			}
			others := slices.DeleteFunc(p.Reasons, func(r reason.Reason) bool { return r.Code == reason.EndpointsOverloaded })
			if got := codes(others); got != c.because {
				t.Errorf("because %s, want %s", got, c.because)
			}
		})
	}
}

// hintWords prints the endpoints' hints: "a+node-a" names zone-a and node-a, "." nothing.
func hintWords(p *plan.Plan) string {
	text := ""
	for i := range p.Endpoints {
		word := ""
		for _, z := range p.Endpoints[i].Hints.Zones {
			word += string(z[len("zone-"):])
		}
		if word == "" {
			word = "."
		}
		for _, n := range p.Endpoints[i].Hints.Nodes {
			word += "+" + n
		}
		text += " " + word
	}
	return text[1:]
}

// The one end-to-end row of KEP-4444: no client is left without endpoints.
func TestTrafficFromAZoneWithoutEndpointsGoesToAnyEndpoint(t *testing.T) {
	p := plan.Compute(inputOf(topology.ModePreferClose, cores(4, 4, 4), endpointsIn(1, 1, 0)))
	want := [][]plan.Share{{1, 0}, {0, 1}, {0.5, 0.5}}
	for z, row := range p.Zones {
		if diff := cmp.Diff(want[z], row.Endpoints); diff != "" {
			t.Errorf("%s, want, got:\n%s", row.Zone, diff)
		}
	}
	if !has(p.Reasons, reason.ZonesWithoutEndpoints) {
		t.Errorf("no reason says that zone-c has no endpoint:\n%s", &p)
	}
}

func TestPreferencesOverload(t *testing.T) {
	p := plan.Compute(inputOf(topology.ModePreferSameZone, cores(4, 4, 4), endpointsIn(1, 1, 2)))
	if got := p.Zones[0].Overload; math.Abs(got-1.0/3) > 1e-9 || !has(p.Reasons, reason.EndpointsOverloaded) {
		t.Errorf("overload %v, want a third, with a reason:\n%s", got, &p)
	}
	if p.InZone != 1 || p.Cost != 0 {
		t.Errorf("in zone %v at cost %v, want everything at 0", p.InZone, p.Cost)
	}
}

func TestClientsOfANodeWithoutEndpointsUseTheirZone(t *testing.T) {
	nodes := cores(4, 4)
	nodes = append(nodes, node("node-a2", "zone-a", 4000))
	p := plan.Compute(inputOf(topology.ModePreferSameNode, nodes, []topology.Endpoint{
		endpoint(1, "zone-a"), onNode(2, "node-a3"), endpoint(3, "zone-b"),
	}))
	// Two nodes of zone-a are known and two have endpoints: all clients are taken to be on those.
	if diff := cmp.Diff([]plan.Share{0.5, 0.5, 0}, p.Zones[0].Endpoints); diff != "" {
		t.Errorf("want, got:\n%s", diff)
	}
	nodes = append(nodes, node("node-a4", "zone-a", 4000), node("node-a5", "zone-a", 4000))
	p = plan.Compute(inputOf(topology.ModePreferSameNode, nodes, []topology.Endpoint{
		endpoint(1, "zone-a"), endpoint(2, "zone-a"), onNode(3, "node-a2"), endpoint(4, "zone-b"),
	}))
	// Of four nodes one has two endpoints, one has one, and two share all three.
	want := []plan.Share{0.125 + 1.0/6, 0.125 + 1.0/6, 0.25 + 1.0/6, 0}
	for i, share := range p.Zones[0].Endpoints {
		if math.Abs(float64(share-want[i])) > 1e-9 {
			t.Errorf("endpoint %d gets %v, want %v", i+1, share, want[i])
		}
	}
}

// onNode makes the nth ready endpoint, in zone-a on the node.
func onNode(n int, node string) topology.Endpoint {
	e := endpoint(n, "zone-a")
	e.Node = node
	return e
}

func TestNodesOfOtherClustersHaveNoClientsHere(t *testing.T) {
	in := inputOf(topology.ModePreferSameNode, cores(4), []topology.Endpoint{endpoint(1, "zone-a"), onNode(2, "node-r")})
	in.Service.Endpoints[1].Cluster = "other"
	p := plan.Compute(in)
	if diff := cmp.Diff([]plan.Share{1, 0}, p.Zones[0].Endpoints); diff != "" {
		t.Errorf("want, got:\n%s", diff)
	}
}

func TestRowsFollowThePolicyAndTheLastResort(t *testing.T) {
	t.Run("internal policy Local keeps requests on their node", func(t *testing.T) {
		in := inputOf(topology.ModePreferSameZone, cores(4, 4, 4), []topology.Endpoint{
			endpoint(1, "zone-a"), onNode(2, "node-a2"), onNode(3, "node-a2"), endpoint(4, "zone-b"),
		})
		in.Service.InternalPolicy = topology.PolicyLocal
		p := plan.Compute(in)
		want := [][]plan.Share{{0.5, 0.25, 0.25, 0}, {0, 0, 0, 1}, {0, 0, 0, 0}}
		for z, row := range p.Zones {
			if diff := cmp.Diff(want[z], row.Endpoints); diff != "" {
				t.Errorf("%s, want, got:\n%s", row.Zone, diff)
			}
		}
	})
	t.Run("an endpoint in another cluster is on no node of this one", func(t *testing.T) {
		in := inputOf(topology.ModePreferSameZone, cores(4), []topology.Endpoint{endpoint(1, "zone-a"), onNode(2, "node-a2")})
		in.Service.InternalPolicy = topology.PolicyLocal
		in.Service.Endpoints[1].Cluster = "other"
		p := plan.Compute(in)
		if diff := cmp.Diff([]plan.Share{1, 0}, p.Zones[0].Endpoints); diff != "" {
			t.Errorf("want, got:\n%s", diff)
		}
	})
	t.Run("none ready: those that terminate but serve are used", func(t *testing.T) {
		endpoints := endpointsIn(1, 1, 1)
		for i := range endpoints {
			endpoints[i].Ready = topology.False
		}
		endpoints[1].Terminating = topology.True
		p := plan.Compute(inputOf(topology.ModePreferSameZone, cores(4, 4, 4), endpoints))
		if diff := cmp.Diff([]plan.Share{0, 1, 0}, p.Zones[0].Endpoints); diff != "" || codes(p.Reasons) != "OnlyTerminating" {
			t.Errorf("want, got:\n%s\n%s", diff, &p)
		}
	})
	t.Run("nothing usable: all shares are 0", func(t *testing.T) {
		endpoints := endpointsIn(1, 0)
		endpoints[0].Ready = topology.False
		p := plan.Compute(inputOf(topology.ModePreferSameZone, cores(4, 4), endpoints))
		if diff := cmp.Diff([]plan.Share{0}, p.Zones[0].Endpoints); diff != "" || codes(p.Reasons) != "NoEndpoints" {
			t.Errorf("want, got:\n%s\n%s", diff, &p)
		}
	})
	t.Run("a headless service is warned about", func(t *testing.T) {
		in := inputOf(topology.ModePreferSameZone, cores(4, 4), endpointsIn(1, 1))
		in.Service.Headless = true
		if p := plan.Compute(in); !has(p.Reasons, reason.HeadlessService) {
			t.Errorf("got:\n%s", &p)
		}
	})
}

func TestFamiliesArePlannedApart(t *testing.T) {
	endpoints := endpointsIn(2, 2)
	six := endpoint(9, "zone-a")
	six.Addr = netip.MustParseAddr("fd00::9")
	in := inputOf(topology.ModeAuto, cores(4, 4), append(endpoints, six))
	four := plan.Compute(in)
	in.Family = topology.IPv6
	p := plan.Compute(in)
	if len(four.Endpoints) != 4 || !four.Hinted || len(p.Endpoints) != 1 || p.Hinted {
		t.Errorf("got:\n%s%s", &four, &p)
	}
}

func TestCostFollowsRegionsClustersAndPairs(t *testing.T) {
	nodes := cores(1, 1, 1)
	nodes[0].Region, nodes[1].Region, nodes[2].Region = "west", "west", "east"
	endpoints := endpointsIn(0, 1, 1)
	endpoints[1].Cluster = "other"
	in := inputOf(topology.ModeDisabled, nodes, endpoints)
	p := plan.Compute(in)
	want := []topology.Cost{(1 + (4 + 2)) / 2., (0 + (4 + 2)) / 2., (4 + 2) / 2.}
	for z, row := range p.Zones {
		if row.Cost != want[z] {
			t.Errorf("from %s a request costs %v, want %v", row.Zone, row.Cost, want[z])
		}
	}
	in.Costs.Pairs = map[topology.ZonePair]topology.Cost{{From: "zone-a", To: "zone-b"}: 10}
	in.Costs.SameRegion = 1
	if p := plan.Compute(in); p.Zones[0].Cost != (10+0)/2. {
		t.Errorf("from zone-a a request costs %v, want the pair's 10 and nothing to elsewhere", p.Zones[0].Cost)
	}
}
