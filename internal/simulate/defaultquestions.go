package simulate

import (
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// DefaultQuestions are asked if the user asks none: another mode, the loss of the zone with the most endpoints, twice
// the traffic of each zone, one endpoint more and one less.
func DefaultQuestions(base *scenario.Scenario) ([]Question, error) {
	svc := base.Snapshot.Services[0]
	var all []Question
	for _, mode := range []topology.Mode{
		topology.ModeDisabled, topology.ModeAuto, topology.ModePreferSameZone, topology.ModeBalanced,
	} {
		if mode != svc.Mode {
			all = append(all, AskMode(mode))
		}
	}
	if zones := perZone(base); len(zones) > 1 {
		q, err := AskLoss(base, largest(zones))
		if err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	for _, c := range base.Clients {
		q, err := AskTraffic(base, c.Zone, 2)
		if err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	for _, count := range []int{len(svc.Endpoints) + 1, len(svc.Endpoints) - 1} {
		if count == 0 || count > maxReplicas { // too few to have one less, too many to have one more
			continue
		}
		q, err := AskReplicas(base, "", count)
		if err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	return all, nil
}

// largest is the zone with the most endpoints, the first by name of several.
func largest(count map[topology.Zone]int) topology.Zone {
	var found topology.Zone
	for zone, n := range count {
		if found == "" || n > count[found] || n == count[found] && zone < found {
			found = zone
		}
	}
	return found
}
