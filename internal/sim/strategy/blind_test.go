package strategy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
	"github.com/weir-lb/weir/test/scenarios"
)

// TestBlindClientsNeedNoTicks: who is blind does the same when its pools are asked to learn.
func TestBlindClientsNeedNoTicks(t *testing.T) {
	t.Parallel()
	text, err := scenarios.Read("half-failing")
	if err != nil {
		t.Fatal(err)
	}
	sc, err := scenario.Parse("half-failing", text)
	if err != nil {
		t.Fatal(err)
	}
	sc.Length = 50 * time.Second
	sc.Steps = append(sc.Steps, scenario.Step{At: 35 * time.Second, Verb: scenario.Lose, Where: scenario.Where{Zone: "b"}})
	slices.SortStableFunc(sc.Steps, func(a, b scenario.Step) int { return int(a.At - b.At) })
	var blind []topology.Mode
	for _, c := range strategy.All() {
		if !c.Blind || c.Omniscient { // whose clients' pools send nothing
			continue
		}
		blind = append(blind, c.Mode)
		without := simulated(t, sc, c)
		c.Blind = false
		with := simulated(t, sc, c)
		if diff := cmp.Diff(with.Whole, without.Whole); diff != "" {
			t.Errorf("%s: (-with ticks +without)\n%s", c.Name, diff)
		}
		if without.Events >= with.Events {
			t.Errorf("%s: %d events without ticks, %d with them", c.Name, without.Events, with.Events)
		}
	}
	want := []topology.Mode{topology.ModeDisabled, topology.ModeAuto, topology.ModePreferSameZone, topology.ModeBalanced}
	if diff := cmp.Diff(want, blind); diff != "" {
		t.Errorf("modes of the blind: (-want +got)\n%s", diff)
	}
}

func simulated(t *testing.T, sc *scenario.Scenario, c strategy.Strategy) *sim.Result {
	t.Helper()
	r, err := sim.Run(sim.Options{Scenario: sc, Strategy: &c, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
