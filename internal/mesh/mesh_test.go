package mesh_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/mesh"
)

// parse reads a document written as YAML.
func parse(tb testing.TB, text string, o mesh.Options) mesh.Document {
	tb.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		tb.Fatalf("%v in:\n%s", err, text)
	}
	return mesh.Parse(data, o)
}

// render gives findings as lines.
func render(findings []reason.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s %s: %s\n", f.Severity, f.Field, f.Message)
	}
	return strings.TrimSpace(b.String())
}

// indent moves a text to the right.
func indent(text string, by int) string {
	pad := strings.Repeat(" ", by)
	return pad + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+pad)
}

// around puts what an entry says into a document about the service backend.
func around(kind policy.Dialect, body string) string {
	return fmt.Sprintf(`type: %s
name: lb-1
mesh: default
spec:
  targetRef: {kind: Mesh}
  to:
  - targetRef: {kind: MeshService, name: backend}
    default:
%s
`, kind, indent(body, 6))
}

// said gives what an entry says, which must be right, and the warnings.
func said(t *testing.T, body string) (conf policy.Conf, warnings string) {
	t.Helper()
	d := parse(t, around(policy.DialectMeshLoadBalancingStrategy, body), mesh.Options{})
	if d.Refused() || len(d.Rules) != 1 {
		t.Fatalf("want one rule, got %d and\n%s", len(d.Rules), render(d.Findings))
	}
	return d.Rules[0].Conf, render(d.Findings)
}

// wantConf compares what an entry says.
func wantConf(t *testing.T, body string, want policy.Conf) {
	t.Helper()
	got, warnings := said(t, body)
	if warnings != "" {
		t.Errorf("want no warning, got %s", warnings)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// wantLocality compares what an entry says about localities, and the warning.
func wantLocality(t *testing.T, body, warning string, want policy.Locality) {
	t.Helper()
	got, warnings := said(t, body)
	if diff := cmp.Diff(warning, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(policy.Conf{Locality: want}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// findings gives what is found in an entry.
func findings(t *testing.T, body string) string {
	t.Helper()
	d := parse(t, around(policy.DialectMeshLoadBalancingStrategy, body), mesh.Options{})
	return render(d.Findings)
}
