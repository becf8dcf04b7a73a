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

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/test/kube"
)

// TestTheGuideInstallsByHelm runs the commands of docs/guide/install.md as written, and looks whether they did what it says.
func TestTheGuideInstallsByHelm(t *testing.T) {
	g := openGuide(t)
	g.follow("What you need", "With Helm", "Is it there?")
	g.wantHints(0)
	g.follow("Hints on one service")
	g.wantHints(6)
	g.follow("Metrics")
	g.checkMetrics()
	g.follow("And back")
	g.wantHints(0)
	g.follow("All services")
	g.follow("Is it there?")
	g.wantHints(6)
	g.follow("By Helm", "What is left")
	g.wantHints(0)
}

// TestTheGuideInstallsByKubectl does so with the plain manifests; the label stays on when weir goes.
func TestTheGuideInstallsByKubectl(t *testing.T) {
	g := openGuide(t)
	g.follow("With kubectl", "Is it there?", "Hints on one service")
	g.wantHints(6)
	g.follow("By kubectl", "What is left")
	g.wantHints(0)
}

// guide is docs/guide/install.md on a cluster with an app of one Service, shop/web, that six pods of three zones serve.
type guide struct {
	t        *testing.T
	c        *kube.Cluster
	app      *kube.App
	kubelet  *kubelet
	commands map[string][]string // by section, in order
	path     string              // a folder with the programs that commands call
}

func openGuide(t *testing.T) *guide {
	t.Helper()
	c := kube.Start(t, kube.Options{Controllers: []string{
		"endpointslice-controller", "garbage-collector-controller", "namespace-controller", "serviceaccount-controller",
		"deployment-controller", "replicaset-controller", "job-controller",
	}})
	c.Nodes(1, "zone-a", "zone-b", "zone-c")
	g := &guide{t: t, c: c, kubelet: newKubelet(t, c), commands: readGuide(t), path: t.TempDir()}
	g.app = c.Deploy(kube.AppOptions{Namespace: "shop", Name: "web", Pods: map[string]int{"zone-a": 3, "zone-b": 2, "zone-c": 1}})
	g.app.Settled()
	link := func(name, program string) {
		if err := os.Symlink(program, filepath.Join(g.path, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("weir", c.WeirProgram())
	link("kubectl", filepath.Join(os.Getenv("KUBE_BIN"), "kubectl"))
	helm := "#!/bin/sh\nexec go tool -modfile=tools-helm.mod helm \"$@\"\n"
	if err := os.WriteFile(filepath.Join(g.path, "helm"), []byte(helm), 0o700); err != nil {
		t.Fatal(err)
	}
	return g
}

// readGuide reads the commands of each section.
func readGuide(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/guide/install.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^(?:##+ (.*)| {4,}((?:helm|kubectl|weir) .*))$`)
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

// follow runs the commands of sections. Each has to succeed.
func (g *guide) follow(sections ...string) {
	g.t.Helper()
	for _, section := range sections {
		if len(g.commands[section]) == 0 {
			g.t.Fatalf("the guide has no command under %q", section)
		}
		for _, command := range g.commands[section] {
			var out []byte
			err := g.kubelet.during(func() (err error) {
				cmd := exec.CommandContext(g.t.Context(), "bash", "-c", command)
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
		g.kubelet.look()
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
		g.kubelet.look()
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

// compare tells what the guide lists and nobody exports, and the other way round.
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
