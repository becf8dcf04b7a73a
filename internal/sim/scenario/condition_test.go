package scenario_test

import (
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/sim/scenario"
)

func TestFaultsAddUpUntilTheyAreHealed(t *testing.T) {
	var c scenario.Condition
	if got := c.Factor(); got < 1 || got > 1 {
		t.Errorf("a healthy endpoint is slower by %v", got)
	}
	bad := scenario.Condition{Slow: 3, Fail: 0.5, Delay: time.Second, Hang: true}
	for _, step := range []struct {
		scenario.Step
		want scenario.Condition
	}{
		{scenario.Step{Verb: scenario.Slow, Factor: 10}, scenario.Condition{Slow: 10}},
		{scenario.Step{Verb: scenario.Slow, Factor: 3}, scenario.Condition{Slow: 3}}, // in place of the one before
		{scenario.Step{Verb: scenario.Fail, Ratio: 0.5}, scenario.Condition{Slow: 3, Fail: 0.5}},
		{scenario.Step{Verb: scenario.Delay, Time: time.Second}, scenario.Condition{Slow: 3, Fail: 0.5, Delay: time.Second}},
		{scenario.Step{Verb: scenario.Hang}, bad},
		{scenario.Step{Verb: scenario.Lose}, bad},
		{scenario.Step{Verb: scenario.Rate, Factor: 2}, bad},
		{scenario.Step{Verb: scenario.Heal}, scenario.Condition{}},
		{scenario.Step{Verb: scenario.Refuse}, scenario.Condition{Refuse: true}},
	} {
		if c.Apply(&step.Step); c != step.want {
			t.Errorf("after %s: %+v, want %+v", step.Verb, c, step.want)
		}
	}
}
