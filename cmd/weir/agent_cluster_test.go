package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weir-lb/weir/internal/kube/apitest"
	"github.com/weir-lb/weir/internal/patience"
	"github.com/weir-lb/weir/test/local"
)

// cluster is an API server that holds manifests.
type cluster struct{ *apitest.Server }

// newCluster starts an API server with the objects of a folder.
func newCluster(t *testing.T, folder string) cluster {
	t.Helper()
	c := cluster{apitest.New(t)}
	c.apply(t, folder)
	return c
}

// apply writes the objects of a folder.
func (c cluster) apply(t *testing.T, folder string) {
	t.Helper()
	for _, file := range []string{"nodes.yaml", "web.yaml"} {
		text, err := os.ReadFile(filepath.Join(folder, file)) //nolint:gosec // the test's own file.
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "---\n") {
			if document != "" {
				c.Set(decode(t, document))
			}
		}
	}
}

// decode reads an object of one of the kinds that an agent watches.
func decode(t *testing.T, text string) client.Object {
	t.Helper()
	var object client.Object = &corev1.Node{}
	switch {
	case strings.Contains(text, "kind: Service\n"):
		object = &corev1.Service{}
	case strings.Contains(text, "kind: EndpointSlice\n"):
		object = &discoveryv1.EndpointSlice{}
	}
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// flags lead an agent to the cluster.
func (c cluster) flags(t *testing.T, more ...string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, path, c.Kubeconfig())
	return append([]string{"--kubeconfig", path}, more...)
}

// given is a fixture whose service was given to weir, with an endpoint in each zone; each is hinted to the zone after its
// own, so that hints and zones are not mistaken for each other.
func given(t *testing.T, network string) fixture {
	t.Helper()
	w := fixture{ip: network + ".1", port: local.FreePort(t, network+".1"), proxy: "weir", mode: "PreferSameZone"}
	w.hints = []string{"zone-b", "zone-c", "zone-a"}
	for i, z := range []string{"a", "b", "c"} {
		w.endpoints = append(w.endpoints, serve(t, network+"."+string(rune('2'+i)), "zone-"+z, says(z)))
	}
	return w
}

// answers tells whether each of a few requests is answered by the endpoint of a zone.
func (s *started) answers(t *testing.T, zone string) bool {
	t.Helper()
	for range 6 {
		if status, body := get(t, s.url); status != http.StatusOK || body != zone {
			return false
		}
	}
	return true
}

func TestAnAgentFollowsTheHintsAndTheNodesOfACluster(t *testing.T) {
	w := given(t, "127.79.1")
	folder := writeManifests(t, w)
	c := newCluster(t, folder)
	s := launchAgent(t, w, c.flags(t)...)
	if !s.answers(t, "c") {
		t.Error("zone-a is not served by the endpoint that is hinted to it, which is in zone-c")
	}
	moved := decode(t, "kind: Node\nmetadata: {name: node-a, labels: {topology.kubernetes.io/zone: zone-b}}\n")
	c.Set(moved)
	patience.Until(t, "the node is served as one of zone-b", func() bool { return s.answers(t, "a") })
	w.hints = []string{"zone-c", "zone-b", "zone-a"}
	w.write(t, folder)
	c.apply(t, folder)
	c.Set(moved)
	follows := func() bool { return s.answers(t, "b") }
	patience.Within(t, time.Second, "new hints are followed", follows)
	patience.Stays(t, time.Second, "new hints are followed", follows)
	_, plans := get(t, s.admin+"/plans")
	if !strings.Contains(plans, `"forZones"`) || !strings.Contains(plans, `"zones": []`) {
		t.Errorf("want the hints that are there and no shares of zones, got %s", plans)
	}
}

func TestAnAgentOutlivesTheAPIServer(t *testing.T) {
	w := given(t, "127.79.2")
	folder := writeManifests(t, w)
	c := newCluster(t, folder)
	s := launchAgent(t, w, c.flags(t, "--log-format", "json")...)
	c.Go()
	patience.Until(t, "the log tells of the outage", func() bool { return strings.Contains(s.log.String(), "the last state stays") })
	patience.Stays(t, time.Second, "the last state is served", func() bool {
		status, _ := get(t, s.admin+"/readyz")
		return status == http.StatusOK && s.answers(t, "c")
	})
	w.hints = []string{"zone-a", "zone-b", "zone-c"}
	w.write(t, folder)
	c.apply(t, folder)
	c.Return()
	patience.Until(t, "what changed meanwhile is followed", func() bool { return s.answers(t, "a") })
}

func TestInAClusterOnlyWhatWasGivenToWeirIsServed(t *testing.T) {
	for name, test := range map[string]struct {
		proxy string
		args  []string
		want  bool
	}{
		"not given":           {"", nil, false},
		"given":               {"weir", nil, true},
		"given to another":    {"other", nil, false},
		"mapped":              {"", []string{"--map", "shop/web=127.79.3.9"}, true},
		"all":                 {"", []string{"--serve", "all"}, true},
		"a plan of all nodes": {"weir", []string{"--hints", "plan"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := fixture{ip: "127.79.3.1", port: local.FreePort(t, "127.79.3.1"), proxy: test.proxy}
			w.endpoints = []member{serve(t, "127.79.3.2", "zone-a", says("a"))}
			c := newCluster(t, writeManifests(t, w))
			s := launchAgent(t, w, c.flags(t, test.args...)...)
			if test.args != nil && test.args[0] == "--map" {
				s.url = strings.Replace(s.url, "127.79.3.1", "127.79.3.9", 1)
			}
			if got := s.answers(t, "a"); got != test.want {
				t.Errorf("served: %v, want %v", got, test.want)
			}
		})
	}
}

func TestAPreviewOfAClusterTellsWhatIsNotServed(t *testing.T) {
	w := given(t, "127.79.4")
	c := newCluster(t, writeManifests(t, w))
	args := append([]string{"agent", "--node", "node-a", "--dry-run"}, c.flags(t)...)
	status, out, _ := weir(t, "", args...)
	if status != exitOK || !strings.Contains(out, "would serve 1 services") || strings.Contains(out, "MODE") {
		t.Errorf("want one service and no plans, got %d\n%s", status, out)
	}
	c.Set(decode(t, "kind: Service\nmetadata: {name: web, namespace: shop}\nspec: {clusterIP: 127.79.4.1, ports: [{port: 80}]}\n"))
	status, out, warning := weir(t, "", args...)
	if status != exitOK || !strings.Contains(out, "would serve 0 services") || !strings.Contains(warning, "--serve=all") {
		t.Errorf("want a word on why nothing is served, got %d\n%s%s", status, out, warning)
	}
}

func TestAnAgentOfANodeThatIsNotThereSaysSo(t *testing.T) {
	c := newCluster(t, writeManifests(t, fixture{}))
	args := append([]string{"agent", "--node", "node-x", "--admin-bind-address", ""}, c.flags(t)...)
	status, _, text := weir(t, "", args...)
	if status != exitFailed || !strings.Contains(text, `the cluster has no node "node-x"`) {
		t.Errorf("want an error about the node, got %d\n%s", status, text)
	}
	status, _, text = weir(t, "", append(args, "--nodes", "all")...)
	if status != exitFailed || !strings.Contains(text, "did you mean node-") {
		t.Errorf("want the nodes nearby, got %d\n%s", status, text)
	}
}

// kubeconfigOf writes a kubeconfig that leads to an address.
func kubeconfigOf(t *testing.T, address string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, path, `apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "http://`+address+`"}}]
contexts: [{name: a, context: {cluster: a}}]
current-context: a
`)
	return path
}

func TestADryRunSaysAtOnceWhyAClusterCannotBeReached(t *testing.T) {
	for _, command := range []string{"controller --dry-run", "agent --node x --dry-run"} {
		started := time.Now()
		status, out, err := weir(t, "", append(strings.Fields(command), "--kubeconfig", kubeconfigOf(t, "127.0.0.1:1"))...)
		if status != exitFailed || out != "" || !strings.Contains(err, "http://127.0.0.1:1") || !strings.Contains(err, "connection refused") {
			t.Errorf("%s: status %d, %s%s", command, status, out, err)
		}
		if took := time.Since(started); took > previewPatience/2 {
			t.Errorf("%s: ended after %s", command, took)
		}
	}
}

func TestADryRunEndsAtOnceWhenItIsInterrupted(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it accepts connections, and says nothing.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	address := silent.Addr().String()
	for _, command := range []string{"controller --dry-run", "agent --node x --dry-run"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		var told patience.Log
		started := time.Now()
		interrupted, interrupt := context.WithCancel(context.WithoutCancel(ctx))
		stop := context.AfterFunc(ctx, interrupt)
		args := append(strings.Fields(command), "--kubeconfig", kubeconfigOf(t, address))
		status := run(interrupted, args, streams{in: strings.NewReader(""), out: &told, err: &told})
		stop()
		cancel()
		if text := told.String(); status == exitOK || !strings.Contains(text, "interrupted before the API server http://"+address) ||
			strings.Contains(text, "within") || time.Since(started) > previewPatience/2 {
			t.Errorf("%s: status %d after %s: %s", command, status, time.Since(started), text)
		}
	}
}
