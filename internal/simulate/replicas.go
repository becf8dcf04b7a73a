package simulate

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// setService gives a scenario's world another service; the old world stays as it is.
func setService(sc *scenario.Scenario, svc *topology.Service) {
	w := sc.World
	sc.World = topology.NewSnapshot(slices.Clone(w.Nodes), []*topology.Service{svc}, w.Costs)
}

// perZone counts a scenario's endpoints.
func perZone(sc *scenario.Scenario) map[topology.Zone]int {
	count := make(map[topology.Zone]int)
	for _, e := range sc.World.Services[0].Endpoints {
		count[e.Zone]++
	}
	return count
}

// scaled gives the service with count endpoints, in the zone or altogether.
func scaled(sc *scenario.Scenario, zone topology.Zone, count int) (*topology.Service, error) {
	svc := *sc.World.Services[0]
	s := &scaling{world: &sc.World, endpoints: slices.Clone(svc.Endpoints), count: perZone(sc)}
	if zone == "" {
		for len(s.endpoints) > count {
			s.remove(s.fullest())
		}
		for len(s.endpoints) < count {
			s.add(s.emptiest())
		}
	} else {
		for s.count[zone] > count {
			s.remove(zone)
		}
		for s.count[zone] < count {
			s.add(zone)
		}
	}
	if len(s.endpoints) == 0 {
		return nil, fmt.Errorf("%s in zone %s: the service would have no endpoint", plural(count, "replica"), zone)
	}
	svc.Endpoints = s.endpoints
	return &svc, nil
}

// scaling adds and removes endpoints.
type scaling struct {
	world     *topology.Snapshot
	endpoints []topology.Endpoint
	count     map[topology.Zone]int
}

// zones lists those that can have endpoints: they have some, or nodes that take pods.
func (s *scaling) zones() []topology.Zone {
	set := make(map[topology.Zone]bool)
	for zone := range s.count {
		set[zone] = true
	}
	for _, z := range plan.SurveyNodes(s.world.Nodes).Zones {
		set[z.Zone] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// emptiest is the first of the zones with the fewest endpoints.
func (s *scaling) emptiest() topology.Zone {
	return slices.MinFunc(s.zones(), func(a, b topology.Zone) int { return s.count[a] - s.count[b] })
}

// fullest is the last of the zones with the most endpoints, so that what was added last goes first.
func (s *scaling) fullest() topology.Zone {
	zones := s.zones()
	slices.Reverse(zones)
	return slices.MaxFunc(zones, func(a, b topology.Zone) int { return s.count[a] - s.count[b] })
}

// remove takes the zone's last endpoint away.
func (s *scaling) remove(zone topology.Zone) {
	for i, e := range slices.Backward(s.endpoints) {
		if e.Zone == zone {
			s.endpoints = slices.Delete(s.endpoints, i, i+1)
			s.count[zone]--
			return
		}
	}
}

// add makes another endpoint like the others, with the next free address, on a node of the zone.
func (s *scaling) add(zone topology.Zone) {
	e := s.endpoints[0]
	e.Zone, e.Node, e.Pod, e.Hints = zone, s.node(zone), "", topology.Hints{}
	var last netip.Addr
	for _, other := range s.endpoints {
		if !last.IsValid() || last.Less(other.Addr) {
			last = other.Addr
		}
	}
	e.Addr = last.Next()
	s.endpoints = append(s.endpoints, e)
	s.count[zone]++
}

// node is one of the zone's nodes, taking turns; empty when there is none.
func (s *scaling) node(zone topology.Zone) string {
	var names []string
	for _, n := range s.world.Nodes {
		if n.Zone == zone && n.Ready && !n.ControlPlane {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return names[s.count[zone]%len(names)]
}
