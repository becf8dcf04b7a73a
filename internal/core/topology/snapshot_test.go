package topology_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/topology"
)

func TestOrderOfTheInputDoesNotMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		want := randomSnapshot(random)
		shuffled, err := topology.ParseSnapshot(want.String()) // a copy that shares nothing
		if err != nil {
			t.Fatal(err)
		}
		shuffle(random, shuffled.Nodes)
		shuffle(random, shuffled.Services)
		for _, s := range shuffled.Services {
			shuffle(random, s.Ports)
			shuffle(random, s.Endpoints)
			shuffle(random, s.Demand)
			for i := range s.Endpoints {
				shuffle(random, s.Endpoints[i].Ports)
				shuffle(random, s.Endpoints[i].Hints.Zones)
			}
		}
		got := topology.NewSnapshot(shuffled.Nodes, shuffled.Services, shuffled.Costs)
		if diff := cmp.Diff(want, got, same()); diff != "" {
			t.Fatalf("the order of the input shows (-want +got):\n%s", diff)
		}
	}
}

func shuffle[T any](random *rand.Rand, list []T) {
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

func TestSnapshotFindsByName(t *testing.T) {
	s := parse(t, "nodes a:4 eu/b:4 n=eu/-:1; service shop/web; endpoints c:1 -:1; service web")
	if svc := s.Service(topology.ServiceName{Namespace: "shop", Name: "web"}); svc == nil || len(svc.Endpoints) != 2 {
		t.Errorf("want shop/web with two endpoints, got %v", svc)
	}
	if svc := s.Service(topology.ServiceName{Namespace: "shop", Name: "we"}); svc != nil {
		t.Errorf("want no service, got %v", svc)
	}
	if n := s.Node("b-1"); n == nil || n.Zone != "b" {
		t.Errorf("want node b-1, got %v", n)
	}
	if n := s.Node("b-2"); n != nil {
		t.Errorf("want no node, got %v", n)
	}
}

func TestSnapshotKnowsZonesOfNodesAndEndpoints(t *testing.T) {
	s := parse(t, "nodes eu/b:4 us/b:1 a:4 n=eu/-:1; service web; endpoints c:1 -:1 b:1")
	if diff := cmp.Diff([]topology.Zone{"a", "b", "c"}, s.Zones()); diff != "" {
		t.Errorf("zones (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[topology.Zone]string{"b": "eu"}, s.Regions()); diff != "" {
		t.Errorf("regions (-want +got):\n%s", diff)
	}
}

func TestAServiceHasTheFamiliesOfItsClusterIPsAndEndpoints(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	for _, c := range []struct {
		ip, endpoint netip.Addr
		want         []topology.Family
	}{
		{v6, v4, []topology.Family{topology.IPv4, topology.IPv6}},
		{v4, v4, []topology.Family{topology.IPv4}},
		{netip.Addr{}, v6, []topology.Family{topology.IPv6}},
		{v6, netip.Addr{}, []topology.Family{topology.IPv6}},
		{netip.Addr{}, netip.Addr{}, nil},
	} {
		var s topology.Service
		if c.ip.IsValid() {
			s.ClusterIPs = []netip.Addr{c.ip}
		}
		if c.endpoint.IsValid() {
			s.Endpoints = []topology.Endpoint{{Addr: c.endpoint}}
		}
		if got := s.Families(); !slices.Equal(got, c.want) {
			t.Errorf("cluster IP %v, endpoint %v: want %v, got %v", c.ip, c.endpoint, c.want, got)
		}
	}
}

func parse(t *testing.T, text string) topology.Snapshot {
	t.Helper()
	s, err := topology.ParseSnapshot(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
