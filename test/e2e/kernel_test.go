//go:build linux

package e2e_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-lb/weir/internal/patience"
)

// kernelNode is a cgroup and a bpf file system of their own, and a server on the cluster IP that stands for kube-proxy: it answers
// what the kernel leaves alone.
type kernelNode struct {
	t      *testing.T
	folder *os.File // of the cgroup
	pins   string
	url    string
	errors atomic.Int64 // of the clients of ask
}

func newKernelNode(t *testing.T, c *cluster) *kernelNode {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("programs are loaded into the kernel by root alone")
	}
	// Where both versions of cgroups are in use the second one is in a folder.
	root := "/sys/fs/cgroup"
	if _, err := os.Stat(root + "/unified"); err == nil {
		root += "/unified"
	}
	cgroup, err := os.MkdirTemp(root, "weir-e2e-") //nolint:usetesting // a cgroup is a folder of its file system.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		patience.Until(t, "the cgroup is gone", func() bool { return os.Remove(cgroup) == nil })
	})
	n := &kernelNode{t: t, url: "http://" + c.block + "1:"}
	if n.folder, err = os.Open(cgroup); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.folder.Close() })
	mount := t.TempDir()
	if err := unix.Mount("bpf", mount, "bpf", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(mount, 0); err != nil {
			t.Error(err)
		}
	})
	n.pins = filepath.Join(mount, "weir")
	l, err := net.Listen("tcp", (&node{ip: c.block + "1", ports: c.ports}).at("http")) //nolint:noctx // binds at once.
	if err != nil {
		t.Fatal(err)
	}
	n.url = "http://" + l.Addr().String() + "/"
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "net") })} //nolint:gosec // of a test.
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	text, err := os.ReadFile(filepath.Join(c.folder, "web.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c.write(t, "web.yaml", strings.Replace(string(text), "labels: {", "labels: {weir.dev/data-plane: kernel, ", 1))
	return n
}

// get is what curl gets on the node, with the address that it believes to be connected to.
func (n *kernelNode) get() string {
	c := exec.CommandContext(n.t.Context(), "curl", "-sS", "-m", "30", "-w", " %{remote_ip}", n.url)
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(n.folder.Fd())}
	out, err := c.CombinedOutput()
	if err != nil && n.t.Context().Err() == nil {
		n.t.Logf("curl: %v: %s", err, out)
		n.errors.Add(1)
	}
	return string(out)
}

// isServed tells whether the kernel serves.
func (n *kernelNode) isServed() bool { return strings.Contains(n.get(), "zone-a") }

// isLeftAlone tells whether the server that stands for kube-proxy serves.
func (n *kernelNode) isLeftAlone() bool { return strings.HasPrefix(n.get(), "net ") }

// TestTheKernelServesAndWhateverFailsKubeProxyGoesOn has clients connect all the time while the agent is stopped, goes on, is
// killed, comes back, and is removed. No connection fails.
func TestTheKernelServesAndWhateverFailsKubeProxyGoesOn(t *testing.T) {
	c := newCluster(t, 77)
	n := newKernelNode(t, c)
	args := []string{"-f", c.folder, "--cgroup", n.folder.Name(), "--bpf-path", n.pins}
	a := &node{name: "node-a", ip: c.block + "9", ports: c.ports}
	a.run(t, args...)
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	clients.Go(func() {
		for ctx.Err() == nil {
			n.get()
			time.Sleep(20 * time.Millisecond)
		}
	})
	defer clients.Wait()
	defer cancel()

	if got := n.get(); !strings.Contains(got, "zone-a") || !strings.HasSuffix(got, " "+c.block+"1") {
		t.Errorf("the answer is %q, want that of zone-a, from the cluster IP", got)
	}
	signal := func(s os.Signal) {
		if err := a.process.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	patience.Until(t, "an agent that is stopped is passed over", n.isLeftAlone)
	signal(syscall.SIGCONT)
	patience.Until(t, "it serves again", n.isServed)
	signal(syscall.SIGKILL)
	_ = a.ended()
	patience.Until(t, "an agent that was killed is passed over", n.isLeftAlone)
	a.run(t, args...)
	patience.Until(t, "its successor serves", n.isServed)
	a.stop(t)
	if !n.isLeftAlone() {
		t.Error("an agent that has ended serves")
	}
	out, err := exec.CommandContext(t.Context(), program, "agent", "--detach", "--bpf-path", n.pins).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "9 programs detached") {
		t.Errorf("detach: %v: %s", err, out)
	}
	if _, err := os.Stat(n.pins); !os.IsNotExist(err) {
		t.Errorf("pins are left: %v", err)
	}

	args[len(args)-1] = "" // no pins: programs go with the process
	a.run(t, args...)
	patience.Until(t, "an agent without pins serves", n.isServed)
	signal(syscall.SIGKILL)
	_ = a.ended()
	if !n.isLeftAlone() {
		t.Error("an agent without pins that was killed serves")
	}
	cancel()
	clients.Wait()
	if failed := n.errors.Load(); failed > 0 {
		t.Errorf("%d connections failed", failed)
	}
}
