//go:build linux

package kernel_test

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/kernel"
	"github.com/weir-lb/weir/internal/kernel/bpf"
)

// client says what the test binary does as a client: NETWORK NUMBER ADDRESS. A client is a process of its own, as the cgroup of
// a process decides whether its sockets are placed.
const client = "WEIR_KERNEL_TEST_CLIENT"

func TestMain(m *testing.M) {
	if words := strings.Fields(os.Getenv(client)); len(words) == 3 {
		n, _ := strconv.Atoi(words[1])
		for range n {
			fmt.Println(ask(words[0], words[2]))
		}
		return
	}
	os.Exit(m.Run())
}

// ask gives what a server answers, and the address of the peer as the client sees it; "hold" keeps its connection until its
// standard input ends.
func ask(network, address string) string {
	if network == "sendto" {
		return sendTo(address)
	}
	conn, err := net.DialTimeout(strings.TrimPrefix(network, "hold-"), address, 5*time.Second)
	if err != nil {
		return "error: " + err.Error()
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = conn.Write([]byte("?"))
	buffer := make([]byte, 64)
	n, err := conn.Read(buffer)
	if err != nil {
		return "error: " + err.Error()
	}
	name := string(buffer[:n])
	if strings.HasPrefix(network, "hold-") {
		fmt.Println(name)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	// RemoteAddr is what the client dialled; the socket is asked anew.
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return "error: " + err.Error()
	}
	peer := ""
	_ = raw.Control(func(fd uintptr) {
		sa, err := unix.Getpeername(int(fd))
		peer = fmt.Sprint(addressOf(sa), err)
	})
	return name + " " + strings.TrimSuffix(peer, "<nil>")
}

// sendTo sends from an unconnected socket and gives the answer with its source.
func sendTo(address string) string {
	to := netip.MustParseAddrPort(address)
	conn, err := net.ListenUDP("udp", nil)
	if err != nil {
		return "error: " + err.Error()
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := conn.WriteToUDPAddrPort([]byte("?"), to); err != nil {
		return "error: " + err.Error()
	}
	buffer := make([]byte, 64)
	n, from, err := conn.ReadFromUDPAddrPort(buffer)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(buffer[:n]) + " " + netip.AddrPortFrom(from.Addr().Unmap(), from.Port()).String() + " "
}

func addressOf(sa unix.Sockaddr) string {
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)).String()
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port)).String()
	default:
		return fmt.Sprint(sa)
	}
}

// node is a cgroup of its own with pods in it, and a bpf file system.
type node struct {
	t      testing.TB
	cgroup string
	pins   string
	plane  *kernel.Plane
	began  time.Time
}

// newNode makes a node without pins; it is gone when the test ends.
func newNode(tb testing.TB) *node {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("programs are loaded into the kernel by root alone")
	}
	root, err := bpf.FindCgroup()
	if err != nil {
		tb.Fatal(err)
	}
	n := &node{t: tb, began: time.Now()}
	if n.cgroup, err = os.MkdirTemp(root, "weir-test-"); err != nil { //nolint:usetesting // a cgroup is a folder of its file system.
		tb.Fatal(err)
	}
	tb.Cleanup(func() { rmdir(tb, n.cgroup) })
	return n
}

// rmdir removes a cgroup, once the kernel has forgotten the processes in it.
func rmdir(tb testing.TB, cgroup string) {
	tb.Helper()
	for range 100 {
		if err := os.Remove(cgroup); err == nil || os.IsNotExist(err) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	tb.Errorf("the cgroup %s cannot be removed", cgroup)
}

// pin gives the node a bpf file system to pin in.
func (n *node) pin() {
	n.t.Helper()
	folder := n.t.TempDir()
	if err := unix.Mount("bpf", folder, "bpf", 0, ""); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if err := unix.Unmount(folder, 0); err != nil {
			n.t.Error(err)
		}
	})
	n.pins = filepath.Join(folder, "weir")
}

func (n *node) now() time.Duration { return time.Since(n.began) }

func (n *node) open() *kernel.Plane {
	n.t.Helper()
	p, err := kernel.Open(kernel.Options{Cgroup: n.cgroup, Pins: n.pins, Capacity: kernel.CapacityFor(10, 100)})
	if err != nil {
		n.t.Fatal(err)
	}
	for _, m := range p.Missing() {
		n.t.Errorf("missing: %s", m)
	}
	n.plane = p
	n.t.Cleanup(func() { _ = p.Close() })
	return p
}

// beat keeps the programs placing until the returned function is called.
func (n *node) beat() (stop func()) {
	p, done, ended := n.plane, make(chan struct{}), make(chan struct{})
	p.Beat(n.now())
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				p.Beat(n.now())
			}
		}
	}()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			close(done)
			<-ended
		}
	}
	n.t.Cleanup(stop)
	return stop
}

// run has the test binary ask from the node's cgroup; it gives the lines that it prints.
func (n *node) run(network string, times int, address string) []string {
	n.t.Helper()
	c := n.command(n.cgroup, os.Args[0])
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", client, network, times, address))
	out, err := c.Output()
	if err != nil {
		n.t.Fatalf("client: %v: %s", err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// command makes a command that begins in a cgroup.
func (n *node) command(cgroup, name string, args ...string) *exec.Cmd {
	n.t.Helper()
	folder, err := os.Open(cgroup)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = folder.Close() })
	c := exec.CommandContext(n.t.Context(), name, args...)
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(folder.Fd())}
	return c
}

// hold starts a client that keeps a connection until the returned function is called.
func (n *node) hold(address string) (name string, release func()) {
	n.t.Helper()
	c := n.command(n.cgroup, os.Args[0])
	c.Env = append(os.Environ(), client+"=hold-tcp 1 "+address)
	in, err := c.StdinPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		n.t.Fatal(err)
	}
	line := make([]byte, 64)
	length, err := out.Read(line)
	if err != nil {
		n.t.Fatal(err)
	}
	return strings.TrimSpace(string(line[:length])), func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = c.Wait()
	}
}

// serve answers on an address with a name, over TCP and UDP; port 0 of it is any that is free.
func serve(tb testing.TB, name, address string) netip.AddrPort {
	tb.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	u, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close(); _ = u.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				_, _ = conn.Write([]byte(name))
				_, _ = io.Copy(io.Discard, conn)
			}()
		}
	}()
	go func() {
		buffer := make([]byte, 64)
		for {
			_, from, err := u.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = u.WriteTo([]byte(name), from)
		}
	}()
	return netip.MustParseAddrPort(l.Addr().String())
}

// steady gives the decision of a loop about some endpoints of some weights, in their order.
func steady(endpoints []netip.AddrPort, weights ...uint32) *balance.Decision {
	loop := balance.New(balance.Options{}, balance.Config{})
	var all []route.Endpoint
	for i, a := range endpoints {
		e := route.Endpoint{Addr: a, Home: true, Weight: 1}
		if i < len(weights) {
			e.Weight, e.Unready = weights[i], weights[i] == 0
		}
		all = append(all, e)
	}
	loop.Apply(0, all)
	d := loop.Decision()
	return loop.Step(0, &balance.Counters{Groups: make([]balance.GroupCounters, len(d.Groups)), Endpoints: make([]balance.EndpointCounters, len(all))})
}

// port makes a port that follows a steady decision.
func (n *node) port(s kernel.Spec, weights ...uint32) *kernel.Port {
	n.t.Helper()
	p, err := n.plane.Port(n.now(), s)
	if err != nil {
		n.t.Fatal(err)
	}
	if err := p.Follow(n.now(), steady(s.Endpoints, weights...)); err != nil {
		n.t.Fatal(err)
	}
	return p
}

// tally counts lines.
func tally(lines []string) map[string]int {
	all := make(map[string]int)
	for _, line := range lines {
		all[strings.TrimSpace(line)]++
	}
	return all
}

// programs counts the programs on a cgroup.
func programs(tb testing.TB, cgroup string) int {
	tb.Helper()
	folder, err := os.Open(cgroup)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = folder.Close() }()
	n := 0
	for _, attach := range []ebpf.AttachType{
		ebpf.AttachCGroupInet4Connect, ebpf.AttachCGroupInet6Connect, ebpf.AttachCGroupUDP4Sendmsg, ebpf.AttachCGroupUDP6Sendmsg,
		ebpf.AttachCGroupUDP4Recvmsg, ebpf.AttachCGroupUDP6Recvmsg, ebpf.AttachCgroupInet4GetPeername,
		ebpf.AttachCgroupInet6GetPeername, ebpf.AttachCGroupSockOps,
	} {
		result, err := link.QueryPrograms(link.QueryOptions{Target: int(folder.Fd()), Attach: attach})
		if err != nil {
			tb.Fatal(err)
		}
		n += len(result.Programs)
	}
	return n
}
