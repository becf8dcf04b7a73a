package score_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/score"
)

// results reads one scenario's runs: "weir 1 2 3; hazl 4 - never" has a value of each strategy with seed 1, 2 and 3; -
// is no run, and never a run without the value. The value is the time to react.
func results(tb testing.TB, name, text string) []*sim.Result {
	tb.Helper()
	var all []*sim.Result
	for part := range strings.SplitSeq(text, ";") {
		fields := strings.Fields(part)
		for i, value := range fields[1:] {
			if value == "-" {
				continue
			}
			r := &sim.Result{Scenario: name, Strategy: fields[0], Seed: uint64(i + 1)}
			if value != "never" {
				seconds, err := strconv.ParseFloat(value, 64)
				if err != nil {
					tb.Fatal(err)
				}
				r.React = new(time.Duration(seconds * float64(time.Second)))
			}
			all = append(all, r)
		}
	}
	return all
}

// one is a board of the time to react with a stress of 40 s, in which what is under 0.1 s does not matter.
func one(tb testing.TB, text string) score.Board {
	tb.Helper()
	return score.Compare(results(tb, "story", text), options(text))
}

func options(text string) score.Options {
	o := score.Options{Measures: []score.Measure{reaction()}, Scenarios: []score.Label{story("story")}}
	for part := range strings.SplitSeq(text, ";") {
		o.Strategies = append(o.Strategies, score.Label{Name: strings.Fields(part)[0]})
	}
	return o
}

func story(name string) score.Label {
	return score.Label{Name: name, Stress: scenario.Window{From: 30 * time.Second, To: 70 * time.Second}, Length: 100 * time.Second}
}

func reaction() score.Measure { return measure("react") }

func measure(key string) score.Measure {
	for _, m := range score.Measures() {
		if m.Key == key {
			return m
		}
	}
	panic("no measure " + key)
}

// bestOf tells whether the only cell is marked.
func bestOf(cells map[string]score.Cell) bool {
	for _, c := range cells {
		return c.Best
	}
	return false
}

// marks names the best of a table's only measure.
func marks(t *score.Table) string {
	var best []string
	for i := range t.Rows {
		if bestOf(t.Rows[i].Cells) {
			best = append(best, t.Rows[i].Strategy)
		}
	}
	return strings.Join(best, " ")
}

func TestTheBestAreMarked(t *testing.T) {
	for _, c := range []struct{ name, runs, want string }{
		{"clearly better", "weir 1 1.1 0.9; hazl 5 5.2 4.9", "weir"},
		{"noise is not better", "weir 1 9 5; hazl 6 4 6", ""},
		{"two alike and one worse", "weir 1 1.1 0.9; hazl 1.01 1.1 0.92; random 8 8 8.1", "weir hazl"},
		{"all alike", "weir 1 1 1; hazl 1 1 1; random 1 1 1", ""},
		{"always a little better, but it does not matter", "weir 1 2 3; hazl 1.09 2.09 3.09", ""},
		{"always a little better, and it matters", "weir 1 2 3; hazl 1.11 2.11 3.11", "weir"},
		{"the middle is not the best", "weir 1 1 1; hazl 3 3 3; random 9 9 9", "weir"},
		{"one seed", "weir 1; hazl 9", ""},
		{"one seed in common", "weir 1 -; hazl 9 9", ""},
		{"two seeds", "weir 1 1; hazl 9 9", "weir"},
		{"no variance", "weir 0 0 0; hazl 1 1 1", "weir"},
		{"never is worse than any", "weir 39 39 39; hazl never never never", "weir"},
		{"never beyond the stress", "weir 60 60 60; hazl never never never", ""},
		{"all never", "weir never never never; hazl never never never", ""},
		{"never once is noise", "weir 1 1 1; hazl 1 1 never", ""},
		{"never mostly", "weir 1 1 1 1; hazl never never 20 never", "weir"},
		{"one was not run", "weir 1 1 1; hazl - - -", ""},
		{"one was not run with each seed", "weir 1 1 1; hazl 9 - 9.1", "weir"},
	} {
		b := one(t, c.runs)
		if got := marks(&b.Tables[0]); got != c.want {
			t.Errorf("%s (%s): the best are %q, want %q", c.name, c.runs, got, c.want)
		}
	}
}

// The seeds differ by seconds and the strategies by half a second in each: the two intervals overlap almost wholly, but what
// a seed does to both is no noise of the comparison.
func TestPairingTellsApartWhatIntervalsDoNot(t *testing.T) {
	b := one(t, "weir 2 8 15 30; hazl 2.5 8.6 15.5 30.4")
	weir, hazl := b.Tables[0].Rows[0].Cells["react"], b.Tables[0].Rows[1].Cells["react"]
	if weir.Mean+weir.Half < hazl.Mean-hazl.Half {
		t.Errorf("the intervals %v ± %v and %v ± %v do not overlap: the case shows nothing", weir.Mean, weir.Half, hazl.Mean, hazl.Half)
	}
	if got := marks(&b.Tables[0]); got != "weir" {
		t.Errorf("the best are %q, want weir", got)
	}
	// The same values with other seeds: nothing is left but noise.
	b = one(t, "weir 2 8 15 30; hazl 30.4 2.5 15.5 8.6")
	if got := marks(&b.Tables[0]); got != "" {
		t.Errorf("with the seeds mixed up the best are %q, want none", got)
	}
}

func TestCellsHoldMeansAndIntervals(t *testing.T) {
	b := one(t, "weir 1 2 3 4 5; hazl 7 7 7 7 7; random never 1 never 3 2; static never never never never never; gone - - - - -")
	approximately := func(want, got score.Cell) {
		t.Helper()
		if math.Abs(want.Mean-got.Mean) > 1e-4 || math.Abs(want.Half-got.Half) > 1e-4 {
			t.Errorf("mean and half are %v and %v, want %v and %v", got.Mean, got.Half, want.Mean, want.Half)
		}
		want.Mean, want.Half, want.Best = got.Mean, got.Half, got.Best
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	rows := b.Tables[0].Rows
	approximately(score.Cell{Mean: 3, Half: 1.96324, Seeds: 5, Known: 5, Runs: 5}, rows[0].Cells["react"])
	approximately(score.Cell{Mean: 7, Seeds: 5, Known: 5, Runs: 5}, rows[1].Cells["react"])
	// 40, 1, 40, 3, 2 s: a standard deviation of 20.82547 over √5, times 2.77645.
	approximately(score.Cell{Mean: 17.2, Half: 25.85824, Seeds: 5, Known: 3, Runs: 5}, rows[2].Cells["react"])
	approximately(score.Cell{Mean: 40, Seeds: 5, Runs: 5}, rows[3].Cells["react"])
	approximately(score.Cell{}, rows[4].Cells["react"])
	if rows[4].Runs != 0 || rows[0].Runs != 5 || b.Seeds != 5 {
		t.Errorf("runs are %d and %d of %d seeds, want 0 and 5 of 5", rows[4].Runs, rows[0].Runs, b.Seeds)
	}
}

// Without a stress to count, never is as bad as the worst that came.
func TestNeverWithoutAStressCountsAsTheWorst(t *testing.T) {
	o := options("weir; hazl")
	o.Scenarios[0] = score.Label{Name: "story"}
	b := score.Compare(results(t, "story", "weir 1 1 1; hazl never never 7"), o)
	if got := b.Tables[0].Rows[1].Cells["react"].Mean; got != 7 {
		t.Errorf("the mean is %v, want 7", got)
	}
}

func TestHigherNeverCountsAsTheLowest(t *testing.T) {
	m := reaction()
	m.Better, m.Never = score.Higher, func(score.Label) float64 { return 2 }
	o := options("weir; hazl")
	o.Measures = []score.Measure{m}
	b := score.Compare(results(t, "story", "weir 3 3 3; hazl never never 1"), o)
	if got := b.Tables[0].Rows[1].Cells["react"].Mean; got != 1 {
		t.Errorf("the mean is %v, want 1", got)
	}
	if got := marks(&b.Tables[0]); got != "weir" {
		t.Errorf("the best are %q, want weir", got)
	}
}

func TestNumbersThatAreNoneStayOut(t *testing.T) {
	for _, none := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64} {
		all := results(t, "story", "weir 1 1 1; hazl 1 1 1")
		for i, r := range all {
			r.PeakLoad = float64(i)
		}
		all[1].PeakLoad = none
		o := options("weir; hazl")
		o.Measures = []score.Measure{measure("peakLoad")}
		b := score.Compare(all, o)
		cell := b.Tables[0].Rows[0].Cells["peakLoad"]
		if cell.Runs != 2 || cell.Mean != 1 {
			t.Errorf("with %v the cell is %+v, want a mean of 1 over 2 runs", none, cell)
		}
		if d := b.Differences("weir", "hazl", "peakLoad"); len(d) != 1 || d[0].Seeds != 2 || math.IsNaN(d[0].Mean+d[0].Half) {
			t.Errorf("with %v the differences are %+v, want one over 2 seeds", none, d)
		}
	}
}

func TestMeasuresWithoutABetterAreNotMarked(t *testing.T) {
	all := results(t, "story", "weir 1 1 1; hazl 1 1 1")
	for i, r := range all {
		r.Window.Requests = int64(100 * (i/3 + 1))
	}
	o := options("weir; hazl")
	o.Measures = []score.Measure{measure("requests")}
	b := score.Compare(all, o)
	if got := marks(&b.Tables[0]); got != "" {
		t.Errorf("the best are %q, want none", got)
	}
	if better, worse, alike := b.Versus("weir", "hazl", "requests"); better+worse+alike != 0 {
		t.Errorf("versus is %d %d %d, want nothing", better, worse, alike)
	}
}

// Differences without noise: what decides is whether they matter.
func TestDifferencesHaveToMatter(t *testing.T) {
	for _, c := range []struct {
		measure  string
		a, other float64
		want     score.Verdict
	}{
		{"success", 0.9999, 0.9991, score.Alike},
		{"success", 0.9999, 0.9985, score.Better},
		{"success", 0.5, 0.502, score.Worse},
		{"dollarsPerHour", 0.001, 0.009, score.Alike},
		{"dollarsPerHour", 0.001, 0.02, score.Better},
		{"dollarsPerHour", 10.1, 10, score.Alike},
		{"dollarsPerHour", 10.3, 10, score.Worse},
		{"p99", 101, 100, score.Alike},
		{"p99", 100, 103, score.Better},
		{"p99", 0.5, 0.45, score.Alike},
		{"p99", 0.5, 0.35, score.Worse},
		{"oscillation", 0, 0.004, score.Alike},
		{"oscillation", 0, 0.006, score.Better},
		{"peakLoad", 1.01, 1, score.Alike},
		{"peakLoad", 1.03, 1, score.Worse},
	} {
		var all []*sim.Result
		for seed := range uint64(3) {
			for strategy, v := range map[string]float64{"weir": c.a, "hazl": c.other} {
				all = append(all, &sim.Result{
					Scenario: "story", Strategy: strategy, Seed: seed, Oscillation: v, PeakLoad: v,
					Window: sim.Figures{Requests: 1, Success: v, Dollars: v, P99: time.Duration(v * float64(time.Millisecond))},
				})
			}
		}
		b := score.Compare(all, score.Options{})
		if d := b.Differences("weir", "hazl", c.measure); len(d) != 1 || d[0].Verdict != c.want {
			t.Errorf("%s of %v against %v: %+v, want verdict %d", c.measure, c.a, c.other, d, c.want)
		}
	}
}

func TestVersusCountsScenarios(t *testing.T) {
	o := options("weir; hazl")
	o.Scenarios = []score.Label{story("a"), story("b"), story("c"), story("d"), story("e"), story("f")}
	var all []*sim.Result
	for name, runs := range map[string]string{
		"a": "weir 1 1 1; hazl 9 9 9", "b": "weir 1 1 1; hazl never never never", "c": "weir 3 3 3; hazl 1 1 1",
		"d": "weir 1 2 3; hazl 3 2 1", "e": "weir 1 1 1; hazl - - -", "f": "weir 1 - -; hazl 9 - -",
	} {
		all = append(all, results(t, name, runs)...)
	}
	b := score.Compare(all, o)
	if better, worse, alike := b.Versus("weir", "hazl", "react"); better != 2 || worse != 1 || alike != 1 {
		t.Errorf("weir against hazl is %d %d %d, want 2 1 1", better, worse, alike)
	}
	if better, worse, alike := b.Versus("hazl", "weir", "react"); better != 1 || worse != 2 || alike != 1 {
		t.Errorf("hazl against weir is %d %d %d, want 1 2 1", better, worse, alike)
	}
	if better, worse, alike := b.Versus("weir", "nobody", "react"); better+worse+alike != 0 {
		t.Errorf("weir against nobody is %d %d %d, want nothing", better, worse, alike)
	}
	want := []score.Difference{
		{Scenario: "a", Seeds: 3, Mean: -8, Verdict: score.Better},
		{Scenario: "b", Seeds: 3, Mean: -39, Verdict: score.Better},
		{Scenario: "c", Seeds: 3, Mean: 2, Verdict: score.Worse},
		{Scenario: "d", Seeds: 3, Half: 4.96828, Verdict: score.Alike},
		{Scenario: "f", Seeds: 1, Mean: -8, Verdict: score.Unknown},
	}
	got := b.Differences("weir", "hazl", "react")
	for i := range got {
		got[i].Half = math.Round(got[i].Half*1e5) / 1e5
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOverallAveragesOverScenariosThatAllRan(t *testing.T) {
	o := options("weir; hazl; gone")
	o.Scenarios = []score.Label{story("a"), story("b"), story("c")}
	all := append(results(t, "a", "weir 1 2 3; hazl 10 38 38"), results(t, "b", "weir 3 4 5; hazl never 10 10")...)
	all = append(all, results(t, "c", "weir 20 20 20")...) // without hazl it says nothing of the two
	b := score.Compare(all, o)
	if b.Common != 2 {
		t.Errorf("%d scenarios are common, want 2", b.Common)
	}
	weir, hazl, gone := b.Overall.Rows[0], b.Overall.Rows[1], b.Overall.Rows[2]
	if c := weir.Cells["react"]; c.Mean != 3 || !c.Best || c.Known != 6 || c.Runs != 6 || c.Seeds != 3 || weir.Runs != 9 {
		t.Errorf("weir's overall is %+v of %d runs, want the best, 3 over 6 of 9 runs", c, weir.Runs)
	}
	if c := hazl.Cells["react"]; math.Abs(c.Mean-73.0/3) > 1e-9 || c.Best || c.Known != 5 || c.Runs != 6 {
		t.Errorf("hazl's overall is %+v, want 24.33 over 5 of 6 runs", c)
	}
	if c := gone.Cells["react"]; c != (score.Cell{}) {
		t.Errorf("the overall of one without runs is %+v, want nothing", c)
	}
}

// Here a strategy was not run in the last scenario, there one seed was not in two of them.
func TestOverallTakesWhatWasRunByAll(t *testing.T) {
	o := options("weir; hazl")
	o.Scenarios = []score.Label{story("a"), story("b"), story("c")}
	for _, c := range []struct {
		a, b, c        string
		common, runs   int
		weir, hazl     float64
		printedAsTitle string
	}{
		{
			"weir 1 1 1; hazl 2 2 2", "weir 3 3 3; hazl 6 6 6", "weir 9 9 9; hazl - - -; random 1 1 1", 2, 6, 2, 4,
			"means over the 2 of 3 scenarios that every strategy ran\n",
		},
		{
			"weir 1 1 1; hazl 2 2 2", "weir 3 3 -; hazl 6 6 -", "weir 5 5 -; hazl 10 10 9", 3, 6, 3, 6,
			"means over 3 scenarios, with 2 of 3 seeds\n",
		},
		{"weir 1 1 1; hazl 2 2 2", "weir 3 3 3; hazl 6 6 6", "weir 5 5 5; hazl 10 10 10", 3, 9, 3, 6, "means over 3 scenarios\n"},
		{
			"weir 1 - -; hazl - 2 -", "weir - 3 -; hazl - - 2", "weir - - 5; hazl 10 - -", 0, 0, 0, 0,
			"means over the 0 of 3 scenarios that every strategy ran, with 0 of 3 seeds\n",
		},
	} {
		all := append(results(t, "a", c.a), append(results(t, "b", c.b), results(t, "c", c.c)...)...)
		b := score.Compare(all, o)
		weir, hazl := b.Overall.Rows[0].Cells["react"], b.Overall.Rows[1].Cells["react"]
		if b.Common != c.common || weir.Runs != c.runs || weir.Mean != c.weir || hazl.Mean != c.hazl {
			t.Errorf("%s / %s / %s: %d scenarios, %d runs, means %v and %v, want %d, %d, %v and %v",
				c.a, c.b, c.c, b.Common, weir.Runs, weir.Mean, hazl.Mean, c.common, c.runs, c.weir, c.hazl)
		}
		if out := print(t, b, score.Style{}); !strings.Contains(out, c.printedAsTitle) {
			t.Errorf("%q is not in\n%s", c.printedAsTitle, out)
		}
	}
}

func TestWithoutOptionsEverythingIsTakenByName(t *testing.T) {
	all := append(results(t, "b", "weir 1; hazl 2"), results(t, "a", "weir 1")...)
	b := score.Compare(append(all, nil), score.Options{})
	got := fmt.Sprint(b.Tables[0].Scenario, b.Tables[1].Scenario, b.Tables[0].Rows[0].Title, b.Tables[0].Rows[1].Title, len(b.Measures))
	if want := fmt.Sprint("a", "b", "hazl", "weir", len(score.Measures())); got != want {
		t.Errorf("the board has %s, want %s", got, want)
	}
	empty := score.Compare(nil, score.Options{})
	if len(empty.Tables) != 0 || empty.Seeds != 0 {
		t.Errorf("a board of nothing has %d tables and %d seeds", len(empty.Tables), empty.Seeds)
	}
}

func TestResultsThatAreNotNamedAreLeftOut(t *testing.T) {
	all := append(results(t, "story", "weir 1 1; hazl 9 9; random 50 50"), results(t, "other", "weir 1 1 1 1")...)
	b := score.Compare(all, options("weir; hazl"))
	if len(b.Tables) != 1 || len(b.Tables[0].Rows) != 2 || b.Seeds != 2 {
		t.Errorf("the board has %d tables and %d seeds, want 1 and 2", len(b.Tables), b.Seeds)
	}
}

// numbers makes random runs of some strategies with random gaps.
func numbers(random *rand.Rand) []*sim.Result {
	var all []*sim.Result
	for _, name := range []string{"a", "b", "c"} {
		for _, strategy := range []string{"weir", "hazl", "random", "static"} {
			level := random.Float64()
			for seed := range uint64(5) {
				if random.IntN(12) == 0 {
					continue
				}
				r := &sim.Result{Scenario: name, Strategy: strategy, Seed: seed, PeakLoad: level + random.NormFloat64()/3}
				r.Oscillation = r.PeakLoad / 7
				r.Window = sim.Figures{
					Requests: 1000, Success: level + random.NormFloat64()/5,
					P99: time.Duration((1 + level + random.Float64()/2) * 1e8),
				}
				if random.IntN(5) > 0 {
					r.React = new(time.Duration(random.ExpFloat64() * 1e9))
				}
				r.Line = []sim.Point{{Zones: []sim.ZonePoint{{Answered: 10, Crossed: random.Int64N(10)}}}}
				all = append(all, r)
			}
		}
	}
	return all
}

func TestTheOrderOfResultsChangesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		all := numbers(random)
		want := printed(t, score.Compare(all, score.Options{}))
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		again := append(all, all[3]) // a run that is there twice counts once
		if diff := cmp.Diff(want, printed(t, score.Compare(again, score.Options{}))); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
}

// allMarks writes the marks of a board, a line for each row.
func allMarks(b *score.Board) string {
	var s strings.Builder
	for _, t := range append(b.Tables, b.Overall) {
		for _, r := range t.Rows {
			fmt.Fprintf(&s, "%s %s:", t.Scenario, r.Strategy)
			for _, m := range b.Measures {
				if r.Cells[m.Key].Best {
					s.WriteString(" " + m.Key)
				}
			}
			s.WriteString("\n")
		}
	}
	return s.String()
}

func TestAddingTheSameToAllChangesNoMark(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	o := score.Options{Measures: []score.Measure{measure("success"), measure("oscillation"), measure("peakLoad")}}
	some := 0
	for range 20 {
		all := numbers(random)
		board := score.Compare(all, o)
		want := allMarks(&board)
		some += strings.Count(want, "success")
		for _, r := range all {
			r.Window.Success += 3
			r.Oscillation += 0.25
			r.PeakLoad += 10
		}
		board = score.Compare(all, o)
		if diff := cmp.Diff(want, allMarks(&board)); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
	if some == 0 {
		t.Error("no mark was there to change")
	}
}

// What matters of a latency is relative: in other units, the same are marked.
func TestMultiplyingLatenciesOfAllChangesNoMark(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	o := score.Options{Measures: []score.Measure{measure("p99")}}
	some := 0
	for range 20 {
		all := numbers(random)
		board := score.Compare(all, o)
		want := allMarks(&board)
		some += strings.Count(want, "p99")
		for _, r := range all {
			r.Window.P99 *= 4
		}
		board = score.Compare(all, o)
		if diff := cmp.Diff(want, allMarks(&board)); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
	if some == 0 {
		t.Error("no mark was there to change")
	}
}

// Two strategies that differ by noise only: at 95 %, about one comparison in twenty calls one of them better.
func TestNoiseIsSeldomCalledBetter(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	o := score.Options{Measures: []score.Measure{measure("peakLoad")}}
	const boards = 4000
	wrong := 0
	for range boards {
		var all []*sim.Result
		for seed := range uint64(4) {
			for _, strategy := range []string{"weir", "hazl"} {
				all = append(all, &sim.Result{Scenario: "a", Strategy: strategy, Seed: seed, PeakLoad: 10 + random.NormFloat64()})
			}
		}
		b := score.Compare(all, o)
		better, worse, _ := b.Versus("weir", "hazl", "peakLoad")
		wrong += better + worse
	}
	if fraction := float64(wrong) / boards; fraction < 0.03 || fraction > 0.06 {
		t.Errorf("%.1f %% of comparisons of equals find a difference, want about 5 %%", 100*fraction)
	}
}
