package plan_test

import (
	"testing"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// The rows of KEP-2433, "Controller Unit Tests", in its order. The feature gate and the field trafficPolicy are gone:
// Auto stands for both being on, ModeUnset for the field unset, Disabled for the gate off.
func TestControllerTableOfKEP2433(t *testing.T) {
	local := func(in *plan.Input) { in.Service.InternalPolicy = topology.PolicyLocal }
	auto, unset, off := topology.ModeAuto, topology.ModeUnset, topology.ModeDisabled
	for _, c := range []struct {
		row       string
		mode      topology.Mode
		nodes     []topology.Node
		endpoints []topology.Endpoint
		change    func(*plan.Input)
		want      string
		because   reason.Code
	}{
		{"Feature Gate On, TrafficPolicy == 'PreferZone', 2+ zones", auto, cores(4, 4), endpointsIn(2, 2), nil, "2/2", reason.HintsByShare},
		{"Feature Gate On, TrafficPolicy == 'PreferZone', 1 zone", auto, cores(4), endpointsIn(4), nil, "none", reason.TooFewZones},
		{"Feature Gate On, TrafficPolicy == 'Local', 2+ zones", auto, cores(4, 4), endpointsIn(2, 2), local, "none", reason.PolicyIsLocal},
		{"Feature Gate On, TrafficPolicy Unset, 2+ zones", unset, cores(4, 4), endpointsIn(2, 2), nil, "none", reason.HintsDisabled},
		{"Feature Gate Off, TrafficPolicy == 'PreferZone', 2+ zones", off, cores(4, 4), endpointsIn(2, 2), nil, "none", reason.HintsDisabled},
		{"Feature Gate Off, TrafficPolicy Unset, 2+ zones", off, cores(4, 4), endpointsIn(2, 2), nil, "none", reason.HintsDisabled},
		{"Feature Gate Off, TrafficPolicy Unset, 2+ zones, again", off, cores(4, 4), endpointsIn(2, 2), nil, "none", reason.HintsDisabled},
		{"2 endpoints, 3 zones", auto, cores(4, 4, 4), endpointsIn(1, 1, 0), nil, "none", reason.TooFewEndpoints},
		{"3 endpoints, 3 zones", auto, cores(4, 4, 4), endpointsIn(1, 1, 1), nil, "1/1/1", reason.HintsByShare},
		{"4 endpoints, 3 zones", auto, cores(4, 4, 4), endpointsIn(2, 1, 1), nil, "none", reason.OverloadTooHigh},
		{"4 endpoints, 2 zones", auto, cores(4, 4), endpointsIn(2, 2), nil, "2/2", reason.HintsByShare},
		{"4 endpoints all from 1 zone, 2 zones", auto, cores(4, 4), endpointsIn(4, 0), nil, "2/2", reason.HintsByShare},
		{"4 endpoints, 3 zones, 1 zone with 2x cores", auto, cores(8, 4, 4), endpointsIn(2, 1, 1), nil, "2/1/1", reason.HintsByShare},
		{"400 endpoints, 4 zones with slightly different cores", auto, cores(10, 11, 12, 13), endpointsIn(100, 100, 100, 100), nil, "87/96/104/113", reason.HintsByShare},
		{"Node without way to determine cores", auto, cores(0, 0, 0), endpointsIn(3, 0, 0), nil, "1/1/1", reason.NodesCountEqually},
	} {
		t.Run(c.row, func(t *testing.T) {
			in := inputOf(c.mode, c.nodes, c.endpoints)
			if c.change != nil {
				c.change(&in)
			}
			p := plan.Compute(in)
			if got := hintsByZone(&p); got != c.want || !has(p.Reasons, c.because) {
				t.Errorf("hints %s, want %s because %s:\n%s", got, c.want, c.because, &p)
			}
		})
	}
}

// The rows of the same table that speak of a change.
func TestControllerTableOfKEP2433ForChanges(t *testing.T) {
	hinted := func(t *testing.T, nodes []topology.Node, endpoints []topology.Endpoint) plan.Plan {
		t.Helper()
		p := plan.Compute(inputOf(topology.ModeAuto, nodes, endpoints))
		if !p.Hinted {
			t.Fatalf("no hints to begin with:\n%s", &p)
		}
		return p
	}
	t.Run("Node removal that does not trigger threshold transition", func(t *testing.T) {
		before := hinted(t, cores(12, 12, 12), endpointsIn(3, 3, 3))
		now := plan.Compute(after(before, cores(9, 12, 12), endpointsIn(3, 3, 3)))
		if n := rehinted(&before, &now); n != 0 || !now.Hinted {
			t.Errorf("%d endpoints were re-hinted:\n%s", n, &now)
		}
	})
	t.Run("Node removal that triggers threshold transition, and a better split exists", func(t *testing.T) {
		before := hinted(t, cores(12, 12, 12), endpointsIn(4, 4, 4))
		now := plan.Compute(after(before, cores(4, 12, 12), endpointsIn(4, 4, 4)))
		// Zones b and c want 5.1 each: 29 % over. One node less and they want 5.5.
		if n := rehinted(&before, &now); n != 0 {
			t.Errorf("%d endpoints were re-hinted at 29 %%:\n%s", n, &now)
		}
		now = plan.Compute(after(now, cores(2, 12, 12), endpointsIn(4, 4, 4)))
		if got := hintsByZone(&now); got != "2/5/5" || rehinted(&before, &now) != 2 {
			t.Errorf("hints %s, want 2/5/5 with two changes:\n%s", got, &now)
		}
	})
	t.Run("Node removal that triggers threshold transition, and no split is good enough", func(t *testing.T) {
		before := hinted(t, cores(12, 12, 12), endpointsIn(1, 1, 1))
		now := plan.Compute(after(before, cores(6, 12, 12), endpointsIn(1, 1, 1)))
		if !now.Hinted {
			t.Errorf("20 %% is allowed for hints that are there:\n%s", &now)
		}
		now = plan.Compute(after(now, cores(3, 12, 12), endpointsIn(1, 1, 1)))
		if now.Hinted || !has(now.Reasons, reason.OverloadTooHigh) {
			t.Errorf("33 %% is not allowed:\n%s", &now)
		}
	})
	t.Run("Endpoint additions that require redistribution", func(t *testing.T) {
		before := hinted(t, cores(4, 4, 4), endpointsIn(3, 3, 3))
		more := endpointsIn(3, 3, 3)
		for n := 10; n <= 17; n++ {
			more = append(more, endpoint(n, "zone-a"))
		}
		now := plan.Compute(after(before, cores(4, 4, 4), more))
		if got := hintsByZone(&now); got != "7/5/5" || rehinted(&before, &now) != 0 {
			t.Errorf("hints %s, want 7/5/5, the least that keeps b and c at 30 %%, from new ones:\n%s", got, &now)
		}
	})
	t.Run("Endpoint removals that require redistribution", func(t *testing.T) {
		before := hinted(t, cores(4, 4, 4), endpointsIn(4, 4, 4))
		now := plan.Compute(after(before, cores(4, 4, 4), endpointsIn(4, 4, 4)[3:]))
		if got := hintsByZone(&now); got != "3/3/3" || rehinted(&before, &now) != 2 {
			t.Errorf("hints %s, want 3/3/3 with two changes:\n%s", got, &now)
		}
	})
	t.Run("what moves comes home if it can", func(t *testing.T) {
		endpoints := []topology.Endpoint{
			endpoint(1, "zone-c"), endpoint(2, "zone-a"), endpoint(3, "zone-b"),
			endpoint(4, "zone-a"), endpoint(5, "zone-c"), endpoint(6, "zone-c"),
		}
		for i, z := range []topology.Zone{"zone-b", "zone-b", "zone-b", "zone-a", "zone-c", "zone-c"} {
			endpoints[i].Hints.Zones = []topology.Zone{z}
		}
		now := plan.Compute(inputOf(topology.ModeAuto, cores(4, 4, 4), endpoints))
		if got := hintWords(&now); got != "b a b a c c" {
			t.Errorf("hints %s, want zone-b to give zone-a's own endpoint back:\n%s", got, &now)
		}
	})
	t.Run("a new Node that makes less than 20 % possible for the first time", func(t *testing.T) {
		before := plan.Compute(inputOf(topology.ModeAuto, cores(4, 4, 4), endpointsIn(2, 1, 1)))
		now := plan.Compute(after(before, cores(8, 4, 4), endpointsIn(2, 1, 1)))
		if before.Hinted || !now.Hinted {
			t.Errorf("hinted %v, then %v; want none, then hints:\n%s", before.Hinted, now.Hinted, &now)
		}
	})
}

// The rows of KEP-2433, "Kube-Proxy Unit Tests". A service of policy Local gets no hints; were it to carry some, its
// local traffic does not look at them.
func TestProxyTableOfKEP2433(t *testing.T) {
	port := topology.Port{Name: "http", Protocol: topology.TCP}
	list := func(mode topology.Mode, policy topology.TrafficPolicy, zone topology.Zone) plan.Choice {
		in := inputOf(mode, cores(4, 4), endpointsIn(2, 2))
		p := plan.Compute(in)
		in.Service.InternalPolicy = policy
		return plan.Choose(in.Service, p.Endpoints, port, plan.Client{Node: "node-b", Zone: zone})
	}
	for _, c := range []struct {
		row    string
		mode   topology.Mode
		policy topology.TrafficPolicy
		zone   topology.Zone
		want   int
		reason reason.Code
	}{
		{"Feature Gate On, TrafficPolicy == 'PreferZone', hints matching zone", topology.ModeAuto, topology.PolicyCluster, "zone-b", 2, reason.HintedToZone},
		{"Feature Gate On, TrafficPolicy == 'Local', hints matching zone", topology.ModeAuto, topology.PolicyLocal, "zone-a", 2, reason.LocalTrafficOnly},
		{"Feature Gate Off, TrafficPolicy == 'PreferZone', hints matching zone", topology.ModeDisabled, topology.PolicyCluster, "zone-b", 4, reason.NoHints},
		{"Feature Gate On, TrafficPolicy == 'PreferZone', no hints matching zone", topology.ModeAuto, topology.PolicyCluster, "zone-c", 4, reason.ZoneNotHinted},
	} {
		t.Run(c.row, func(t *testing.T) {
			got := list(c.mode, c.policy, c.zone)
			if len(got.All) != c.want || got.Reason.Code != c.reason {
				t.Errorf("%d endpoints because %s, want %d because %s", len(got.All), got.Reason, c.want, c.reason)
			}
		})
	}
}

func TestOverloadThatKEP2433Allows(t *testing.T) {
	for _, c := range []struct {
		name    string
		cpu     []int
		ready   []int
		starts  bool
		stays   bool
		percent int // the lowest overload that any split reaches
	}{
		{"2 endpoints over 45/55", []int{45, 55}, []int{1, 1}, true, true, 10},
		{"3 endpoints over 3 equal zones", []int{4, 4, 4}, []int{1, 1, 1}, true, true, 0},
		{"4 endpoints over 3 equal zones", []int{4, 4, 4}, []int{2, 1, 1}, false, false, 33},
		{"4 endpoints over 3 zones, one with double cores", []int{8, 4, 4}, []int{2, 1, 1}, true, true, 0},
		{"5 endpoints over 3 equal zones", []int{4, 4, 4}, []int{2, 2, 1}, false, false, 67},
		{"5 endpoints over 2 equal zones", []int{4, 4}, []int{3, 2}, false, true, 25},
		{"9 endpoints over 3 equal zones", []int{4, 4, 4}, []int{3, 3, 3}, true, true, 0},
		{"10 endpoints over 3 equal zones", []int{4, 4, 4}, []int{4, 3, 3}, true, true, 11},
		{"11 endpoints over 3 equal zones", []int{4, 4, 4}, []int{4, 4, 3}, false, true, 22},
		{"12 endpoints over 3 equal zones", []int{4, 4, 4}, []int{4, 4, 4}, true, true, 0},
		{"6 endpoints over 5 equal zones: exactly 20 % is not below", []int{1, 1, 1, 1, 1}, []int{2, 1, 1, 1, 1}, false, true, 20},
		{"13 endpoints over 5 equal zones: exactly 30 % is at most", []int{1, 1, 1, 1, 1}, []int{3, 3, 3, 2, 2}, false, true, 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := inputOf(topology.ModeAuto, cores(c.cpu...), endpointsIn(c.ready...))
			fresh := plan.Compute(in)
			if fresh.Hinted != c.starts {
				t.Errorf("hints start: %v, want %v:\n%s", fresh.Hinted, c.starts, &fresh)
			}
			in.Service.Mode = topology.ModePreferSameZone
			before := plan.Compute(in)
			in.Service.Mode, in.Previous = topology.ModeAuto, &before
			later := plan.Compute(in)
			if later.Hinted != c.stays {
				t.Errorf("hints stay: %v, want %v:\n%s", later.Hinted, c.stays, &later)
			}
			if got := overloadNamed(&fresh); int(got*100+0.5) != c.percent {
				t.Errorf("the reason names %.1f %%, want %d %%", got*100, c.percent)
			}
		})
	}
}

func overloadNamed(p *plan.Plan) float64 {
	for _, r := range p.Reasons {
		for _, v := range r.Values {
			if v.Name == "overload" {
				return v.Number
			}
		}
	}
	return -1
}

// The safeguards of the concept page "Topology Aware Hints".
func TestSafeguards(t *testing.T) {
	auto := func(nodes []topology.Node, endpoints []topology.Endpoint) plan.Plan {
		return plan.Compute(inputOf(topology.ModeAuto, nodes, endpoints))
	}
	port := topology.Port{Name: "http", Protocol: topology.TCP}
	t.Run("1. Insufficient number of endpoints", func(t *testing.T) {
		p := auto(cores(4, 4, 4), endpointsIn(1, 1, 0))
		if p.Hinted || codes(p.Reasons) != "TooFewEndpoints ZonesWithoutEndpoints" {
			t.Errorf("got:\n%s", &p)
		}
	})
	t.Run("2. Impossible to achieve balanced allocation", func(t *testing.T) {
		p := auto(cores(8, 4), endpointsIn(1, 1))
		if p.Hinted || codes(p.Reasons) != "OverloadTooHigh" {
			t.Errorf("got:\n%s", &p)
		}
	})
	t.Run("3. One or more Nodes has insufficient information: no zone", func(t *testing.T) {
		nodes := append(cores(4, 4), topology.Node{Name: "astray", CPU: 4000, Ready: true})
		p := auto(nodes, endpointsIn(2, 2))
		if p.Hinted || codes(p.Reasons) != "NodesWithoutZone" || p.Reasons[0].Objects[0] != "astray" {
			t.Errorf("got:\n%s", &p)
		}
	})
	t.Run("3. One or more Nodes has insufficient information: no CPU", func(t *testing.T) {
		nodes := append(cores(4, 4), topology.Node{Name: "mute", Zone: "zone-a", Ready: true})
		p := auto(nodes, endpointsIn(2, 2))
		if p.Hinted || codes(p.Reasons) != "NodesWithoutCPU" || p.Reasons[0].Objects[0] != "mute" {
			t.Errorf("got:\n%s", &p)
		}
	})
	t.Run("4. One or more endpoints does not have a zone hint", func(t *testing.T) {
		in := inputOf(topology.ModeAuto, cores(4, 4), endpointsIn(2, 2))
		p := plan.Compute(in)
		p.Endpoints[3].Hints = topology.Hints{}
		got := plan.Choose(in.Service, p.Endpoints, port, plan.Client{Node: "node-a", Zone: "zone-a"})
		if len(got.Cluster) != 4 || got.Reason.Code != reason.HintMissing || got.Reason.Objects[0] != "10.0.0.4" {
			t.Errorf("%d endpoints because %s", len(got.Cluster), got.Reason)
		}
	})
	t.Run("5. A zone is not represented in hints", func(t *testing.T) {
		in := inputOf(topology.ModeAuto, cores(4, 4), endpointsIn(2, 2))
		p := plan.Compute(in)
		got := plan.Choose(in.Service, p.Endpoints, port, plan.Client{Node: "node-c", Zone: "zone-c"})
		if len(got.Cluster) != 4 || got.Reason.Code != reason.ZoneNotHinted {
			t.Errorf("%d endpoints because %s", len(got.Cluster), got.Reason)
		}
	})
}

// KEP-4444's table of traffic policies, which the concept page contradicts: external traffic stays on its node, internal traffic
// follows the mode. All modes agree on it.
func TestInternalTrafficFollowsTheModeUnderExternalLocal(t *testing.T) {
	for _, mode := range []topology.Mode{topology.ModeAuto, topology.ModeBalanced, topology.ModePreferClose} {
		in := inputOf(mode, cores(4, 4), endpointsIn(2, 2))
		in.Service.ExternalPolicy, in.Service.ExternallyAccessible = topology.PolicyLocal, true
		p := plan.Compute(in)
		port := topology.Port{Name: in.Service.Endpoints[0].Ports[0].Name, Protocol: topology.TCP}
		got := plan.Choose(in.Service, p.Endpoints, port, plan.Client{Node: "node-a", Zone: "zone-a"})
		if !p.Hinted || got.Reason.Code != reason.HintedToZone || got.LocalReason.Code == "" {
			t.Errorf("%s: hinted %t, internal traffic: %s, external traffic: %s", mode, p.Hinted, got.Reason, got.LocalReason)
		}
	}
}

// The constraints of the concept page "Topology Aware Hints".
func TestConstraints(t *testing.T) {
	t.Run("not used when internalTrafficPolicy is Local", func(t *testing.T) {
		in := inputOf(topology.ModeAuto, cores(4, 4), endpointsIn(2, 2))
		in.Service.InternalPolicy = topology.PolicyLocal
		if p := plan.Compute(in); p.Hinted || codes(p.Reasons) != "PolicyIsLocal" {
			t.Errorf("got:\n%s", &p)
		}
	})
	t.Run("traffic from a subset of zones is not foreseen, and the plan says what it would do", func(t *testing.T) {
		in := inputOf(topology.ModeAuto, cores(4, 4), endpointsIn(2, 2))
		blind := plan.Compute(in)
		in.Previous = &blind
		in.Demand = []topology.ZoneDemand{{Zone: "zone-a", Share: 0.64}, {Zone: "zone-b", Share: 0.36}}
		told := plan.Compute(in)
		if blind.Zones[0].Overload != 0 || told.Zones[0].Overload < 0.279 || told.Zones[0].Overload > 0.281 {
			t.Errorf("want 28 %% overload in zone-a once demand is told:\n%s", &told)
		}
	})
	t.Run("unready nodes are ignored", func(t *testing.T) {
		nodes := cores(4, 4)
		nodes = append(nodes, topology.Node{Name: "down", Zone: "zone-a", CPU: 400_000})
		p := plan.Compute(inputOf(topology.ModeAuto, nodes, endpointsIn(2, 2)))
		if hintsByZone(&p) != "2/2" {
			t.Errorf("got:\n%s", &p)
		}
	})
	t.Run("tolerations are not taken into account: every worker counts", func(t *testing.T) {
		p := plan.Compute(inputOf(topology.ModeAuto, cores(4, 4, 4), endpointsIn(3, 3, 0)))
		if hintsByZone(&p) != "2/2/2" {
			t.Errorf("zone-c gets its part though no endpoint may run there:\n%s", &p)
		}
	})
	t.Run("autoscaling that adds endpoints in another zone keeps what is hinted", func(t *testing.T) {
		before := plan.Compute(inputOf(topology.ModeAuto, cores(4, 4), endpointsIn(2, 2)))
		now := plan.Compute(after(before, cores(4, 4), endpointsIn(2, 3)))
		if rehinted(&before, &now) != 0 || hintsByZone(&now) != "2/3" {
			t.Errorf("got:\n%s", &now)
		}
	})
}

func TestZonesAndEndpointsThatAutoLeavesOut(t *testing.T) {
	t.Run("an unready endpoint counts for nothing", func(t *testing.T) {
		endpoints := endpointsIn(2, 2)
		endpoints[0].Ready = topology.False
		endpoints[0].Hints.Zones = []topology.Zone{"zone-a"}
		p := plan.Compute(inputOf(topology.ModeAuto, cores(1, 2), endpoints))
		if hintsByZone(&p) != "1/2" {
			t.Errorf("got:\n%s", &p)
		}
	})
	t.Run("an endpoint without a zone forbids hints", func(t *testing.T) {
		endpoints := endpointsIn(2, 2)
		endpoints[1].Zone = ""
		p := plan.Compute(inputOf(topology.ModeAuto, cores(4, 4), endpoints))
		if p.Hinted || codes(p.Reasons) != "EndpointsWithoutZone" || p.Reasons[0].Objects[0] != "10.0.0.2" {
			t.Errorf("got:\n%s", &p)
		}
	})
	t.Run("an endpoint on the control plane serves the zone that needs it most", func(t *testing.T) {
		p := plan.Compute(inputOf(topology.ModeAuto, cores(4, 4), endpointsIn(1, 2, 1)))
		if hintsByZone(&p) != "2/2/0" {
			t.Errorf("got:\n%s", &p)
		}
	})
	t.Run("a small zone gets one endpoint though every giver has under half to spare", func(t *testing.T) {
		p := plan.Compute(inputOf(topology.ModeAuto, cores(32, 32, 32, 3), endpointsIn(10, 10, 10, 0)))
		if hintsByZone(&p) != "9/10/10/1" {
			t.Errorf("got:\n%s", &p)
		}
	})
	t.Run("without nodes there is nothing to go by", func(t *testing.T) {
		p := plan.Compute(inputOf(topology.ModeAuto, nil, endpointsIn(2, 2)))
		if p.Hinted || codes(p.Reasons) != "TooFewZones" {
			t.Errorf("got:\n%s", &p)
		}
	})
}
