package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/topology"
)

func node(name string, zone topology.Zone, cpu topology.MilliCPU) topology.Node {
	return topology.Node{Name: name, Zone: zone, CPU: cpu, Ready: true}
}

func TestSurveyNodes(t *testing.T) {
	unready, controlPlane := node("u", "b", 1000), node("cp", "b", 1000)
	unready.Ready, controlPlane.ControlPlane = false, true
	west, otherWest, east := node("w1", "a", 1000), node("w2", "a", 1000), node("e", "b", 1000)
	west.Region, otherWest.Region, east.Region, east.Ready = "west", "north", "east", false
	regions := map[topology.Zone]string{}
	zone := func(z topology.Zone, cpu topology.MilliCPU, nodes int) plan.ZoneCapacity {
		return plan.ZoneCapacity{Zone: z, CPU: cpu, Nodes: nodes}
	}
	for _, c := range []struct {
		name  string
		nodes []topology.Node
		want  plan.Survey
	}{
		{"no node", nil, plan.Survey{Regions: regions}},
		{"a zone's nodes add up, and zones are sorted", []topology.Node{
			node("5", "b", 3000), node("2", "a", 1000), node("3", "a", 1000), node("1", "a", 1000), node("4", "a", 2000),
			node("7", "c", 500), node("6", "b", 1500),
		}, plan.Survey{Zones: []plan.ZoneCapacity{zone("a", 5000, 4), zone("b", 4500, 2), zone("c", 500, 1)}, Nodes: 7, Regions: regions}},
		{
			"unready and control-plane nodes do not count",
			[]topology.Node{node("1", "a", 1000), unready, controlPlane},
			plan.Survey{Zones: []plan.ZoneCapacity{zone("a", 1000, 1)}, Nodes: 1, Regions: regions, Lost: []topology.Zone{"b"}},
		},
		{
			"nodes that lack something are named, sorted",
			[]topology.Node{node("z", "", 1000), node("m", "a", 0), node("y", "", -5)},
			plan.Survey{
				Zones: []plan.ZoneCapacity{zone("a", 0, 1)}, WithoutZone: []string{"y", "z"}, WithoutCPU: []string{"m", "y"},
				Nodes: 3, Regions: regions,
			},
		},
		{
			"the first node by name tells the region, be it ready or not",
			[]topology.Node{otherWest, west, east},
			plan.Survey{
				Zones: []plan.ZoneCapacity{zone("a", 2000, 2)}, Nodes: 2,
				Regions: map[topology.Zone]string{"a": "west", "b": "east"}, Lost: []topology.Zone{"b"},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, plan.SurveyNodes(c.nodes)); diff != "" {
				t.Errorf("want, got:\n%s", diff)
			}
		})
	}
}
