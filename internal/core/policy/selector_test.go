package policy_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-lb/weir/internal/core/policy"
)

func TestRequirementsAreThoseOfKubernetes(t *testing.T) {
	app := policy.Labels{"app": "web"}
	for _, c := range []struct {
		name   string
		q      policy.Requirement
		labels policy.Labels
		want   bool
	}{
		{"In one of its values", policy.Requirement{Key: "app", Operator: policy.In, Values: []string{"x", "web"}}, app, true},
		{"In none of its values", policy.Requirement{Key: "app", Operator: policy.In, Values: []string{"x"}}, app, false},
		{"In without the label", policy.Requirement{Key: "tier", Operator: policy.In, Values: []string{""}}, app, false},
		{"NotIn one of its values", policy.Requirement{Key: "app", Operator: policy.NotIn, Values: []string{"web"}}, app, false},
		{"NotIn without the label", policy.Requirement{Key: "tier", Operator: policy.NotIn, Values: []string{"web"}}, app, true},
		{"Exists", policy.Requirement{Key: "app", Operator: policy.Exists}, app, true},
		{"Exists without the label", policy.Requirement{Key: "tier", Operator: policy.Exists}, nil, false},
		{"DoesNotExist", policy.Requirement{Key: "tier", Operator: policy.DoesNotExist}, nil, true},
		{"an operator that is not known", policy.Requirement{Key: "app", Operator: "Gt"}, app, false},
	} {
		if got := c.q.Matches(c.labels); got != c.want {
			t.Errorf("%s: want %t, got %t", c.name, c.want, got)
		}
	}
	if !(policy.Selector{}).Matches(app) || !policy.Selector(nil).Matches(nil) {
		t.Error("an empty selector does not select everything")
	}
}

func TestSelectorsAgreeWithThoseOfKubernetes(t *testing.T) {
	for seed := range uint64(500) {
		g := newGenerator(seed)
		s, l := g.selector(), g.labels()
		var theirs metav1.LabelSelector
		for _, q := range s {
			theirs.MatchExpressions = append(theirs.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: q.Key, Operator: metav1.LabelSelectorOperator(q.Operator), Values: q.Values,
			})
		}
		twin, err := metav1.LabelSelectorAsSelector(&theirs)
		if err != nil {
			t.Fatal(err)
		}
		if want, got := twin.Matches(labels.Set(l)), s.Matches(l); got != want {
			t.Fatalf("%v on %v: want %t, got %t", s, l, want, got)
		}
	}
}
