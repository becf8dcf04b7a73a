package main

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/patience"
)

// everywhere sends requests to all endpoints, wherever those are.
const everywhere = `
metadata: {name: anywhere, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: web}]
  loadBalancer: {type: Random}
  locality: {disabled: true}`

// readPolicy decodes a policy.
func readPolicy(t *testing.T, text string) *v1alpha1.LoadBalancingPolicy {
	t.Helper()
	p := new(v1alpha1.LoadBalancingPolicy)
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// installPolicies makes the cluster know policies.
func (c cluster) installPolicies() {
	c.Install(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource), v1alpha1.Kind)
	for _, kind := range []string{"HTTPRoute", "GRPCRoute"} {
		c.Install(schema.GroupVersionResource{
			Group: "gateway.networking.k8s.io", Version: "v1", Resource: strings.ToLower(kind) + "s",
		}, kind)
	}
}

// answerers counts thirty responses by endpoint.
func (s *started) answerers(t *testing.T) map[string]bool {
	t.Helper()
	all := make(map[string]bool)
	for range 30 {
		_, body := get(t, s.url)
		all[body] = true
	}
	return all
}

func TestAnAgentFollowsThePoliciesOfACluster(t *testing.T) {
	w := given(t, "127.79.6")
	c := newCluster(t, writeManifests(t, w))
	c.installPolicies()
	s := launchAgent(t, w, c.flags(t)...)
	if !s.answers(t, "c") {
		t.Fatal("without a policy the hint does not count")
	}
	c.Set(readPolicy(t, everywhere))
	isSpread := func() bool { return len(s.answerers(t)) == 3 }
	took := patience.Within(t, time.Second, "all endpoints are used", isSpread)
	t.Logf("the policy took effect after %v", took.Round(time.Millisecond))
	c.Set(readPolicy(t, strings.Replace(everywhere, "Random", "Fastest", 1)))
	patience.Until(t, "the bad policy is told", func() bool { return strings.Contains(s.log.String(), "the last good rules stay") })
	patience.Stays(t, time.Second, "the last good policy goes on", isSpread)
	c.Drop(readPolicy(t, everywhere))
	atHome := func() bool { return s.answers(t, "c") }
	patience.Within(t, time.Second, "the hint counts again", atHome)
	patience.Stays(t, time.Second, "the hint counts again", atHome)
}

func TestAnAgentServesAtOnceWhereNoPoliciesAreInstalled(t *testing.T) {
	w := given(t, "127.79.7")
	c := newCluster(t, writeManifests(t, w))
	s := launchAgent(t, w, c.flags(t)...)
	if log := s.log.String(); !s.answers(t, "c") || strings.Contains(log, "not waited for any longer") || strings.Contains(log, "WARN") {
		t.Errorf("want service without a complaint, got\n%s", log)
	}
}

func TestAnAgentThatIsToldSoFollowsNoPolicies(t *testing.T) {
	w := given(t, "127.79.8")
	c := newCluster(t, writeManifests(t, w))
	c.installPolicies()
	c.Set(readPolicy(t, everywhere))
	s := launchAgent(t, w, c.flags(t, "--policies=false")...)
	if !s.answers(t, "c") {
		t.Error("a policy is followed")
	}
}

func TestAPolicyThatNeedsPodsSaysSo(t *testing.T) {
	w := given(t, "127.79.9")
	c := newCluster(t, writeManifests(t, w))
	c.installPolicies()
	c.Set(readPolicy(t, strings.Replace(everywhere, "spec:", "spec:\n  clients: {podSelector: {matchLabels: {a: b}}}", 1)))
	s := launchAgent(t, w, c.flags(t, "--pods=none")...)
	if log := s.log.String(); !strings.Contains(log, "want --pods=own") {
		t.Errorf("want a word on the flag, got\n%s", log)
	}
}

func TestBadReachesOfPodsAreRefused(t *testing.T) {
	for want, args := range map[string][]string{
		"want none, own or all":       {"--pods=some"},
		"want a cluster instead of -": {"--pods=own", "-f", t.TempDir()},
	} {
		status, _, text := weir(t, "", append([]string{"agent", "--node", "n"}, args...)...)
		if status == exitOK || !strings.Contains(text, want) {
			t.Errorf("%v: got %d, %s", args, status, text)
		}
	}
}
