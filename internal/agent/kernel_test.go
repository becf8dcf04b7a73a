//go:build linux

package agent_test

import (
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kernel/bpf"
	"github.com/weir-lb/weir/internal/patience"
)

// inCgroup runs curl in a cgroup and gives what it prints.
func inCgroup(t *testing.T, cgroup, url string) string {
	t.Helper()
	folder, err := os.Open(cgroup)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folder.Close() }()
	c := exec.CommandContext(t.Context(), "curl", "-sS", "-m", "10", "-w", " %{remote_ip}", url)
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(folder.Fd())}
	out, _ := c.CombinedOutput()
	return string(out)
}

// kernelCgroup makes a cgroup that is gone when the test ends.
func kernelCgroup(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("programs are loaded into the kernel by root alone")
	}
	root, err := bpf.FindCgroup()
	if err != nil {
		t.Fatal(err)
	}
	cgroup, err := os.MkdirTemp(root, "weir-agent-test-") //nolint:usetesting // a cgroup is a folder of its file system.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 100 {
			if os.Remove(cgroup) == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("the cgroup %s cannot be removed", cgroup)
	})
	return cgroup
}

// TestTheKernelServesWhatAsksForIt follows a service from its own zone to the others, when its endpoints there are gone.
func TestTheKernelServesWhatAsksForIt(t *testing.T) {
	cgroup := kernelCgroup(t)
	w := newCluster(t, topology.ModePreferSameZone, 2)
	w.extra = func(svc *topology.Service) { svc.DataPlane = topology.DataPlaneKernel }
	w.snapshots.Store(w.snapshot(w.endpoints...))
	r := w.start(agent.Config{Node: "node-a", Kernel: agent.Kernel{Cgroup: cgroup}})
	url := "http://" + netip.AddrPortFrom(w.serviceIP, w.port).String() + "/"
	for range 10 {
		if got := inCgroup(t, cgroup, url); got != "a "+w.serviceIP.String() {
			t.Errorf("the answer is %q, want that of zone a, and the cluster IP as the peer", got)
		}
	}
	port := r.Status().Services[0].Ports[0]
	if port.DataPlane != "kernel" || port.Protocol != "TCP" || !port.Addresses[0].Open {
		t.Errorf("the status is %+v", port)
	}
	if _, _, err := r.get(); err == nil {
		t.Error("a process of another cgroup got an answer: something listens on the cluster IP")
	}

	for _, e := range w.in("a") {
		e.stop()
	}
	patience.Until(t, "other zones answer", func() bool {
		got := inCgroup(t, cgroup, url)
		return strings.HasPrefix(got, "b ") || strings.HasPrefix(got, "c ")
	})
	patience.Until(t, "the pool says so", func() bool {
		inCgroup(t, cgroup, url)
		pool := r.pool(t)
		return pool.State != "calm" && pool.Groups[0].Share < 1
	})

	w.extra = nil
	w.snapshots.Store(w.snapshot(w.outsideA()...))
	patience.Until(t, "the listener answers", func() bool { _, _, err := r.get(); return err == nil })
	if port := r.Status().Services[0].Ports[0]; port.DataPlane != "" {
		t.Errorf("the status is %+v", port)
	}
}

func TestWhatTheKernelDoesNotDoIsAProblem(t *testing.T) {
	s, err := topology.ParseSnapshot("nodes a:1\n" +
		"service shop/sticky ip=10.0.0.1 port=80 plane=kernel sticky\n" +
		"service shop/headless headless port=80 plane=kernel\n" +
		"service shop/dns ip=10.0.0.2 port=dns:53/UDP port=dns-tcp:53/TCP port=x:54/SCTP plane=kernel; endpoints a:1\n")
	if err != nil {
		t.Fatal(err)
	}
	status, err := agent.Preview(agent.Config{Node: s.Nodes[0].Name}, &s, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range status.Problems {
		got = append(got, p.Service+" "+string(p.Reason.Code))
	}
	want := []string{"shop/dns ProtocolNotServed", "shop/headless NoClusterIP", "shop/sticky KernelNoAffinity"}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got)\n%s", diff)
	}
	var ports []string
	for _, p := range status.Services[0].Ports {
		ports = append(ports, p.DataPlane+" "+p.Protocol)
	}
	if diff := cmp.Diff([]string{"kernel TCP", "kernel UDP"}, ports); diff != "" {
		t.Errorf("ports (-want +got)\n%s", diff)
	}
}

func TestWithoutACgroupTheKernelIsAProblem(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	w.extra = func(svc *topology.Service) { svc.DataPlane = topology.DataPlaneKernel }
	w.snapshots.Store(w.snapshot(w.endpoints...))
	r := w.start(agent.Config{Node: "node-a", Kernel: agent.Kernel{Cgroup: t.TempDir()}})
	if codes := r.codes(); !slices.Contains(codes, reason.KernelUnavailable) {
		t.Errorf("the problems are %v", codes)
	}
}
