package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const twoContexts = `apiVersion: v1
kind: Config
current-context: near
clusters:
- {name: near, cluster: {server: "https://near:6443"}}
- {name: far, cluster: {server: "https://far:6443"}}
contexts:
- {name: near, context: {cluster: near, user: me}}
- {name: far, context: {cluster: far, user: me}}
users:
- {name: me, user: {token: secret}}
`

// kubeconfig writes a file with two contexts. The process is outside of any cluster and without a kubeconfig of its own.
func kubeconfig(t *testing.T) string {
	t.Helper()
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(twoContexts), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// parse reads a command line of cluster flags.
func parse(t *testing.T, args ...string) *clusterFlags {
	t.Helper()
	var f clusterFlags
	if err := f.group().Parse(args); err != nil {
		t.Fatal(err)
	}
	return &f
}

func TestTheClusterIsThatOfTheContext(t *testing.T) {
	path := kubeconfig(t)
	for want, args := range map[string][]string{
		"https://near:6443": {"--kubeconfig", path},
		"https://far:6443":  {"--kubeconfig", path, "--context", "far", "--kube-api-qps", "7.5", "--kube-api-burst", "9"},
	} {
		c, err := parse(t, args...).config()
		if err != nil {
			t.Fatal(err)
		}
		if c.Host != want || c.BearerToken != "secret" {
			t.Errorf("%v: want %s, got %s with the token %q", args, want, c.Host, c.BearerToken)
		}
		if !strings.HasPrefix(c.UserAgent, "weir/") || strings.HasPrefix(c.UserAgent, "weir/(") {
			t.Errorf("the API server would not know us as %q", c.UserAgent)
		}
		if len(args) > 4 && (c.QPS != 7.5 || c.Burst != 9) {
			t.Errorf("want 7.5 requests each second and 9 at once, got %v and %d", c.QPS, c.Burst)
		}
	}
}

func TestTheEnvironmentNamesTheKubeconfigAlsoInACluster(t *testing.T) {
	path := kubeconfig(t)
	t.Setenv("KUBECONFIG", path)
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	c, err := parse(t).config()
	if err != nil {
		t.Fatal(err)
	}
	if c.Host != "https://near:6443" {
		t.Errorf("want the kubeconfig's cluster, got %s", c.Host)
	}
}

func TestAClusterThatCannotBeFoundIsToldClearly(t *testing.T) {
	path := kubeconfig(t)
	t.Setenv("KUBECONFIG", path+".not") // whatever the home folder of this machine holds
	for _, test := range []struct {
		args    []string
		want    string
		isUsage bool
	}{
		{nil, "no cluster: name a kubeconfig", true},
		{[]string{"--kubeconfig", path + ".not"}, path + ".not", false},
		{[]string{"--kubeconfig", path, "--context", "nowhere"}, `"nowhere"`, false},
		{[]string{"--kubeconfig", path, "--kube-api-qps", "0"}, "--kube-api-qps=0: want more than 0", true},
		{[]string{"--kubeconfig", path, "--kube-api-qps", "NaN"}, "--kube-api-qps=NaN: want more than 0", true},
		{[]string{"--kubeconfig", path, "--kube-api-burst", "0"}, "--kube-api-burst=0: want at least 1", true},
	} {
		_, err := parse(t, test.args...).config()
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: want an error with %q, got %v", test.args, test.want, err)
		}
		if _, ok := errors.AsType[*usageError](err); ok != test.isUsage {
			t.Errorf("%v: usage error is %v, want %v", test.args, ok, test.isUsage)
		}
	}
}

func TestAPodWithoutAServiceAccountSaysSo(t *testing.T) {
	kubeconfig(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	_, err := parse(t).config()
	if err == nil || !strings.Contains(err.Error(), "service account") {
		t.Errorf("want an error about the service account, got %v", err)
	}
}
