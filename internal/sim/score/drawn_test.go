package score_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/score"
)

// runs are results of scenarios d1, d2 and so on: "weir 0.9:1.5" answers nine of ten well for 1.5 $/h. The seed is always 3.
func runs(t *testing.T, lines ...string) []*sim.Result {
	t.Helper()
	var all []*sim.Result
	for _, line := range lines {
		fields := strings.Fields(line)
		for i, field := range fields[1:] {
			r := &sim.Result{Scenario: fmt.Sprintf("d%d", i+1), Strategy: fields[0], Seed: 3}
			r.Window = sim.Figures{Requests: 100, Success: 1, InZone: 1}
			if _, err := fmt.Sscanf(field, "%g:%g", &r.Window.Good, &r.Window.Dollars); err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
	}
	return all
}

// draw has the scenarios in two kinds by turns.
func draw(scenarios int) score.Draw {
	d := score.Draw{Seed: 9, Against: "weir", Kind: func(i int) int { return i % 2 }, Kinds: []score.Label{{Name: "odd"}, {Name: "even"}}}
	for i := range scenarios {
		d.Names = append(d.Names, fmt.Sprintf("d%d", i+1))
	}
	return d
}

func limited() score.Options {
	return score.Options{Strategies: []score.Label{{Name: "hazl", Title: "Hazl"}, {Name: "weir"}, {Name: "oracle", Title: "limit", Limit: true}}}
}

func TestDrawnScenariosAreComparedByKindAndOneByOne(t *testing.T) {
	all := runs(t, "weir 0.90:1 0.99:2 0.50:3 0.99:4", "hazl 0.80:1 0.98:1 0.97:1 0.995:1", "oracle 0.95:1 0.99:1 0.99:1 1:3")
	all[1].Oscillation = 0.07
	b := score.CompareDrawn(all, draw(4), limited())
	want := &score.Drawn{
		Seed: 9, Scenarios: 4, Strategy: "weir", Calm: 2, CalmCost: 1.5, Oscillating: 1,
		Rivals: []score.Rival{
			{Strategy: "hazl", Title: "Hazl", Mean: -0.09125, Better: 1, Worse: 1, Worst: []score.Extreme{
				{Scenario: "d3", Difference: -0.47, Good: 0.5, Other: 0.97}, {Scenario: "d4", Difference: -0.005, Good: 0.99, Other: 0.995},
			}},
			{Strategy: "oracle", Title: "limit", Limit: true, Mean: -0.1375, Worse: 2, Worst: []score.Extreme{
				{Scenario: "d3", Difference: -0.49, Good: 0.5, Other: 0.99},
				{Scenario: "d1", Difference: -0.05, Good: 0.9, Other: 0.95},
				{Scenario: "d4", Difference: -0.01, Good: 0.99, Other: 1},
			}},
		},
	}
	if third := b.Drawn.Runs[2]; len(b.Drawn.Runs) != 4 || third.Scenario != "d3" || third.Good["hazl"] != 0.97 || third.Dollars["weir"] != 3 {
		t.Errorf("runs %+v", b.Drawn.Runs)
	}
	b.Drawn.Runs = nil
	if diff := cmp.Diff(want, b.Drawn); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for kind, want := range map[string]float64{"odd": 0.7, "even": 0.99} {
		for i := range b.Tables {
			if table := &b.Tables[i]; table.Scenario == kind && table.Rows[1].Cells["good"].Mean != want {
				t.Errorf("%s: good %v, want %v", kind, table.Rows[1].Cells["good"].Mean, want)
			}
		}
	}
	if got := b.Overall.Rows[1].Cells["good"]; got.Mean != 0.845 || got.Seeds != 4 {
		t.Errorf("overall %+v", got)
	}
	for _, out := range []string{print(t, b, score.Style{Against: "weir"}), printed(t, b)} {
		for _, want := range []string{"odd", "even", "70.0", "-47.0", "d3"} {
			if !strings.Contains(out, want) {
				t.Errorf("the report lacks %q:\n%s", want, out)
			}
		}
	}
	if out := print(t, b, score.Style{Against: "weir"}); !strings.Contains(out, "(2 scenarios) it costs 1.50 times as much") ||
		!strings.Contains(out, "--seed 9 --seeds 1") ||
		!strings.Contains(out, "weir against limit: good -13.75 points, cost +1.00 $/h (× 1.67)") || strings.Contains(out, "\nodd") {
		t.Errorf("the report is\n%s", out)
	}
	if out := print(t, b, score.Style{Wide: true}); !strings.Contains(out, "\nodd") {
		t.Errorf("a wide report has no table of a kind:\n%s", out)
	}
}

func TestTheLimitIsNeverTheBestAndHidesNoOther(t *testing.T) {
	all := append(runs(t, "weir 0.9:1", "hazl 0.8:1", "oracle 1:1"), runs(t, "weir 0.91:1", "hazl 0.81:1", "oracle 1:1")...)
	for i := range 3 {
		all[3+i].Seed = 4
	}
	o := limited()
	o.Scenarios = []score.Label{story("d1")}
	b := score.Compare(all, o)
	for i, want := range []bool{false, true, false} {
		if got := b.Tables[0].Rows[i].Cells["good"].Best; got != want {
			t.Errorf("%s is best: %v, want %v", b.Tables[0].Rows[i].Strategy, got, want)
		}
	}
	if d := b.Tables[0].Rows[1].Distance; d == nil || *d != (score.Distance{Good: 0.095, Cost: 1}) {
		t.Errorf("distance %+v", d)
	}
	if d := b.Tables[0].Rows[2].Distance; d != nil {
		t.Errorf("the limit is %+v from itself", d)
	}
	data, err := json.Marshal(b.Tables[0].Rows[1])
	if err != nil || !strings.Contains(string(data), `"distance":{"good":0.095,"cost":1,"dollarsPerHour":0}`) {
		t.Errorf("%s, %v", data, err)
	}
}

func TestALimitThatCostsNothingHasNoMultiple(t *testing.T) {
	o := limited()
	o.Scenarios = []score.Label{story("d1")}
	b := score.Compare(runs(t, "weir 0.9:1", "oracle 1:0"), o)
	if out := print(t, b, score.Style{Against: "weir"}); !strings.Contains(out, "weir against limit: good -10.00 points, cost +1.00 $/h\n") {
		t.Errorf("the report is\n%s", out)
	}
	b = score.Compare(runs(t, "weir 0.9:1"), o)
	if out := print(t, b, score.Style{Against: "weir"}); strings.Contains(out, "against limit") {
		t.Errorf("without a limit the report is\n%s", out)
	}
}
