package policy_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// settingsOf gives the settings under one policy about everything.
func settingsOf(l policy.Locality) policy.Settings {
	s := policy.NewSet(policy.Set{Rules: []policy.Rule{{
		Origin: policy.Origin{Dialect: policy.DialectCRD, Namespace: policy.RootNamespace, Name: "all"},
		Target: policy.Target{Kind: policy.TargetMesh},
		Conf:   policy.Conf{Locality: l},
	}}})
	return s.Resolve(policy.Client{}, policy.Destination{})
}

func in(z topology.Zone) policy.Spot { return policy.Spot{Zone: z} }

// word is a Place in a short form.
func word(p policy.Place) string {
	switch {
	case p == (policy.Place{}):
		return "nobody"
	case p.Excluded:
		return "excluded"
	case p.Home && p.AffinityWeight == 0:
		return "home"
	case p.Home:
		return fmt.Sprintf("home %s:%d", p.Affinity, p.AffinityWeight)
	default:
		return fmt.Sprintf("tier %d", p.Tier)
	}
}

func to(t policy.FailoverType, zones ...string) policy.Failover {
	return policy.Failover{To: policy.FailoverTo{Type: t, Zones: zones}}
}

func from(f policy.Failover, zones ...string) policy.Failover {
	f.From = &policy.FailoverFrom{Zones: zones}
	return f
}

func TestPlaceRowsByZone(t *testing.T) {
	strict := []policy.Failover{to(policy.FailoverNone)}
	ordered := []policy.Failover{
		to(policy.FailoverOnly, "b"),
		from(to(policy.FailoverOnly, "c"), "z"),
		to(policy.FailoverAnyExcept, "lab"),
	}
	for _, c := range []struct {
		name   string
		l      policy.Locality
		client topology.Zone
		want   map[topology.Zone]string
	}{
		{"K-40 S-41 no policy: locality is on", policy.Locality{}, "a", map[topology.Zone]string{"a": "home", "b": "tier 1", "": "tier 1"}},
		{"K-41 disabled is false", policy.Locality{Disabled: new(false)}, "a", map[topology.Zone]string{"a": "home", "b": "tier 1"}},
		{"K-42 S-40 disabled", policy.Locality{Disabled: new(true)}, "a", map[topology.Zone]string{"a": "home", "b": "home", "": "home"}},
		{
			"K-44 only the zone",
			policy.Locality{Failover: strict},
			"a",
			map[topology.Zone]string{"a": "home", "b": "excluded", "": "excluded"},
		},
		{
			"K-50 the first rule that matches, K-51 without gaps",
			policy.Locality{Failover: ordered},
			"a",
			map[topology.Zone]string{"a": "home", "b": "tier 1", "c": "tier 2", "lab": "excluded"},
		},
		{
			"K-50 rules for the client's zone count",
			policy.Locality{Failover: ordered},
			"z",
			map[topology.Zone]string{"b": "tier 1", "c": "tier 2", "d": "tier 3", "lab": "excluded", "z": "home"},
		},
		{
			"K-52 several zones in one rule",
			policy.Locality{Failover: []policy.Failover{to(policy.FailoverOnly, "b", "c")}},
			"a",
			map[topology.Zone]string{"b": "tier 1", "c": "tier 1", "d": "excluded"},
		},
		{
			"K-53 None is terminal", policy.Locality{Failover: []policy.Failover{
				to(policy.FailoverOnly, "b"), from(to(policy.FailoverNone), "a"), to(policy.FailoverAny),
			}}, "a", map[topology.Zone]string{"a": "home", "b": "tier 1", "c": "excluded"},
		},
		{
			"K-53 None for others is not", policy.Locality{Failover: []policy.Failover{
				to(policy.FailoverOnly, "b"), from(to(policy.FailoverNone), "x"), to(policy.FailoverAny),
			}}, "a", map[topology.Zone]string{"b": "tier 1", "c": "tier 2"},
		},
		{
			"K-53 what no rule matches is excluded",
			policy.Locality{Failover: []policy.Failover{from(to(policy.FailoverAny), "x")}},
			"a",
			map[topology.Zone]string{"a": "home", "b": "excluded"},
		},
		{
			"a zone that is not known is in no list", policy.Locality{Failover: []policy.Failover{
				to(policy.FailoverOnly, "b"), to(policy.FailoverAnyExcept, "lab"),
			}}, "a", map[topology.Zone]string{"": "tier 2"},
		},
		{
			"a client without a zone has its first tier at home",
			policy.Locality{Failover: ordered},
			"",
			map[topology.Zone]string{"b": "home", "c": "tier 1", "": "tier 1", "lab": "excluded"},
		},
		{"an empty list of rules is no None", policy.Locality{Failover: []policy.Failover{}}, "a", map[topology.Zone]string{"b": "tier 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := settingsOf(c.l)
			for zone, want := range c.want {
				if got := word(s.Place(in(c.client), in(zone))); got != want {
					t.Errorf("zone %q: want %s, got %s", zone, want, got)
				}
			}
		})
	}
}

func TestK40WithoutAnySettings(t *testing.T) {
	s := (*policy.Set)(nil).Resolve(policy.Client{}, policy.Destination{})
	if got := word(s.Place(in("a"), in("a"))) + ", " + word(s.Place(in("a"), in("b"))); got != "home, tier 1" {
		t.Error(got)
	}
	var zero policy.Settings
	if got := word(zero.Place(in("a"), in("a"))) + ", " + word(zero.Place(in("a"), in("b"))); got != "home, tier 1" {
		t.Error("the zero value: " + got)
	}
}

func TestK43DisabledWinsWhereItArisesByMerging(t *testing.T) {
	root := policy.Origin{Dialect: policy.DialectCRD, Namespace: policy.RootNamespace, Name: "all"}
	own := policy.Origin{Dialect: policy.DialectCRD, Namespace: "shop", Name: "web"}
	s := policy.NewSet(policy.Set{Rules: []policy.Rule{
		{Origin: root, Target: policy.Target{Kind: policy.TargetMesh}, Conf: policy.Conf{Locality: policy.Locality{
			Failover: []policy.Failover{to(policy.FailoverNone)}, Affinity: []policy.Affinity{{Key: "rack"}},
		}}},
		{
			Origin: own, Target: policy.Target{Kind: policy.TargetNamespace, Namespace: "shop"},
			Conf: policy.Conf{Locality: policy.Locality{Disabled: new(true)}},
		},
	}})
	got := s.Resolve(policy.Client{}, policy.Destination{Service: topology.ServiceName{Namespace: "shop", Name: "web"}})
	if p := word(got.Place(in("a"), in("b"))); p != "home" {
		t.Errorf("got %s", p)
	}
	want := []reason.Finding{
		root.Finding("locality.affinity", reason.Unused, "overridden: locality is disabled"),
		root.Finding("locality.failover", reason.Unused, "overridden: locality is disabled"),
	}
	if diff := cmp.Diff(want, got.Notes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]policy.Field{{Path: "locality.disabled", Value: "true", Origin: own}}, got.Fields); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestPlaceRowsByAffinity(t *testing.T) {
	host := func(name, rack string) policy.Spot {
		return policy.Spot{Zone: "a", NodeName: name, Node: policy.Labels{"rack": rack}}
	}
	keys := []policy.Affinity{{Key: "kubernetes.io/hostname"}, {Key: "rack"}}
	weighted := []policy.Affinity{{Key: "rack", Weight: new(int64(5))}, {Key: "kubernetes.io/hostname", Weight: new(int64(50))}}
	podRack := host("n3", "r2")
	podRack.Pod = policy.Labels{"rack": "r1"}
	for _, c := range []struct {
		name     string
		affinity []policy.Affinity
		endpoint policy.Spot
		want     string
	}{
		{"K-45 nothing in common", keys, host("n2", "r2"), "home :1"},
		{"K-46 the first in the list's order", keys, host("n1", "r1"), "home kubernetes.io/hostname=n1:90"},
		{"K-46 the second", keys, host("n2", "r1"), "home rack=r1:9"},
		{"K-46 the order is the list's, not the weights'", weighted, host("n1", "r1"), "home rack=r1:5"},
		{"K-46 the pod's label goes before the node's", keys, podRack, "home rack=r1:9"},
		{"K-46 a label that both lack is not in common", []policy.Affinity{{Key: "none"}}, host("n1", "r1"), "home :1"},
		{"K-47 one key", []policy.Affinity{{Key: "rack"}}, host("n2", "r1"), "home rack=r1:9"},
		{"K-47 three keys", []policy.Affinity{{Key: "rack"}, {Key: "x"}, {Key: "y"}}, host("n2", "r1"), "home rack=r1:900"},
		{"K-49 the group, not the endpoint, has the weight", keys, host("n1", "r9"), "home kubernetes.io/hostname=n1:90"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := settingsOf(policy.Locality{Affinity: c.affinity})
			if got := word(s.Place(host("n1", "r1"), c.endpoint)); got != c.want {
				t.Errorf("want %s, got %s", c.want, got)
			}
			remote := c.endpoint
			remote.Zone = "b"
			if got := word(s.Place(host("n1", "r1"), remote)); got != "tier 1" {
				t.Errorf("affinity counts beyond the zone: %s", got)
			}
		})
	}
}

func TestK47DefaultWeightsOfTheMostAffinitiesFit(t *testing.T) {
	keys := make([]policy.Affinity, policy.MaxAffinity)
	for i := range keys {
		keys[i].Key = fmt.Sprint("k", i)
	}
	s := settingsOf(policy.Locality{Affinity: keys})
	sum := uint64(1)
	for i, a := range s.Locality.Affinity {
		if want := int64(9 * math.Pow10(len(keys)-1-i)); *a.Weight != want {
			t.Errorf("entry %d: want %d, got %d", i, want, *a.Weight)
		}
		sum += uint64(*a.Weight)
	}
	if sum > math.MaxUint32 {
		t.Errorf("the weights come to %d", sum)
	}
}

func TestK48SharesOfDefaultWeights(t *testing.T) {
	for n, want := range map[int][]float64{1: {90, 10}, 2: {90, 9, 1}, 3: {90, 9, 0.9, 0.1}} {
		s := settingsOf(policy.Locality{Affinity: make([]policy.Affinity, n)})
		weights, sum := []float64{}, 1.0
		for _, a := range s.Locality.Affinity {
			weights = append(weights, float64(*a.Weight))
			sum += float64(*a.Weight)
		}
		for i, w := range append(weights, 1) {
			if got := 100 * w / sum; math.Abs(got-want[i]) > 1e-9 {
				t.Errorf("%d keys, group %d: want %v %%, got %v %%", n, i, want[i], got)
			}
		}
	}
}

func TestS42S43FixedWeightsTakeThePlaceOfTheZone(t *testing.T) {
	s := settingsOf(policy.Locality{Weights: []policy.Weight{
		{Key: "topology.kubernetes.io/zone", Value: "us-west", Weight: 1},
		{Key: "topology.kubernetes.io/zone", Value: "eu-north", Weight: 10},
	}})
	for zone, want := range map[topology.Zone]string{
		"us-west":  "home topology.kubernetes.io/zone=us-west:1",
		"eu-north": "home topology.kubernetes.io/zone=eu-north:10",
		"us-east":  "tier 1",
		"":         "tier 1",
	} {
		if got := word(s.Place(in("us-east"), in(zone))); got != want {
			t.Errorf("%s: want %s, got %s", zone, want, got)
		}
	}
	s.Locality.Failover = []policy.Failover{to(policy.FailoverNone)}
	if got := word(s.Place(in("us-east"), in("us-east"))); got != "excluded" {
		t.Errorf("the client's own zone has no weight and no rule allows it: %s", got)
	}
}

func TestZonesAreValuesOfTheZoneKey(t *testing.T) {
	region := func(zone topology.Zone, region string) policy.Spot {
		return policy.Spot{Zone: zone, Node: policy.Labels{"topology.kubernetes.io/region": region}}
	}
	s := settingsOf(policy.Locality{
		ZoneKey:  new("topology.kubernetes.io/region"),
		Affinity: []policy.Affinity{{Key: "topology.kubernetes.io/zone"}},
		Failover: []policy.Failover{
			from(to(policy.FailoverOnly, "us-1", "us-2"), "us-1", "us-2"),
			from(to(policy.FailoverOnly, "eu-1", "eu-2"), "eu-1", "eu-2"),
			to(policy.FailoverAnyExcept, "lab"),
		},
	})
	for _, c := range []struct {
		endpoint policy.Spot
		want     string
	}{
		{region("us-1a", "us-1"), "home topology.kubernetes.io/zone=us-1a:9"},
		{region("us-1b", "us-1"), "home :1"},
		{region("us-2a", "us-2"), "tier 1"},
		{region("eu-1a", "eu-1"), "tier 2"},
		{region("lab", "lab"), "excluded"},
		{policy.Spot{Zone: "us-1a"}, "tier 2"},
	} {
		if got := word(s.Place(region("us-1a", "us-1"), c.endpoint)); got != c.want {
			t.Errorf("%v: want %s, got %s", c.endpoint, c.want, got)
		}
	}
}

func TestHintsDecideTheHome(t *testing.T) {
	hinted := func(z topology.Zone) policy.Spot { return policy.Spot{Zone: z, Hinted: true} }
	client := hinted("a")
	for _, c := range []struct {
		name             string
		l                policy.Locality
		client, endpoint policy.Spot
		want             string
	}{
		{"an endpoint of the zone with a hint", policy.Locality{}, client, hinted("a"), "home"},
		{"one of another zone that is lent", policy.Locality{}, client, hinted("b"), "home"},
		{"one of the zone that is given away", policy.Locality{}, client, in("a"), "tier 1"},
		{"one of another zone without a hint", policy.Locality{}, client, in("b"), "tier 1"},
		{"a rule limits what hints may lend", policy.Locality{Failover: []policy.Failover{to(policy.FailoverNone)}}, client, hinted("b"), "excluded"},
		{"no rule forbids the own zone", policy.Locality{Failover: []policy.Failover{to(policy.FailoverNone)}}, client, in("a"), "tier 1"},
		{"an excluded zone stays so", policy.Locality{Failover: []policy.Failover{to(policy.FailoverAnyExcept, "b")}}, client, hinted("b"), "excluded"},
		{"hints that do not apply", policy.Locality{}, in("a"), hinted("b"), "tier 1"},
		{"hints to a node of a client without a zone", policy.Locality{}, hinted(""), hinted("b"), "home"},
		{"others for a client without a zone", policy.Locality{}, hinted(""), in("b"), "tier 1"},
		{"disabled", policy.Locality{Disabled: new(true)}, client, in("a"), "home"},
		{
			"another zone key has no hints",
			policy.Locality{ZoneKey: new("rack")},
			policy.Spot{Hinted: true, Node: policy.Labels{"rack": "r"}},
			policy.Spot{Node: policy.Labels{"rack": "r"}},
			"home",
		},
		{"affinity counts at home", policy.Locality{Affinity: []policy.Affinity{{Key: "kubernetes.io/hostname"}}}, client, hinted("b"), "home :1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := settingsOf(c.l)
			if got := word(s.Place(c.client, c.endpoint)); got != c.want {
				t.Errorf("want %s, got %s", c.want, got)
			}
		})
	}
}

func TestAnotherClustersZoneIsNotTheClients(t *testing.T) {
	s := settingsOf(policy.Locality{})
	if got := word(s.Place(in("a"), policy.Spot{Zone: "a", Cluster: "west"})); got != "tier 1" {
		t.Error(got)
	}
}

func TestFailoverNamesZonesOfOtherClusters(t *testing.T) {
	only := func(zones ...string) policy.FailoverTo {
		return policy.FailoverTo{Type: policy.FailoverOnly, Zones: zones}
	}
	s := settingsOf(policy.Locality{Failover: []policy.Failover{{To: only("b", "b@west")}, {To: only("@east")}}})
	for _, c := range []struct {
		zone          topology.Zone
		cluster, want string
	}{
		{"b", "", "tier 1"},
		{"b", "west", "tier 1"},
		{"a", "west", "excluded"},
		{"", "west", "excluded"},
		{"b", "east", "tier 2"},
		{"", "east", "tier 2"},
		{"b", "north", "excluded"},
		{"c", "", "excluded"},
	} {
		if got := word(s.Place(in("a"), policy.Spot{Zone: c.zone, Cluster: c.cluster})); got != c.want {
			t.Errorf("zone %q of cluster %q: %s, want %s", c.zone, c.cluster, got, c.want)
		}
	}
	s = settingsOf(policy.Locality{Failover: []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverAnyExcept, Zones: []string{"b", "@east"}}}}})
	for _, c := range []policy.Spot{{Zone: "b"}, {Zone: "b", Cluster: "west"}, {Zone: "a", Cluster: "east"}} {
		if got := word(s.Place(in("a"), c)); got != "excluded" {
			t.Errorf("%+v: %s, want excluded", c, got)
		}
	}
}

func TestPlaceIsOneOfThree(t *testing.T) {
	for seed := range uint64(1000) {
		g := newGenerator(seed)
		s := settingsOf(g.locality())
		spot := func() policy.Spot {
			return policy.Spot{
				Zone: one[topology.Zone](g, "", "a", "b", "c"), Pod: g.labels(), Node: g.labels(),
				NodeName: one(g, "n1", "n2"), Hinted: g.IntN(2) == 0, Cluster: one(g, "", "", "west"),
			}
		}
		client, endpoint := spot(), spot()
		p := s.Place(client, endpoint)
		parts := 0
		for _, is := range []bool{p.Home, p.Tier > 0, p.Excluded} {
			if is {
				parts++
			}
		}
		if parts != 1 || p.Tier < 0 || p.Tier > len(s.Locality.Failover) || !p.Home && (p.Affinity != "" || p.AffinityWeight != 0) {
			t.Fatalf("seed %d: %+v for %+v at %+v under %+v", seed, p, client, endpoint, s.Locality)
		}
	}
}
