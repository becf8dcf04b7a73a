package plans_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/plans"
)

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func lookup(t *testing.T, b *plans.Store, name string) *plans.Decision {
	t.Helper()
	d, ok := b.Lookup(names(name)[0])
	if !ok {
		t.Fatalf("no decision for %s", name)
	}
	return d
}

// hinted counts the endpoints of the only plan that are hinted to each zone.
func hinted(d *plans.Decision) map[topology.Zone]int {
	count := make(map[topology.Zone]int)
	for _, e := range d.Plans[0].Endpoints {
		for _, z := range e.Hints.Zones {
			count[z]++
		}
	}
	return count
}

func TestOnlyWhatChangedIsPlannedAgain(t *testing.T) {
	c := newCluster(4000, 4000)
	c.put("a", topology.ModeAuto, slice(1, 2, 2))
	c.put("b", topology.ModeBalanced, slice(2, 2, 2))
	c.put("c", topology.ModeUnset, slice(3, 2, 2))
	b := plans.NewStore(newClock().now)
	equal(t, "the first names", names("a", "b", "c"), b.Update(c.state(), nil))
	first := b.All()
	if len(first[2].Plans) > 0 {
		t.Error("a service that is not managed has a plan")
	}

	equal(t, "names when nothing changed", names(), b.Update(c.state(), nil))
	c.put("b", topology.ModeBalanced, slice(2, 2, 3))
	equal(t, "names when b changed", names("b"), b.Update(c.state(), nil))
	second := b.All()
	if second[0] != first[0] || second[1] == first[1] || second[2] != first[2] {
		t.Error("want a new decision for b only")
	}
	equal(t, "endpoints of b", 5, len(lookup(t, b, "b").Plans[0].Endpoints))

	delete(c.records, "a")
	c.put("d", topology.ModeDisabled, slice(4, 1))
	equal(t, "names when a went and d came", names("a", "d"), b.Update(c.state(), nil))
	if _, ok := b.Lookup(names("a")[0]); ok {
		t.Error("a is gone and still decided")
	}
	equal(t, "names when all went", names("b", "c", "d"), b.Update(newCluster().state(), nil))
}

func TestStoreGivesUpPlansWithManagement(t *testing.T) {
	c := newCluster(4000, 4000)
	c.put("a", topology.ModePreferSameZone, slice(1, 2, 2))
	b := plans.NewStore(newClock().now)
	b.Update(c.state(), nil)
	if !lookup(t, b, "a").Plans[0].Hinted {
		t.Fatal("want hints")
	}
	c.put("a", topology.ModeUnset, slice(1, 2, 2))
	equal(t, "names", names("a"), b.Update(c.state(), nil))
	equal(t, "plans", 0, len(lookup(t, b, "a").Plans))
}

func TestServiceWithoutEndpointsHasAPlanForEachClusterIP(t *testing.T) {
	c := newCluster(4000, 4000)
	c.put("a", topology.ModeAuto)
	r := c.records["a"]
	r.Object.Spec.ClusterIPs = []string{"fd00::1", "10.96.0.1"}
	c.putObject(r.Object)
	b := plans.NewStore(newClock().now)
	b.Update(c.state(), nil)
	var families []topology.Family
	for _, p := range lookup(t, b, "a").Plans {
		families = append(families, p.Family)
		equal(t, "reason", reason.NoEndpoints, p.Reasons[0].Code)
	}
	equal(t, "families", topology.Families(), families)
}

// Nine endpoints, three in each zone: zone-a asks for 3 × (share × 3), so that CPU decides how overloaded it is.
func TestNodesAloneChangeAutoHintsOnlyAcrossAThreshold(t *testing.T) {
	c := newCluster(4000, 4000, 4000)
	list := slice(1, 3, 3, 3)
	c.put("a", topology.ModeAuto, list)
	b := plans.NewStore(newClock().now)
	b.Update(c.state(), nil)
	c.put("a", topology.ModeAuto, written(list, lookup(t, b, "a")))
	b.Update(c.state(), nil)

	c.nodes[0].CPU = 5000 // 3.46 desired of 9: 15 % overload
	before := lookup(t, b, "a")
	equal(t, "names within the thresholds", names(), b.Update(c.state(), nil))
	now := lookup(t, b, "a")
	if now == before {
		t.Error("want the newest numbers")
	}
	equal(t, "hints within the thresholds", map[topology.Zone]int{"zone-a": 3, "zone-b": 3, "zone-c": 3}, hinted(now))

	c.nodes[0].CPU = 8000 // 4.5 desired: 50 % overload
	equal(t, "names across a threshold", names("a"), b.Update(c.state(), nil))
	if n := hinted(lookup(t, b, "a"))["zone-a"]; n < 4 {
		t.Errorf("%d endpoints for zone-a, want at least 4", n)
	}
}

func TestUnhintedServiceIsPlannedAgainWhenNodesChange(t *testing.T) {
	c := newCluster(4000, 4000)
	c.nodes = append(c.nodes, topology.Node{Name: "lost", CPU: 4000, Ready: true})
	c.put("a", topology.ModeAuto, slice(1, 3, 3))
	b := plans.NewStore(newClock().now)
	b.Update(c.state(), nil)
	p := lookup(t, b, "a").Plans[0]
	if p.Hinted || p.Reasons[0].Code != reason.NodesWithoutZone {
		t.Fatalf("want no hints because of the node without a zone:\n%s", &p)
	}
	c.nodes[2].Zone = "zone-a"
	equal(t, "names", names("a"), b.Update(c.state(), nil))
	if p := lookup(t, b, "a").Plans[0]; !p.Hinted {
		t.Errorf("want hints:\n%s", &p)
	}
}

func TestOtherReasonsAreWorthALook(t *testing.T) {
	c := newCluster(4000, 4000)
	c.nodes = append(c.nodes, topology.Node{Name: "lost", CPU: 4000, Ready: true})
	c.put("a", topology.ModeAuto, slice(1, 3, 3))
	b := plans.NewStore(newClock().now)
	b.Update(c.state(), nil)
	c.nodes = c.nodes[:2]
	c.nodes[1].Zone = "zone-a" // one zone is left: still no hints, for another reason
	equal(t, "names", names("a"), b.Update(c.state(), nil))
}

func TestCostsCountAsAChangeForAll(t *testing.T) {
	c := newCluster(4000, 4000)
	c.put("a", topology.ModeBalanced, slice(1, 2, 2))
	b := plans.NewStore(newClock().now)
	b.Update(c.state(), nil)
	before := lookup(t, b, "a")
	c.costs = topology.Costs{Pairs: map[topology.ZonePair]topology.Cost{}} // no way costs anything
	b.Update(c.state(), nil)
	if lookup(t, b, "a") == before {
		t.Error("the costs changed and nothing was planned again")
	}
}

// Seven endpoints for two equal zones: at home the three of zone-b would each get a sixth more than the mean. A cap of 1 allows
// nothing above it, so that an endpoint of zone-a is lent to zone-b.
func TestPlansKeepTheMaxSkewOfPolicies(t *testing.T) {
	c := newCluster(4000, 4000)
	c.put("a", topology.ModeBalanced, slice(1, 4, 3))
	c.put("b", topology.ModeBalanced, slice(2, 2, 2))
	capped := func(skew policy.Number, clients policy.Clients) *policy.Set {
		return policy.NewSet(policy.Set{Rules: []policy.Rule{{
			Origin: policy.Origin{Dialect: policy.DialectCRD, Namespace: "shop", Name: "p"}, Clients: clients,
			Target: policy.Target{Kind: policy.TargetService, Namespace: "shop", Name: "a"},
			Conf:   policy.Conf{Locality: policy.Locality{MaxSkew: &skew}},
		}}})
	}
	most := func(s *plans.Store) float64 {
		highest := 0.0
		for _, z := range lookup(t, s, "a").Plans[0].Zones {
			highest = max(highest, z.Overload)
		}
		return highest
	}
	s := plans.NewStore(newClock().now)
	s.Update(c.state(), nil)
	if got := most(s); got < 0.1 {
		t.Fatalf("without a cap the overload is %.3f, want a sixth", got)
	}
	other := lookup(t, s, "b")
	equal(t, "names when the cap came", names("a"), s.Update(c.state(), capped(1, policy.Clients{})))
	if got := most(s); got > 1e-9 {
		t.Errorf("with a cap of 1 the overload is %.3f", got)
	}
	if lookup(t, s, "b") != other {
		t.Error("a service that no policy is about was planned again")
	}
	first := lookup(t, s, "a")
	equal(t, "names when the set was another with the same cap", names(), s.Update(c.state(), capped(1, policy.Clients{})))
	if lookup(t, s, "a") != first {
		t.Error("the same cap made another plan")
	}
	equal(t, "names when the cap was one of some clients", names("a"),
		s.Update(c.state(), capped(1, policy.Clients{Zones: []topology.Zone{"zone-a"}})))
	if got := most(s); got < 0.1 {
		t.Errorf("a cap of some clients changed the hints, which are for all: overload %.3f", got)
	}
}

func TestChangedIsWhenTheChangeWasSeen(t *testing.T) {
	c, at := newCluster(4000, 4000, 4000), newClock()
	list := slice(1, 3, 3, 3)
	c.put("a", topology.ModeAuto, list)
	b := plans.NewStore(at.now)
	b.Update(c.state(), nil)
	first := at.now()
	equal(t, "at first", first, lookup(t, b, "a").Changed)

	at.pass(time.Second)
	b.Update(c.state(), nil)
	equal(t, "when nothing changed", first, lookup(t, b, "a").Changed)
	c.nodes[0].CPU = 4100
	b.Update(c.state(), nil)
	equal(t, "when only numbers changed", first, lookup(t, b, "a").Changed)
	c.put("a", topology.ModeAuto, list)
	b.Update(c.state(), nil)
	equal(t, "when the objects changed", at.now(), lookup(t, b, "a").Changed)
	at.pass(time.Second)
	c.nodes[0].CPU = 9000
	b.Update(c.state(), nil)
	equal(t, "when nodes changed the hints", at.now(), lookup(t, b, "a").Changed)
}

func TestStrippedHintsAreRemembered(t *testing.T) {
	c := newCluster(4000, 4000, 4000)
	list := slice(1, 5, 3, 1) // one endpoint has to leave home, at least
	c.put("a", topology.ModeAuto, list)
	b := plans.NewStore(newClock().now)
	b.Update(c.state(), nil)
	first := lookup(t, b, "a")
	c.put("a", topology.ModeAuto, written(list, first))
	b.Update(c.state(), nil)

	c.put("a", topology.ModeAuto, list) // somebody took all of them off
	b.Update(c.state(), nil)
	equal(t, "hints after they were stripped", hintsOf(first), hintsOf(lookup(t, b, "a")))

	// Hysteresis too: within the second threshold hints stay, also where somebody took them off.
	c.nodes[0].CPU = 4800
	b.Update(c.state(), nil)
	if !lookup(t, b, "a").Plans[0].Hinted {
		t.Error("want hints to stay")
	}
}

func TestHintsThatAreThereCountAsTheyStand(t *testing.T) {
	c := newCluster(4000, 4000)
	list := slice(1, 2, 2)
	c.put("a", topology.ModeAuto, list)
	b := plans.NewStore(newClock().now)
	b.Update(c.state(), nil)

	swapped := list.DeepCopy() // as another replica may have planned it
	for i := range swapped.Endpoints {
		swapped.Endpoints[i].Hints = &discoveryv1.EndpointHints{
			ForZones: []discoveryv1.ForZone{{Name: string(zoneName((i + 1) % 2))}},
		}
	}
	c.put("a", topology.ModeAuto, swapped)
	b.Update(c.state(), nil)
	var want []string
	for i := range 4 {
		want = append(want, fmt.Sprintf("10.1.0.%d %s", i+1, zoneName((i+1)%2)))
	}
	equal(t, "hints", want, hintsOf(lookup(t, b, "a")))
}

func TestAZoneThatGoesIsOnePass(t *testing.T) {
	const perZone, services = 1000, 200
	c := newCluster()
	for z := range 3 {
		for i := range perZone {
			c.nodes = append(c.nodes, topology.Node{Name: fmt.Sprintf("n%d-%d", z, i), Zone: zoneName(z), CPU: 4000, Ready: true})
		}
	}
	for i := range services {
		c.put(fmt.Sprintf("s%03d", i), topology.ModeAuto, slice(1+i, 3, 3, 3))
	}
	b := plans.NewStore(newClock().now)
	b.Update(c.state(), nil)
	c.nodes = slices.DeleteFunc(c.nodes, func(n topology.Node) bool { return n.Zone == "zone-c" })
	equal(t, "services to look at", services, len(b.Update(c.state(), nil)))
	for _, d := range b.All() {
		if got := hinted(d); got["zone-c"] > 0 || got["zone-a"]+got["zone-b"] != 9 {
			t.Fatalf("%s: hints %v, want 9 for zone-a and zone-b", d.Record.Name, got)
		}
	}
}

func TestLookupWhileUpdating(t *testing.T) {
	c := newCluster(4000, 4000)
	for i := range 50 {
		c.put(fmt.Sprintf("s%d", i), topology.ModeBalanced, slice(1+i, 2, 1))
	}
	b := plans.NewStore(newClock().now)
	b.Update(c.state(), nil)
	states := []*feed.State{c.state()}
	for i := range 10 {
		c.nodes[0].CPU = topology.MilliCPU(1000 * (i + 1))
		states = append(states, c.state())
	}
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if d, ok := b.Lookup(names("s7")[0]); !ok || len(d.Plans) != 1 || len(b.All()) != 50 {
					t.Error("a reader saw half a store")
					return
				}
			}
		})
	}
	for _, s := range states {
		b.Update(s, nil)
	}
	close(stop)
	readers.Wait()
}

func TestBookFollowsEveryState(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	c := newCluster(4000, 4000)
	b := plans.NewStore(newClock().now)
	for range 300 {
		name := fmt.Sprintf("s%d", random.IntN(20))
		if random.IntN(2) == 0 {
			delete(c.records, name)
		} else {
			c.put(name, topology.Modes()[random.IntN(len(topology.Modes()))], slice(random.IntN(9), random.IntN(3), random.IntN(3)))
		}
		s := c.state()
		b.Update(s, nil)
		all := b.All()
		if len(all) != len(s.Records) {
			t.Fatalf("%d decisions for %d services", len(all), len(s.Records))
		}
		for i, r := range s.Records {
			if all[i].Record != r {
				t.Fatalf("%s is decided by another record than the newest", r.Name)
			}
		}
	}
}
