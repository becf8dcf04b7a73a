package main

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/golden"
	"github.com/weir-lb/weir/internal/manifest"
	"github.com/weir-lb/weir/internal/mesh"
)

func TestPolicyConvert(t *testing.T) {
	good, everything := filepath.Join(policyFiles, "good.yaml"), filepath.Join(policyFiles, "everything.yaml")
	for name, c := range map[string]struct {
		args   []string
		status int
	}{
		"yaml":       {[]string{"-f", good}, exitOK},
		"everything": {[]string{everything, "--namespace", "shop"}, exitOK},
		"json":       {[]string{"-o", "json", "-f", good}, exitOK},
		"refused":    {[]string{filepath.Join(policyFiles, "bad.yaml")}, exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, err := weir(t, "", append([]string{"policy", "convert"}, c.args...)...)
			if status != c.status {
				t.Errorf("want status %d, got %d and %s", c.status, status, err)
			}
			golden.Check(t, "policy-convert-"+name+".golden", out+err)
		})
	}
}

// rulesOf reads policies and gives their rules without their origins, in the order of their targets.
func rulesOf(t *testing.T, o mesh.Options, source manifest.Source) []policy.Rule {
	t.Helper()
	r, err := manifest.Read(t.Context(), source, manifest.Options{Mesh: o})
	if err != nil || len(r.Refused) > 0 {
		t.Fatalf("%v, refused: %v", err, r.Problems)
	}
	rules := slices.Clone(r.Policies.Rules)
	slices.SortStableFunc(rules, func(a, b policy.Rule) int {
		return cmp.Or(strings.Compare(string(a.Target.Kind), string(b.Target.Kind)), strings.Compare(a.Target.Name, b.Target.Name))
	})
	for i := range rules {
		rules[i].Origin = policy.Origin{}
	}
	return rules
}

func TestWhatIsConvertedMeansTheSame(t *testing.T) {
	for _, name := range []string{"good.yaml", "everything.yaml"} {
		path := filepath.Join(policyFiles, name)
		want := rulesOf(t, mesh.Options{Namespace: "shop"}, manifest.Source{Paths: []string{path}})
		for _, format := range []string{"yaml", "json"} {
			status, out, err := weir(t, "", "policy", "convert", "-f", path, "-n", "shop", "-o", format)
			if status != exitOK {
				t.Fatalf("status %d: %s", status, err)
			}
			got := rulesOf(t, mesh.Options{}, manifest.Source{Paths: []string{"-"}, Stdin: strings.NewReader(out)})
			if diff := gocmp.Diff(want, got, gocmp.Transformer("sort", sortedSelector)); diff != "" {
				t.Errorf("%s as %s (-want +got):\n%s", name, format, diff)
			}
		}
	}
}

// sortedSelector gives a selector in one order of the many that mean the same.
func sortedSelector(s policy.Selector) []policy.Requirement {
	return slices.SortedFunc(slices.Values(s), func(a, b policy.Requirement) int { return strings.Compare(a.Key, b.Key) })
}

func TestPolicyConvertOfNothingFails(t *testing.T) {
	for text, want := range map[string]string{
		service("web"): "weir: no document of a mesh in -\n",
		"a: [":         "weir: stdin:2: ",
	} {
		status, out, err := weir(t, text, "policy", "convert", "-")
		if status != exitFailed || out != "" || !strings.HasPrefix(err, want) {
			t.Errorf("status %d, %q, %q; want %q", status, out, err, want)
		}
	}
}

func TestWhatAnAPIServerWouldNotTakeIsNotPrinted(t *testing.T) {
	const text = "type: MeshLoadBalancing\nname: a\nto: [{targetRef: {kind: Mesh}, " +
		"default: {localityAwareness: {crossZone: {failover: [{to: {type: Any}}], failoverThreshold: {percentage: 0.5}}}}}]\n"
	status, out, err := weir(t, text, "policy", "convert", "-")
	if status != exitFailed || out != "" || !strings.Contains(err, "refused: LoadBalancingPolicy weir-system/a: spec.locality.failoverThreshold") {
		t.Errorf("status %d, %q, %q", status, out, err)
	}
}
