package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
)

// crowd is a set with rules that tell its clients apart.
func crowd() policy.Set {
	offline := aboutWeb("offline", algorithm(policy.RoundRobin))
	offline.Clients = policy.Clients{
		Zones: []topology.Zone{"a"}, Pods: policy.Selector{{Key: "tier", Operator: policy.In, Values: []string{"offline"}}},
	}
	batch := aboutWeb("batch", algorithm(policy.Random))
	batch.Origin.Namespace, batch.Clients.Namespace = "batch", "batch"
	zoned := aboutWeb("zoned", algorithm(policy.Random))
	zoned.Clients.Zones = []topology.Zone{"b"}
	cart := aboutWeb("cart", algorithm(policy.Random))
	cart.Clients.Service = &topology.ServiceName{Namespace: "shop", Name: "cart"}
	cart.Origin.Dialect = policy.DialectMeshLoadBalancing
	elsewhere := aboutWeb("elsewhere", algorithm(policy.Random))
	elsewhere.Target.Name, elsewhere.Clients.Namespace = "other", "batch"
	grpc := aboutWeb("grpc", algorithm(policy.Random))
	grpc.Target.Section, grpc.Clients.Namespace = "grpc", "batch"
	route := aboutRoute("route", "search", "", "q")
	route.Clients.Namespaces = policy.Selector{{Key: "team", Operator: policy.Exists}}
	return policy.Set{
		Rules:      []policy.Rule{offline, batch, zoned, cart, elsewhere, grpc, route},
		Routes:     []policy.Route{search()},
		Namespaces: map[string]policy.Labels{"red": {"team": "red"}},
		Pods: []policy.Pod{
			{Namespace: "batch", Name: "a", Labels: policy.Labels{"tier": "offline"}},
			{Namespace: "batch", Name: "b"},
			{Namespace: "red", Name: "c"},
			{Namespace: "shop", Name: "d", Labels: policy.Labels{"tier": "offline"}},
			{Namespace: "shop", Name: "e", Labels: policy.Labels{"tier": "online"}},
			{Namespace: "shop", Name: "f", Labels: policy.Labels{"tier": "offline"}},
		},
	}
}

func TestClassesGroupClientsByTheRulesAboutThem(t *testing.T) {
	s := policy.NewSet(crowd())
	elsewhere := web
	elsewhere.Service.Name = "third"
	clients := map[string]policy.Client{"cart": {Namespace: "shop", Serves: []topology.ServiceName{{Namespace: "shop", Name: "cart"}}}}
	for _, p := range s.Pods {
		clients[p.Name] = policy.Client{Namespace: p.Namespace, Pod: p.Labels}
	}
	got := make(map[string]string)
	for name, c := range clients {
		got[name] = s.ClassOf(c, web)
		if id := s.ClassOf(c, elsewhere); id != "" {
			t.Errorf("%s has the class %q for a service that no rule is about", name, id)
		}
	}
	want := map[string]string{
		"a": "batch/batch#0,shop/offline#0", "b": "batch/batch#0", "c": "shop/route#0", "d": "shop/offline#0", "e": "",
		"f": "shop/offline#0", "cart": "MeshLoadBalancing/cart#0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !s.TellsApart(web) || s.TellsApart(elsewhere) || (*policy.Set)(nil).TellsApart(web) {
		t.Error("TellsApart")
	}
}

func TestClassOfKeepsItsNameWhenAConfIsEdited(t *testing.T) {
	client := policy.Client{Namespace: "shop", Pod: policy.Labels{"tier": "offline"}}
	before := crowd()
	after := crowd()
	after.Rules[0].Conf = algorithm(policy.Maglev)
	if a, b := policy.NewSet(before).ClassOf(client, web), policy.NewSet(after).ClassOf(client, web); a != b || a != "shop/offline#0" {
		t.Errorf("got %q, then %q", a, b)
	}
	if got := policy.NewSet(before).ClassOf(policy.Client{Zone: "b"}, web); got != "" {
		t.Errorf("a zone alone makes the class %q", got)
	}
	if got := (*policy.Set)(nil).ClassOf(client, web); got != "" {
		t.Error(got)
	}
}

func TestClientsOfAClassInOneZoneHaveEqualSettings(t *testing.T) {
	for seed := range uint64(100) {
		g := newGenerator(seed)
		s := policy.NewSet(g.set())
		d := g.destination()
		byClass := make(map[string]policy.Settings)
		for range 20 {
			c := g.client()
			c.Zone = "a"
			id, got := s.ClassOf(c, d), s.Resolve(c, d)
			if want, ok := byClass[id]; ok {
				equalSettings(t, want, got)
			}
			byClass[id] = got
		}
	}
}
