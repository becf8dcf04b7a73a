package plan_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// cases is how many generated inputs each property sees in each mode: some seconds in all.
const cases = 300

// eachMode runs a property over generated inputs in every mode.
func eachMode(t *testing.T, property func(t *testing.T, random *rand.Rand, in plan.Input)) {
	t.Helper()
	for _, mode := range topology.Modes() {
		t.Run(string(mode), func(t *testing.T) {
			random := newRandom(t)
			for range cases {
				property(t, random, anyInput(random, mode))
				if t.Failed() {
					return
				}
			}
		})
	}
}

// anyInput makes an input of every kind that can reach the planner: unready endpoints, unknown zones and nodes, policies,
// told demand, hints from before, other limits.
func anyInput(random *rand.Rand, mode topology.Mode) plan.Input {
	in := usualInput(random, mode)
	in.Survey = plan.SurveyNodes(anyNodes(random, 1+random.IntN(5)))
	for i := range in.Service.Endpoints {
		disturb(random, &in.Service.Endpoints[i])
	}
	switch random.IntN(12) {
	case 0:
		in.Service.InternalPolicy = topology.PolicyLocal
	case 1:
		in.Service.ExternalPolicy, in.Service.ExternallyAccessible = topology.PolicyLocal, true
	case 2:
		in.Service.Headless = true
	case 3:
		in.Demand = anyDemand(random)
	case 4:
		in.Limits = plan.Limits{Start: random.Float64(), Stop: random.Float64()}
	case 5:
		in.Costs = topology.Costs{SameRegion: 1, OtherRegion: 3, Pairs: map[topology.ZonePair]topology.Cost{
			{From: "zone-a", To: "zone-b"}: topology.Cost(random.Float64() * 5),
		}}
	}
	return in
}

// usualInput makes an input without flaws: every zone has nodes, every endpoint is ready in one of them.
func usualInput(random *rand.Rand, mode topology.Mode) plan.Input {
	zones := 2 + random.IntN(4)
	cpu := make([]int, zones)
	for z := range cpu {
		cpu[z] = 1 + random.IntN(8)
	}
	endpoints := make([]topology.Endpoint, random.IntN(40))
	for i := range endpoints {
		endpoints[i] = endpoint(i+1, zoneOf(random.IntN(zones)))
	}
	return inputOf(mode, cores(cpu...), endpoints)
}

func anyNodes(random *rand.Rand, zones int) []topology.Node {
	nodes := make([]topology.Node, random.IntN(3*zones))
	flaws, silent := random.IntN(4) == 0, random.IntN(10) == 0
	for i := range nodes {
		nodes[i] = node(string(rune('A'+i)), zoneOf(random.IntN(zones)), topology.MilliCPU(1000*(1+random.IntN(8))))
		nodes[i].Region = []string{"", "west", "east"}[random.IntN(3)]
		if silent {
			nodes[i].CPU = 0
		}
		if !flaws {
			continue
		}
		switch random.IntN(6) {
		case 0:
			nodes[i].CPU = 0
		case 1:
			nodes[i].Zone = ""
		case 2:
			nodes[i].Ready = false
		case 3:
			nodes[i].ControlPlane = true
		}
	}
	return nodes
}

func anyDemand(random *rand.Rand) []topology.ZoneDemand {
	demand := make([]topology.ZoneDemand, random.IntN(6))
	for i := range demand {
		demand[i] = topology.ZoneDemand{Zone: zoneOf(random.IntN(5)), Share: random.Float64() - 0.1}
	}
	return demand
}

func disturb(random *rand.Rand, e *topology.Endpoint) {
	switch random.IntN(16) {
	case 0:
		e.Ready = topology.False
	case 1:
		e.Ready, e.Terminating = topology.False, topology.True
	case 2:
		e.Conditions = topology.Conditions{}
	case 3:
		if random.IntN(8) == 0 {
			e.Zone = ""
		}
	case 4:
		if random.IntN(4) == 0 {
			e.Cluster = "other"
		}
	case 5:
		e.Node = ""
	case 6:
		e.Node = "node-" + string(rune('a'+random.IntN(9)))
	case 7, 8, 9:
		e.Hints.Zones = []topology.Zone{zoneOf(random.IntN(6))}
	}
}

func TestRowsSumToOne(t *testing.T) {
	eachMode(t, func(t *testing.T, _ *rand.Rand, in plan.Input) {
		t.Helper()
		p := plan.Compute(in)
		var demand plan.Share
		for _, row := range p.Zones {
			demand += row.Demand
			var sum plan.Share
			for _, share := range row.Endpoints {
				sum += share
			}
			drops := in.Service.InternalPolicy == topology.PolicyLocal || !usable(&p)
			if math.Abs(float64(sum-1)) > 1e-9 && !(sum == 0 && drops) {
				t.Errorf("%s sums to %v:\n%s", row.Zone, sum, &p)
			}
		}
		if len(p.Zones) > 0 && math.Abs(float64(demand-1)) > 1e-9 {
			t.Errorf("demand sums to %v:\n%s", demand, &p)
		}
		if p.InZone < 0 || p.InZone > 1+1e-9 || p.Cost < 0 {
			t.Errorf("in zone %v at cost %v:\n%s", p.InZone, p.Cost, &p)
		}
	})
}

func usable(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Endpoints, func(e topology.Endpoint) bool {
		return e.IsReady() || e.IsServing() && e.IsTerminating()
	})
}

func TestNothingGoesToUnreadyEndpoints(t *testing.T) {
	eachMode(t, func(t *testing.T, _ *rand.Rand, in plan.Input) {
		t.Helper()
		p := plan.Compute(in)
		anyReady := slices.ContainsFunc(p.Endpoints, func(e topology.Endpoint) bool { return e.IsReady() })
		for i := range p.Endpoints {
			e := &p.Endpoints[i]
			if e.IsReady() {
				continue
			}
			if !e.Hints.IsZero() {
				t.Errorf("unready %s is hinted:\n%s", e.Addr, &p)
			}
			// kube-proxy's last resorts: none is ready anywhere, or none on the node under policy Local.
			lastResort := !anyReady || in.Service.InternalPolicy == topology.PolicyLocal
			for _, row := range p.Zones {
				if row.Endpoints[i] != 0 && (!lastResort || !e.IsServing() || !e.IsTerminating()) {
					t.Errorf("unready %s gets %v of %s:\n%s", e.Addr, row.Endpoints[i], row.Zone, &p)
				}
			}
		}
	})
}

func TestOverloadAboveTheLimitHasAReason(t *testing.T) {
	eachMode(t, func(t *testing.T, _ *rand.Rand, in plan.Input) {
		t.Helper()
		p := plan.Compute(in)
		limit := stopOf(in.Limits)
		for _, row := range p.Zones {
			if row.Overload <= limit+1e-6 {
				continue
			}
			if !has(p.Reasons, reason.EndpointsOverloaded) {
				t.Errorf("%s has %.2f overload without a reason:\n%s", row.Zone, row.Overload, &p)
			}
			if p.Mode == topology.ModeAuto && p.Hinted {
				t.Errorf("Auto hints in spite of %.2f overload in %s:\n%s", row.Overload, row.Zone, &p)
			}
		}
	})
}

func stopOf(l plan.Limits) float64 {
	start, stop := 0.2, 0.3
	if l.Start > 0 {
		start = l.Start
	}
	if l.Stop > 0 {
		stop = l.Stop
	}
	return max(start, stop)
}

func TestTheOrderOfTheInputDoesNotMatter(t *testing.T) {
	eachMode(t, func(t *testing.T, random *rand.Rand, in plan.Input) {
		t.Helper()
		nodes := anyNodes(random, 3)
		in.Survey = plan.SurveyNodes(nodes)
		want := plan.Compute(in)
		shuffled := *in.Service
		shuffled.Endpoints = slices.Clone(in.Service.Endpoints)
		shuffle(random, shuffled.Endpoints)
		shuffle(random, nodes)
		in.Service, in.Demand = &shuffled, slices.Clone(in.Demand)
		shuffle(random, in.Demand)
		in.Survey = plan.SurveyNodes(nodes)
		got := plan.Compute(in)
		if !reflect.DeepEqual(want, got) {
			t.Errorf("one order gives\n%sanother\n%s", &want, &got)
		}
	})
}

func shuffle[T any](random *rand.Rand, list []T) {
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

func TestPlanningAgainChangesNothing(t *testing.T) {
	eachMode(t, func(t *testing.T, _ *rand.Rand, in plan.Input) {
		t.Helper()
		once := plan.Compute(in)
		in.Previous = &once
		twice := plan.Compute(in)
		if !reflect.DeepEqual(once, twice) {
			t.Errorf("once\n%stwice\n%s", &once, &twice)
		}
		in.Previous = nil
		written := *in.Service
		written.Endpoints = once.Endpoints
		in.Service = &written
		if read := plan.Compute(in); rehinted(&once, &read) != 0 {
			t.Errorf("planned\n%sand read back from the endpoints\n%s", &once, &read)
		}
	})
}

func TestPlanningLeavesItsInputAlone(t *testing.T) {
	eachMode(t, func(t *testing.T, _ *rand.Rand, in plan.Input) {
		t.Helper()
		before := slices.Clone(in.Service.Endpoints)
		previous := plan.Compute(in)
		text := previous.String()
		in.Previous = &previous
		in.Service.Endpoints = in.Service.Endpoints[len(before)/2:]
		plan.Compute(in)
		if !reflect.DeepEqual(before[len(before)/2:], in.Service.Endpoints) || previous.String() != text {
			t.Errorf("planning wrote to its input:\n%s", text)
		}
	})
}

// rehintBound is how many of the endpoints that stay may get other hints when one comes or goes.
func rehintBound(mode topology.Mode, zones, endpoints int) int {
	switch mode {
	case topology.ModeAuto:
		// Hints can only start or stop while the endpoints are fewer than 6 to a zone: beyond that rounding up costs less
		// than the 20 % that are allowed. Once they are on, a zone lacks at most one endpoint and loses at most one.
		return min(6*zones, endpoints)
	case topology.ModeBalanced:
		return endpoints
	default:
		return 0 // an endpoint's hints are its own
	}
}

func TestOneEndpointMoreOrFewerChangesFewHints(t *testing.T) {
	for _, mode := range topology.Modes() {
		t.Run(string(mode), func(t *testing.T) {
			random := newRandom(t)
			for range 20 {
				in := usualInput(random, mode)
				p := plan.Compute(in)
				zones, next := len(in.Survey.Zones), 1000
				for range 60 {
					endpoints := slices.Clone(in.Service.Endpoints)
					if random.IntN(2) == 0 && len(endpoints) > 0 {
						i := random.IntN(len(endpoints))
						endpoints = slices.Delete(endpoints, i, i+1)
					} else {
						next++
						endpoints = append(endpoints, endpoint(next, zoneOf(random.IntN(zones))))
					}
					in.Service.Endpoints, in.Previous = endpoints, &p
					now := plan.Compute(in)
					if n := rehinted(&p, &now); n > rehintBound(mode, zones, len(endpoints)) {
						t.Fatalf("%d endpoints of %d in %d zones were re-hinted, from\n%sto\n%s", n, len(endpoints), zones, &p, &now)
					}
					if p.Hinted && now.Hinted && mode == topology.ModeAuto && rehinted(&p, &now) > zones+1 {
						t.Fatalf("hints stayed on and %d endpoints were re-hinted, from\n%sto\n%s", rehinted(&p, &now), &p, &now)
					}
					p = now
				}
			}
		})
	}
}

// The rows are what Choose gives a client of the zone, split evenly. Hints by node are left to their own tests.
func TestRowsAreWhatAClientChooses(t *testing.T) {
	eachMode(t, func(t *testing.T, _ *rand.Rand, in plan.Input) {
		t.Helper()
		if in.Service.Mode == topology.ModePreferSameNode || in.Service.InternalPolicy == topology.PolicyLocal {
			return
		}
		p := plan.Compute(in)
		port := topology.Port{Name: "http", Protocol: topology.TCP}
		load := make([]plan.Share, len(p.Endpoints))
		for _, row := range p.Zones {
			want := make([]plan.Share, len(p.Endpoints))
			choice := plan.Choose(in.Service, p.Endpoints, port, plan.Client{Node: "some", Zone: row.Zone})
			for _, i := range choice.Cluster {
				want[i] = 1 / plan.Share(len(choice.Cluster))
				load[i] += row.Demand * want[i]
			}
			if !slices.Equal(want, row.Endpoints) {
				t.Fatalf("%s: want %v, got %v:\n%s", row.Zone, want, row.Endpoints, &p)
			}
		}
		checkOverload(t, &p, load)
	})
}

// checkOverload compares each row's overload with the loads of the endpoints, while any is ready. Those of a zone that Balanced
// takes for lost have no fair part.
func checkOverload(t *testing.T, p *plan.Plan, load []plan.Share) {
	t.Helper()
	var lost []string
	for _, r := range p.Reasons {
		if r.Code == reason.ZonesNotReady {
			lost = r.Objects
		}
	}
	counts := func(e *topology.Endpoint) bool { return e.IsReady() && !slices.Contains(lost, string(e.Zone)) }
	ready := 0
	for i := range p.Endpoints {
		if counts(&p.Endpoints[i]) {
			ready++
		}
	}
	for _, row := range p.Zones {
		most, lives := -1.0, false
		for i := range p.Endpoints {
			if e := &p.Endpoints[i]; counts(e) && e.Zone == row.Zone {
				most, lives = max(most, float64(load[i])*float64(ready)-1), true
			}
		}
		if lives && math.Abs(most-row.Overload) > 1e-9 {
			t.Fatalf("%s: overload %v, want %v:\n%s", row.Zone, row.Overload, most, p)
		}
	}
}

// Brute force over all allotments of a few endpoints: Auto hints if and only if one of them is good enough, and when
// hints are there it changes no more of them than the best one has to.
func TestAutoAgreesWithBruteForce(t *testing.T) {
	random := newRandom(t)
	for range 1500 {
		zones := 2 + random.IntN(3)
		cpu := make([]int, zones)
		home := make([]int, zones)
		for z := range cpu {
			cpu[z] = 1 + random.IntN(6)
			home[z] = random.IntN(5)
		}
		in := inputOf(topology.ModeAuto, cores(cpu...), endpointsIn(home...))
		if len(in.Service.Endpoints) < zones {
			continue
		}
		p := plan.Compute(in)
		if _, possible := fewestMoves(cpu, nil, len(p.Endpoints), func(o float64) bool { return o < 0.2-1e-9 }); possible != p.Hinted {
			t.Fatalf("a split below 20 %% exists: %v\n%s", possible, &p)
		}
		if !p.Hinted {
			continue
		}
		before := make([]int, zones)
		for z, row := range p.Zones {
			before[z] = row.Allotted
		}
		cpu[random.IntN(zones)] += random.IntN(9)
		now := plan.Compute(after(p, cores(cpu...), in.Service.Endpoints))
		moves, possible := fewestMoves(cpu, before, len(p.Endpoints), func(o float64) bool { return o <= 0.3+1e-9 })
		if possible != now.Hinted {
			t.Fatalf("a split of at most 30 %% exists: %v\n%s", possible, &now)
		}
		if possible && rehinted(&p, &now) != moves {
			t.Fatalf("%d endpoints were re-hinted, %d suffice, from\n%sto\n%s", rehinted(&p, &now), moves, &p, &now)
		}
	}
}

// fewestMoves tries every way to allot n endpoints to zones, at least one each, with no zone's overload refused. It
// returns how many have to move at least, from the allotment before.
func fewestMoves(cpu, before []int, n int, allowed func(overload float64) bool) (moves int, possible bool) {
	sum := 0
	for _, c := range cpu {
		sum += c
	}
	moves = math.MaxInt
	var try func(z, left, moved int)
	try = func(z, left, moved int) {
		if z == len(cpu) {
			if left == 0 {
				moves, possible = min(moves, moved), true
			}
			return
		}
		for count := 1; count <= left; count++ {
			if !allowed(float64(cpu[z])*float64(n)/float64(sum)/float64(count) - 1) {
				continue
			}
			arriving := 0
			if before != nil {
				arriving = max(0, count-before[z])
			}
			try(z+1, left-count, moved+arriving)
		}
	}
	try(0, n, 0)
	return moves, possible
}

// A cap on the skew is a limit on the overload: what an endpoint gets above its fair part, plus one.
func TestAMaxSkewLowersTheLimits(t *testing.T) {
	eachMode(t, func(t *testing.T, random *rand.Rand, in plan.Input) {
		t.Helper()
		in.Limits = plan.Limits{Start: 0.2, Stop: 0.3}
		capped, lowered := in, in
		capped.MaxSkew = 1 + random.Float64()/2
		lowered.Limits = plan.Limits{Start: min(0.2, capped.MaxSkew-1), Stop: min(0.3, capped.MaxSkew-1)}
		p, want := plan.Compute(capped), plan.Compute(lowered)
		if !reflect.DeepEqual(p, want) {
			t.Fatalf("maxSkew %v: got\n%v\nwant\n%v", capped.MaxSkew, p, want)
		}
		for _, z := range p.Zones {
			isSaid := slices.ContainsFunc(p.Reasons, func(r reason.Reason) bool { return r.Code == reason.OverloadUnavoidable })
			if in.Service.Mode == topology.ModeBalanced && p.Hinted && z.Overload > capped.MaxSkew-1+1e-9 && !isSaid {
				t.Fatalf("maxSkew %v: zone %s has an overload of %v and no reason: %v", capped.MaxSkew, z.Zone, z.Overload, p.Reasons)
			}
		}
	})
}
