//go:build e2e

package kube_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/test/kube"
)

// row finds the line of a table that begins with these words and gives its columns.
func row(t *testing.T, table string, words ...string) []string {
	t.Helper()
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) >= len(words) && slices.Equal(fields[:len(words)], words) {
			return regexp.MustCompile(" {3,}").Split(strings.TrimSpace(line), -1)
		}
	}
	t.Fatalf("no row of %q in\n%s", words, table)
	return nil
}

// preview is what the test reads of weir explain --preview -o json.
type preview struct {
	Previews []struct {
		Slices, Writes int
		Endpoints      []struct {
			Address string
			Then    struct{ ForZones []string }
		}
	}
}

func explainTellsHowAClusterStands(s subtest) {
	t, c := s.T, s.c
	dns := c.Deploy(kube.AppOptions{
		Namespace: "shop", Name: "dns", Distribution: corev1.ServiceTrafficDistributionPreferSameZone,
		Pods: map[string]int{"zone-a": 1, "zone-b": 1, "zone-c": 1},
	})
	web := c.Deploy(kube.AppOptions{
		Namespace: "shop", Name: "web", Labels: map[string]string{api.LabelDistribution: "Balanced"},
		Pods: map[string]int{"zone-a": 5, "zone-b": 1, "zone-c": 1},
	})
	dns.AwaitSlices()
	web.AwaitSlices()
	admin := []string{"--kubeconfig", c.AdminKubeconfig()}
	explain := func(args ...string) string {
		out, err := c.RunWeir(append(append([]string{"explain"}, args...), admin...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}

	table := explain("-A")
	for service, want := range map[string]string{"dns": "programmed", "web": "pending 1/1 slices"} {
		if got := row(t, table, "shop", service); got[4] != want {
			t.Errorf("%s: want %s, got %q", service, want, got)
		}
	}
	if got := row(t, table, "default", "kubernetes"); got[4] != "no hints" {
		t.Errorf("nothing hints the API server, yet explain says %q", got)
	}
	if got := kubectlWeir(t, c, "explain", "-A"); got != table {
		t.Errorf("kubectl weir says\n%sand weir\n%s", got, table)
	}

	c.StopControllerManager() // it would remove hints that it did not write
	defer c.StartControllerManager()
	var then preview
	decode(t, explain("shop/web", "--preview", "Balanced", "-o", "json"), &then)
	if p := then.Previews[0]; len(p.Endpoints) != 7 || p.Writes != 1 || p.Slices != 1 {
		t.Fatalf("want 7 endpoints changed by 1 write, got %+v", p)
	}
	hint(t, c, web, &then)
	if got := row(t, explain("-n", "shop"), "shop", "web"); got[4] != "programmed" || got[7] != "67 %" {
		t.Errorf("what the preview said was written, yet explain says %q", got)
	}
	decode(t, explain("shop/web", "--preview", "Balanced", "-o", "json"), &then)
	if p := then.Previews[0]; len(p.Endpoints) != 0 || p.Writes != 0 {
		t.Errorf("nothing is to be done, yet the preview says %+v", p)
	}
	if got := row(t, explain("-A", "--preview", "Disabled"), "shop", "dns"); !slices.Contains(got, "PreferSameZone → Disabled") {
		t.Errorf("dns would be disabled, yet the preview says %q", got)
	}
}

// hint writes what a preview says, as weir's controller would.
func hint(t *testing.T, c *kube.Cluster, app *kube.App, then *preview) {
	t.Helper()
	hints := make(map[string]*discoveryv1.EndpointHints)
	for _, e := range then.Previews[0].Endpoints {
		hints[e.Address] = new(discoveryv1.EndpointHints)
		for _, z := range e.Then.ForZones {
			hints[e.Address].ForZones = append(hints[e.Address].ForZones, discoveryv1.ForZone{Name: z})
		}
	}
	for _, s := range app.Slices() {
		if s.Annotations == nil {
			s.Annotations = make(map[string]string)
		}
		s.Annotations[api.AnnotationHints] = "Balanced"
		for i := range s.Endpoints {
			s.Endpoints[i].Hints = hints[s.Endpoints[i].Addresses[0]]
		}
		if _, err := c.Client.DiscoveryV1().EndpointSlices(s.Namespace).Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// kubectlWeir runs kubectl weir, with weir installed as a plugin, and gives all that is printed.
func kubectlWeir(t *testing.T, c *kube.Cluster, args ...string) string {
	t.Helper()
	plugins := t.TempDir()
	if err := os.Symlink(c.WeirProgram(), filepath.Join(plugins, "kubectl-weir")); err != nil {
		t.Fatal(err)
	}
	kubectl := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("KUBE_BIN"), "kubectl"), append([]string{"weir"}, args...)...)
	kubectl.Env = append(os.Environ(), "PATH="+plugins, "KUBECONFIG="+c.AdminKubeconfig())
	out, err := kubectl.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl weir %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func decode(t *testing.T, text string, value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), value); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
}

func explainSaysWhichPermissionIsMissing(s subtest) {
	t, c := s.T, s.c
	app := c.Deploy(kube.AppOptions{Namespace: "explain", Name: "web", Pods: map[string]int{"zone-a": 1, "zone-b": 1}})
	app.AwaitSlices()
	args := []string{"explain", "-n", "explain", "--kubeconfig", c.Kubeconfig("jane")}
	_, err := c.RunWeir(args...)
	if err == nil {
		t.Fatal("jane may read nothing, yet she was answered")
	}
	for _, want := range []string{
		"list nodes (check: kubectl auth can-i list nodes)",
		"list services in namespace explain",
		"list endpointslices.discovery.k8s.io in namespace explain",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	c.Kubectl("create", "clusterrole", "weir-explain", "--verb=get,list",
		"--resource=nodes,services,endpointslices.discovery.k8s.io")
	c.Kubectl("create", "clusterrolebinding", "weir-explain", "--clusterrole=weir-explain", "--user=jane")
	c.Until("the role is in force", func() error { _, err = c.RunWeir(args...); return err })
	explainsPoliciesToWhoMayReadThem(t, c)
}

// explainsPoliciesToWhoMayReadThem sees that a user who may not list policies is told so only where there may be some: an API server
// checks the role before it checks whether the resource exists.
func explainsPoliciesToWhoMayReadThem(t *testing.T, c *kube.Cluster) {
	t.Helper()
	args := []string{"explain", "explain/web", "--kubeconfig", c.Kubeconfig("jane")}
	const leftOut = "left out of the answer: you need the permission to list loadbalancingpolicies.weir.dev in all namespaces"
	if out, err := c.RunWeir(args...); err != nil || strings.Contains(out, "left out") {
		t.Errorf("where policies are not installed: %v\n%s", err, out)
	}
	c.Kubectl("apply", "--server-side", "-f", filepath.Join(manifests, "crd.yaml"))
	defer c.Kubectl("delete", "crd", "loadbalancingpolicies.weir.dev")
	c.Kubectl("wait", "--for=condition=Established", "crd/loadbalancingpolicies.weir.dev")
	c.Until("policies are left out", func() error {
		out, err := c.RunWeir(args...)
		if err == nil && !strings.Contains(out, leftOut) {
			err = errors.New(out)
		}
		return err
	})
	c.Namespace(namespace)
	c.Kubectl("apply", "-f", filepath.Join(examples, "1-mesh-default.yaml"))
	c.Kubectl("create", "clusterrole", "weir-explain-policies", "--verb=get,list", "--resource=loadbalancingpolicies.weir.dev,pods,namespaces")
	c.Kubectl("create", "clusterrolebinding", "weir-explain-policies", "--clusterrole=weir-explain-policies", "--user=jane")
	c.Until("the policy is told for a pod", func() error {
		out, err := c.RunWeir(append(args, "--client=explain/web-0")...)
		if err == nil && !strings.Contains(out, "LoadBalancingPolicy weir-system/defaults") {
			err = errors.New(out)
		}
		return err
	})
}
