package score_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/golden"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/score"
)

// made is one strategy in one scenario, as its run with seed 2 has it.
type made struct {
	inZone, dollars, success, good float64
	p50, p99, p999                 float64 // milliseconds
	react                          float64 // seconds; -1: never
	oscillation, peak, spill       float64
	seeds                          int
}

// result is a run: with another seed everything is a little different, and with seed 3 a slow reaction never comes.
func (m *made) result(name, strategy string, seed uint64) *sim.Result {
	wobble := 1 + 0.004*(float64(seed)-2)
	millis := func(v float64) time.Duration { return time.Duration(v * wobble * float64(time.Millisecond)) }
	fraction := func(v float64) float64 { return 1 - (1-v)*wobble }
	f := sim.Figures{
		Requests: 79_200 + int64(seed), Success: fraction(m.success), Good: fraction(m.good), InZone: fraction(m.inZone),
		Attempts: 1, Dollars: m.dollars * wobble, Mean: millis(m.p50 * 1.2), P50: millis(m.p50), P99: millis(m.p99), P999: millis(m.p999),
	}
	r := &sim.Result{
		Scenario: name, Strategy: strategy, Seed: seed, Window: f, Affected: f,
		Calm: sim.Figures{Requests: 40_000, InZone: 1}, Oscillation: m.oscillation * wobble, PeakLoad: m.peak * wobble,
		Return: new(time.Duration(float64(4*time.Second) * wobble)),
	}
	const slow = 20
	if m.react >= 0 && (m.react < slow || seed < 3) {
		r.React = new(time.Duration(m.react * wobble * float64(time.Second)))
	}
	for second := range 100 {
		crossed := 0.0
		if second >= 30 && second < 70 {
			crossed = 1000 * m.spill * wobble * (1 - math.Exp(float64(30-second)/4))
		}
		r.Line = append(r.Line, sim.Point{Zones: []sim.ZonePoint{
			{Zone: "a", Answered: 1000, Crossed: int64(crossed)}, {Zone: "b", Answered: 1000, Crossed: 500},
		}})
	}
	return r
}

// board is a comparison as the simulator makes them.
func board(seeds int) score.Board {
	stories := []struct {
		name, title string
		made        map[string]*made
	}{
		{"spike", "×3 spike in zone a", map[string]*made{
			"random": {1.0 / 3, 1.2431, 0.9999999, 0.9851, 20, 111, 190, 0, 0.031, 0.71, 0.666, 3},
			"static": {1, 0, 0.33, 0.007, 912, 1000, 1000, -1, 0, 3.02, 0, 3},
			"hazl":   {0.79, 0.4312, 0.9912, 0.917, 21, 449, 490, 25, 0.04, 1.4, 0.44, 3},
			"weir":   {0.819, 0.3711, 1, 0.986, 20.01, 110, 194, 0.4, 0.035, 1.02, 0.4, 3},
		}},
		{"brownout", "zone a ten times slower for a while", map[string]*made{
			"random": {1.0 / 3, 1.25, 0.97, 0.662, 24, 1000, 1000, -1, 0.031, 4.1, 0.666, 3},
			"static": {1, 0.00001, 0.67, 0.00001, 1000, 1000, 1000, -1, 0, 10, 0, 2},
			"hazl":   {0.751, 0.5, 0.9534, 0.715, 22, 1000, 1000, 35, 0.027, 5, 0.6, 3},
			"weir":   {0.666, 123.4, 0.9984, 0.964, 21, 423, 600, 1.4, 0.003, 2.2, 0.97, 3},
		}},
		{"steady", "nothing happens", map[string]*made{
			"random": {1.0 / 3, 1.25, 1, 0.9999, 9.94, 80, 120, 0, 0.02, 0.6, 0.666, 3},
			"hazl":   {1, 0, 1, 0.9999, 9.2, 80, 120, 0, 0, 0.6, 0, 3},
			"weir":   {0.9994, 0.001, 1, 0.9999, 9.2, 80, 120, 0, 0.001, 0.6, 0.0006, 3},
		}},
	}
	o := score.Options{Strategies: []score.Label{
		{Name: "random", Title: "Random"},
		{Name: "static", Title: "Static, same zone"},
		{Name: "hazl", Title: "Hazl"},
		{Name: "weir", Title: "Weir"},
	}}
	var all []*sim.Result
	for _, s := range stories {
		o.Scenarios = append(o.Scenarios, score.LabelOf(&scenario.Scenario{
			Name: s.name, Title: s.title, Length: 100 * time.Second, Affected: []topology.Zone{"a"},
			Stress: scenario.Window{From: 30 * time.Second, To: 70 * time.Second},
		}))
		for _, c := range o.Strategies {
			m := s.made[c.Name]
			for seed := 1; m != nil && seed <= min(seeds, m.seeds); seed++ {
				all = append(all, m.result(s.name, c.Name, uint64(seed)))
			}
		}
	}
	return score.Compare(all, o)
}

func notes() []string {
	return []string{
		"clients are open-loop: they send whatever the answers are, each with a balancer of its own, " +
			"and know nothing of each other",
		"way times are even, and no network is ever full",
	}
}

func print(tb testing.TB, b score.Board, s score.Style) string {
	tb.Helper()
	var out bytes.Buffer
	if err := b.Print(&out, s); err != nil {
		tb.Fatal(err)
	}
	return out.String()
}

// printed is all forms of a board.
func printed(tb testing.TB, b score.Board) string {
	tb.Helper()
	var out bytes.Buffer
	if err := b.Markdown(&out, score.Style{Wide: true}); err != nil {
		tb.Fatal(err)
	}
	if err := b.CSV(&out); err != nil {
		tb.Fatal(err)
	}
	encoded, err := json.Marshal(b)
	if err != nil {
		tb.Fatal(err)
	}
	return out.String() + string(encoded) + print(tb, b, score.Style{Wide: true})
}

func TestPrint(t *testing.T) {
	for name, style := range map[string]score.Style{
		"plain":  {},
		"wide":   {Wide: true, Width: 250, Against: "weir", Notes: notes()},
		"narrow": {Width: 60, Against: "weir", Notes: notes()},
		"80":     {Width: 80, Against: "weir", Notes: notes()},
		"120":    {Width: 120, Against: "weir", Notes: notes()},
	} {
		golden.Check(t, "print-"+name+".txt", print(t, board(3), style))
	}
	golden.Check(t, "print-one-seed.txt", print(t, board(1), score.Style{Width: 150, Against: "weir"}))
	golden.Check(t, "print-colour.txt", strings.ReplaceAll(print(t, board(3), score.Style{Width: 150, Colour: true}), "\x1b", "␛"))
}

func TestLinesNeverWrap(t *testing.T) {
	sequence := regexp.MustCompile("\x1b\\[[0-9;]*m")
	b := board(2)
	for width := 1; width < 200; width += 1 + width/16 {
		for _, colour := range []bool{false, true} {
			s := score.Style{Width: width, Colour: colour, Wide: width%2 == 0, Against: "weir", Notes: notes()}
			for line := range strings.Lines(print(t, b, s)) {
				line = sequence.ReplaceAllString(strings.TrimSuffix(line, "\n"), "")
				if n := utf8.RuneCountInString(line); n > width {
					t.Fatalf("at width %d a line has %d: %q", width, n, line)
				}
				if line != strings.TrimRight(line, " ") {
					t.Fatalf("at width %d a line ends in spaces: %q", width, line)
				}
			}
		}
	}
}

func TestColoursTakeNoRoom(t *testing.T) {
	plain := print(t, board(3), score.Style{})
	coloured := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(print(t, board(3), score.Style{Colour: true}), "")
	squeeze := strings.NewReplacer("*", "", " ", "", "green", "")
	if diff := cmp.Diff(squeeze.Replace(plain), squeeze.Replace(coloured)); diff != "" {
		t.Errorf("-plain +coloured:\n%s", diff)
	}
}

func TestMarkdown(t *testing.T) {
	b := board(3)
	var out bytes.Buffer
	if err := b.Markdown(&out, score.Style{Wide: true, Against: "weir", Notes: append(notes(), "<b> and | are text")}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "board.md", out.String())
}

func TestCSV(t *testing.T) {
	b := board(3)
	var out bytes.Buffer
	if err := b.CSV(&out); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "board.csv", out.String())
	rows, err := csv.NewReader(&out).ReadAll()
	if want := 1 + 4*4*len(score.Measures()); err != nil || len(rows) != want {
		t.Errorf("there are %d rows (%v), want %d", len(rows), err, want)
	}
}

func TestJSON(t *testing.T) {
	b := board(3)
	out, err := json.MarshalIndent(b, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"react": {
       "mean": null,
       "half": null,
       "known": 0,
       "runs": 3,`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("what never came is not told as %s", want)
		}
	}
	b.Measures, b.Tables = b.Measures[:8], b.Tables[:1] // the whole is thousands of lines
	b.Tables[0].Rows, b.Overall.Rows = b.Tables[0].Rows[1:3], nil
	for i := range b.Tables[0].Rows {
		b.Tables[0].Rows[i].Spill = b.Tables[0].Rows[i].Spill[30:34]
	}
	b.Assumptions = notes()
	if out, err = json.MarshalIndent(b, "", " "); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "board.json", string(out)+"\n")
}

func TestJSONWithOneSeedHasNoIntervals(t *testing.T) {
	b := board(1)
	out, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(out); strings.Count(text, `"half":null`) != strings.Count(text, `"half":`) || strings.Contains(text, `"best":true`) {
		t.Errorf("there are intervals or marks in %s", text)
	}
}

// broken is a writer that fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

var errBroken = errors.New("broken")

func TestWritersErrorsComeBack(t *testing.T) {
	b := board(2)
	for name, err := range map[string]error{
		"print": b.Print(broken{}, score.Style{}), "markdown": b.Markdown(broken{}, score.Style{}), "csv": b.CSV(broken{}),
	} {
		if !errors.Is(err, errBroken) {
			t.Errorf("%s: error %v, want the writer's", name, err)
		}
	}
}

func TestABoardOfNothingPrints(t *testing.T) {
	b := score.Compare(nil, score.Options{Measures: []score.Measure{}})
	if out := printed(t, b) + print(t, b, score.Style{Width: 40, Against: "weir"}); !strings.Contains(out, "Simulation, not a measurement.") {
		t.Errorf("a board of nothing is\n%s", out)
	}
}

func TestSpark(t *testing.T) {
	for _, c := range []struct {
		values []float64
		top    float64
		width  int
		want   string
	}{
		{nil, 1, 10, ""},
		{[]float64{1}, 1, 0, ""},
		{[]float64{0, 1, 2, 3, 4, 5, 6, 7}, 7, 10, "▁▂▃▄▅▆▇█"},
		{[]float64{0, 1, 2, 3, 4, 5, 6, 7}, 7, 4, "▂▄▆█"}, // of 0.5, 2.5, 4.5, 6.5: halves are rounded up
		{[]float64{0, 0.5, 1}, 1, 3, "▁▅█"},
		{[]float64{-1, 2, 0.01}, 1, 3, "▁█▁"},
		{[]float64{0, 0}, 0, 2, "▁▁"},
		{[]float64{math.NaN(), math.Inf(1), math.Inf(-1)}, 1, 3, "▁█▁"},
		{[]float64{1, 1, 1, 1, 1, 0, 0}, 1, 3, "██▃"},
	} {
		if got := score.Spark(c.values, c.top, c.width); got != c.want {
			t.Errorf("Spark(%v, %v, %d) = %q, want %q", c.values, c.top, c.width, got, c.want)
		}
	}
}

func TestSpillIsOfTheAffectedAndOverSeeds(t *testing.T) {
	point := func(answered, crossed int64) sim.Point {
		return sim.Point{Zones: []sim.ZonePoint{
			{Zone: "a", Answered: answered, Crossed: crossed}, {Zone: "b", Answered: 100, Crossed: 100},
		}}
	}
	all := []*sim.Result{
		{Scenario: "s", Strategy: "c", Seed: 1, Line: []sim.Point{point(0, 0), point(100, 50), point(0, 0), point(100, 0)}},
		{Scenario: "s", Strategy: "c", Seed: 2, Line: []sim.Point{point(100, 20), point(100, 0), point(100, 100)}},
	}
	o := score.Options{Scenarios: []score.Label{{Name: "s", Affected: []topology.Zone{"a"}}}}
	// In the third second nothing answered zone a in the first run: its spill stays at a half.
	if diff := cmp.Diff([]float64{0.1, 0.25, 0.75, 0}, score.Compare(all, o).Tables[0].Rows[0].Spill); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	o.Scenarios[0].Affected = nil
	if diff := cmp.Diff([]float64{0.8, 0.625, 1, 0.5}, score.Compare(all, o).Tables[0].Rows[0].Spill); diff != "" {
		t.Errorf("of all clients: -want +got:\n%s", diff)
	}
}
