package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/golden"
)

func TestExplainReadsTheClusterOfTheKubeconfig(t *testing.T) {
	newAPIServer(t).kubeconfig(t)
	for name, args := range map[string][]string{
		"cluster-list":            {"explain", "-A"},
		"cluster-list-wide":       {"explain", "-A", "-o", "wide"},
		"cluster-namespace":       {"explain", "-n", "kube-system"},
		"cluster-pending":         {"explain", "web"},
		"cluster-refused":         {"explain", "shop/cart"},
		"cluster-native":          {"explain", "kube-system/dns"},
		"cluster-json":            {"explain", "pay", "-o", "json"},
		"cluster-managed":         {"explain", "plain", "--manage", "all"},
		"cluster-preview":         {"explain", "web", "--preview", "Balanced"},
		"cluster-preview-wide":    {"explain", "pay", "--preview", "Disabled", "-o", "wide"},
		"cluster-preview-list":    {"explain", "-A", "--preview", "Balanced"},
		"cluster-preview-yaml":    {"explain", "pay", "--preview", "Balanced", "-o", "yaml"},
		"cluster-list-other-mode": {"explain", "--mode", "Balanced", "--traffic", "1TB"},
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

func TestALongListIsReadInPages(t *testing.T) {
	a := newAPIServer(t)
	a.kubeconfig(t)
	_, want, _ := weir(t, "", "explain", "-A")
	a.requests, a.pageSize = nil, 2
	if _, got, err := weir(t, "", "explain", "-A"); got != want {
		t.Errorf("error %q, output\n%s\nwant\n%s", err, got, want)
	}
	if n := strings.Count(strings.Join(a.requests, "\n"), "continue="); n < 4 {
		t.Errorf("want several pages, got the requests %q", a.requests)
	}
	a.expire = 2
	if _, got, err := weir(t, "", "explain", "-A"); got != want || a.expire != 0 {
		t.Errorf("after an expired page: error %q, output\n%s\nwant\n%s", err, got, want)
	}
}

func TestOneServiceIsReadAlone(t *testing.T) {
	a := newAPIServer(t)
	a.kubeconfig(t)
	if status, _, err := weir(t, "", "explain", "web"); status != exitOK {
		t.Fatalf("status %d, error %q", status, err)
	}
	slices.Sort(a.requests)
	want := []string{
		"/api/v1/namespaces/shop/services/web",
		"/api/v1/nodes?limit=500",
		"/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dweb&limit=500",
		"/apis/weir.dev/v1alpha1/loadbalancingpolicies?limit=500",
	}
	if !slices.Equal(a.requests, want) {
		t.Errorf("requests %q, want %q", a.requests, want)
	}
}

func TestWhatAClusterRefusesIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		denied []string
		args   []string
		want   []string
	}{
		"nodes": {
			[]string{"nodes"},
			[]string{"explain", "web"},
			[]string{"you need the permission to list nodes (check: kubectl auth can-i list nodes)"},
		},
		"everything": {
			[]string{"nodes", "services", "endpointslices"},
			[]string{"explain", "-A"},
			[]string{
				"list nodes",
				"list services in all namespaces (check: kubectl auth can-i list services -A)",
				"list endpointslices.discovery.k8s.io in all namespaces",
			},
		},
		"the service": {
			[]string{"services"},
			[]string{"explain", "web"},
			[]string{"get services in namespace shop (check: kubectl auth can-i get services -n shop)"},
		},
		"a service that is not there": {nil, []string{"explain", "wob"}, []string{"no service shop/wob: did you mean shop/web"}},
		"a namespace without services": {
			nil,
			[]string{"explain", "wob", "-n", "empty"},
			[]string{"no service empty/wob in the cluster"},
		},
		"an alias":             {nil, []string{"explain", "alias"}, []string{"service shop/alias is of type ExternalName"}},
		"a node":               {nil, []string{"explain", "web", "--node", "node-x"}, []string{`no node is called "node-x": did you mean node-a`}},
		"a context":            {nil, []string{"explain", "--context", "none"}, []string{"read the kubeconfig /", `context "none" does not exist`}},
		"a server that is off": {nil, []string{"explain", "-s", "http://127.0.0.1:1"}, []string{"list nodes: ", "connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPIServer(t)
			a.kubeconfig(t)
			for _, resource := range c.denied {
				a.denied[resource] = true
			}
			status, out, err := weir(t, "", c.args...)
			if status != exitFailed || out != "" {
				t.Errorf("status %d, output %q", status, out)
			}
			for _, want := range c.want {
				if !strings.Contains(err, want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

func TestWithoutANamespaceInTheContextDefaultCounts(t *testing.T) {
	newAPIServer(t).kubeconfig(t)
	status, _, err := weir(t, "", "explain", "--context", "bare")
	if want := "no service to explain in namespace default of the cluster"; status != exitOK || !strings.Contains(err, want) {
		t.Errorf("status %d, error %q does not say %q", status, err, want)
	}
}

func TestProgressIsShownAndTakenAway(t *testing.T) {
	var out bytes.Buffer
	r := new(clusterReader)
	r.read.Store(1500)
	ticks := make(chan time.Time)
	stop := r.progress(&out, ticks)
	ticks <- time.Time{}
	stop()
	if want, got := "\r\x1b[Kreading the cluster: 1500 objects\r\x1b[K", out.String(); got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	out.Reset()
	r.progress(&out, ticks)()
	r.showProgress(&out)()
	if out.Len() > 0 {
		t.Errorf("progress was shown without a wait: %q", out.String())
	}
}

func TestKubectlFindsWeirAsAPlugin(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	call := func(name string, args ...string) string {
		link := filepath.Join(folder, name)
		if err := os.Symlink(self, link); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
		c := exec.CommandContext(t.Context(), link, args...)
		c.Env = append(os.Environ(), asWeir+"=1")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Logf("%s %v: %v", name, args, err)
		}
		return string(out)
	}
	for _, c := range []struct{ name, args, want string }{
		{"kubectl-weir", "--help", "\n  kubectl weir [command]\n"},
		{"kubectl-weir", "explain --help", "\n  kubectl weir explain [[NAMESPACE/]SERVICE] [flags]\n"},
		{"kubectl-weir", "explain --colour", "See 'kubectl weir explain --help'."},
		{"weir", "explain --help", "\n  weir explain [[NAMESPACE/]SERVICE] [flags]\n"},
		{"kubectl_complete-weir", "expl", "explain\t"},
	} {
		if got := call(c.name, strings.Fields(c.args)...); !strings.Contains(got, c.want) {
			t.Errorf("%s %s does not say %q:\n%s", c.name, c.args, c.want, got)
		}
	}
}
