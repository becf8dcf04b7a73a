package scenarios_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/explain"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/test/scenarios"
)

var update = flag.Bool("update", false, "rewrite the goldens inside the scenario files")

// read parses a standard scenario.
func read(t *testing.T, name string) *scenario.Scenario {
	t.Helper()
	text, err := scenarios.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse(name+".txtar", text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryFileIsAStandardScenario(t *testing.T) {
	paths, err := filepath.Glob("*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range paths {
		found = append(found, strings.TrimSuffix(path, ".txtar"))
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(scenarios.Names())), found); diff != "" {
		t.Errorf("names and files differ (-names +files):\n%s", diff)
	}
}

func TestAnUnknownNameIsRefusedWithTheKnownOnes(t *testing.T) {
	_, err := scenarios.Read("sky-falls")
	if err == nil || !strings.Contains(err.Error(), `"sky-falls"`) || !strings.Contains(err.Error(), "steady, skew, spike") {
		t.Errorf("got %v", err)
	}
}

// TestStandardScenariosComeBack holds that what a program writes of them means the same as what people wrote.
func TestStandardScenariosComeBack(t *testing.T) {
	for _, name := range scenarios.Names() {
		s := read(t, name)
		if s.Name != name {
			t.Errorf("%s is called %s", name, s.Name)
		}
		again, err := scenario.Parse(name, []byte(s.String()))
		if err != nil {
			t.Errorf("%s: its own text is refused: %v", name, err)
			continue
		}
		if diff := cmp.Diff(s.String(), again.String()); diff != "" {
			t.Errorf("%s changed on its way (-want +got):\n%s", name, diff)
		}
	}
}

// TestStandardScenariosTellTheirStory keeps the set readable and comparable.
func TestStandardScenariosTellTheirStory(t *testing.T) {
	for _, name := range scenarios.Names() {
		s := read(t, name)
		if len(s.Title) > 72 {
			t.Errorf("%s: the title has %d characters, a list has room for 72", name, len(s.Title))
		}
		if n := strings.Count(s.About, ".\n") + strings.Count(s.About, ". "); n < 2 || n > 7 {
			t.Errorf("%s: About has %d sentences, want a short story", name, n)
		}
		if !strings.Contains(s.About, "Watch") || !strings.Contains(s.About, "A good balancer") {
			t.Errorf("%s: About does not say what to watch and what a good balancer does", name)
		}
		if s.Stress.From < sim.Warmup+10*time.Second {
			t.Errorf("%s: only %s of calm before the stress", name, s.Stress.From-sim.Warmup)
		}
		for _, st := range s.Steps {
			if st.At < s.Stress.From || st.At > s.Stress.To {
				t.Errorf("%s: step %q is outside of the stress", name, st)
			}
		}
	}
}

// TestTheStressBeginsAfterTheSimulatorsWarmUp compares a number that two packages know, of which neither may import the
// other for it.
func TestTheStressBeginsAfterTheSimulatorsWarmUp(t *testing.T) {
	s := read(t, "steady")
	s.Stress.From = sim.Warmup
	if errs := s.Validate(); errs != nil {
		t.Errorf("the end of the warm-up: %v", errs)
	}
	s.Stress.From--
	if errs := s.Validate(); len(errs) != 1 || errs[0].Field != "stress" {
		t.Errorf("within the warm-up: %v", errs)
	}
}

func TestExplainGoldensAreTrue(t *testing.T) {
	for _, name := range scenarios.Names() {
		t.Run(name, func(t *testing.T) {
			s := read(t, name)
			survey := plan.SurveyNodes(s.Snapshot.Nodes)
			var got bytes.Buffer
			err := explain.Print(&got, explain.Explain(&s.Snapshot, &survey, s.Service(), explain.Options{}), explain.Style{})
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				rewrite(t, name, "explain", got.String())
				return
			}
			if diff := cmp.Diff(s.Explain, got.String()); diff != "" {
				t.Errorf("-update rewrites it (-want +got):\n%s", diff)
			}
		})
	}
}

// rewrite puts a golden into its scenario file.
func rewrite(t *testing.T, name, section, body string) {
	t.Helper()
	path := name + ".txtar"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(rewritten(string(text), section, body)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// rewritten gives a scenario file with another body of a section, which it gets at its end if it has none.
func rewritten(text, section, body string) string {
	marker := "-- " + section + " --\n"
	before, after, _ := strings.Cut(text, marker)
	rest := ""
	if i := strings.Index("\n"+after, "\n-- "); i >= 0 {
		rest = after[i:]
	}
	return before + marker + strings.Trim(body, "\n") + "\n" + rest
}

func TestRewritingAGoldenTouchesOneSectionOnly(t *testing.T) {
	for text, want := range map[string]string{
		"T\n-- explain --\nold\n-- results --\nkept\n":       "T\n-- explain --\nnew\n\nlines\n-- results --\nkept\n",
		"T\n-- explain --\n\nold\n\nold\n-- x --\n-- y --\n": "T\n-- explain --\nnew\n\nlines\n-- x --\n-- y --\n",
		"T\n-- explain --\n-- x --\n":                        "T\n-- explain --\nnew\n\nlines\n-- x --\n",
		"T\n-- results --\nkept\n":                           "T\n-- results --\nkept\n-- explain --\nnew\n\nlines\n",
	} {
		if got := rewritten(text, "explain", "\nnew\n\nlines\n\n"); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestEveryModePlansEveryScenario(t *testing.T) {
	const tolerance = 1e-9
	for _, name := range scenarios.Names() {
		s := read(t, name)
		survey := plan.SurveyNodes(s.Snapshot.Nodes)
		for _, mode := range topology.Modes() {
			svc := *s.Service()
			svc.Mode = mode
			p := plan.Compute(plan.InputOf(&s.Snapshot, survey, &svc, svc.Endpoints[0].Family()))
			if len(p.Endpoints) != len(svc.Endpoints) {
				t.Errorf("%s, %s: %d of %d endpoints are planned", name, mode, len(p.Endpoints), len(svc.Endpoints))
			}
			rows := make(map[topology.Zone]bool)
			for _, z := range p.Zones {
				rows[z.Zone] = true
				sum := plan.Share(0)
				for _, share := range z.Endpoints {
					sum += share
				}
				if sum < 1-tolerance || sum > 1+tolerance {
					t.Errorf("%s, %s: the row of zone %s sums to %v", name, mode, z.Zone, sum)
				}
			}
			for _, c := range s.Clients {
				if !rows[c.Zone] {
					t.Errorf("%s, %s: zone %s has clients and no row", name, mode, c.Zone)
				}
			}
		}
	}
}
