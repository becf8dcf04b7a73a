package route_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
)

// zones makes one endpoint in each zone, of the cost that its position gives.
func zones(names string, costs ...topology.Cost) []route.Endpoint {
	var list []route.Endpoint
	for i, name := range names {
		list = append(list, route.Endpoint{
			Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 80), Zone: topology.Zone(string(name)),
			Cost: costs[i], Home: costs[i] == 0,
		})
	}
	return list
}

func order(endpoints []route.Endpoint, rotate uint64) string {
	text := ""
	for _, g := range route.Groups(endpoints, rotate) {
		if g.Key.Home {
			text += "home"
		}
		text += string(g.Key.Zone)
	}
	return text
}

func TestEachClientHasItsOwnOrderOfEquallyDearZones(t *testing.T) {
	list := zones("eadbc", 1, 1, 1, 0, 1)
	for rotate, want := range []string{"homeacde", "homecdea", "homedeac", "homeeacd", "homeacde"} {
		if got := order(list, uint64(rotate)); got != want {
			t.Errorf("rotated by %d: want %s, got %s", rotate, want, got)
		}
	}
}

func TestRotationKeepsCheaperZonesFirst(t *testing.T) {
	list := zones("hdcba", 0, 2, 1, 2, 1)
	for rotate, want := range []string{"homeacbd", "homecadb"} {
		if got := order(list, uint64(rotate)); got != want {
			t.Errorf("rotated by %d: want %s, got %s", rotate, want, got)
		}
	}
}

func TestTierCountsMoreThanCost(t *testing.T) {
	list := zones("hab", 0, 1, 9)
	list[1].Tier, list[2].Tier = 2, 1
	if got := order(list, 0); got != "homeba" {
		t.Errorf("want the dear zone of the lower tier first, got %s", got)
	}
}

func TestOrderOfEndpointsDoesNotChangeTheOrderOfGroups(t *testing.T) {
	list := zones("hdcba", 0, 1, 1, 1, 1)
	for rotate := range uint64(6) {
		back := slices.Clone(list)
		slices.Reverse(back)
		if a, b := order(list, rotate), order(back, rotate); a != b {
			t.Errorf("rotated by %d: %s and, turned round, %s", rotate, a, b)
		}
	}
}
