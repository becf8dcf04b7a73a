package topology_test

import (
	"math"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/core/topology"
)

func TestCostBetweenPlaces(t *testing.T) {
	home := topology.Place{Zone: "a", Region: "eu"}
	abroad := topology.Place{Zone: "x", Region: "us"}
	pairs := topology.Costs{SameRegion: 1, Pairs: map[topology.ZonePair]topology.Cost{{From: "a", To: "x"}: 9}}
	zeros := topology.Costs{Pairs: map[topology.ZonePair]topology.Cost{}}
	for _, c := range []struct {
		name     string
		costs    topology.Costs
		from, to topology.Place
		want     topology.Cost
	}{
		{"the same zone is free", topology.Costs{}, home, home, 0},
		{"another zone of the region is the unit", topology.Costs{}, home, topology.Place{Zone: "b", Region: "eu"}, 1},
		{"another region is dearer", topology.Costs{}, home, abroad, 4},
		{"an unknown region counts as the same", topology.Costs{}, home, place("b"), 1},
		{"two unknown zones are different zones", topology.Costs{}, place(""), place(""), 1},
		{"another cluster is added", topology.Costs{}, home, topology.Place{Zone: "a", Region: "eu", Cluster: "west"}, 2},
		{"a pair wins over the region", pairs, home, abroad, 9},
		{"a pair has a direction", pairs, abroad, home, 0},
		{"a table of zeros is no table of defaults", zeros, home, abroad, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.costs.Between(c.from, c.to); got != c.want {
				t.Errorf("want %v, got %v", c.want, got)
			}
		})
	}
}

func TestCostsThatCannotBeOrderedAreRefused(t *testing.T) {
	for _, bad := range []topology.Cost{-1, topology.Cost(math.Inf(1)), topology.Cost(math.NaN())} {
		for name, costs := range map[string]topology.Costs{
			"sameRegion":     {SameRegion: bad},
			"otherRegion":    {OtherRegion: bad},
			"otherCluster":   {OtherCluster: bad},
			"from a to zone": {Pairs: map[topology.ZonePair]topology.Cost{{From: "a", To: "zone"}: bad}},
		} {
			if err := costs.Validate(); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s of %v: got %v", name, bad, err)
			}
		}
	}
	if err := topology.DefaultCosts().Validate(); err != nil {
		t.Error(err)
	}
}
