package policyset_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/policyset"
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

func TestObjectsAreAssembledToASetThatResolves(t *testing.T) {
	labelled := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": name}}
	}
	set, problems := policyset.Assemble(policyset.Objects{
		Policies: []*v1alpha1.LoadBalancingPolicy{named("b", "Random"), named("bad", "Fastest"), named("a", "Maglev")},
		HTTPRoutes: []*gatewayv1.HTTPRoute{
			read[gatewayv1.HTTPRoute](t, `{metadata: {name: r}, spec: {hostnames: ["?"], rules: [{}]}}`),
		},
		GRPCRoutes: []*gatewayv1.GRPCRoute{read[gatewayv1.GRPCRoute](t, `{metadata: {name: g, namespace: shop}}`)},
		Pods: []*corev1.Pod{
			pod("z", "n1", "10.0.0.1", map[string]string{"a": "b"}), finished(pod("y", "n1", "10.0.0.2", nil)),
			onHost(pod("h", "n1", "192.0.2.1", nil)), pod("a", "n2", "10.0.0.3", nil), pod("w", "", "", nil),
		},
		Namespaces: []*corev1.Namespace{{ObjectMeta: labelled("shop")}},
		Nodes:      []*corev1.Node{{ObjectMeta: labelled("n1")}, {ObjectMeta: labelled("n2")}},
	})
	wantProblems := `LoadBalancingPolicy shop/bad: spec.loadBalancer.type: `
	if len(problems) != 3 || !strings.HasPrefix(problems[0].String(), wantProblems) || !problems[0].IsRefused() ||
		problems[1].String() != `HTTPRoute default/r: spec.hostnames[0]: "?" is no host name: left out` {
		t.Errorf("problems: %v", problems)
	}
	if got, want := directory(set), "pods a@n2[10.0.0.3] h@n1[] w@[] z@n1[10.0.0.1] nodes n1 n2 namespaces shop"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if p := set.PodByIP(netip.MustParseAddr("10.0.0.1")); p == nil || p.Name != "z" || set.PodByIP(netip.MustParseAddr("192.0.2.1")) != nil {
		t.Errorf("found %v by address", p)
	}
	if diff := cmp.Diff(policy.Labels{"tier": "n2"}, set.Nodes["n2"]); diff != "" {
		t.Error(diff)
	}
	var kinds []policy.TargetKind
	for _, r := range set.Routes {
		kinds = append(kinds, r.Kind)
	}
	if diff := cmp.Diff([]policy.TargetKind{policy.TargetHTTPRoute, policy.TargetGRPCRoute}, kinds); diff != "" {
		t.Error(diff)
	}
	s := set.Resolve(policy.Client{}, policy.Destination{Service: topology.ServiceName{Namespace: "shop", Name: "web"}})
	if s.LoadBalancer.Type != policy.Maglev { // of equals the first by name wins
		t.Errorf("resolved to %q", s.LoadBalancer.Type)
	}
}

func onHost(p *corev1.Pod) *corev1.Pod {
	p.Spec.HostNetwork = true
	return p
}

func TestNothingAssemblesToAnEmptySet(t *testing.T) {
	set, problems := policyset.Assemble(policyset.Objects{})
	if set == nil || len(set.Rules)+len(set.Routes)+len(set.Pods) != 0 || len(problems) != 0 {
		t.Errorf("got %+v, %v", set, problems)
	}
}

func TestOfAPodsAnnotationsOnlyShortOnesAreKept(t *testing.T) {
	p := pod("a", "n1", "10.0.0.1", nil)
	p.Annotations = map[string]string{"weir.dev/weight": "3", "a/long": strings.Repeat("x", 257), "a/short": strings.Repeat("x", 256)}
	for i := range 100 {
		p.Annotations["a/"+strings.Repeat("n", i+1)] = "1"
	}
	set, _ := policyset.Assemble(policyset.Objects{Pods: []*corev1.Pod{p}})
	kept := slices.Sorted(maps.Keys(set.Pods[0].Annotations))
	if len(kept) != 64 || kept[63] != "weir.dev/weight" || slices.Contains(kept, "a/long") {
		t.Errorf("kept %d, the last %q", len(kept), kept[63])
	}
}

func TestAnAddressThatIsNoneIsNotKept(t *testing.T) {
	p := pod("a", "n1", "10.0.0.256", nil)
	p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: "2001:db8::1"})
	q := pod("b", "n1", "", nil)
	q.Status.PodIPs, q.Status.PodIP = nil, "10.0.0.9"
	set, _ := policyset.Assemble(policyset.Objects{Pods: []*corev1.Pod{p, q}})
	if got, want := directory(set), "pods a@n1[2001:db8::1] b@n1[10.0.0.9] nodes  namespaces "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAPolicyIsToldWhichFlagItNeeds(t *testing.T) {
	const spec = `
metadata: {name: p, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: web}, {kind: Service, name: api}, {kind: Service, name: far, namespace: other}]
  clients: {podSelector: {matchLabels: {a: b}}, namespaceSelector: {matchLabels: {a: b}}}
  endpointHashKey: {type: Label, key: shard}
  locality:
    zoneKey: topology.kubernetes.io/region
    affinity: [{key: kubernetes.io/hostname}, {key: rack}]`
	p := read[v1alpha1.LoadBalancingPolicy](t, spec)
	objects := policyset.Objects{
		Policies: []*v1alpha1.LoadBalancingPolicy{p},
		Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{
			Name: "n1", Labels: map[string]string{"topology.kubernetes.io/region": "r"},
		}}},
		Pods: []*corev1.Pod{pod("a", "n1", "10.0.0.1", map[string]string{"rack": "r1"})},
	}
	set, problems := policyset.Assemble(objects)
	if len(set.Rules) != 3 {
		t.Fatalf("the policy is refused: %v", problems)
	}
	for name, test := range map[string]struct {
		options policyset.Options
		want    string
	}{
		"nothing is followed": {policyset.Options{}, `spec.clients.podSelector: pods are not followed, so that no client is known by its pod: want --pods=own
spec.clients.namespaceSelector: pods are not followed, so that no client is known by its pod: want --pods=own
spec.endpointHashKey: pods of other nodes are not followed, their endpoints are hashed by address: want --pods=all
spec.locality.zoneKey: the label "topology.kubernetes.io/region" is not known of endpoints on other nodes: want --nodes=all, or --pods=all if pods have it
spec.locality.affinity[1].key: the label "rack" is not known of endpoints on other nodes: want --nodes=all, or --pods=all if pods have it
spec.targetRefs: it is about the clients of namespace "shop", and pods are not followed, so that no client is known by its pod: want --pods=own`},
		"own": {policyset.Options{Pods: policyset.Own, Nodes: policyset.Own}, `spec.endpointHashKey: pods of other nodes are not followed, their endpoints are hashed by address: want --pods=all
spec.locality.zoneKey: the label "topology.kubernetes.io/region" is not known of endpoints on other nodes: want --nodes=all, or --pods=all if pods have it
spec.locality.affinity[1].key: the label "rack" is not known of endpoints on other nodes: want --nodes=all, or --pods=all if pods have it`},
		"all nodes": {policyset.Options{Pods: policyset.Own, Nodes: policyset.All}, `spec.endpointHashKey: pods of other nodes are not followed, their endpoints are hashed by address: want --pods=all
spec.locality.affinity[1].key: no node has the label "rack", and pods of other nodes are not followed: want --pods=all`},
		"all pods": {
			policyset.Options{Pods: policyset.All, Nodes: policyset.Own},
			`spec.locality.zoneKey: no pod has the label "topology.kubernetes.io/region", and other nodes are not followed: want --nodes=all`,
		},
		"all": {policyset.Options{Pods: policyset.All, Nodes: policyset.All}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var needs []string
			for _, n := range policyset.Needs(set, test.options) {
				needs = append(needs, n.Text())
			}
			if diff := cmp.Diff(test.want, strings.Join(needs, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := policyset.Needs(nil, policyset.Options{}); got != nil {
		t.Errorf("nothing needs %v", got)
	}
}
