package policy_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

func TestPodsAreFoundByNameAndAddress(t *testing.T) {
	s := policy.NewSet(policy.Set{Pods: []policy.Pod{ // not sorted
		{Namespace: "shop", Name: "web-1", IPs: []string{"10.0.0.2", "fd00::2"}},
		{Namespace: "shop", Name: "web-0", IPs: []string{"10.0.0.1", "10.0.0.9", "nonsense"}},
		{Namespace: "bank", Name: "web-1", IPs: []string{"10.0.0.9", "10.0.0.3"}},
		{Namespace: "zoo", Name: "a", IPs: []string{"10.0.0.9"}},
	}})
	for ip, want := range map[string]string{
		"10.0.0.1": "shop/web-0", "::ffff:10.0.0.2": "shop/web-1", "fd00::2": "shop/web-1", "10.0.0.3": "bank/web-1",
		"10.0.0.9": "", "10.0.0.4": "",
	} {
		got := ""
		if p := s.PodByIP(netip.MustParseAddr(ip)); p != nil {
			got = p.Namespace + "/" + p.Name
		}
		if got != want {
			t.Errorf("%s: want %q, got %q", ip, want, got)
		}
	}
	if p := s.Pod("bank", "web-1"); p == nil || p.IPs[1] != "10.0.0.3" {
		t.Errorf("got %v", p)
	}
	if p := s.Pod("bank", "web-0"); p != nil {
		t.Errorf("got %v", p)
	}
	var none *policy.Set
	if none.Pod("a", "b") != nil || none.PodByIP(netip.IPv4Unspecified()) != nil || none.UnknownZones(nil) != nil {
		t.Error("a set that is not there knows something")
	}
	plain := &policy.Set{Pods: []policy.Pod{{Namespace: "b", Name: "b"}, {Namespace: "a", Name: "a"}}}
	if plain.Pod("a", "a") == nil || plain.Pod("c", "c") != nil {
		t.Error("a set that NewSet did not make does not find its pods")
	}
}

func TestKeepGivesRefusedDocumentsTheirLastGoodRules(t *testing.T) {
	named := func(name string, entry int, a policy.Algorithm) policy.Rule {
		r := aboutWeb(name, algorithm(a))
		r.Origin.Entry, r.Origin.Source = entry, reason.Position{File: "file", Line: 1}
		return r
	}
	before := policy.NewSet(policy.Set{Rules: []policy.Rule{
		named("kept", 0, policy.Random), named("kept", 1, policy.Random), named("deleted", 0, policy.Random), named("edited", 0, policy.Random),
	}})
	now := policy.NewSet(policy.Set{Rules: []policy.Rule{named("edited", 0, policy.Maglev), named("new", 0, policy.Maglev)}})
	refused := []policy.Origin{origin("shop", "kept"), origin("shop", "edited"), origin("bank", "deleted")}
	got := now.Keep(before, refused)
	names := make(map[string]policy.Algorithm)
	for _, r := range got.Rules {
		names[r.Origin.Name] = r.Conf.LoadBalancer.Type
	}
	want := map[string]policy.Algorithm{"kept": policy.Random, "edited": policy.Maglev, "new": policy.Maglev}
	if diff := cmp.Diff(want, names); diff != "" || len(got.Rules) != 4 {
		t.Errorf("%d rules (-want +got)\n%s", len(got.Rules), diff)
	}
	if got.Resolve(policy.Client{}, web).LoadBalancer.Type != policy.Maglev { // edited comes before kept
		t.Error("the kept rules are not in their place")
	}
	if diff := cmp.Diff([]policy.Origin{refused[0], refused[2]}, got.Refused); diff != "" {
		t.Errorf("refused (-want +got)\n%s", diff)
	}
	if !got.LastGood(refused[0]) || got.LastGood(refused[2]) {
		t.Error("it is not told which refused documents go on")
	}
	if len(now.Rules) != 2 || len(now.Refused) != 0 || now.Keep(before, nil) != now {
		t.Error("a set changed for which nothing was to be kept")
	}
	mesh := refused[0]
	mesh.Dialect = policy.DialectMeshLoadBalancing
	for i, same := range []*policy.Set{
		now.Keep(nil, refused), now.Keep(before, refused[2:]), now.Keep(before, []policy.Origin{mesh}),
	} {
		if len(same.Rules) != 2 || len(same.Refused) == 0 {
			t.Errorf("set %d has %d rules and %d refused documents", i, len(same.Rules), len(same.Refused))
		}
	}
}

func TestUnknownZones(t *testing.T) {
	picky := aboutWeb("p", policy.Conf{Locality: policy.Locality{
		Failover: []policy.Failover{from(to(policy.FailoverOnly, "b", "moon"), "mars"), to(policy.FailoverAnyExcept, "lab")},
		Weights:  []policy.Weight{{Key: "topology.kubernetes.io/zone", Value: "sun"}, {Key: "rack", Value: "r"}},
		Costs:    []policy.Cost{{From: "a", To: "venus"}},
	}})
	picky.Clients.Zones = []topology.Zone{"a", "pluto"}
	regions := meshWide("r", policy.Conf{Locality: policy.Locality{
		ZoneKey: new("region"), Failover: []policy.Failover{to(policy.FailoverOnly, "eu", "us", "cn")},
	}})
	s := policy.NewSet(policy.Set{
		Rules: []policy.Rule{picky, regions},
		Nodes: map[string]policy.Labels{"n": {"region": "eu"}, "m": {}},
		Pods:  []policy.Pod{{Labels: policy.Labels{"region": "us"}}},
	})
	got := make(map[string]string)
	for _, n := range s.UnknownZones([]topology.Zone{"a", "b", "lab"}) {
		got[n.Object.Name+" "+n.Field] = n.Message
	}
	want := map[string]string{
		"p clients.zones[1]":                   `there is no zone "pluto"`,
		"p locality.weights[0].value":          `there is no zone "sun"`,
		"p locality.failover[0].from.zones[0]": `there is no zone "mars"`,
		"p locality.failover[0].to.zones[1]":   `there is no zone "moon"`,
		"p locality.costs[0].to":               `there is no zone "venus"`,
		"r locality.failover[0].to.zones[2]":   `there is no zone "cn"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if notes := policy.NewSet(policy.Set{Rules: []policy.Rule{picky}}).UnknownZones(nil); notes != nil {
		t.Errorf("nothing is known, and yet: %v", notes)
	}
}
