package status_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Whoever reads a condition's reason finds in the guide what it means.
func TestTheGuideTellsWhatEachReasonMeans(t *testing.T) {
	read := func(path ...string) string {
		text, err := os.ReadFile(filepath.Join(path...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	guide := read("..", "..", "..", "docs", "guide", "troubleshooting.md")
	reasons := regexp.MustCompile(`(?m)^\treason\w+ += "(\w+)"`).FindAllStringSubmatch(read("verdict.go"), -1)
	// Those of plans without hints come to the conditions, too.
	plans := regexp.MustCompile(`(?m)^\t\t(\w+): +"no hints: `).FindAllStringSubmatch(read("..", "..", "core", "reason", "plan.go"), -1)
	if len(reasons) == 0 || len(plans) == 0 {
		t.Fatalf("%d reasons of conditions and %d of plans: a pattern is broken", len(reasons), len(plans))
	}
	for _, m := range append(reasons, plans...) {
		if !strings.Contains(guide, "`"+m[1]+"`") {
			t.Errorf("docs/guide/troubleshooting.md does not tell what %s means", m[1])
		}
	}
}
