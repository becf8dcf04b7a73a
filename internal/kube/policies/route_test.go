package policies_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/kube/policies"
)

// read decodes an object.
func read[T any](tb testing.TB, text string) *T {
	tb.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		tb.Fatalf("%v in\n%s", err, text)
	}
	return object
}

// say gives a route as lines: what it is about, then each rule with its matches, any of which suffices.
func say(r *policy.Route) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s/%s", r.Kind, r.Namespace, r.Name)
	if len(r.Hosts) > 0 {
		fmt.Fprintf(&b, " at %s", strings.Join(r.Hosts, " "))
	}
	sayServices(&b, " of", r.Services)
	for i := range r.Rules {
		rule := &r.Rules[i]
		fmt.Fprintf(&b, "\nrule %q", rule.Name)
		sayServices(&b, " to", rule.Backends)
		for j := range rule.Matches {
			m := &rule.Matches[j]
			b.WriteString("\n ")
			if m.Path != nil {
				fmt.Fprintf(&b, " path %s %s", m.Path.Type, m.Path.Value)
			}
			if m.Method != "" {
				fmt.Fprintf(&b, " method %s", m.Method)
			}
			for _, v := range m.Headers {
				fmt.Fprintf(&b, " header %s %s %s", v.Name, v.Type, v.Value)
			}
			for _, v := range m.Query {
				fmt.Fprintf(&b, " query %s %s %s", v.Name, v.Type, v.Value)
			}
		}
	}
	return b.String()
}

func sayServices(b *strings.Builder, word string, services []policy.ServicePort) {
	for _, s := range services {
		fmt.Fprintf(b, "%s %s/%s", word, s.Namespace, s.Name)
		if s.Port != 0 {
			fmt.Fprintf(b, ":%d", s.Port)
		}
	}
}

// complaints gives problems as lines.
func complaints(problems []reason.Finding) string {
	lines := make([]string, 0, len(problems))
	for _, p := range problems {
		lines = append(lines, p.Text())
	}
	return strings.Join(lines, "\n")
}

// routeCase is a spec, what becomes of it below its first line, and what is said of it.
type routeCase struct{ spec, want, problems string }

// httpRouteCases have the name of what happens.
func httpRouteCases() map[string]routeCase {
	return map[string]routeCase{
		"an empty route is about nothing": {`{}`, ` `, ""},
		"an empty rule is about every path": {
			`{parentRefs: [{group: "", kind: Service, name: web, port: 80}], rules: [{}]}`,
			" of shop/web:80\nrule \"\"\n  path PathPrefix /", "",
		},
		"all conditions are kept": {`
hostnames: [API.example.com, "*.example.org"]
rules:
- name: r1
  matches:
  - path: {type: Exact, value: /a}
    method: POST
    headers: [{name: X-A, value: b}, {name: X-C, type: RegularExpression, value: "d+"}]
    queryParams: [{name: q, value: "1"}, {name: Q, type: RegularExpression, value: "."}]
  - path: {value: /b/}
  - path: {type: RegularExpression, value: "/[0-9]+"}
  - method: GET
  backendRefs: [{name: web, port: 80}, {name: api, namespace: other}, {group: multicluster.x-k8s.io, kind: ServiceImport, name: far, port: 1}]`, ` at api.example.com *.example.org
rule "r1" to shop/web:80 to other/api to shop/far:1
  path Exact /a method POST header X-A Exact b header X-C RegularExpression d+ query q Exact 1 query Q RegularExpression .
  path PathPrefix /b/
  path RegularExpression /[0-9]+
  path PathPrefix / method GET`, ""},
		"parents and backends that are no services say nothing": {
			`
parentRefs: [{name: gateway}, {group: "", kind: Service, name: web, namespace: b}, {group: multicluster.x-k8s.io, kind: ServiceImport, name: far}]
rules: [{backendRefs: [{group: example.com, kind: Bucket, name: x}, {name: idle, weight: 0}, {name: busy, weight: 1}]}]`,
			" of b/web of shop/far\nrule \"\" to shop/busy\n  path PathPrefix /", "",
		},
		"a parent's port is known by its number only": {
			`
parentRefs: [{group: "", kind: Service, name: web, sectionName: http}, {group: "", kind: Service, name: api, sectionName: http, port: 80}]`,
			" of shop/api:80", `spec.parentRefs[0].sectionName: weir knows a parent's port by its number only: left out, name it by port`,
		},
		"bad references are left out": {
			`
parentRefs: [{group: "", kind: Service, name: Web}, {group: "", kind: Service, name: web, port: 0}, {group: "", kind: Service, name: web, namespace: a/b}]
rules: [{backendRefs: [{name: web, port: 65536}, {name: ""}]}]`,
			" \nrule \"\"\n  path PathPrefix /", `spec.parentRefs[0].name: "Web" is no name of a service: left out
spec.parentRefs[1].port: 0 is no port: left out
spec.parentRefs[2].namespace: "a/b" is no namespace: left out
spec.rules[0].backendRefs[0].port: 65536 is no port: left out
spec.rules[0].backendRefs[1].name: "" is no name of a service: left out`,
		},
		"a bad host is not every host": {`hostnames: ["*", "a..b"]`, " at invalid.", `spec.hostnames[0]: "*" is no host name: left out
spec.hostnames[1]: "a..b" is no host name: left out
spec.hostnames: none can be followed: the route is about no request`},
		"a match that cannot be followed leaves the others": {
			`
rules:
- matches: [{path: {value: a}}, {path: {value: /ok}}, {path: {type: Glob, value: /}}, {path: {type: RegularExpression, value: "("}}, {method: get}]`,
			" \nrule \"\"\n  path PathPrefix /ok", `spec.rules[0].matches[0].path.value: "a" does not begin with a slash: the match is left out
spec.rules[0].matches[2].path.type: "Glob" is none of Exact, PathPrefix, RegularExpression: the match is left out
spec.rules[0].matches[3].path.value: "(" is no regular expression: the match is left out
spec.rules[0].matches[4].method: "get" is none of GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH: the match is left out`,
		},
		"a rule that loses its last match is not about everything": {
			`
rules: [{name: gone, matches: [{headers: [{name: "x y", value: a}]}]}, {name: stays}]`,
			" \nrule \"stays\"\n  path PathPrefix /", `spec.rules[0].matches[0].headers[0].name: "x y" is no name: the match is left out
spec.rules[0]: none of its matches can be followed: left out`,
		},
		"of conditions on one header the first counts": {
			`
rules: [{matches: [{headers: [{name: X-A, value: a}, {name: x-a, value: b}]}]}]`,
			" \nrule \"\"\n  path PathPrefix / header X-A Exact a", `spec.rules[0].matches[0].headers[1].name: "x-a" is compared already: left out`,
		},
		"of rules of one name the first has it": {
			`rules: [{name: r}, {name: r}, {name: "no name"}]`,
			" \nrule \"r\"\n  path PathPrefix /\nrule \"\"\n  path PathPrefix /\nrule \"\"\n  path PathPrefix /",
			`spec.rules[1].name: an earlier rule is named "r", too: taken as not there
spec.rules[2].name: "no name" is no name: taken as not there`,
		},
		"expressions that take much memory together are refused": {
			`
rules: [{matches: [{path: {type: RegularExpression, value: "a{999}b{999}c{999}d{999}e{999}f{999}"}}, {path: {type: RegularExpression, value: "a{999}b{999}c{999}d{999}e{999}f{999}"}}, {path: {type: RegularExpression, value: "/a"}}]}]`,
			" \nrule \"\"\n  path RegularExpression a{999}b{999}c{999}d{999}e{999}f{999}\n  path RegularExpression /a", `spec.rules[0].matches[1].path.value: "a{999}b{999}c{999}d{999}e{999}f{999}" is too large an expression, by itself or with those before it: the match is left out`,
		},
		"an expression that takes much memory is refused": {
			`
rules: [{matches: [{path: {type: RegularExpression, value: "a{999}b{999}c{999}d{999}e{999}f{999}g{999}h{999}i{999}j{999}k{999}"}}, {path: {type: RegularExpression, value: ")|("}}, {path: {type: RegularExpression, value: "\\Qx"}}, {}]}]`,
			" \nrule \"\"\n  path PathPrefix /", `spec.rules[0].matches[0].path.value: "a{999}b{999}c{999}d{999}e{999}f{999}g{999}h{999}i{999}j{999}k{999}" is too large an expression, by itself or with those before it: the match is left out
spec.rules[0].matches[1].path.value: ")|(" is no regular expression: the match is left out
spec.rules[0].matches[2].path.value: "\\Qx" is no regular expression: the match is left out`,
		},
	}
}

func TestAnHTTPRouteIsAboutTheRequestsItsSpecTells(t *testing.T) {
	for name, test := range httpRouteCases() {
		t.Run(name, func(t *testing.T) {
			r := &gatewayv1.HTTPRoute{Spec: *read[gatewayv1.HTTPRouteSpec](t, test.spec)}
			r.Namespace, r.Name = "shop", "r"
			got, problems := policies.HTTPRoute(r)
			want := strings.TrimRight("HTTPRoute shop/r"+strings.TrimPrefix(test.want, " \n"), " ")
			want = strings.Replace(want, "shop/rrule", "shop/r\nrule", 1)
			if diff := cmp.Diff(want, say(&got)); diff != "" {
				t.Errorf("route (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.problems, complaints(problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPathsThatNoRequestHasAreRefused(t *testing.T) {
	for _, path := range []string{
		"", "a", "//", "/a//b", "/a/./b", "/a/../b", "/a/..", "/a/.", "/a%2Fb", "/a%2fb", "/a#b", "/a?b", "/a b", "/\x00", "/ä",
		"/" + strings.Repeat("a", 1024),
	} {
		r := &gatewayv1.HTTPRoute{}
		r.Spec.Rules = []gatewayv1.HTTPRouteRule{{Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Value: &path}}}}}
		if got, problems := policies.HTTPRoute(r); len(got.Rules) != 0 || len(problems) != 2 {
			t.Errorf("%q: got %v, %v", path, got.Rules, problems)
		}
	}
}

func TestAGRPCRouteIsAboutThePathsOfItsMethods(t *testing.T) {
	for name, test := range map[string]routeCase{
		"an empty rule is about everything": {`rules: [{name: r, backendRefs: [{name: web, port: 80}]}]`, "\nrule \"r\" to shop/web:80", ""},
		"exact":                             {`rules: [{matches: [{method: {service: a.B, method: C}}]}]`, "\nrule \"\"\n  path Exact /a.B/C", ""},
		"a service":                         {`rules: [{matches: [{method: {service: a.B}}]}]`, "\nrule \"\"\n  path PathPrefix /a.B", ""},
		"a method":                          {`rules: [{matches: [{method: {method: "C."}}]}]`, "\nrule \"\"\n  path RegularExpression /[^/]+/C\\.", ""},
		"an expression": {
			`rules: [{matches: [{method: {type: RegularExpression, service: "a|b"}}, {method: {type: RegularExpression, method: "C.*"}}]}]`,
			"\nrule \"\"\n  path RegularExpression /(?:a|b)/[^/]+\n  path RegularExpression /[^/]+/(?:C.*)", "",
		},
		"a header": {`rules: [{matches: [{headers: [{name: X, value: z}]}]}]`, "\nrule \"\"\n  header X Exact z", ""},
		"what is no method is left out": {
			`rules: [{matches: [{method: {}}, {method: {service: a/b}}, {method: {type: PathPrefix, service: a}}, {method: {type: RegularExpression, service: ")("}}, {method: {service: "a b"}}]}]`, "",
			`spec.rules[0].matches[0].method: it names neither a service nor a method: the match is left out
spec.rules[0].matches[1].method: a service or method has no "/": the match is left out
spec.rules[0].matches[2].method.type: "PathPrefix" is neither Exact nor RegularExpression: the match is left out
spec.rules[0].matches[3].method.service: ")(" is no regular expression: the match is left out
spec.rules[0].matches[4].method.value: "/a b" has a sign in it that paths escape: the match is left out
spec.rules[0]: none of its matches can be followed: left out`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &gatewayv1.GRPCRoute{Spec: *read[gatewayv1.GRPCRouteSpec](t, test.spec)}
			r.Namespace, r.Name = "shop", "r"
			got, problems := policies.GRPCRoute(r)
			if diff := cmp.Diff("GRPCRoute shop/r"+test.want, say(&got)); diff != "" {
				t.Errorf("route (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.problems, complaints(problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARouteIsFollowedWithinBounds(t *testing.T) {
	r := &gatewayv1.HTTPRoute{}
	r.Spec.Rules = make([]gatewayv1.HTTPRouteRule, 40)
	r.Spec.Rules[0].Matches = make([]gatewayv1.HTTPRouteMatch, 200)
	r.Spec.Rules[1].Matches = make([]gatewayv1.HTTPRouteMatch, 1)
	r.Spec.Rules[2].Matches = []gatewayv1.HTTPRouteMatch{{Headers: make([]gatewayv1.HTTPHeaderMatch, 17)}}
	r.Spec.ParentRefs = make([]gatewayv1.ParentReference, 100)
	r.Spec.Hostnames = make([]gatewayv1.Hostname, 100)
	for i := range r.Spec.Hostnames {
		r.Spec.Hostnames[i] = gatewayv1.Hostname(fmt.Sprintf("h%d", i))
	}
	got, problems := policies.HTTPRoute(r)
	if len(got.Rules) != 14 || len(got.Rules[0].Matches) != 128 || len(got.Hosts) != 16 {
		t.Errorf("got %d rules, %d matches, %d hosts", len(got.Rules), len(got.Rules[0].Matches), len(got.Hosts))
	}
	want := `spec.parentRefs: there are 100, at most 32 are followed
spec.hostnames: there are 100, at most 16 are followed
spec.rules: there are 40, at most 16 are followed
spec.rules[0].matches: there are 200, at most 128 are followed
spec.rules[1].matches: there are 1, at most 0 are followed
spec.rules[1]: none of its matches can be followed: left out
spec.rules[2].matches: there are 1, at most 0 are followed
spec.rules[2]: none of its matches can be followed: left out`
	if diff := cmp.Diff(want, complaints(problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
