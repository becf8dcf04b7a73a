package attach

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api/v1alpha1"
)

func TestTargetsAreCountedByTheReasonOfAccepted(t *testing.T) {
	registry := prometheus.NewRegistry()
	targets, err := newTargets(registry)
	if err != nil {
		t.Fatal(err)
	}
	entry := func(reason string) v1alpha1.PolicyAncestorStatus {
		return v1alpha1.PolicyAncestorStatus{Conditions: conditions(condition(v1alpha1.ConditionAccepted, metav1.ConditionTrue, reason, ""))}
	}
	count(targets, [][]v1alpha1.PolicyAncestorStatus{
		{entry(v1alpha1.ReasonAccepted), entry(v1alpha1.ReasonTargetNotFound)}, {entry(v1alpha1.ReasonAccepted)},
	})
	const head = `
# HELP weir_policy_targets Targets of LoadBalancingPolicies, by whether the policy is accepted there, and why not.
# TYPE weir_policy_targets gauge
`
	want := head + `weir_policy_targets{reason="Accepted"} 2
weir_policy_targets{reason="Conflicted"} 0
weir_policy_targets{reason="Invalid"} 0
weir_policy_targets{reason="TargetNotFound"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	count(targets, nil) // another replica leads
	if got := testutil.ToFloat64(targets.WithLabelValues(v1alpha1.ReasonAccepted)); got != 0 {
		t.Errorf("%v are counted after the term", got)
	}
}

func TestTheGuideListsTheReasons(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guide", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, row, found := strings.Cut(string(text), "\n| `weir_policy_targets` | gauge | reason |")
	row, _, _ = strings.Cut(row, "\n")
	for _, reason := range reasons() {
		if !found || !strings.Contains(row, "`"+reason+"`") {
			t.Errorf("the guide does not list %s in %q", reason, row)
		}
	}
}
