package policies_test

import (
	"regexp"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/kube/policies"
)

// FuzzRoutes looks for specs that break the conversion, or that make a rule of things nobody can compare with.
func FuzzRoutes(f *testing.F) {
	for _, test := range httpRouteCases() {
		f.Add([]byte(test.spec))
	}
	f.Add([]byte(`rules: [{matches: [{method: {type: RegularExpression, service: "a|b", method: ")("}}]}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<14 {
			return // longer ones say nothing more, slowly
		}
		var http gatewayv1.HTTPRoute
		if yaml.Unmarshal(text, &http.Spec) == nil {
			r, _ := policies.HTTPRoute(&http)
			check(t, &r, len(http.Spec.Rules), len(http.Spec.Hostnames))
		}
		var grpc gatewayv1.GRPCRoute
		if yaml.Unmarshal(text, &grpc.Spec) == nil {
			r, _ := policies.GRPCRoute(&grpc)
			check(t, &r, len(grpc.Spec.Rules), len(grpc.Spec.Hostnames))
		}
	})
}

// check holds what every route promises, whatever it was made of.
func check(t *testing.T, r *policy.Route, rules, hosts int) {
	t.Helper()
	if len(r.Rules) > min(rules, 16) || len(r.Hosts) > min(hosts, 16) {
		t.Errorf("%d rules of %d, %d hosts of %d", len(r.Rules), rules, len(r.Hosts), hosts)
	}
	if hosts > 0 && len(r.Hosts) == 0 {
		t.Error("a route for some hosts is one for all")
	}
	names := make(map[string]bool)
	for i := range r.Rules {
		rule := &r.Rules[i]
		if rule.Name != "" && names[rule.Name] {
			t.Errorf("two rules are named %q", rule.Name)
		}
		names[rule.Name] = true
		for j := range rule.Matches {
			checkMatch(t, &rule.Matches[j])
		}
	}
}

func checkMatch(t *testing.T, m *policy.Match) {
	t.Helper()
	if m.Path != nil {
		if m.Path.Type == policy.MatchRegex {
			mustCompile(t, m.Path.Value)
		} else if !strings.HasPrefix(m.Path.Value, "/") {
			t.Errorf("path %q", m.Path.Value)
		}
	}
	for _, v := range append(m.Headers, m.Query...) {
		switch {
		case v.Name == "":
			t.Error("a condition on nothing")
		case v.Type == policy.MatchRegex:
			mustCompile(t, v.Value)
		case v.Type != policy.MatchExact:
			t.Errorf("type %q", v.Type)
		}
	}
}

// mustCompile checks an expression as it is used, on a whole value.
func mustCompile(t *testing.T, expression string) {
	t.Helper()
	if _, err := regexp.Compile("^(?:" + expression + ")$"); err != nil {
		t.Errorf("%q: %v", expression, err)
	}
}
