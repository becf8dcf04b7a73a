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

// setService gives a scenario another service; the old snapshot stays as it is.
func setService(sc *scenario.Scenario, svc *topology.Service) {
	w := sc.Snapshot
	sc.Snapshot = topology.NewSnapshot(slices.Clone(w.Nodes), []*topology.Service{svc}, w.Costs)
}

// perZone counts a scenario's endpoints.
func perZone(sc *scenario.Scenario) map[topology.Zone]int {
	count := make(map[topology.Zone]int)
	for _, e := range sc.Snapshot.Services[0].Endpoints {
		count[e.Zone]++
	}
	return count
}

// scaled gives the service with count endpoints, in the zone or altogether.
func scaled(sc *scenario.Scenario, zone topology.Zone, count int) (*topology.Service, error) {
	svc := *sc.Snapshot.Services[0]
	s := newScaling(sc)
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
	endpoints []topology.Endpoint
	count     map[topology.Zone]int
	zones     []topology.Zone            // sorted: those that can have endpoints, as they have some, or nodes that take pods
	nodes     map[topology.Zone][]string // that take pods
	last      netip.Addr                 // the highest address that was ever in use
}

func newScaling(sc *scenario.Scenario) *scaling {
	s := &scaling{
		endpoints: slices.Clone(sc.Snapshot.Services[0].Endpoints), count: perZone(sc), nodes: make(map[topology.Zone][]string),
	}
	zones := make(map[topology.Zone]bool)
	for zone := range s.count {
		zones[zone] = true
	}
	for _, z := range plan.SurveyNodes(sc.Snapshot.Nodes).Zones {
		zones[z.Zone] = true
	}
	s.zones = slices.Sorted(maps.Keys(zones))
	for _, n := range sc.Snapshot.Nodes {
		if n.Ready && !n.ControlPlane {
			s.nodes[n.Zone] = append(s.nodes[n.Zone], n.Name)
		}
	}
	for _, e := range s.endpoints {
		if !s.last.IsValid() || s.last.Less(e.Addr) {
			s.last = e.Addr
		}
	}
	return s
}

// emptiest is the first of the zones with the fewest endpoints.
func (s *scaling) emptiest() topology.Zone {
	return slices.MinFunc(s.zones, func(a, b topology.Zone) int { return s.count[a] - s.count[b] })
}

// fullest is the last of the zones with the most endpoints, so that what was added last goes first.
func (s *scaling) fullest() topology.Zone {
	zones := slices.Clone(s.zones)
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
	s.last = s.last.Next()
	e := s.endpoints[0]
	e.Zone, e.Node, e.Pod, e.Hints, e.Addr = zone, s.node(zone), "", topology.Hints{}, s.last
	s.endpoints = append(s.endpoints, e)
	s.count[zone]++
}

// node is one of the zone's nodes, taking turns; empty when there is none.
func (s *scaling) node(zone topology.Zone) string {
	names := s.nodes[zone]
	if len(names) == 0 {
		return ""
	}
	return names[s.count[zone]%len(names)]
}
