package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/simulate"
)

func TestTheDocumentHasTheTablesThatThisMakes(t *testing.T) {
	page, err := os.ReadFile("../../docs/simulation.md")
	if err != nil {
		t.Fatal(err)
	}
	var made strings.Builder
	if err := printTables(&made, func(int, int) []*sim.Result { return []*sim.Result{{}} }); err != nil {
		t.Fatal(err)
	}
	ours := regexp.MustCompile(`\| \d+\.\d`) // which take minutes to simulate
	if want := ours.ReplaceAllString(made.String(), "| -"); !strings.Contains(ours.ReplaceAllString(string(page), "| -"), want) {
		t.Errorf("docs/simulation.md lacks these tables, with figures:\n%s", want)
	}
	for _, name := range constantNames() {
		if !strings.Contains(string(page), "\n| "+name+" | ") {
			t.Errorf("docs/simulation.md does not say how much %s matters", name)
		}
	}
}

func TestScenariosOfTheStudyAreThere(t *testing.T) {
	t.Chdir("../..")
	for _, f := range study() {
		if _, err := read([]string{f.scenario}); err != nil {
			t.Error(err)
		}
	}
}

// scored is a run whose badness says which strategy it was of.
type scored struct{ job simulate.Job }

func (scored) Step(time.Duration) {}

func (s scored) Result() *sim.Result {
	bad := map[string]float64{"weir": 0.1, "HomeSlowdown=1.2": 0.05, "HomeSlowdown=1.8": 0.2, "MemoryMin=200ms": 0.1, "MemoryMin=800ms": 0.3}
	good := 1 - bad[s.job.Strategy.Name]
	if s.job.Scenario.Name == "spike" {
		good = 1
	}
	good += 0.02 * float64(s.job.Seed-1) // 0 and 1
	return &sim.Result{Affected: sim.Figures{Good: good}, Calm: sim.Figures{InZone: 0.99}, Window: sim.Figures{Dollars: 3}}
}

func TestSensitivityIsTheMeanOverScenariosAndSeedsOfEachConstantHalvedAndDoubled(t *testing.T) {
	o, err := options([]string{"steady", "spike"}, nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	o.Start = func(j simulate.Job) (simulate.Simulation, error) { return scored{j}, nil }
	table, noise, err := sensitivity(t.Context(), o, []string{"HomeSlowdown", "MemoryMin"})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"as they are", "", "", "4.00", "1.00", "3.000", "", "", "", ""},
		{"HomeSlowdown", "1.4", "1.2", "1.50", "1.00", "3.000", "1.8", "9.00", "1.00", "3.000"},
		{"MemoryMin", "400ms", "200ms", "4.00", "1.00", "3.000", "800ms", "14.00", "1.00", "3.000"},
	}
	if diff := cmp.Diff(want, table.Rows); diff != "" || noise < 0.0141 || noise > 0.0142 {
		t.Errorf("noise %v; -want +got:\n%s", noise, diff)
	}
	if _, _, err := sensitivity(t.Context(), o, []string{"none"}); err == nil {
		t.Error("a constant that there is not was varied")
	}
}

func TestASweepComparesWeirWithEachValue(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"sweep", "-seeds", "1", "homeslowdown=1.2,1.8", "steady"}, &out); err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(out.String()) {
		if name, _, ok := strings.Cut(line, " "); ok && strings.HasPrefix(name, "HomeSlowdown=") {
			names = append(names, name)
		}
	}
	if want := []string{"HomeSlowdown=1.2", "HomeSlowdown=1.8"}; !slices.Equal(names, want) {
		t.Errorf("got rows of %v, want %v", names, want)
	}
}

// One client that has all of a zone's traffic knows more than many that have a part of it each.
func TestALargeClientSpillsWithoutSwingsNearTheCapacityOfAll(t *testing.T) {
	for _, tt := range []struct {
		cell              string
		good, oscillation float64
	}{{"85/1", .93, .08}, {"90/1", .86, .06}} {
		sc, err := parseCell(tt.cell)
		if err != nil {
			t.Fatal(err)
		}
		weir := weirWith(overflow.DefaultConstants(), "weir")
		r, err := sim.Run(sim.Options{Scenario: sc, Strategy: &weir, Seed: 2})
		if err != nil {
			t.Fatal(err)
		}
		if r.Affected.Good < tt.good || r.Affected.Success < 0.999 || r.Oscillation > tt.oscillation {
			t.Errorf("%s: good %.3f, success %.4f, oscillation %.3f: want %.2f, all and %.2f", tt.cell, r.Affected.Good,
				r.Affected.Success, r.Oscillation, tt.good, tt.oscillation)
		}
	}
}

func TestAMistakeIsToldBeforeAnythingRuns(t *testing.T) {
	for args, want := range map[string]string{
		"":                     `unknown command ""`,
		"melt":                 `unknown command "melt"`,
		"sweep HomeSlowdown=1": "want NAME=VALUE,… and scenarios",
		"sweep Home=1 steady":  `unknown constant "Home"`,
		"sensitivity none":     "none.txtar",
		"load-table 90":        `"90" is no LOAD/CLIENTS`,
		"load-table x/1":       `"x/1" is no LOAD/CLIENTS`,
	} {
		if err := run(t.Context(), strings.Fields(args), new(strings.Builder)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", args, err, want)
		}
	}
}
