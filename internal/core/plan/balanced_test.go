package plan_test

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// hintsText lists the hints of all ready endpoints by home, zones by their last letter: "a:a,a,ac b:b".
func hintsText(p *plan.Plan) string {
	letter := func(z topology.Zone) string { return strings.TrimPrefix(string(z), "zone-") }
	var homes []string
	byHome := make(map[string][]string)
	for i := range p.Endpoints {
		e := &p.Endpoints[i]
		if !e.IsReady() {
			continue
		}
		var set strings.Builder
		for _, z := range e.Hints.Zones {
			set.WriteString(letter(z))
		}
		home := letter(e.Zone)
		if _, ok := byHome[home]; !ok {
			homes = append(homes, home)
		}
		byHome[home] = append(byHome[home], set.String())
	}
	parts := make([]string, 0, len(homes))
	for _, home := range homes {
		sets := byHome[home]
		slices.Sort(sets)
		parts = append(parts, home+":"+strings.Join(sets, ","))
	}
	return strings.Join(parts, " ")
}

// peak is the highest expected overload, of endpoints without a zone too.
func peak(p *plan.Plan) float64 {
	ready, most := 0, plan.Share(0)
	for i := range p.Endpoints {
		var load plan.Share
		for _, row := range p.Zones {
			load += row.Demand * row.Endpoints[i]
		}
		most = max(most, load)
		if p.Endpoints[i].IsReady() {
			ready++
		}
	}
	return float64(most)*float64(ready) - 1
}

func balancedPlan(cpu, endpoints []int) plan.Plan {
	return plan.Compute(inputOf(topology.ModeBalanced, cores(cpu...), endpointsIn(endpoints...)))
}

func TestBalancedKeepsWhatTheLimitAllows(t *testing.T) {
	equal := []int{1, 1, 1}
	tests := []struct {
		name           string
		cpu, endpoints []int
		hints          string
		inZone         float64
	}{
		{"3/3/3 serves itself", equal, []int{3, 3, 3}, "a:a,a,a b:b,b,b c:c,c,c", 1},
		{"4/4/3 shares one rich zone with the poor one", equal, []int{4, 4, 3}, "a:ac,ac,ac,ac b:b,b,b,b c:ac,ac,c", 0.698},
		{"1/1/2 shares", equal, []int{1, 1, 2}, "a:ab b:b c:ac,ac", 0.611},
		{"5/1/1 lends an endpoint to each poor zone", equal, []int{5, 1, 1}, "a:a,a,a,b,c b:b c:c", 0.667},
		{"12/0/0 splits", equal, []int{12, 0, 0}, "a:a,a,a,a,b,b,b,b,c,c,c,c", 0.333},
		{"1/0/0 serves all", equal, []int{1, 0, 0}, "a:abc", 0.333},
		{"2/2/0 leaves no zone with none", equal, []int{2, 2, 0}, "a:ac,ac b:bc,bc", 0.667},
		{"70 % of the demand from one zone", []int{14, 3, 3}, []int{3, 3, 3}, "a:a,a,a b:a,a,b c:a,bc,bc", 0.55},
		{"70 % of the demand from one zone with most endpoints", []int{14, 3, 3}, []int{12, 3, 3}, "", 1},
		{"one zone only", []int{1}, []int{3}, "a:a,a,a", 1},
		{"a zone without nodes helps where it is needed", []int{1, 1, 0}, []int{3, 3, 3}, "a:a,a,a b:b,b,b c:a,b,c", 0.75},
		{"a zone without nodes stays idle where no other needs it", []int{1, 1, 0}, []int{5, 5, 1}, "", 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := balancedPlan(test.cpu, test.endpoints)
			if got := hintsText(&p); test.hints != "" && got != test.hints {
				t.Errorf("want %s, got %s", test.hints, got)
			}
			if math.Abs(float64(p.InZone)-test.inZone) > 0.001 {
				t.Errorf("want %.3f in zone, got %.3f:\n%s", test.inZone, p.InZone, &p)
			}
			if !p.Hinted || peak(&p) > 0.2+1e-9 || !has(p.Reasons, reason.HintsBalanced) {
				t.Errorf("not within the limit:\n%s", &p)
			}
		})
	}
}

func TestBalancedWithoutReadyEndpointsHintsNothing(t *testing.T) {
	endpoints := endpointsIn(1, 1, 1)
	for i := range endpoints {
		endpoints[i].Ready = topology.False
	}
	p := plan.Compute(inputOf(topology.ModeBalanced, cores(1, 1, 1), endpoints))
	if p.Hinted || !has(p.Reasons, reason.NoEndpoints) {
		t.Errorf("want no hints, got\n%s", &p)
	}
}

func TestBalancedNamesTwentyZones(t *testing.T) {
	cpu, home := make([]int, 20), make([]int, 20)
	for z := range cpu {
		cpu[z] = 1
	}
	for n := range 40 {
		home[n%7]++
		p := balancedPlan(cpu, home)
		checkHints(t, &p)
		unnamed := has(p.Reasons, reason.ZonesUnnamed)
		if named := !strings.Contains(" "+strings.ReplaceAll(hintsByZone(&p), "/", " ")+" ", " 0 "); named == unnamed {
			t.Errorf("%d endpoints: every zone is named: %v, the reasons say otherwise:\n%s", n+1, named, &p)
		}
		if n+1 > 2 && unnamed {
			t.Errorf("%d endpoints have room for 20 zones:\n%s", n+1, &p)
		}
		if peak(&p) > 0.2+1e-9 && !has(p.Reasons, reason.OverloadUnavoidable) {
			t.Errorf("%d endpoints: %.3f overload without a reason:\n%s", n+1, peak(&p), &p)
		}
	}
}

// zone-a needs five more endpoints and either of the others can spare three: the far one gives what the near one lacks.
func TestBalancedPrefersTheCheapRegion(t *testing.T) {
	nodes := cores(2, 1, 1)
	nodes[0].Region, nodes[1].Region, nodes[2].Region = "here", "here", "far"
	p := plan.Compute(inputOf(topology.ModeBalanced, nodes, endpointsIn(4, 8, 8)))
	if got, want := hintsText(&p), "a:a,a,a,a b:a,a,a,b,b,b,b,b c:a,a,c,c,c,c,c,c"; got != want {
		t.Errorf("want %s, got %s", want, got)
	}
	nodes[1].Region, nodes[2].Region = "far", "here"
	p = plan.Compute(inputOf(topology.ModeBalanced, nodes, endpointsIn(4, 8, 8)))
	if got, want := hintsText(&p), "a:a,a,a,a b:a,a,b,b,b,b,b,b c:a,a,a,c,c,c,c,c"; got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

func TestBalancedLeavesBadNodesOutAndNamesThem(t *testing.T) {
	nodes := append(cores(1, 1, 1),
		topology.Node{Name: "lost", CPU: 64000, Ready: true},
		topology.Node{Name: "silent", Zone: "zone-a", Ready: true})
	p := plan.Compute(inputOf(topology.ModeBalanced, nodes, endpointsIn(3, 3, 3)))
	if p.InZone != 1 || p.Zones[0].Demand != p.Zones[1].Demand {
		t.Errorf("the other nodes should decide:\n%s", &p)
	}
	for code, name := range map[reason.Code]string{reason.NodesWithoutZone: "lost", reason.NodesWithoutCPU: "silent"} {
		i := slices.IndexFunc(p.Reasons, func(r reason.Reason) bool { return r.Code == code })
		if i < 0 || !slices.Contains(p.Reasons[i].Objects, name) {
			t.Errorf("%s does not name %s:\n%s", code, name, &p)
		}
	}
}

func TestBalancedCountsNodesWhenNoneReportsCPU(t *testing.T) {
	nodes := cores(0, 0, 0)
	p := plan.Compute(inputOf(topology.ModeBalanced, nodes, endpointsIn(1, 1, 1)))
	if p.InZone != 1 || !has(p.Reasons, reason.NodesCountEqually) || has(p.Reasons, reason.NodesWithoutCPU) {
		t.Errorf("want equal zones, got\n%s", &p)
	}
}

func TestBalancedWithoutNodesFollowsTheEndpoints(t *testing.T) {
	p := plan.Compute(inputOf(topology.ModeBalanced, nil, endpointsIn(5, 1, 1)))
	if p.InZone != 1 || !has(p.Reasons, reason.DemandByEndpoints) {
		t.Errorf("want each endpoint in its own zone, got\n%s", &p)
	}
}

func TestBalancedUsesEndpointsWithoutZoneWhereTheyHelp(t *testing.T) {
	endpoints := append(endpointsIn(3, 3), endpoint(100, ""), endpoint(101, ""))
	p := plan.Compute(inputOf(topology.ModeBalanced, cores(1, 1, 2), endpoints))
	checkHints(t, &p)
	if got, want := hintsText(&p), "a:a,a,c b:b,b,c :c,c"; got != want {
		t.Errorf("want %s, got %s:\n%s", want, got, &p)
	}
	if !has(p.Reasons, reason.EndpointsWithoutZone) {
		t.Errorf("want the endpoints without a zone named:\n%s", &p)
	}
}

func TestBalancedNeedsAZoneSomewhere(t *testing.T) {
	p := plan.Compute(inputOf(topology.ModeBalanced, nil, []topology.Endpoint{endpoint(1, ""), endpoint(2, "")}))
	if p.Hinted || !has(p.Reasons, reason.NoZoneKnown) {
		t.Errorf("want no hints and a reason, got\n%s", &p)
	}
}

func TestBalancedHintsStayUpToTheStopLimit(t *testing.T) {
	all := endpointsIn(4, 4, 4)
	before := plan.Compute(inputOf(topology.ModeBalanced, cores(1, 1, 1), all))
	now := plan.Compute(after(before, cores(1, 1, 1), all[:11]))
	if rehinted(&before, &now) != 0 || now.InZone != 1 || !has(now.Reasons, reason.HintsKept) {
		t.Errorf("22 %% overload is below 30 %%, hints should stay:\n%s", &now)
	}
	before, now = now, plan.Compute(after(now, cores(1, 1, 1), all[:10]))
	if rehinted(&before, &now) == 0 || peak(&now) > 0.2+1e-9 {
		t.Errorf("67 %% overload is too much:\n%s", &now)
	}
}

// checkHints wants 1 to 8 hints on every ready endpoint.
func checkHints(t *testing.T, p *plan.Plan) {
	t.Helper()
	for i := range p.Endpoints {
		e := &p.Endpoints[i]
		if n := len(e.Hints.Zones); e.IsReady() && (n < 1 || n > 8) {
			t.Errorf("%s has %d hints:\n%s", e.Addr, n, p)
		}
	}
}

func TestBalancedHintsEveryReadyEndpointAndZone(t *testing.T) {
	random := newRandom(t)
	for range 1000 {
		in := anyInput(random, topology.ModeBalanced)
		p := plan.Compute(in)
		if !p.Hinted {
			continue
		}
		checkHints(t, &p)
		for _, row := range p.Zones {
			if row.Demand > 0 && row.Allotted == 0 {
				t.Errorf("%s is named by no hint:\n%s", row.Zone, &p)
			}
		}
		limit := in.Limits.Start
		if limit == 0 {
			limit = 0.2
		}
		excused := has(p.Reasons, reason.HintsKept) || has(p.Reasons, reason.OverloadUnavoidable) ||
			has(p.Reasons, reason.ZonesNotReady) // peak counts their endpoints, the plan does not
		if peak(&p) > limit+1e-6 && !excused {
			t.Errorf("%.3f overload without a reason:\n%s", peak(&p), &p)
		}
		if t.Failed() {
			return
		}
	}
}

func TestBalancedIsNeverWithoutHintsForAReadyEndpointInAZone(t *testing.T) {
	for n := range 40 {
		for zones := 1; zones <= 6; zones++ {
			cpu, home := make([]int, zones), make([]int, zones)
			for z := range zones {
				cpu[z] = 1 + z%3
			}
			for i := range n + 1 {
				home[i*i%zones]++
			}
			if p := balancedPlan(cpu, home); !p.Hinted || peak(&p) > 0.2+1e-9 {
				t.Fatalf("%v on %v:\n%s", home, cpu, &p)
			}
		}
	}
}

func TestBalancedKeepsAtLeastAsMuchInZoneAsAuto(t *testing.T) {
	random := newRandom(t)
	compared, more := 0, 0
	for range 2000 {
		in := usualInput(random, topology.ModeAuto)
		if random.IntN(2) == 0 {
			in.Limits = plan.Limits{Start: 0.01 + random.Float64()/2}
		}
		if random.IntN(2) == 0 {
			in.Survey.Regions = map[topology.Zone]string{"zone-a": "near", "zone-b": "near", "zone-c": "far", "zone-d": "far"}
			in.Costs = topology.Costs{SameRegion: 1, OtherRegion: topology.Cost(1 + random.IntN(8))}
		}
		auto := plan.Compute(in)
		if !auto.Hinted {
			continue
		}
		service := *in.Service
		service.Mode = topology.ModeBalanced
		in.Service = &service
		balanced := plan.Compute(in)
		compared++
		if balanced.InZone > auto.InZone+1e-9 {
			more++
		}
		if balanced.InZone < auto.InZone-1e-9 {
			t.Fatalf("Auto keeps more:\n%s%s", &auto, &balanced)
		}
	}
	t.Logf("%d plans: Balanced keeps more in %d, as much in the others", compared, more)
	if compared < 1000 {
		t.Errorf("only %d plans to compare", compared)
	}
}

func TestBalancedServesMoreZonesThanASetHolds(t *testing.T) {
	var nodes []topology.Node
	var endpoints []topology.Endpoint
	for z := range 70 {
		zone := topology.Zone(fmt.Sprintf("zone-%02d", z))
		nodes = append(nodes, topology.Node{Name: string(zone), Zone: zone, CPU: topology.MilliCPU(1000 + z), Ready: true})
		for range 6 {
			e := endpoint(len(endpoints)+1, zone)
			e.Addr = netip.AddrFrom4([4]byte{10, 1, byte(len(endpoints) >> 8), byte(len(endpoints))})
			endpoints = append(endpoints, e)
		}
	}
	p := plan.Compute(inputOf(topology.ModeBalanced, nodes, endpoints))
	checkHints(t, &p)
	if has(p.Reasons, reason.ZonesUnnamed) || peak(&p) > 0.2+1e-9 || p.InZone < 1-1e-9 {
		t.Errorf("want all zones served by their own, got\n%s", &p)
	}
	for i := range endpoints[:24] { // four zones have no endpoint of their own, which is as much as the others can take
		endpoints[i].Zone = "zone-40"
	}
	p = plan.Compute(inputOf(topology.ModeBalanced, nodes, endpoints))
	checkHints(t, &p)
	if has(p.Reasons, reason.ZonesUnnamed) || p.InZone < 0.9 {
		t.Errorf("want all zones named, got\n%s", &p)
	}
}

// The control plane takes a lost zone's nodes for not ready long before its pods.
func TestBalancedSendsNothingIntoAZoneWithoutReadyNodes(t *testing.T) {
	nodes := cores(4, 4, 4)
	for _, state := range []struct {
		ready  bool
		inZone plan.Share
		lost   bool
	}{{true, 1, false}, {false, 1, true}} {
		nodes[2].Ready = state.ready
		p := plan.Compute(inputOf(topology.ModeBalanced, nodes, endpointsIn(3, 3, 3)))
		if p.InZone < state.inZone || has(p.Reasons, reason.ZonesNotReady) != state.lost {
			t.Errorf("zone c ready %t: got\n%s", state.ready, &p)
		}
	}
	for i := range nodes {
		nodes[i].Ready = false // more likely the control plane's fault than all nodes'
	}
	p := plan.Compute(inputOf(topology.ModeBalanced, nodes, endpointsIn(3, 3, 3)))
	if p.InZone < 1 || !p.Hinted {
		t.Errorf("no node ready: got\n%s", &p)
	}
}

func TestBalancedCopesWithManyZonesAndOddPlaces(t *testing.T) {
	random := newRandom(t)
	for range 60 {
		zones := 1 + random.IntN(80)
		zone := func() topology.Zone { return topology.Zone(fmt.Sprintf("zone-%02d", random.IntN(zones))) }
		var nodes []topology.Node
		for z := range zones {
			nodes = append(nodes, topology.Node{
				Name: fmt.Sprintf("n%02d", z), Zone: zone(), CPU: topology.MilliCPU(random.IntN(9000)), Ready: true,
				Region: []string{"", "west", "east"}[random.IntN(3)],
			})
		}
		endpoints := make([]topology.Endpoint, 1+random.IntN(60))
		for i := range endpoints {
			endpoints[i] = endpoint(i+1, zone())
			switch random.IntN(20) {
			case 0:
				endpoints[i].Zone = ""
			case 1:
				endpoints[i].Cluster = "other"
			}
		}
		p := plan.Compute(inputOf(topology.ModeBalanced, nodes, endpoints))
		checkHints(t, &p)
		if peak(&p) > 0.2+1e-6 && !has(p.Reasons, reason.OverloadUnavoidable) {
			t.Errorf("%.3f overload without a reason", peak(&p))
		}
		if !p.Hinted || t.Failed() {
			t.Fatalf("%d zones:\n%s", zones, &p)
		}
	}
}

func BenchmarkBalanced(b *testing.B) {
	for _, c := range []struct {
		name           string
		cpu, endpoints []int
	}{
		{"3 zones share 11", []int{1, 1, 1}, []int{4, 4, 3}},
		{"3 zones cope with 99", []int{1, 1, 1}, []int{33, 33, 33}},
		{"3 zones lend of 100", []int{3, 2, 1}, []int{20, 40, 40}},
		{"3 zones lend of 5000", []int{3, 2, 1}, []int{1000, 2000, 2000}},
		{"4 zones share 11", []int{1, 1, 1, 1}, []int{3, 3, 3, 2}},
		{"20 zones share 50", slices.Repeat([]int{2, 3, 2, 4}, 5), slices.Repeat([]int{1, 3, 2, 4}, 5)},
	} {
		in := inputOf(topology.ModeBalanced, cores(c.cpu...), endpointsIn(c.endpoints...))
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				plan.Compute(in)
			}
		})
		p := plan.Compute(in)
		in.Previous = &p
		b.Run(c.name+" again", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				plan.Compute(in)
			}
		})
	}
}
