package reason_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/reason"
)

func TestAFindingIsOneValueFromTheFileToTheCondition(t *testing.T) {
	f := reason.Finding{
		Position: reason.Position{File: "a.yaml", Line: 3, Column: 5},
		Object:   reason.Object{Kind: "LoadBalancingPolicy", Namespace: "shop", Name: "web"},
		Field:    "spec.targetRefs[0].kind", Severity: reason.Refused, Reason: reason.Unknown,
		Message: `unknown kind "Svc"`, Mend: "did you mean Service?", Instead: "the policy is left out",
	}
	for text, want := range map[string]string{
		f.String(): `a.yaml:3: LoadBalancingPolicy shop/web: spec.targetRefs[0].kind: unknown kind "Svc": did you mean Service?: the policy is left out`,
		f.Error():  f.String(),
		f.Text():   `spec.targetRefs[0].kind: unknown kind "Svc": did you mean Service?: the policy is left out`,
		f.Author(): "LoadBalancingPolicy shop/web (a.yaml:3)",
		(reason.Finding{Object: reason.Object{Kind: "Node", Name: "n1"}}).Author():                     "Node n1",
		(reason.Finding{Position: reason.Position{File: "a.json"}, Message: "the text ends"}).String(): "a.json: the text ends",
		(reason.Finding{Object: reason.Object{Kind: "Node", Name: "n1"}, Message: "no zone"}).String(): "Node n1: no zone",
		(reason.Finding{Object: reason.Object{Kind: "Node", Name: "n1"}}).Severity.String():            "warning",
	} {
		if diff := cmp.Diff(want, text); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	got, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"file":"a.yaml","line":3,"column":5,"document":"LoadBalancingPolicy shop/web","field":"spec.targetRefs[0].kind",` +
		`"severity":"refused","reason":"Unknown","message":"unknown kind \"Svc\": did you mean Service?","mend":"did you mean Service?"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !reason.AnyRefused([]reason.Finding{{}, f}) || reason.AnyRefused([]reason.Finding{{}}) {
		t.Error("a refused finding is not told from a warning")
	}
}
