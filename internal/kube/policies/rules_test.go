package policies_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/policies"
)

// examples reads the policies that are delivered as examples, by name.
func examples(tb testing.TB) map[string]*v1alpha1.LoadBalancingPolicy {
	tb.Helper()
	files, err := filepath.Glob("../../../deploy/examples/policies/*.yaml")
	if err != nil || len(files) != 6 {
		tb.Fatalf("want six examples, found %d (%v)", len(files), err)
	}
	all := make(map[string]*v1alpha1.LoadBalancingPolicy)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		p := parse(tb, string(text))
		all[p.Name] = p
	}
	return all
}

func parse(tb testing.TB, text string) *v1alpha1.LoadBalancingPolicy {
	tb.Helper()
	p := new(v1alpha1.LoadBalancingPolicy)
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		tb.Fatalf("%v in\n%s", err, text)
	}
	return p
}

func TestTheExamplesAreValid(t *testing.T) {
	var warnings []string
	for name, p := range examples(t) {
		rules, problems := policies.Rules(p)
		if len(rules) != 1 {
			t.Errorf("%s gives %d rules and the problems %v", name, len(rules), problems)
		}
		for _, w := range problems {
			warnings = append(warnings, w.Object.Name+": "+w.Field)
		}
	}
	// A cookie with a ttl is made where there is none, so that nothing after it is asked.
	if diff := cmp.Diff([]string{"cache-shards: spec.hashPolicies[2]"}, warnings); diff != "" {
		t.Error(diff)
	}
}

func TestAPolicyForAServiceElsewhereIsAboutItsOwnNamespacesClients(t *testing.T) {
	rules, _ := policies.Rules(examples(t)["batch-to-search"])
	want := []policy.Rule{{
		Origin: policy.Origin{Dialect: policy.DialectCRD, Namespace: "batch", Name: "batch-to-search"},
		Clients: policy.Clients{
			Namespace: "batch",
			Pods:      policy.Selector{{Key: "tier", Operator: policy.In, Values: []string{"offline"}}},
		},
		Target: policy.Target{Kind: policy.TargetService, Namespace: "web", Name: "search"},
		Conf: policy.Conf{
			LoadBalancer: &policy.LoadBalancer{Type: policy.RoundRobin},
			Locality: policy.Locality{Overflow: policy.Overflow{
				Mode: new(policy.OverflowLoadBand), LoadBand: &policy.LoadBand{Low: 2, High: 8},
			}},
		},
	}}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Error(diff)
	}
}

func TestEachTargetIsARule(t *testing.T) {
	rules, problems := policies.Rules(parse(t, `
metadata: {name: one, namespace: weir-system}
spec:
  targetRefs:
  - {group: weir.dev, kind: Mesh, name: default}
  - {group: "", kind: Namespace, name: weir-system}
  - {group: "", kind: Service, name: a, sectionName: http}
  - {group: "", kind: Service, name: a, namespace: shop}
  - {group: multicluster.x-k8s.io, kind: ServiceImport, name: b}
  panicThreshold: 12
`))
	if problems != nil {
		t.Fatal(problems)
	}
	var targets []policy.Target
	var consumers []string
	for i, r := range rules {
		targets, consumers = append(targets, r.Target), append(consumers, r.Clients.Namespace)
		if r.Origin.Entry != i || *r.Conf.PanicThreshold != 12 {
			t.Errorf("rule %d is %+v", i, r)
		}
	}
	want := []policy.Target{
		{Kind: policy.TargetMesh},
		{Kind: policy.TargetNamespace, Namespace: "weir-system"},
		{Kind: policy.TargetService, Namespace: "weir-system", Name: "a", Section: "http"},
		{Kind: policy.TargetService, Namespace: "shop", Name: "a"},
		{Kind: policy.TargetServiceImport, Namespace: "weir-system", Name: "b"},
	}
	if diff := cmp.Diff(want, targets); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"", "", "", "", ""}, consumers); diff != "" {
		t.Error(diff)
	}
}

func TestSelectorsKeepAnOrderOfTheirOwn(t *testing.T) {
	rules, _ := policies.Rules(parse(t, `
metadata: {name: one, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: a}]
  clients:
    zones: [b, a]
    service: {namespace: shop, name: front}
    podSelector:
      matchLabels: {z: "1", a: "2"}
      matchExpressions: [{key: m, operator: NotIn, values: [v, w]}, {key: c, operator: Exists}]
`))
	if len(rules) != 1 {
		t.Fatalf("%d rules", len(rules))
	}
	want := policy.Clients{
		Zones: []topology.Zone{"b", "a"},
		Pods: policy.Selector{
			{Key: "a", Operator: policy.In, Values: []string{"2"}},
			{Key: "z", Operator: policy.In, Values: []string{"1"}},
			{Key: "m", Operator: policy.NotIn, Values: []string{"v", "w"}},
			{Key: "c", Operator: policy.Exists},
		},
		Service: &topology.ServiceName{Namespace: "shop", Name: "front"},
	}
	if diff := cmp.Diff(want, rules[0].Clients); diff != "" {
		t.Error(diff)
	}
}

func TestABadPolicyGivesNoRulesAndNamesTheField(t *testing.T) {
	for name, c := range badPolicies() {
		t.Run(name, func(t *testing.T) {
			rules, problems := policies.Rules(parse(t, "metadata: {name: bad, namespace: shop}\nspec: {"+c.spec+"}"))
			if len(rules) != 0 {
				t.Errorf("gives %d rules", len(rules))
			}
			var fields []string
			for _, p := range problems {
				if p.IsRefused() {
					fields = append(fields, p.Field)
				}
				if want := "LoadBalancingPolicy shop/bad: spec."; !strings.HasPrefix(p.String(), want) {
					t.Errorf("%s: want it to begin with %s", &p, want)
				}
			}
			if diff := cmp.Diff([]string{c.field}, fields); diff != "" {
				t.Errorf("%s\n%v", diff, problems)
			}
		})
	}
}

type badPolicy struct{ spec, field string }

// badPolicies are specs in the namespace shop, each with one mistake that this package finds by itself.
func badPolicies() map[string]badPolicy {
	const to = "targetRefs: [{kind: Service, name: a}], "
	return map[string]badPolicy{
		"no target":               {"panicThreshold: 1", "spec.targetRefs"},
		"too many targets":        {"targetRefs: [" + many(17, "{kind: Service, name: a#}") + "]", "spec.targetRefs"},
		"a target twice":          {"targetRefs: [{kind: Service, name: a}, {kind: Service, name: a, namespace: shop}]", "spec.targetRefs[1]"},
		"unknown kind":            {"targetRefs: [{kind: Pod, name: a}]", "spec.targetRefs[0].kind"},
		"wrong group":             {"targetRefs: [{kind: Service, group: apps, name: a}]", "spec.targetRefs[0].group"},
		"no name":                 {`targetRefs: [{kind: Service, name: ""}]`, "spec.targetRefs[0].name"},
		"empty section":           {`targetRefs: [{kind: Service, name: a, sectionName: ""}]`, "spec.targetRefs[0].sectionName"},
		"empty namespace":         {`targetRefs: [{kind: Service, name: a, namespace: ""}]`, "spec.targetRefs[0].namespace"},
		"route elsewhere":         {"targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: a, namespace: b}]", "spec.targetRefs[0].namespace"},
		"section of a namespace":  {"targetRefs: [{kind: Namespace, name: shop, sectionName: a}]", "spec.targetRefs[0].sectionName"},
		"another namespace":       {"targetRefs: [{kind: Namespace, name: bank}]", "spec.targetRefs[0].name"},
		"mesh from elsewhere":     {"targetRefs: [{group: weir.dev, kind: Mesh, name: default}]", "spec.targetRefs[0]"},
		"no client zones":         {to + "clients: {zones: []}", "spec.clients.zones"},
		"bad selector":            {to + "clients: {podSelector: {matchExpressions: [{key: a, operator: In}]}}", "spec.clients.podSelector"},
		"clients without service": {to + `clients: {service: {namespace: a, name: ""}}`, "spec.clients.service"},
		"negative ring":           {to + "loadBalancer: {type: RingHash, ringHash: {minRingSize: -1}}", "spec.loadBalancer.ringHash.minRingSize"},
		"negative table":          {to + "loadBalancer: {type: Maglev, maglev: {tableSize: -5}}", "spec.loadBalancer.maglev.tableSize"},
		"header of a cookie":      {to + "hashPolicies: [{type: SourceIP}, {type: Cookie, cookie: {name: a}, header: {name: b}}]", "spec.hashPolicies[1].header"},
		"header without a header": {to + "hashPolicies: [{type: Header}]", "spec.hashPolicies[0].header"},
		"block of the source":     {to + "hashPolicies: [{type: SourceIP, queryParameter: {name: a}}]", "spec.hashPolicies[0].queryParameter"},
		"empty cookie path":       {to + `hashPolicies: [{type: Cookie, cookie: {name: a, path: ""}}]`, "spec.hashPolicies[0].cookie.path"},
		"too many hashes":         {to + "hashPolicies: [" + many(17, "{type: SourceIP}") + "]", "spec.hashPolicies"},
		"empty key":               {to + `endpointHashKey: {type: Label, key: ""}`, "spec.endpointHashKey.key"},
		"zero affinity":           {to + "locality: {affinity: [{key: a, weight: 0}]}", "spec.locality.affinity[0].weight"},
		"great affinity":          {to + "locality: {affinity: [{key: a, weight: 4294967296}]}", "spec.locality.affinity[0].weight"},
		"negative weight":         {to + "locality: {weights: [{key: a, value: b, weight: -1}]}", "spec.locality.weights[0].weight"},
		"from nowhere":            {to + "locality: {failover: [{from: {zones: []}, to: {type: Any}}]}", "spec.locality.failover[0].from.zones"},
	}
}

// many repeats an element of a list; # becomes its number.
func many(n int, element string) string {
	var list []string
	for i := range n {
		list = append(list, strings.ReplaceAll(element, "#", string(rune('a'+i))))
	}
	return strings.Join(list, ", ")
}
