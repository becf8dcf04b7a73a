//go:build e2e && linux

package kube_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-lb/weir/test/kube"
)

// kernelClient connects on a node from a cgroup whose sockets an agent places.
type kernelClient struct {
	t      *testing.T
	node   *kube.Proxy
	cgroup *os.File
}

func newKernelClient(t *testing.T, node *kube.Proxy) *kernelClient {
	t.Helper()
	// Where both versions of cgroups are in use the second one is in a folder.
	root := "/sys/fs/cgroup"
	if _, err := os.Stat(root + "/unified"); err == nil {
		root += "/unified"
	}
	name, err := os.MkdirTemp(root, "weir-kube-") //nolint:usetesting // a cgroup is a folder of its file system.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	})
	k := &kernelClient{t: t, node: node}
	if k.cgroup, err = os.Open(name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.cgroup.Close() })
	return k
}

// connects is how many connections tell which endpoints serve: of two zones alike one is missed once in 2^40 times.
const connects = 40

// zones gives the zones that answer connections, sorted. A connection that fails is an error of the test.
func (k *kernelClient) zones(app *kube.App) []string {
	k.t.Helper()
	address := app.Addresses()[0]
	c := exec.CommandContext(k.t.Context(), "bash", "-c", fmt.Sprintf(
		"for i in $(seq %d); do exec 3<>/dev/tcp/%s/%d || exit 1; od -An -v -tx1 <&3 | tr -d ' \\n'; echo; done", connects, address.Addr(), address.Port()))
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(k.cgroup.Fd())}
	var out []byte
	err := k.node.Do(func() (err error) {
		out, err = c.CombinedOutput()
		return err
	})
	if err != nil {
		k.t.Fatalf("a connection to %v failed: %v: %s", address, err, out)
	}
	var answered []netip.AddrPort
	for line := range strings.FieldsSeq(string(out)) {
		self, err := hex.DecodeString(line) // an address as IPv6, and the port
		if err != nil || len(self) != 18 {
			k.t.Fatalf("the answer is %q, %v", line, err)
		}
		answered = append(answered, netip.AddrPortFrom(netip.AddrFrom16([16]byte(self[:16])).Unmap(), kube.PodPort))
	}
	return zonesOf(app, answered)
}

func zonesOf(app *kube.App, answered []netip.AddrPort) []string {
	var zones []string
	for _, e := range app.Endpoints() {
		if slices.Contains(answered, netip.AddrPortFrom(e.Address, kube.PodPort)) {
			zones = append(zones, e.Zone)
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// until waits until connections are answered by these zones.
func (k *kernelClient) until(app *kube.App, when string, want ...string) {
	k.t.Helper()
	app.Cluster.Until("the zones are "+strings.Join(want, " and ")+" "+when, func() error {
		if got := k.zones(app); !slices.Equal(want, got) {
			return errors.New(strings.Join(got, " and "))
		}
		return nil
	})
}

// TestTheKernelPlaneBesideKubeProxy labels a Service, which kube-proxy balances over all zones, and has its node's agent stopped,
// go on and be killed. No connection fails.
func TestTheKernelPlaneBesideKubeProxy(t *testing.T) {
	c := kube.Start(t, kube.Options{})
	c.Nodes(1, "zone-a", "zone-b")
	app := c.Deploy(kube.AppOptions{
		Namespace: "shop", Name: "web", Families: []corev1.IPFamily{corev1.IPv4Protocol}, Pods: map[string]int{"zone-a": 2, "zone-b": 2},
	})
	app.AwaitSlices()
	node := c.Proxy("zone-a-0")
	k := newKernelClient(t, node)
	agent := node.Weir("agent", "agent", "--node=zone-a-0", "--kubeconfig="+agentKubeconfig(c), "--cgroup="+k.cgroup.Name(), "--bpf-path=")
	k.until(app, "without a label", "zone-a", "zone-b")
	app.Change(func(s *corev1.Service) { s.Labels = map[string]string{"weir.dev/data-plane": "kernel"} })
	k.until(app, "in the kernel", "zone-a")
	others, err := node.Connect(app.Addresses()[0], connects)
	if err != nil {
		t.Fatal(err)
	}
	if got := zonesOf(app, others); !slices.Equal(got, []string{"zone-a", "zone-b"}) {
		t.Errorf("processes of another cgroup reach %v", got)
	}
	agent.Signal(syscall.SIGSTOP)
	k.until(app, "while the agent is stopped", "zone-a", "zone-b")
	agent.Signal(syscall.SIGCONT)
	k.until(app, "when it goes on", "zone-a")
	app.Change(func(s *corev1.Service) { delete(s.Labels, "weir.dev/data-plane") })
	k.until(app, "when the label is taken away", "zone-a", "zone-b")
	app.Change(func(s *corev1.Service) { s.Labels = map[string]string{"weir.dev/data-plane": "kernel"} })
	k.until(app, "in the kernel again", "zone-a")
	agent.Kill()
	k.until(app, "when the agent is killed", "zone-a", "zone-b")
}
