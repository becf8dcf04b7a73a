package simulate_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/simulate"
)

func TestASweepHasTheValuesThatWereAskedFor(t *testing.T) {
	for text, want := range map[string]simulate.Sweep{
		"HomeSlowdown=1.2..2.0/5":  {Name: "HomeSlowdown", Values: []string{"1.2", "1.4", "1.6", "1.8", "2"}},
		"homeslowdown=1.2,1.8":     {Name: "HomeSlowdown", Values: []string{"1.2", "1.8"}},
		"memorymin=200ms..800ms/3": {Name: "MemoryMin", Values: []string{"200ms", "500ms", "800ms"}},
		"LoopGain=0..0.4/3":        {Name: "LoopGain", Values: []string{"0", "0.2", "0.4"}},
	} {
		got, err := simulate.ParseSweep(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for text, want := range map[string]string{
		"HomeSlowdown":        "want NAME=FROM..TO/COUNT",
		"HomeSlowdown=1..2":   "want 2 to 50 values",
		"HomeSlowdown=1..2/1": "want 2 to 50 values",
		"HomeSlowdown=1..x/3": `"x" is no number`,
		"HomeSlowdown=x..2/3": `"x" is no number`,
		"MemoryMin=1s..2/3":   `"2" is no duration`,
		"Home=1..2/3":         `unknown constant "Home"`,
		"HomeSlowdown=1,":     `"" is no number`,
		"MemoryMin=1,2":       "is no duration",
		"HomeSlowdown=1":      "want 2 to 50 values, not 1",
		"HomeSlowdown=1,1.0":  "the value 1 is there twice",
		"LoopGain=0.1..0.1/3": "the value 0.1 is there twice",
	} {
		if _, err := simulate.ParseSweep(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
}

func TestASweepIsWeirUnderTheNameOfEachValue(t *testing.T) {
	s, err := simulate.ParseSweep("HomeSlowdown=1.2,1.8")
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Strategies(overflow.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
		if c.New == nil || c.Title != c.Name {
			t.Errorf("%s has the title %q", c.Name, c.Title)
		}
	}
	if want := []string{"HomeSlowdown=1.2", "HomeSlowdown=1.8"}; !slices.Equal(names, want) {
		t.Errorf("strategies %v, want %v", names, want)
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
	good += 0.02 * float64(s.job.Seed) // 0 and 1
	return &sim.Result{Affected: sim.Figures{Good: good}, Calm: sim.Figures{InZone: 0.99}, Window: sim.Figures{Dollars: 3}}
}

func TestSensitivityIsTheMeanOverScenariosAndSeedsOfEachConstantHalvedAndDoubled(t *testing.T) {
	o := options()
	o.Seeds, o.First = 2, 0
	o.Start = func(j simulate.Job) (simulate.Simulation, error) { return scored{j}, nil }
	s, err := simulate.Vary(t.Context(), o, overflow.Config{}, []string{"HomeSlowdown", "MemoryMin"})
	if err != nil {
		t.Fatal(err)
	}
	of := func(bad float64) simulate.Score {
		return simulate.Score{Bad: bad/2 - 0.01, CalmCross: 0.01, Dollars: 3}
	}
	want := &simulate.Sensitivity{
		Score: of(0.1), Noise: math.Sqrt2 / 100, Seeds: 2, Scenarios: []string{"calm", "spike"},
		Constants: []simulate.Sensitive{
			{
				Constant: "HomeSlowdown", Value: "1.4",
				Half:   simulate.Varied{Value: "1.2", Score: of(0.05)},
				Double: simulate.Varied{Value: "1.8", Score: of(0.2)},
			},
			{
				Constant: "MemoryMin", Value: "400ms",
				Half:   simulate.Varied{Value: "200ms", Score: of(0.1)},
				Double: simulate.Varied{Value: "800ms", Score: of(0.3)},
			},
		},
	}
	if diff := cmp.Diff(want, s, cmp.Transformer("rounded", func(f float64) float32 { return float32(f) })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var b strings.Builder
	table := s.Table()
	if err := table.CSV(&b); err != nil {
		t.Fatal(err)
	}
	if want := "HomeSlowdown,1.4,1.2,1.50,1.00,3.000,1.8,9.00,1.00,3.000\n"; !strings.Contains(b.String(), want) {
		t.Errorf("the table lacks %q:\n%s", want, b.String())
	}
	rows := s.Rows()
	if got := rows.Rows[2]; !slices.Equal(got[:3], []string{"HomeSlowdown", "double", "1.8"}) || len(rows.Rows) != 5 {
		t.Errorf("for programs the table is %v", rows)
	}
	if _, err := simulate.Vary(t.Context(), o, overflow.Config{}, []string{"none"}); err == nil {
		t.Error("a constant that there is not was varied")
	}
}

func TestATraceTellsWhatOneClientDecided(t *testing.T) {
	base, err := built(t, "nodes a:4 b:4; service web; endpoints a:2 b:2", simulate.Given{
		Rates: rates(t, "a:100,b:100"), Workers: 4, Clients: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	loss, err := simulate.AskLoss(base, "b")
	if err != nil {
		t.Fatal(err)
	}
	weir := simulate.Sweep{Name: "HomeSlowdown", Values: []string{"1.4"}}
	all, err := weir.Strategies(overflow.Config{})
	if err != nil {
		t.Fatal(err)
	}
	job := simulate.Job{Scenario: simulate.Apply(&loss, base), Strategy: &all[0], Seed: 1}
	moments, err := simulate.Trace(t.Context(), job, simulate.Client{Zone: "b", Number: 2})
	if err != nil {
		t.Fatal(err)
	}
	if moments[0].State != "calm" || moments[0].Groups[0].Zone != "b" || moments[0].Groups[0].Share != 1 {
		t.Errorf("the first moment is %+v", moments[0])
	}
	left := slices.ContainsFunc(moments, func(m simulate.Moment) bool {
		return m.Seconds > 30 && m.State != "calm" && m.Groups[0].Share < 0.2 && m.Because != ""
	})
	if !left {
		t.Errorf("the client never left the lost zone: %+v", moments)
	}
	table := simulate.TraceTable(moments)
	if len(table.Rows) != len(moments) || !strings.HasPrefix(table.Rows[0][2], "b 100 (") {
		t.Errorf("the table is %+v", table)
	}
	rows := simulate.TraceRows(moments)
	if len(rows.Rows) < len(moments) || !slices.Equal(rows.Rows[0][1:5], []string{"calm", "b", "", "1"}) {
		t.Errorf("for programs the table is %+v", rows)
	}
	for want, c := range map[string]simulate.Client{
		"no client 3 in zone b": {Zone: "b", Number: 3}, "no client 1 in zone x": {Zone: "x", Number: 1}, "has 4 clients, not 5": {Number: 5},
	} {
		if _, err := simulate.Trace(t.Context(), job, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("client %+v: %v, want an error with %q", c, err, want)
		}
	}
}

func TestAClientIsNamedByNumberOrByZoneAndNumber(t *testing.T) {
	for text, want := range map[string]simulate.Client{"client=3": {Number: 3}, "client=a/2": {Zone: "a", Number: 2}} {
		if got, err := simulate.ParseClient(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "3", "client=", "client=0", "client=/1", "client=a/x"} {
		if _, err := simulate.ParseClient(text); err == nil {
			t.Errorf("%q names a client", text)
		}
	}
}
