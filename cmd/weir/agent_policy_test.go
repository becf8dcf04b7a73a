package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/golden"
	"github.com/weir-lb/weir/internal/patience"
	"github.com/weir-lb/weir/test/local"
)

// replace writes a file whole, so that a watcher never sees half of it.
func replace(t *testing.T, path, text string) {
	t.Helper()
	next := filepath.Join(filepath.Dir(path), ".policy")
	write(t, next, text)
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

const toZoneB = `type: MeshLoadBalancing
name: web
mesh: default
spec:
  targetRef: {kind: Mesh}
  to:
  - targetRef: {kind: MeshService, name: web}
    default:
      loadBalancer: {type: Random}
      localityAwareness:
        matchers:
        - {tagEqual: {name: kuma.io/zone, value: zone-b}, weight: 1}
`

// algorithm asks the agent which one serves shop/web.
func (s *started) algorithm(t *testing.T) string {
	t.Helper()
	status, body := get(t, s.admin+"/services")
	var shown agent.Status
	if status != http.StatusOK || json.Unmarshal([]byte(body), &shown) != nil || len(shown.Services) == 0 {
		t.Fatalf("/services: %d %s", status, body)
	}
	return shown.Services[0].Ports[0].Policy.Algorithm
}

func TestAPolicyAmongTheManifestsIsFollowedAndKeptWhenItBreaks(t *testing.T) {
	w := fixture{ip: "127.78.9.1", mode: "PreferSameZone", port: local.FreePort(t, "127.78.9.1")}
	w.endpoints = []member{serve(t, "127.78.9.2", "zone-a", says("a")), serve(t, "127.78.9.3", "zone-b", says("b"))}
	folder := writeManifests(t, w)
	s := startAgent(t, w, folder)
	if _, body := get(t, s.url); body != "a" {
		t.Fatalf("without a policy %q answers, want a", body)
	}
	path := filepath.Join(folder, "policy.yaml")
	replace(t, path, toZoneB)
	answers := func(zone string) func() bool {
		return func() bool {
			_, body := get(t, s.url)
			return body == zone
		}
	}
	patience.Within(t, time.Second, "zone b answers", answers("b"))
	// Requests follow a change first; then it is told.
	patience.Until(t, "/services tells of Random", func() bool { return s.algorithm(t) == "Random" })
	patience.Until(t, "/policies has the policy", func() bool {
		_, body := get(t, s.admin+"/policies")
		return strings.Contains(body, `"MeshLoadBalancing web to[0]"`)
	})

	replace(t, path, strings.Replace(toZoneB, "type: Random", "type: Roulette", 1))
	patience.Until(t, "the log tells of the bad policy", func() bool { return strings.Contains(s.log.String(), "Roulette") })
	patience.Stays(t, time.Second, "the last good policy goes on", func() bool {
		return answers("b")() && s.algorithm(t) == "Random"
	})

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	patience.Within(t, time.Second, "zone a answers again", answers("a"))
	patience.Stays(t, time.Second, "zone a answers again", answers("a"))
}

const podOf = `apiVersion: v1
kind: Pod
metadata: {name: front, namespace: shop, labels: {app: front}}
spec: {nodeName: node-b, containers: [{name: main}]}
status: {phase: Running, podIP: 127.0.0.9, podIPs: [{ip: 127.0.0.9}]}
`

func TestExplainNamesThePolicyOfEachField(t *testing.T) {
	folder := writeManifests(t, fixture{endpoints: []member{{"127.0.0.1", 80, "zone-a"}, {"127.0.0.3", 80, "zone-b"}}})
	write(t, filepath.Join(folder, "pods.yaml"), podOf)
	write(t, filepath.Join(folder, "policy.yaml"), toZoneB+`---
type: MeshLoadBalancing
name: fronts
mesh: default
spec:
  targetRef: {kind: MeshSubset, tags: {app: front}}
  to:
  - targetRef: {kind: Mesh}
    default:
      loadBalancer: {type: LeastRequest, leastRequest: {choiceCount: 8}}
`)
	for name, args := range map[string][]string{
		"explain-policy":        {"explain", "shop/web", "-f", folder},
		"explain-policy-client": {"explain", "shop/web", "-f", folder, "--client", "shop/front"},
		"explain-policy-json":   {"explain", "shop/web", "-f", folder, "--client", "shop/front", "-o", "json"},
		"dry-run-policy":        {"agent", "-f", folder, "--node", "node-b", "--dry-run"},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, err := weir(t, "", args...)
			if status != exitOK {
				t.Fatalf("status %d, error %q", status, err)
			}
			golden.Check(t, name+".golden", strings.ReplaceAll(out, folder, "FOLDER"))
		})
	}
	status, _, err := weir(t, "", "explain", "shop/web", "-f", folder, "--client", "shop/frnt")
	if status == exitOK || !strings.Contains(err, "shop/front") {
		t.Errorf("a mistyped pod: status %d, error %q", status, err)
	}
}
