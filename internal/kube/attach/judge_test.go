package attach_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/attach"
)

// input has the policies, the Services shop/web with the port http, and the HTTPRoute shop/front with the rule api. Each policy
// is younger than the one before.
func input(t *testing.T, texts ...string) attach.Input {
	t.Helper()
	w := attach.Input{
		Service: func(n topology.ServiceName) *corev1.Service {
			if n != (topology.ServiceName{Namespace: "shop", Name: "web"}) {
				return nil
			}
			return &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}
		},
		Route: func(kind policy.TargetKind, n topology.ServiceName) ([]string, bool) {
			return []string{"api"}, kind == policy.TargetHTTPRoute && n == topology.ServiceName{Namespace: "shop", Name: "front"}
		},
	}
	for i, text := range texts {
		p := new(v1alpha1.LoadBalancingPolicy)
		if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		p.CreationTimestamp = metav1.Unix(int64(1_700_000_000+i), 0)
		w.Policies = append(w.Policies, p)
	}
	return w
}

// lines gives a verdict as text: a line for each condition.
func lines(w attach.Input) []string {
	var all []string
	for i, entries := range attach.Judge(w).Policies {
		for _, e := range entries {
			for _, c := range e.Conditions {
				all = append(all, fmt.Sprintf("%s@%s %s=%s %s: %s", w.Policies[i].Name, e.AncestorRef.Name, c.Type, c.Status, c.Reason, c.Message))
			}
		}
	}
	return all
}

const (
	head  = "metadata: {name: %s, namespace: %s}\nspec: "
	isOn  = " Accepted=True Accepted: the policy is valid and its target is there"
	inUse = " Programmed=True Programmed: data planes that follow the API server use it"
)

func of(name, namespace, spec string) string {
	return fmt.Sprintf(head, name, namespace) + "{" + spec + "}"
}

func TestWhatBecomesOfPolicies(t *testing.T) {
	const web = "targetRefs: [{kind: Service, name: web}], "
	cases := map[string]struct{ policies, want []string }{
		"alone": {
			[]string{of("a", "shop", web+"loadBalancer: {type: Random}")},
			[]string{"a@web" + isOn, "a@web" + inUse},
		},
		"invalid": {
			[]string{of("a", "shop", web+"loadBalancer: {type: Maglev, maglev: {tableSize: 100}}, panicThreshold: 101")},
			[]string{
				"a@web Accepted=False Invalid: spec.loadBalancer.maglev.tableSize", "a@web Programmed=False Reconciling: data planes go on",
			},
		},
		"no such service": {
			[]string{of("a", "shop", "targetRefs: [{kind: Service, name: gone}]")},
			[]string{"a@gone Accepted=False TargetNotFound: there is no Service shop/gone", "a@gone Programmed=False Reconciling: waits"},
		},
		"no such port": {
			[]string{of("a", "shop", "targetRefs: [{kind: Service, name: web, sectionName: grpc}]")},
			[]string{"a@web Accepted=False TargetNotFound: the Service shop/web has no port grpc", "a@web Programmed=False Reconciling: waits"},
		},
		"ports by name and number": {
			[]string{
				of("a", "shop", "targetRefs: [{kind: Service, name: web, sectionName: http}]"),
				of("b", "shop", `targetRefs: [{kind: Service, name: web, sectionName: "80"}]`),
			},
			[]string{"a@web" + isOn, "a@web" + inUse, "b@web" + isOn, "b@web" + inUse},
		},
		"routes": {
			[]string{of("a", "shop", `targetRefs: [
				{group: gateway.networking.k8s.io, kind: HTTPRoute, name: front, sectionName: api},
				{group: gateway.networking.k8s.io, kind: HTTPRoute, name: front, sectionName: other},
				{group: gateway.networking.k8s.io, kind: GRPCRoute, name: front}], hashPolicies: [{type: SourceIP}]`)},
			[]string{
				"a@front" + isOn, "a@front" + inUse,
				"a@front Accepted=False TargetNotFound: the HTTPRoute shop/front has no rule other", "a@front Programmed=False Reconciling: waits",
				"a@front Accepted=False TargetNotFound: there is no GRPCRoute shop/front", "a@front Programmed=False Reconciling: waits",
			},
		},
		"the older one wins": {
			[]string{of("b", "shop", web+"loadBalancer: {type: Random}"), of("a", "shop", web+"loadBalancer: {type: RoundRobin}")},
			[]string{
				"b@web" + isOn, "b@web" + inUse,
				"a@web Accepted=False Conflicted: policies with the same target and clients, which are older or come first in the alphabet, " +
					"say all of it otherwise: spec.loadBalancer.type: shop/b says otherwise",
				"a@web Programmed=False Overridden: nothing of it is in force: spec.loadBalancer.type: shop/b says otherwise",
			},
		},
		"equals that say the same do not conflict": {
			[]string{of("a", "shop", web+"loadBalancer: {type: Random}"), of("b", "shop", web+"loadBalancer: {type: Random}")},
			[]string{"a@web" + isOn, "a@web" + inUse, "b@web" + isOn, "b@web" + inUse},
		},
		"a part is overridden": {
			[]string{
				of("a", "shop", web+"loadBalancer: {type: Random}"),
				of("b", "shop", web+"loadBalancer: {type: RoundRobin}, panicThreshold: 10"),
			},
			[]string{
				"a@web" + isOn, "a@web" + inUse, "b@web" + isOn,
				"b@web Programmed=True Overridden: spec.loadBalancer.type: shop/a says otherwise",
			},
		},
		"a stronger role overrides without a conflict": {
			[]string{
				of("a", "weir-system", "targetRefs: [{kind: Service, name: web, namespace: shop}], loadBalancer: {type: Random}"),
				of("b", "shop", web+"loadBalancer: {type: RoundRobin}"),
			},
			[]string{
				"a@web" + isOn,
				"a@web Programmed=False Overridden: nothing of it is in force: spec.loadBalancer.type: shop/b says otherwise",
				"b@web" + isOn, "b@web" + inUse,
			},
		},
		"other clients do not override": {
			[]string{
				of("a", "shop", web+"loadBalancer: {type: Random}"),
				of("b", "shop", web+"loadBalancer: {type: RoundRobin}, clients: {podSelector: {matchLabels: {a: b}}}"),
				of("c", "shop", "targetRefs: [{kind: Namespace, name: shop}], loadBalancer: {type: LeastRequest}"),
			},
			[]string{"a@web" + isOn, "a@web" + inUse, "b@web" + isOn, "b@web" + inUse, "c@shop" + isOn, "c@shop" + inUse},
		},
		"disabled wins by merging": {
			[]string{
				of("a", "shop", "targetRefs: [{kind: Namespace, name: shop}], locality: {disabled: true}"),
				of("b", "shop", web+"locality: {failover: [{to: {type: None}}]}, panicThreshold: 10"),
			},
			[]string{
				"a@shop" + isOn, "a@shop" + inUse, "b@web" + isOn,
				"b@web Programmed=True Overridden: spec.locality.failover: shop/a says locality.disabled",
			},
		},
		"nobody chose a load balancer that hashes": {
			[]string{of("a", "shop", web+"hashPolicies: [{type: SourceIP}], endpointHashKey: {type: PodName}, panicThreshold: 10")},
			[]string{
				"a@web" + isOn,
				"a@web Programmed=True PartiallyProgrammed: spec.hashPolicies: unused: the default algorithm does not hash requests; spec.endpointHashKey: unused",
			},
		},
		"another one chose a load balancer that does not hash": {
			[]string{
				of("a", "shop", web+"hashPolicies: [{type: SourceIP}]"),
				of("b", "shop", "targetRefs: [{kind: Namespace, name: shop}], loadBalancer: {type: Random}"),
			},
			[]string{
				"a@web" + isOn, "a@web Programmed=True PartiallyProgrammed: spec.hashPolicies: unused: Random does not hash requests",
				"b@shop" + isOn, "b@shop" + inUse,
			},
		},
		"another one chose a load balancer that hashes": {
			[]string{
				of("a", "shop", `targetRefs: [{kind: Service, name: web, sectionName: "80"}], hashPolicies: [{type: SourceIP}]`),
				of("b", "shop", "targetRefs: [{kind: Namespace, name: shop}], loadBalancer: {type: Maglev}"),
			},
			[]string{"a@web" + isOn, "a@web" + inUse, "b@shop" + isOn, "b@shop" + inUse},
		},
		"a load balancer of some clients or ports may hash": {
			[]string{
				of("a", "shop", web+"hashPolicies: [{type: SourceIP}]"),
				of("b", "shop", web+"loadBalancer: {type: Maglev}, clients: {zones: [zone-a]}"),
			},
			[]string{"a@web" + isOn, "a@web" + inUse, "b@web" + isOn, "b@web" + inUse},
		},
		"what a namespace says may have an effect on some": {
			[]string{of("a", "shop", "targetRefs: [{kind: Namespace, name: shop}], hashPolicies: [{type: SourceIP}]")},
			[]string{"a@shop" + isOn, "a@shop" + inUse},
		},
		"what another one took the effect of": {
			[]string{
				of("a", "shop", web+"slowStart: {window: 10s}, panicThreshold: 10"),
				of("b", "shop", web+"loadBalancer: {type: Random}"),
			},
			[]string{
				"a@web" + isOn, "a@web Programmed=True PartiallyProgrammed: spec.slowStart: unused: Random has no slow start",
				"b@web" + isOn, "b@web" + inUse,
			},
		},
		"a warning is a part": {
			[]string{of("a", "shop", web+"locality: {failover: [{to: {type: Any}}, {to: {type: None}}]}")},
			[]string{"a@web" + isOn, "a@web Programmed=True PartiallyProgrammed: spec.locality.failover[1]"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			same := func(want, got string) bool { return strings.HasPrefix(got, want) }
			if got := lines(input(t, c.policies...)); !slices.EqualFunc(c.want, got, same) {
				t.Error(cmp.Diff(c.want, got))
			}
		})
	}
}

func TestAnInvalidPolicyNamesEveryField(t *testing.T) {
	got := lines(input(t, of("a", "shop",
		"targetRefs: [{kind: Service, name: web}], loadBalancer: {type: Maglev, maglev: {tableSize: 100}}, panicThreshold: 101")))
	for _, field := range []string{"spec.loadBalancer.maglev.tableSize: ", "spec.panicThreshold: "} {
		if !strings.Contains(got[0], field) {
			t.Errorf("%s does not name %s", got[0], field)
		}
	}
}

func TestServicesAreToldOfAcceptedPoliciesThatNameThem(t *testing.T) {
	w := input(t,
		of("b", "shop", "targetRefs: [{kind: Service, name: web}, {kind: Service, name: gone}]"),
		of("a", "shop", "targetRefs: [{group: multicluster.x-k8s.io, kind: ServiceImport, name: web}]"),
		of("c", "batch", "targetRefs: [{kind: Service, name: web, namespace: shop}]"),
		of("bad", "shop", "targetRefs: [{kind: Service, name: web}], panicThreshold: 101"),
		of("wide", "shop", "targetRefs: [{kind: Namespace, name: shop}]"))
	want := map[topology.ServiceName][]string{{Namespace: "shop", Name: "web"}: {"batch/c", "shop/a", "shop/b"}}
	if diff := cmp.Diff(want, attach.Judge(w).Services); diff != "" {
		t.Error(diff)
	}
}

func TestTheOrderOfPoliciesDoesNotMatter(t *testing.T) {
	const web = "targetRefs: [{kind: Service, name: web}], "
	w := input(t, of("a", "shop", web+"loadBalancer: {type: Random}"), of("b", "shop", web+"loadBalancer: {type: RoundRobin}"),
		of("c", "shop", web+"panicThreshold: 1"))
	want := lines(w)
	slices.Sort(want)
	slices.Reverse(w.Policies)
	got := lines(w)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheExamplesAreAcceptedWhereTheirTargetsAre(t *testing.T) {
	files, err := filepath.Glob("../../../deploy/examples/policies/*.yaml")
	if err != nil || len(files) != 6 {
		t.Fatalf("want six examples, found %d (%v)", len(files), err)
	}
	var texts []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	w := input(t, texts...)
	w.Service = func(topology.ServiceName) *corev1.Service {
		return &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http"}}}}
	}
	w.Route = func(policy.TargetKind, topology.ServiceName) ([]string, bool) { return []string{"by-query"}, true }
	for i, entries := range attach.Judge(w).Policies {
		if c := entries[0].Conditions[0]; c.Status != metav1.ConditionTrue {
			t.Errorf("%s: %s", w.Policies[i].Name, c.Message)
		}
	}
}
