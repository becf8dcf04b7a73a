package sim_test

import (
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

// tiered is weir with a policy: what zone a's clients do not keep at home goes to b before it goes to c, which is cheaper.
func tiered(tb testing.TB) *strategy.Strategy {
	tb.Helper()
	c := named(tb, "weir")
	only := func(zone topology.Zone) policy.Failover {
		return policy.Failover{From: &policy.FailoverFrom{Zones: []string{"a"}}, To: policy.FailoverTo{Type: policy.FailoverOnly, Zones: []string{string(zone)}}}
	}
	c.Settings = &policy.Settings{HasLocality: true, Conf: policy.Conf{Locality: policy.Locality{
		Failover: []policy.Failover{only("b"), only("c"), {To: policy.FailoverTo{Type: policy.FailoverAny}}},
		Costs:    []policy.Cost{{From: "a", To: "b", Cost: 5}, {From: "a", To: "c", Cost: 1}},
	}}}
	return c
}

// landed is where zone a's clients send under stress, from two seconds after its beginning on: mean shares of the zones.
type landed map[topology.Zone]float64

// land plays a scenario up to the end of its stress.
func land(t *testing.T, sc *scenario.Scenario, c *strategy.Strategy) (landed, *sim.Result) {
	t.Helper()
	sc.Length = sc.Stress.To
	s, err := sim.New(sim.Options{Scenario: sc, Strategy: c, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	shares := sc.Clients[0].Shares // zone a's
	to := make(landed)
	looks := 0.0
	for now := sc.Stress.From + 2*time.Second; now < sc.Stress.To; now += 100 * time.Millisecond {
		s.Step(now)
		looks++
		for i, share := range shares {
			for _, g := range s.Pool(i).Status().Groups {
				to[g.Zone] += g.Share * share
			}
		}
	}
	for zone := range to {
		to[zone] /= looks
	}
	r := s.Result()
	t.Logf("%v good %.3f in zone %.3f", to, r.Affected.Good, r.Affected.InZone)
	return to, r
}

func TestALowerTierIsFilledFirst(t *testing.T) {
	t.Parallel()
	to, r := land(t, story(t, "skew"), tiered(t))
	if to["b"] < 0.15 || to["c"] > 0.02 || r.Affected.Good < 0.95 {
		t.Errorf("%v, good %.3f: want the excess on the first tier and nothing on the second", to, r.Affected.Good)
	}
}

func TestTheNextTierTakesWhatTheLowerOneHasNoRoomFor(t *testing.T) {
	t.Parallel()
	to, r := land(t, story(t, "zone-loss"), tiered(t))
	if to["b"] < 0.4 || to["c"] < 0.02 || r.Affected.Good < 0.85 {
		t.Errorf("%v, good %.3f: want most on the first tier, the rest on the second, and good answers", to, r.Affected.Good)
	}
}

// Half of home is not ready, though the rest of it would cope: 3 of 6 by 1.43 are 71 %.
func TestAThresholdMovesAShare(t *testing.T) {
	t.Parallel()
	sc := story(t, "half-failing")
	for i := range sc.Clients {
		sc.Clients[i].Rate = 400
	}
	sc.Steps[0] = scenario.Step{
		At: sc.Stress.From, Verb: scenario.Refuse, Where: scenario.Where{Zone: "a", Part: 0.5},
	}
	c := tiered(t)
	c.Checks, c.Pool.Threshold = time.Second, 0.7
	to, r := land(t, sc, c)
	if to["a"] < 0.69 || to["a"] > 0.72 || to["c"] > 0.02 || r.Affected.Good < 0.95 {
		t.Errorf("%v, good %.3f: want 71 %% at home and the rest on the first tier", to, r.Affected.Good)
	}
}

// Zone a makes half of the requests and has a third of the endpoints, which cope: nothing but the cap moves them. A cap of 1.2 is
// 40 % of all requests, 80 % of those of zone a.
func TestACapOnTheSkewMovesWhatZonesWouldCopeWith(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		most policy.Number
		want float64
	}{{0, 1}, {2, 1}, {1.2, 0.8}} {
		sc := story(t, "skew")
		for i := range sc.Snapshot.Services {
			sc.Snapshot.Services[i].Demand = []topology.ZoneDemand{{Zone: "a", Share: 2}, {Zone: "b", Share: 1}, {Zone: "c", Share: 1}}
		}
		for i := range sc.Clients {
			sc.Clients[i].Rate = 20
		}
		sc.Steps = nil
		weir := named(t, "weir")
		if c.most > 0 {
			weir.Settings = &policy.Settings{HasLocality: true, Conf: policy.Conf{Locality: policy.Locality{MaxSkew: &c.most}}}
		}
		to, r := land(t, sc, weir)
		if to["a"] < c.want-0.02 || to["a"] > c.want+0.02 || r.Affected.Good < 0.99 {
			t.Errorf("cap %v: %v at home, good %.3f: want %v", c.most, to, r.Affected.Good, c.want)
		}
	}
}
