package plans_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/plans"
)

// decided plans one service over two equal zones.
func decided(t *testing.T, mode topology.Mode, list ...*discoveryv1.EndpointSlice) *plans.Decision {
	t.Helper()
	c := newCluster(4000, 4000)
	c.put("a", mode, list...)
	b := plans.NewStore(newClock().now)
	b.Update(c.state(), nil)
	return lookup(t, b, "a")
}

func at(addr string, port uint16, zone topology.Zone, node string) *topology.Endpoint {
	return &topology.Endpoint{
		Addr: netip.MustParseAddr(addr), Zone: zone, Node: node,
		Ports: []topology.EndpointPort{{Name: "http", Protocol: topology.TCP, Port: port}},
	}
}

func TestHintsOfAnEndpoint(t *testing.T) {
	unready := func(e *topology.Endpoint) *topology.Endpoint {
		e.Ready = topology.False
		return e
	}
	waiting := slice(1, 2, 1)
	waiting.Endpoints[2].Conditions.Ready = new(false) // 10.1.0.3 in zone-b
	onlyA := topology.Hints{Zones: []topology.Zone{"zone-a"}}
	cases := map[string]struct {
		mode topology.Mode
		e    *topology.Endpoint
		want topology.Hints
	}{
		"planned":                            {topology.ModePreferSameZone, at("10.1.0.1", 8080, "zone-a", "n0"), onlyA},
		"planned and by now elsewhere":       {topology.ModePreferSameZone, at("10.1.0.1", 8080, "zone-b", "n1"), onlyA},
		"planned and by now unready":         {topology.ModePreferSameZone, unready(at("10.1.0.1", 8080, "zone-a", "n0")), topology.Hints{}},
		"the same address, another port":     {topology.ModePreferSameZone, at("10.1.0.1", 9090, "zone-b", "n1"), onlyA},
		"not known":                          {topology.ModePreferSameZone, at("10.9.9.9", 8080, "zone-b", "n1"), topology.Hints{Zones: []topology.Zone{"zone-b"}}},
		"not known, of no zone":              {topology.ModePreferSameZone, at("10.9.9.9", 8080, "", "n1"), topology.Hints{}},
		"not known and unready":              {topology.ModePreferSameZone, unready(at("10.9.9.9", 8080, "zone-b", "n1")), topology.Hints{}},
		"unready when planned, ready by now": {topology.ModePreferSameZone, at("10.1.0.3", 8080, "zone-b", "n1"), topology.Hints{Zones: []topology.Zone{"zone-b"}}},
		"not known, by node": {
			topology.ModePreferSameNode, at("10.9.9.9", 8080, "zone-b", "n1"),
			topology.Hints{Zones: []topology.Zone{"zone-b"}, Nodes: []string{"n1"}},
		},
		"of a family without a plan": {topology.ModePreferSameZone, at("fd00::1", 8080, "zone-a", "n0"), topology.Hints{}},
		"no hints planned":           {topology.ModeDisabled, at("10.1.0.1", 8080, "zone-a", "n0"), topology.Hints{}},
		"not managed":                {topology.ModeUnset, at("10.1.0.1", 8080, "zone-a", "n0"), topology.Hints{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			equal(t, "hints", c.want, decided(t, c.mode, waiting).Hints(c.e))
		})
	}
}

func TestAnAddressWithSeveralPortsIsFoundByItsPorts(t *testing.T) {
	first, second := slice(1, 1), slice(2, 0, 1)
	second.Endpoints[0].Addresses = first.Endpoints[0].Addresses
	second.Ports = []discoveryv1.EndpointPort{{Name: new("admin"), Port: new(int32(9000))}}
	d := decided(t, topology.ModePreferSameZone, first, second)
	web := at("10.1.0.1", 8080, "zone-x", "")
	equal(t, "by http", topology.Hints{Zones: []topology.Zone{"zone-a"}}, d.Hints(web))
	admin := at("10.1.0.1", 9000, "zone-x", "")
	admin.Ports[0].Name = "admin"
	equal(t, "by admin", topology.Hints{Zones: []topology.Zone{"zone-b"}}, d.Hints(admin))
	equal(t, "by none of them", topology.Hints{Zones: []topology.Zone{"zone-x"}}, d.Hints(at("10.1.0.1", 1, "zone-x", "")))
}

// write writes the decision to the slices, at most the given number of them, and gives how many differed.
func (c *cluster) write(d *plans.Decision, limit int) int {
	r := c.records[d.Record.Name.Name]
	list, differing := make([]*discoveryv1.EndpointSlice, len(r.Slices)), 0
	for i, s := range r.Slices {
		list[i] = s
		if after := written(s, d); after != s {
			if differing++; differing <= limit {
				list[i] = after
			}
		}
	}
	if differing > 0 {
		c.putObject(r.Object, list...)
	}
	return differing
}

// Replicas that lived through different histories write in turn, one slice at a time, as an unlucky leader and the
// webhooks of the others may: they must come to rest.
func TestReplicasWithDifferentHistoriesAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	modes := []topology.Mode{topology.ModeAuto, topology.ModeBalanced, topology.ModePreferSameZone, topology.ModePreferSameNode}
	slowest := 0
	for run := range 300 {
		c := newCluster(4000, 4000, 4000)
		replicas := []*plans.Store{plans.NewStore(newClock().now), plans.NewStore(newClock().now)}
		for range 6 {
			for z := range c.nodes {
				c.nodes[z].CPU = topology.MilliCPU(1000 * (1 + random.IntN(6)))
			}
			list := make([]*discoveryv1.EndpointSlice, 1+random.IntN(4))
			for i := range list {
				list[i] = slice(i, random.IntN(6), random.IntN(6), random.IntN(6))
				for k := range list[i].Endpoints {
					e := &list[i].Endpoints[k]
					e.Conditions.Ready = new(random.IntN(8) > 0)
					if random.IntN(4) > 0 { // what somebody left there
						e.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: string(zoneName(random.IntN(3)))}}}
					}
				}
			}
			c.put("a", modes[run%len(modes)], list...)
			replicas[random.IntN(2)].Update(c.state(), nil) // the other one missed it
		}
		turn, quiet := 0, 0
		for ; quiet < 2; turn++ {
			if turn > 24 {
				t.Fatalf("run %d: two replicas still write after %d turns:\n%v", run, turn, hintsOf(lookup(t, replicas[0], "a")))
			}
			replica := replicas[turn%2]
			replica.Update(c.state(), nil)
			if c.write(lookup(t, replica, "a"), 1+random.IntN(2)) > 0 {
				quiet = 0
			} else {
				quiet++
			}
		}
		slowest = max(slowest, turn)
		for _, r := range replicas {
			r.Update(c.state(), nil)
		}
		equal(t, fmt.Sprintf("run %d: hints of both", run), hintsOf(lookup(t, replicas[0], "a")), hintsOf(lookup(t, replicas[1], "a")))
	}
	t.Logf("at most %d turns of one or two slices each", slowest)
}
