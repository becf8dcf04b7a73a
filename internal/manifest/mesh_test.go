package manifest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/golden"
	"github.com/weir-lb/weir/internal/manifest"
	"github.com/weir-lb/weir/internal/mesh"
)

// read reads a text as standard input.
func read(t *testing.T, text string) manifest.Result {
	t.Helper()
	r, err := manifest.Read(t.Context(), manifest.Source{Paths: []string{"-"}, Stdin: strings.NewReader(text)}, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// renderPolicies gives what a Result says about policies as a person reads it.
func renderPolicies(r manifest.Result) string {
	var b strings.Builder
	for _, rule := range r.Policies.Rules {
		o := rule.Origin
		fmt.Fprintf(&b, "rule %s: %s %s %d about %s %s/%s\n", o.Source, o.Dialect, o.Name, o.Entry,
			rule.Target.Kind, rule.Target.Namespace, rule.Target.Name)
	}
	for _, o := range r.Refused {
		fmt.Fprintf(&b, "refused %s: %s %s\n", o.Source, o.Dialect, strings.Trim(o.Namespace+"/"+o.Name, "/"))
	}
	for _, p := range r.Problems {
		word := "problem"
		if p.IsRefused() {
			word = "refusal"
		}
		fmt.Fprintf(&b, "%s %s\n", word, p)
	}
	return b.String()
}

func TestPoliciesNameTheLinesOfTheirMistakes(t *testing.T) {
	paths, err := filepath.Glob("testdata/policies/*")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, ".golden") {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			r, err := manifest.Read(t.Context(), manifest.Source{Paths: []string{path}}, manifest.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(renderPolicies(r), "testdata/policies/", "")
			golden.Check(t, filepath.Join("policies", filepath.Base(path)+".golden"), got)
		})
	}
}

const everybody = "targetRef: {kind: Mesh}, default: {loadBalancer: {type: Random}}"

func TestMeshDocumentsAreReadWhereverObjectsAre(t *testing.T) {
	for name, text := range map[string]string{
		"beside objects": service("web", "80") + "---\ntype: MeshLoadBalancing\nname: a\nspec: {to: [{" + everybody + "}]}\n",
		"in a list": "apiVersion: v1\nkind: List\nitems:\n- {type: MeshLoadBalancing, name: a, spec: {to: [{" + everybody + "}]}}\n" +
			"- {apiVersion: v1, kind: Service, metadata: {name: web}}\n",
		"as JSON":               `{"type":"MeshLoadBalancing","name":"a","spec":{"to":[{"targetRef":{"kind":"Mesh"},"default":{}}]}}`,
		"without a spec":        "type: MeshLoadBalancingStrategy\nname: a\nto: [{" + everybody + "}]\n",
		"with anchors":          "type: MeshLoadBalancing\nname: a\nspec: {to: [{targetRef: &m {kind: Mesh}, default: {}}], targetRef: *m}\n",
		"with a merge":          "type: MeshLoadBalancing\nname: a\nspec: {to: [{<<: &e {default: {}}, targetRef: {kind: Mesh}}]}\n",
		"after an empty one":    "---\n---\ntype: MeshLoadBalancing\nname: a\nspec: {to: [{" + everybody + "}]}\n",
		"beside another mesh's": "type: MeshTimeout\nname: b\n---\ntype: MeshLoadBalancing\nname: a\nto: [{" + everybody + "}]\n",
	} {
		r := read(t, text)
		if len(r.Policies.Rules) != 1 || len(r.Refused) != 0 || len(r.Problems) != 0 {
			t.Errorf("%s: want one rule, got\n%s", name, renderPolicies(r))
		}
		if name == "beside another mesh's" && r.Skipped["type MeshTimeout"] != 1 {
			t.Errorf("%s: want one document skipped, got %v", name, r.Skipped)
		}
	}
}

func TestARefusedDocumentDoesNotStopTheOthers(t *testing.T) {
	r := read(t, "type: MeshLoadBalancing\nname: bad\nspec: {to: [{targetRef: {kind: Mesh}, default: {loadBalancer: {}}}]}\n"+
		"---\ntype: MeshLoadBalancing\nname: good\nspec:\n  to:\n  - {"+everybody+"}\n")
	const want = `rule stdin:9: MeshLoadBalancing good 0 about Mesh /
refused stdin:1: MeshLoadBalancing bad
refusal stdin:3: MeshLoadBalancing bad: spec.to[0].default.loadBalancer.type: missing: the policy is left out
`
	if diff := cmp.Diff(want, renderPolicies(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestALastGoodStateGoesOnWhereADocumentIsRefused(t *testing.T) {
	before := read(t, "type: MeshLoadBalancing\nname: a\nto: [{"+everybody+"}]\n")
	after := read(t, "type: MeshLoadBalancing\nname: a\nto: [{targetRef: {kind: Mesh}, default: {loadBalancer: {type: Randum}}}]\n")
	kept := after.Policies.Keep(before.Policies, after.Refused)
	if diff := cmp.Diff(before.Policies.Rules, kept.Rules); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A value that is no number or no length of time is a mistake of the one policy: the others of the file count, and the last good
// rules of this one go on.
func TestAValueThatCannotBeReadIsAFindingOfItsPolicyAlone(t *testing.T) {
	object := func(name, spec string) string {
		return "apiVersion: weir.dev/v1alpha1\nkind: LoadBalancingPolicy\nmetadata: {name: " + name + ", namespace: shop}\n" +
			"spec: {targetRefs: [{kind: Service, name: web}]" + spec + "}\n---\n"
	}
	before := read(t, object("p", ", panicThreshold: 10"))
	for spec, want := range map[string]string{
		"loadBalancer: {type: LeastRequest, leastRequest: {activeRequestBias: much}}": "spec.loadBalancer.leastRequest.activeRequestBias: bad number",
		`panicThreshold: "Inf"`:                                              "spec.panicThreshold: bad number",
		`locality: {failoverThreshold: "1e1"}`:                               "spec.locality.failoverThreshold: bad number",
		"locality: {costs: [{from: a, to: b, cost: free}]}":                  "spec.locality.costs[0].cost: bad number",
		"locality: {overflow: {loadBand: {low: little, high: 2}}}":           "spec.locality.overflow.loadBand.low: bad number",
		"hashPolicies: [{type: Cookie, cookie: {name: a, ttl: 1 hour}}]":     "spec.hashPolicies[0].cookie.ttl: time: unknown unit",
		"hashPolicies: [{type: Cookie, cookie: {name: a, ttl: 999999999h}}]": "spec.hashPolicies[0].cookie.ttl: is 2562047h47m16.854775807s or more: want at most 1000000h",
		"slowStart: {window: 999999999h}":                                    "spec.slowStart.window: is 2562047h47m16.854775807s: want more than 0, and at most 1000000h",
	} {
		r := read(t, object("p", ", "+spec)+object("q", ""))
		if len(r.Refused) != 1 || len(r.Policies.Rules) != 1 || r.Policies.Rules[0].Origin.Name != "q" {
			t.Errorf("%s: want p refused and q followed: %s", spec, renderPolicies(r))
			continue
		}
		var refused []string
		for _, f := range r.Problems {
			if f.IsRefused() {
				refused = append(refused, f.Text())
			}
		}
		if len(refused) != 1 || !strings.HasPrefix(refused[0], want) || !strings.HasSuffix(refused[0], ": the policy is left out") {
			t.Errorf("want one finding that begins with\n%s\ngot\n%q", want, refused)
		}
		if kept := r.Policies.Keep(before.Policies, r.Refused); len(kept.Rules) != 2 {
			t.Errorf("%s: the last good rules do not go on", spec)
		}
	}
}

func TestOfTwoDocumentsOfAKindAndNameTheFirstCounts(t *testing.T) {
	r := read(t, "type: MeshLoadBalancing\nname: a\nto: [{"+everybody+"}]\n---\ntype: MeshLoadBalancing\nname: a\nto: [{"+everybody+"}]\n"+
		"---\ntype: MeshLoadBalancingStrategy\nname: a\nto: [{"+everybody+"}]\n")
	const want = `rule stdin:3: MeshLoadBalancing a 0 about Mesh /
rule stdin:11: MeshLoadBalancingStrategy a 0 about Mesh /
refusal stdin:5: MeshLoadBalancing a: the document is in stdin:1 already, and that one counts: the policy is left out
`
	if diff := cmp.Diff(want, renderPolicies(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStrictnessIsTheReaders(t *testing.T) {
	const text = "type: MeshLoadBalancing\nname: a\n" +
		"to: [{targetRef: {kind: Mesh}, default: {loadBalancer: {type: Maglev, maglev: {tableSize: 100}}}}]\n"
	for strictness, want := range map[mesh.Strictness]int{mesh.Compatible: 0, mesh.Strict: 1} {
		r, err := manifest.Read(t.Context(), manifest.Source{Paths: []string{"-"}, Stdin: strings.NewReader(text)},
			manifest.Options{Mesh: mesh.Options{Strictness: strictness}})
		if err != nil || len(r.Refused) != want || len(r.Problems) != 1 {
			t.Errorf("strictness %d: want %d refused, got %v and\n%s", strictness, want, err, renderPolicies(r))
		}
	}
}

func TestPoliciesKnowPodsNodesAndNamespaces(t *testing.T) {
	r := read(t, `
apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: shop, labels: {app: web}, annotations: {weir.dev/weight: "3"}}
spec: {nodeName: n1}
status: {podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.1}, {ip: "fd00::1"}]}
---
{apiVersion: v1, kind: Pod, metadata: {name: host, namespace: shop}, spec: {hostNetwork: true}, status: {podIP: 10.9.0.1}}
---
{apiVersion: v1, kind: Pod, metadata: {name: done, namespace: shop}, status: {phase: Succeeded, podIP: 10.0.0.1}}
---
{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {podIP: 10.0.0.2}}
---
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {rack: r1}}}
---
{apiVersion: v1, kind: NamespaceList, items: [{metadata: {name: shop, labels: {team: red}}}]}
`)
	s := r.Policies
	want := []policy.Pod{
		{Namespace: "default", Name: "a", IPs: []string{"10.0.0.2"}},
		{Namespace: "shop", Name: "done"},
		{Namespace: "shop", Name: "host"},
		{
			Namespace: "shop", Name: "web-1", Node: "n1", IPs: []string{"10.0.0.1", "fd00::1"},
			Labels: policy.Labels{"app": "web"}, Annotations: policy.Labels{"weir.dev/weight": "3"},
		},
	}
	if diff := cmp.Diff(want, s.Pods); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]policy.Labels{"shop": {"team": "red"}}, s.Namespaces); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]policy.Labels{"n1": {"rack": "r1"}}, s.Nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if len(r.Skipped) > 0 {
		t.Errorf("skipped %v", r.Skipped)
	}
}

// bomb is a document of some hundred bytes that aliases would blow up to gigabytes.
func bomb() string {
	var b strings.Builder
	b.WriteString("type: MeshLoadBalancing\nname: a\nlabels: {l0: &a0 [x, x]")
	for i := range 30 {
		fmt.Fprintf(&b, ", l%d: &a%d [*a%d, *a%d]", i+1, i+1, i, i)
	}
	return b.String() + "}\nto: [{" + everybody + "}]\n"
}

func TestMeshDocumentsAreReadWithinBounds(t *testing.T) {
	deep := "type: MeshLoadBalancing\nname: a\nspec: " + strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for name, c := range map[string]struct{ text, want string }{
		"aliases of aliases": {bomb(), "stdin:3: aliases repeat too much"},
		"an alias to what it is in": {
			"type: MeshLoadBalancing\nname: a\nspec: &s {to: *s}\n", "nested deeper than 100",
		},
		"nesting":           {deep, "nested deeper than 100"},
		"a key there twice": {"type: MeshLoadBalancing\nname: a\nname: b\n", `stdin:3: key "name" is there already: remove one`},
	} {
		_, err := manifest.Read(t.Context(), manifest.Source{Paths: []string{"-"}, Stdin: strings.NewReader(c.text)}, manifest.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want an error with %q, got %v", name, c.want, err)
		}
	}
	large := "type: MeshLoadBalancing\nname: a\nlabels: {l: " + strings.Repeat("x", 2<<20) + "}\nto: [{" + everybody + "}]\n"
	r := read(t, large)
	const want = "refused stdin:1: MeshLoadBalancing a\n" +
		"refusal stdin:1: MeshLoadBalancing a: the document exceeds 1572864 bytes: split it: the policy is left out\n"
	if diff := cmp.Diff(want, renderPolicies(r)); diff != "" {
		t.Errorf("a large one (-want +got):\n%s", diff)
	}
	good := read(t, "type: MeshLoadBalancing\nname: a\nto: [{"+everybody+"}]\n")
	if kept := r.Policies.Keep(good.Policies, r.Refused); len(kept.Rules) != 1 {
		t.Errorf("the last good rules of a document that grew too large do not go on: %v", kept.Rules)
	}
}

func TestInspectGivesWhatCouldBeReadBesideTheErrors(t *testing.T) {
	dir := write(t, map[string]string{
		"a.yaml": "type: MeshLoadBalancing\nname: a\nto: [{" + everybody + "}]\n", "b.yaml": "a: [",
	})
	r, err := manifest.Inspect(t.Context(), manifest.Source{Paths: []string{dir}}, manifest.Options{})
	if err == nil || !strings.Contains(err.Error(), "b.yaml") || len(r.Policies.Rules) != 1 {
		t.Errorf("want an error and a rule, got %v and %s", err, renderPolicies(r))
	}
	r, err = manifest.Read(t.Context(), manifest.Source{Paths: []string{dir}}, manifest.Options{})
	if err == nil || r.Policies != nil {
		t.Errorf("want an error and nothing else of Read, got %v and %v", err, r.Policies)
	}
}

func TestTheExamplesOfTheProjectAreRead(t *testing.T) {
	r, err := manifest.Read(t.Context(), manifest.Source{Paths: []string{"../../deploy/examples/policies"}}, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, rule := range r.Policies.Rules {
		names = append(names, rule.Origin.Namespace+"/"+rule.Origin.Name)
	}
	const examples = 6
	if slices.Sort(names); len(slices.Compact(names)) != examples || len(r.Refused) > 0 {
		t.Errorf("want %d policies, got %v and\n%s", examples, names, renderPolicies(r))
	}
}

func FuzzPolicies(f *testing.F) {
	paths, err := filepath.Glob("testdata/policies/*.yaml")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no testdata: %v", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for part := range strings.SplitSeq(string(data), "---\n") { // small ones are mutated faster
			f.Add([]byte(part))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := manifest.Inspect(t.Context(), manifest.Source{Paths: []string{"-"}, Stdin: strings.NewReader(string(data))}, manifest.Options{})
		if err != nil {
			return
		}
		for _, rule := range r.Policies.Rules {
			found := rule.Validate()
			if reason.AnyRefused(found) {
				t.Errorf("a rule is no good: %v", found)
			}
			for _, o := range r.Refused {
				if o.Dialect == rule.Origin.Dialect && o.Namespace == rule.Origin.Namespace && o.Name == rule.Origin.Name {
					t.Errorf("a refused document has a rule: %v", o)
				}
			}
		}
	})
}

func TestZonesAndServicesThatAreNotThereAreNoted(t *testing.T) {
	const objects = `{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: zone-a}},
 status: {conditions: [{type: Ready, status: "True"}], allocatable: {cpu: "1"}}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {ports: [{port: 80}]}}
---
`
	const policies = `type: MeshLoadBalancing
name: a
spec:
  targetRef:
    kind: MeshService
    name: web_shop_svc_80
    # sees zone-a alone
  to:
  - targetRef: {kind: MeshService, name: web}
    default:
      localityAwareness:
        crossZone:
          failover:
          - to: {type: Only, zones: [zone-a]}
          - to: {type: Only, zones: [zone-a, zone-x]}
  - targetRef:
      kind: MeshService
      name: wep_shop_svc_80
    default: {}
---
apiVersion: weir.dev/v1alpha1
kind: LoadBalancingPolicy
metadata: {name: b, namespace: shop}
spec:
  targetRefs:
  - {group: "", kind: Service, name: web}
  - {group: "", kind: Service, name: wob}
  clients:
    zones: [zone-a, zone-y]
`
	const want = `problem stdin:20: MeshLoadBalancing a: spec.to[0].default.localityAwareness.crossZone.failover[1].to.zones[1]: there is no zone "zone-x"
problem stdin:34: LoadBalancingPolicy shop/b: spec.clients.zones[1]: there is no zone "zone-y"
problem stdin:21: MeshLoadBalancing a: spec.to[1].targetRef: there is no service shop/wep: did you mean shop/web?
problem stdin:32: LoadBalancingPolicy shop/b: spec.targetRefs[1]: there is no service shop/wob: did you mean shop/web?
`
	r := read(t, objects+policies)
	r.Policies.Rules = nil
	if diff := cmp.Diff(want, renderPolicies(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := read(t, policies); len(r.Problems) != 0 {
		t.Errorf("alone, the policies name what may be: %s", renderPolicies(r))
	}
}

func TestARouteIsMissedOnlyWhereThereAreRoutes(t *testing.T) {
	const attached = `apiVersion: weir.dev/v1alpha1
kind: LoadBalancingPolicy
metadata: {name: by-query}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: search}]
  hashPolicies: [{type: SourceIP}]
`
	if r := read(t, attached); len(r.Problems) != 0 || len(r.Policies.Rules) != 1 {
		t.Errorf("without routes:\n%s", renderPolicies(r))
	}
	r := read(t, attached+"---\napiVersion: gateway.networking.k8s.io/v1\nkind: GRPCRoute\nmetadata: {name: search}\n")
	const want = `rule stdin:1: LoadBalancingPolicy by-query 0 about HTTPRoute default/search
problem stdin:5: LoadBalancingPolicy default/by-query: spec.targetRefs[0]: there is no HTTPRoute default/search
`
	if diff := cmp.Diff(want, renderPolicies(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRoutesAreReadWithTheirMatches(t *testing.T) {
	r := read(t, `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: search}
spec:
  parentRefs: [{group: "", kind: Service, name: search, namespace: web}]
  rules: [{name: q, matches: [{path: {type: Exact, value: /q}}]}]
`)
	want := []policy.RouteRule{{Name: "q", Matches: []policy.Match{{Path: &policy.PathMatch{Type: policy.MatchExact, Value: "/q"}}}}}
	if len(r.Policies.Routes) != 1 || len(r.Skipped) != 0 {
		t.Fatalf("routes %v, skipped %v", r.Policies.Routes, r.Skipped)
	}
	if diff := cmp.Diff(want, r.Policies.Routes[0].Rules); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
