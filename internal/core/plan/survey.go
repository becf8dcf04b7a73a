package plan

import (
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/topology"
)

// SurveyNodes sums up the nodes, in any order. Only ready nodes that are not control plane count; unready ones still
// tell the region of their zone.
//
// Source: KEP-2433 for what counts. Taints, cordons and what runs on a node are not looked at.
func SurveyNodes(nodes []topology.Node) Survey {
	sorted := slices.Clone(nodes)
	slices.SortFunc(sorted, func(a, b topology.Node) int { return strings.Compare(a.Name, b.Name) })
	s := Survey{Regions: make(map[topology.Zone]string)}
	zones := make(map[topology.Zone]*ZoneCapacity)
	for i := range sorted {
		n := &sorted[i]
		if _, ok := s.Regions[n.Zone]; !ok && n.Zone != "" && n.Region != "" {
			s.Regions[n.Zone] = n.Region
		}
		if !n.Ready && !n.ControlPlane && n.Zone != "" {
			s.Lost = append(s.Lost, n.Zone)
		}
		if !n.Ready || n.ControlPlane {
			continue
		}
		s.Nodes++
		if n.CPU <= 0 {
			s.WithoutCPU = append(s.WithoutCPU, n.Name)
		}
		if n.Zone == "" {
			s.WithoutZone = append(s.WithoutZone, n.Name)
			continue
		}
		if zones[n.Zone] == nil {
			zones[n.Zone] = &ZoneCapacity{Zone: n.Zone}
		}
		zones[n.Zone].Nodes++
		zones[n.Zone].CPU += max(n.CPU, 0)
	}
	s.Lost = slices.DeleteFunc(s.Lost, func(z topology.Zone) bool { return zones[z] != nil })
	slices.Sort(s.Lost)
	s.Lost = slices.Compact(s.Lost)
	for _, z := range zones {
		s.Zones = append(s.Zones, *z)
	}
	slices.SortFunc(s.Zones, func(a, b ZoneCapacity) int { return strings.Compare(string(a.Zone), string(b.Zone)) })
	return s
}
