package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/patience"
)

// everywhere keeps the requests of a user on one endpoint, wherever that is.
const everywhere = `
metadata: {name: users, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: web}]
  loadBalancer: {type: Maglev}
  hashPolicies: [{type: Header, header: {name: x-user}}]
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

// answersOf counts who answers each of some users, three times each.
func (s *started) answersOf(t *testing.T) (all map[string]bool, isSticky bool) {
	t.Helper()
	all, isSticky = make(map[string]bool), true
	for user := range 12 {
		first := ""
		for range 3 {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-User", fmt.Sprintf("user-%d", user))
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			if first == "" {
				first = string(body)
			}
			isSticky = isSticky && first == string(body)
			all[string(body)] = true
		}
	}
	return all, isSticky
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
	spread := func() bool {
		all, isSticky := s.answersOf(t)
		return isSticky && len(all) == 3
	}
	took := patience.Until(t, "each user stays where it is, and all endpoints are used", spread)
	t.Logf("the policy took effect after %v", took.Round(time.Millisecond))
	c.Set(readPolicy(t, strings.Replace(everywhere, "Maglev", "Fastest", 1)))
	patience.Until(t, "the bad policy is told", func() bool { return strings.Contains(s.log.String(), "the last good rules stay") })
	if !spread() {
		t.Error("the last good policy does not go on")
	}
	c.Drop(readPolicy(t, everywhere))
	patience.Until(t, "the hint counts again", func() bool { return s.answers(t, "c") })
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
