package deploy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// TestAlertsAndDashboardAskForWhatIsExported compares with the guide's list, which other tests compare with what running
// programs export.
func TestAlertsAndDashboardAskForWhatIsExported(t *testing.T) {
	labels := exported(t)
	for place, queries := range map[string][]string{"alerts": alertQueries(t), "dashboard": dashboardQueries(t)} {
		if len(queries) == 0 {
			t.Errorf("%s: no query found", place)
		}
		for _, q := range queries {
			asked := selectors(q)
			if len(asked) == 0 {
				t.Errorf("%s: %s names no metric", place, q)
			}
			for metric, by := range asked {
				known, ok := labels[metric]
				if !ok {
					t.Errorf("%s: %s: nothing exports %s", place, q, metric)
				}
				for _, label := range by {
					if ok && !slices.Contains(known, label) {
						t.Errorf("%s: %s: %s has no label %s", place, q, metric, label)
					}
				}
			}
		}
	}
}

func TestTheGuideTellsWhatEachAlertMeans(t *testing.T) {
	text := read(t, "..", "docs", "guide", "alerts.md")
	var told []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(Weir[A-Za-z]+)` \\|").FindAllStringSubmatch(text, -1) {
		told = append(told, m[1])
	}
	var there []string
	for _, r := range rules(t) {
		there = append(there, r.Alert)
	}
	if diff := cmp.Diff(there, told); diff != "" {
		t.Errorf("docs/guide/alerts.md against deploy/alerts (-rules +guide)\n%s", diff)
	}
}

func TestEveryAlertHasATestThatItFires(t *testing.T) {
	var tests struct {
		Tests []struct {
			Rules []struct {
				Alert string      `yaml:"alertname"`
				Fires []yaml.Node `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "alerts", "weir.rules.test.yaml")), &tests); err != nil {
		t.Fatal(err)
	}
	fires, still := make(map[string]bool), make(map[string]bool)
	for _, one := range tests.Tests {
		for _, r := range one.Rules {
			fires[r.Alert] = fires[r.Alert] || len(r.Fires) > 0
			still[r.Alert] = still[r.Alert] || len(r.Fires) == 0
		}
	}
	for _, r := range rules(t) {
		if !fires[r.Alert] || !still[r.Alert] {
			t.Errorf("%s is shown to fire: %v, to keep still: %v; want both", r.Alert, fires[r.Alert], still[r.Alert])
		}
	}
}

// exported reads the guide: the labels of each series.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	series := make(map[string][]string)
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (counter|gauge|histogram) \\| *([a-z_, ]*?) *\\|")
	rows := row.FindAllStringSubmatch(read(t, "..", "docs", "guide", "metrics.md"), -1)
	if len(rows) == 0 {
		t.Fatal("docs/guide/metrics.md lists no metric: the pattern is broken")
	}
	for _, m := range rows {
		// Prometheus adds the first two of each target.
		labels := append([]string{"instance", "job"}, strings.Split(m[3], ", ")...)
		if m[2] != "histogram" {
			series[m[1]] = labels
			continue
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			series[m[1]+suffix] = append([]string{"le"}, labels...)
		}
	}
	return series
}

// selectors finds the metrics that a query names, each with the labels that it is selected by.
func selectors(query string) map[string][]string {
	found := make(map[string][]string)
	metric := regexp.MustCompile(`\b((?:weir|endpoint_slice_controller|leader_election)_[a-z_]+)\b(\{[^}]*\})?`)
	label := regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)`)
	for _, m := range metric.FindAllStringSubmatch(query, -1) {
		labels := found[m[1]]
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			labels = append(labels, l[1])
		}
		found[m[1]] = labels
	}
	return found
}

type rule struct{ Alert, Expr string }

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal([]byte(read(t, "alerts", "weir.rules.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func alertQueries(t *testing.T) []string {
	t.Helper()
	var queries []string
	for _, r := range rules(t) {
		queries = append(queries, r.Expr)
	}
	return queries
}

func dashboardQueries(t *testing.T) []string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "dashboards", "weir.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	ids := make(map[int]string)
	var queries []string
	for _, p := range dashboard.Panels {
		if other, taken := ids[p.ID]; taken {
			t.Errorf("panels %q and %q have the id %d", other, p.Title, p.ID)
		}
		ids[p.ID] = p.Title
		for _, target := range p.Targets {
			queries = append(queries, target.Expr)
		}
	}
	return queries
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
