package main

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-lb/weir/internal/golden"
)

// clusterPolicies are those of the cluster, in the order of their namespaces: one for all, one of the clients of another
// namespace, one for pods, one for a route, one that is refused, and one with nothing to say about shop that is refused.
const clusterPolicies = `
- metadata: {name: offline, namespace: batch, creationTimestamp: "2026-01-01T00:00:00Z"}
  spec:
    targetRefs: [{kind: Service, name: web, namespace: shop}]
    clients: {podSelector: {matchLabels: {tier: offline}}, namespaceSelector: {matchLabels: {team: data}}}
    loadBalancer: {type: RoundRobin}
- metadata: {name: far, namespace: bank}
  spec: {targetRefs: [{kind: Service, name: ledger}], loadBalancer: {type: Maglev, maglev: {tableSize: 100}}}
- metadata: {name: front, namespace: shop}
  spec:
    targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: front}]
    hashPolicies: [{type: QueryParameter, queryParameter: {name: q}}]
- metadata: {name: keys, namespace: shop}
  spec:
    targetRefs: [{kind: Service, name: web}]
    loadBalancer: {type: RingHash, ringHash: {minRingSize: 64}}
    hashPolicies: [{type: Header, header: {name: x-user}}]
- metadata: {name: square, namespace: shop}
  spec: {targetRefs: [{kind: Service, name: web}], loadBalancer: {type: Maglev, maglev: {tableSize: 100}}}
- metadata: {name: defaults, namespace: weir-system}
  spec: {targetRefs: [{group: weir.dev, kind: Mesh, name: default}], panicThreshold: 10}
`

const clusterRoutes = `
- metadata: {name: front, namespace: shop}
  spec: {rules: [{backendRefs: [{name: web, port: 80}]}]}
`

const clusterPods = `
- metadata: {name: night, namespace: batch, labels: {tier: offline}}
  spec: {nodeName: node-b}
  status: {phase: Running, podIP: 10.9.0.1}
- metadata: {name: over, namespace: batch}
  status: {phase: Succeeded, podIP: 10.9.0.2}
`

// newPolicyServer makes an API server that has policies.
func newPolicyServer(t *testing.T) *apiServer {
	t.Helper()
	a := newAPIServer(t)
	a.kubeconfig(t)
	for text, into := range map[string]any{
		clusterPolicies: &a.policies, clusterRoutes: &a.routes, clusterPods: &a.pods,
		"[{metadata: {name: batch, labels: {team: data}}}]": &a.spaces,
	} {
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func TestExplainNamesThePolicyOfEachFieldInACluster(t *testing.T) {
	newPolicyServer(t)
	for name, args := range map[string][]string{
		"cluster-policy":        {"explain", "web"},
		"cluster-policy-client": {"explain", "web", "--client", "batch/night"},
		"cluster-policy-json":   {"explain", "web", "--client", "batch/night", "-o", "json"},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, err := weir(t, "", args...)
			if status != exitOK {
				t.Fatalf("status %d, error %q", status, err)
			}
			golden.Check(t, name+".golden", err+out)
		})
	}
}

func TestOnlyWhatCountsForTheAnswerIsRead(t *testing.T) {
	a := newPolicyServer(t)
	for _, c := range []struct {
		args []string
		want string // of the resources of policies, in the order of their names
	}{
		{[]string{"explain"}, ""},
		{[]string{"explain", "web", "--preview", "Balanced"}, ""},
		{[]string{"explain", "web"}, "httproutes loadbalancingpolicies"},
		{[]string{"explain", "-o", "json"}, "httproutes loadbalancingpolicies"},
		{[]string{"explain", "web", "--client", "batch/night"}, "batch httproutes loadbalancingpolicies night"},
	} {
		a.requests = nil
		if status, _, err := weir(t, "", c.args...); status != exitOK {
			t.Fatalf("%q: status %d, error %q", c.args, status, err)
		}
		var got []string
		for _, request := range a.requests {
			path, _, _ := strings.Cut(request, "?")
			name := path[strings.LastIndex(path, "/")+1:]
			if !slices.Contains([]string{"nodes", "services", "endpointslices", "web"}, name) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q reads %q, want %q", c.args, got, c.want)
		}
	}
}

func TestWhoMayNotReadPoliciesIsToldThatTheyAreLeftOut(t *testing.T) {
	const list = "you need the permission to list loadbalancingpolicies.weir.dev in all namespaces " +
		"(check: kubectl auth can-i list loadbalancingpolicies.weir.dev -A)"
	for name, c := range map[string]struct {
		change     func(*apiServer)
		args       []string
		wantStatus int
		want       string // in the errors; empty: there are none
	}{
		"policies":     {func(a *apiServer) { a.denied["loadbalancingpolicies"] = true }, nil, exitOK, "warning: left out of the answer: " + list},
		"for a client": {func(a *apiServer) { a.denied["loadbalancingpolicies"] = true }, []string{"--client=batch/night"}, exitFailed, list},
		"routes":       {func(a *apiServer) { a.denied["httproutes"] = true }, nil, exitOK, "left out of the answer: you need the permission to list httproutes.gateway"},
		"pods": {
			func(a *apiServer) { a.denied["pods"] = true },
			[]string{"--client=batch/night"},
			exitFailed, "you need the permission to get pods in namespace batch",
		},
		"neither policies nor the right to read them": {
			func(a *apiServer) { a.policies, a.denied["loadbalancingpolicies"] = nil, true }, nil, exitOK, "",
		},
		"no policies at all": {func(a *apiServer) { a.policies = nil }, nil, exitOK, ""},
		"no routes at all":   {func(a *apiServer) { a.routes = nil }, nil, exitOK, "there is no HTTPRoute shop/front"},
		"no client without policies": {
			func(a *apiServer) { a.policies = nil }, []string{"--client=batch/night"}, exitFailed, "no policies are known",
		},
		"a mistyped client": {func(*apiServer) {}, []string{"--client=batch/nigth"}, exitFailed, "no pod batch/nigth: did you mean batch/night"},
		"an empty namespace": {
			func(a *apiServer) { a.pods = slices.DeleteFunc(a.pods, func(corev1.Pod) bool { return true }) },
			[]string{"--client=batch/night"},
			exitFailed, "no pod batch/night in the cluster",
		},
		"a finished client": {func(*apiServer) {}, []string{"--client=batch/over"}, exitFailed, "pod batch/over is finished (Succeeded)"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newPolicyServer(t)
			c.change(a)
			status, out, err := weir(t, "", append([]string{"explain", "web"}, c.args...)...)
			if status != c.wantStatus || (status == exitOK) != strings.Contains(out, "shop/web") {
				t.Errorf("status %d, error %q, output\n%s", status, err, out)
			}
			if c.want == "" && err != "" || !strings.Contains(err, c.want) {
				t.Errorf("error %q does not say %q", err, c.want)
			}
		})
	}
}
