//go:build e2e

package kube_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/test/kube"
)

// TestTheGuideInstallsByHelm runs the commands of docs/guide/install.md as written, and checks their effects.
func TestTheGuideInstallsByHelm(t *testing.T) {
	t.Parallel()
	g := openGuide(t)
	g.follow("install.md", "What you need", "With Helm", "Verify")
	g.wantHints(0)
	g.follow("install.md", "Hints on one service")
	g.wantHints(6)
	g.follow("install.md", "Policies")
	g.follow("policy.md", "In a cluster")
	g.follow("install.md", "Metrics")
	g.checkMetrics()
	g.follow("install.md", "Undo")
	g.wantHints(0)
	g.follow("install.md", "All services", "Verify")
	g.wantHints(6)
	g.follow("install.md", "By Helm", "What is left")
	g.wantHints(0)
}

// TestTheGuideInstallsByKubectl does so with the plain manifests; the label stays on when weir goes.
func TestTheGuideInstallsByKubectl(t *testing.T) {
	t.Parallel()
	g := openGuide(t)
	g.follow("install.md", "With kubectl", "Verify", "Hints on one service")
	g.wantHints(6)
	g.follow("install.md", "By kubectl", "What is left")
	g.wantHints(0)
}

// TestTheOtherPagesCommandsRun takes weir through what the rest of the guide does with an installed one.
func TestTheOtherPagesCommandsRun(t *testing.T) {
	t.Parallel()
	g := openGuide(t)
	g.worker("worker-1", "zone-a")
	g.c.Deploy(kube.AppOptions{Namespace: "shop", Name: "cart", Pods: map[string]int{"zone-a": 1, "zone-b": 2}}).AwaitSlices()
	g.follow("install.md", "With kubectl", "Verify")
	g.follow("controller.md", "The controller", "Which services it writes hints for")
	g.wantHints(6)
	g.follow("explain.md", "Explain", "All services", "Before anything is written", "Which cluster and user", "From manifests")
	g.follow("troubleshooting.md", "Troubleshooting", "Hints are there, traffic is not local", "Hints vanish", "What the conditions say")
	g.follow("agent.md", "In a cluster")

	before := g.authority()
	g.follow("webhook.md", "Certificates")
	g.c.Until("the webhook has a new authority", func() error {
		g.kubelet.sync()
		if now := g.authority(); now == "" || now == before {
			return fmt.Errorf("the caBundle is %.40q…", now)
		}
		return nil
	})
	g.follow("webhook.md", "Without it")
	g.app.Scale("zone-a", 4) // has the built-in controller write the slice
	g.wantHints(7)
	g.follow("controller.md", "Removing what it wrote")
	g.wantHints(0)
	g.follow("install.md", "What is left")
}

// guide is the pages of docs/guide on a cluster with a Service, shop/web, that six pods of three zones serve.
type guide struct {
	t       *testing.T
	c       *kube.Cluster
	app     *kube.App
	kubelet *kubelet
	path    string // a folder with the programs that commands call
}

func openGuide(t *testing.T) *guide {
	t.Helper()
	c := kube.Start(t, kube.Options{Controllers: []string{
		"endpointslice-controller", "garbage-collector-controller", "namespace-controller", "serviceaccount-controller",
		"deployment-controller", "replicaset-controller", "job-controller",
	}})
	c.Nodes(1, "zone-a", "zone-b", "zone-c")
	g := &guide{t: t, c: c, kubelet: newKubelet(t, c), path: t.TempDir()}
	g.app = c.Deploy(kube.AppOptions{Namespace: "shop", Name: "web", Pods: map[string]int{"zone-a": 3, "zone-b": 2, "zone-c": 1}})
	g.app.AwaitSlices()
	link := func(name, program string) {
		if err := os.Symlink(program, filepath.Join(g.path, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("weir", c.WeirProgram())
	link("kubectl", filepath.Join(os.Getenv("KUBE_BIN"), "kubectl"))
	helm := "#!/bin/sh\nCGO_ENABLED=0 GOFLAGS=-trimpath exec go tool -modfile=tools-helm.mod helm \"$@\"\n"
	if err := os.WriteFile(filepath.Join(g.path, "helm"), []byte(helm), 0o700); err != nil {
		t.Fatal(err)
	}
	return g
}

// worker adds a node that a page names.
func (g *guide) worker(name, zone string) {
	g.t.Helper()
	node := kube.NewNode(name, zone, "4", 200) // far from the numbers of the other nodes
	if _, err := g.c.Client.CoreV1().Nodes().Create(g.t.Context(), node, metav1.CreateOptions{}); err != nil {
		g.t.Fatal(err)
	}
}

// authority gives the authority that the API server trusts for the webhook.
func (g *guide) authority() string {
	g.t.Helper()
	return g.c.Kubectl("get", "mutatingwebhookconfiguration", "weir-hints", "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}")
}

// readPage reads the commands of each section of a page, in order.
func readPage(t *testing.T, page string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/guide/" + page)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^(?:#+ (.*)| {4,}((?:helm|kubectl|weir) .*))$`)
	commands := make(map[string][]string)
	section := ""
	for one := range strings.Lines(string(text)) {
		m := line.FindStringSubmatch(strings.TrimSuffix(one, "\n"))
		switch {
		case m == nil:
		case m[1] != "":
			section = m[1]
		default:
			commands[section] = append(commands[section], m[2])
		}
	}
	return commands
}

// follow runs the commands of sections of a page. Each has to succeed.
func (g *guide) follow(page string, sections ...string) {
	g.t.Helper()
	commands := readPage(g.t, page)
	for _, section := range sections {
		if len(commands[section]) == 0 {
			g.t.Fatalf("%s has no command under %q", page, section)
		}
		for _, command := range commands[section] {
			var out []byte
			err := g.kubelet.during(func() (err error) {
				cmd := exec.CommandContext(g.t.Context(), "bash", "-o", "pipefail", "-c", command)
				cmd.Dir = "../.."
				cmd.Env = append(os.Environ(), "PATH="+g.path+":"+os.Getenv("PATH"), "KUBECONFIG="+g.c.AdminKubeconfig())
				out, err = cmd.CombinedOutput()
				return err
			})
			g.t.Logf("%s\n%s", command, out)
			if err != nil {
				g.t.Fatalf("%s: %s: %v", section, command, err)
			}
			if strings.Contains(command, "caBundle") && len(bytes.TrimSpace(out)) == 0 {
				g.t.Fatalf("%s: prints nothing", command)
			}
			if section == "What is left" && len(bytes.TrimSpace(out)) > 0 {
				g.t.Errorf("%s: prints\n%s", command, out)
			}
		}
	}
}

// wantHints waits until so many endpoints of the app have hints.
func (g *guide) wantHints(want int) {
	g.t.Helper()
	g.c.Until(fmt.Sprintf("%d endpoints have hints", want), func() error {
		g.kubelet.sync()
		got := 0
		for _, e := range g.app.Endpoints() {
			if len(e.ForZones) > 0 {
				got++
			}
		}
		if got != want {
			return fmt.Errorf("%d endpoints have hints", got)
		}
		return nil
	})
}

// checkMetrics reads the metrics with the right that the guide gives, has promtool judge them, and compares them with the
// guide's list.
func (g *guide) checkMetrics() {
	g.t.Helper()
	g.c.Namespace("monitoring")
	g.c.Kubectl("create", "serviceaccount", "prometheus", "-n", "monitoring")
	token := g.c.Token("monitoring", "prometheus")
	// Nothing consumes the hints of a headless Service, which is worth a warning.
	g.c.Deploy(kube.AppOptions{
		Namespace: "shop", Name: "peers", Pods: map[string]int{"zone-a": 1},
		Labels: map[string]string{api.LabelDistribution: "PreferSameZone"},
		Change: func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone },
	})
	names := make(map[string]bool)
	g.c.Until("the warning is counted", func() error {
		g.kubelet.sync()
		for _, url := range g.kubelet.metrics() {
			samples, err := g.c.Scrape(url, token)
			if err != nil {
				return err
			}
			for series := range samples {
				name, _, _ := strings.Cut(series, "{")
				names[name] = true
			}
		}
		if !names["weir_service_warnings"] {
			return errors.New("no replica exports weir_service_warnings")
		}
		return nil
	})
	for _, url := range g.kubelet.metrics() {
		check := exec.CommandContext(g.t.Context(), "../../deploy/check-metrics.sh", url)
		check.Env = append(os.Environ(), "TOKEN="+token)
		out, err := check.CombinedOutput()
		g.t.Logf("%s", out)
		if err != nil {
			g.t.Errorf("deploy/check-metrics.sh: %v", err)
		}
	}
	g.compare(names)
}

// compare reports metrics that the guide lists and no replica exports, and those that only replicas have.
func (g *guide) compare(names map[string]bool) {
	g.t.Helper()
	text, err := os.ReadFile("../../docs/guide/metrics.md")
	if err != nil {
		g.t.Fatal(err)
	}
	_, controllers, found := strings.Cut(string(text), "\n## Controller\n") // those of both programs follow
	if !found {
		g.t.Fatal("docs/guide/metrics.md has no part about the controller")
	}
	listed := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (counter|gauge|histogram) \\|").FindAllStringSubmatch(controllers, -1) {
		name := m[1]
		if m[2] == "histogram" {
			name += "_count"
			listed[m[1]+"_bucket"], listed[m[1]+"_sum"] = true, true
		}
		listed[name] = true
		if !names[name] {
			g.t.Errorf("the guide lists %s, which no replica exports", m[1])
		}
	}
	for name := range names {
		ours := strings.HasPrefix(name, "weir_") || strings.HasPrefix(name, "endpoint_slice_controller_")
		if ours && !listed[name] {
			g.t.Errorf("a replica exports %s, which the guide does not list", name)
		}
	}
}
