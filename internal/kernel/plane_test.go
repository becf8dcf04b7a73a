//go:build linux

package kernel_test

import (
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/kernel"
	"github.com/weir-lb/weir/internal/patience"
)

// Clients, servers and VIPs are on loopback. A server on a VIP stands for kube-proxy: it answers what is left alone.

func TestSharesAreFollowedAndThePeerIsTheVIP(t *testing.T) {
	n := newNode(t)
	n.open()
	vip := serve(t, "net", "127.77.0.1:0")
	port := n.port(kernel.Spec{Address: vip, Endpoints: []netip.AddrPort{
		serve(t, "a", "127.0.0.1:0"), serve(t, "b", "127.0.0.1:0"),
	}}, 1, 3)
	n.beat()
	got := tally(n.run("tcp", 1000, vip.String()))
	a, b := got["a "+vip.String()], got["b "+vip.String()]
	if a+b != 1000 || a < 180 || a > 320 { // five standard deviations from 250
		t.Errorf("answers are %v, want a quarter from a", got)
	}
	totals := port.Totals()
	if totals.Established != 1000 || totals.Refused+totals.TimedOut+totals.Abandoned != 0 {
		t.Errorf("totals are %+v, want 1000 established", totals)
	}
}

func TestUnknownVIPsAndOtherCgroupsAreLeftAlone(t *testing.T) {
	n := newNode(t)
	n.open()
	vip, other := serve(t, "net", "127.77.0.1:0"), serve(t, "other", "127.77.0.2:0")
	n.port(kernel.Spec{Address: vip, Endpoints: []netip.AddrPort{serve(t, "a", "127.0.0.1:0")}})
	n.beat()
	if got := tally(n.run("tcp", 20, other.String())); got["other "+other.String()] != 20 {
		t.Errorf("answers of an unknown VIP: %v", got)
	}
	if got := tally(n.run("udp", 20, vip.String())); got["net "+vip.String()] != 20 {
		t.Errorf("answers of another protocol: %v", got)
	}
	if got := ask("tcp", vip.String()); got != "net "+vip.String() { // this process is not in the node's cgroup
		t.Errorf("the answer to another cgroup: %s", got)
	}
	if got := tally(n.run("tcp", 20, vip.String())); got["a "+vip.String()] != 20 {
		t.Errorf("answers of the VIP: %v", got)
	}
}

func TestFailedConnectionsAreCountedAndTheEndpointIsEjected(t *testing.T) {
	n := newNode(t)
	n.open()
	vip := serve(t, "net", "127.77.0.1:0")
	endpoints := []netip.AddrPort{serve(t, "a", "127.0.0.1:0"), netip.MustParseAddrPort("127.0.0.1:9")}
	port := n.port(kernel.Spec{Address: vip, Endpoints: endpoints})
	n.beat()
	refused := 0
	for line, times := range tally(n.run("tcp", 40, vip.String())) {
		if strings.Contains(line, "refused") {
			refused += times
		}
	}
	if got := port.Totals(); refused == 0 || int(got.Refused) != refused || int(got.Established) != 40-refused {
		t.Fatalf("clients saw %d refused of 40, totals are %+v", refused, got)
	}
	loop := balance.New(balance.Options{}, balance.Config{})
	loop.Apply(0, []route.Endpoint{{Addr: endpoints[0], Home: true}, {Addr: endpoints[1], Home: true}})
	d := loop.Step(time.Second, kernel.Count(loop.Decision(), []*kernel.Port{port}))
	if err := port.Follow(n.now(), d); err != nil {
		t.Fatal(err)
	}
	if got := tally(n.run("tcp", 40, vip.String())); got["a "+vip.String()] != 40 {
		t.Errorf("answers while one is ejected: %v", got)
	}
}

func TestWithoutAnEndpointConnectionsAreLeftAlone(t *testing.T) {
	n := newNode(t)
	n.open()
	vip := serve(t, "net", "127.77.0.1:0")
	n.port(kernel.Spec{Address: vip, Endpoints: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:9")}}, 0)
	n.beat()
	if got := tally(n.run("tcp", 20, vip.String())); got["net "+vip.String()] != 20 {
		t.Errorf("answers: %v", got)
	}
}

func TestUDPAndIPv6(t *testing.T) {
	n := newNode(t)
	n.open()
	a, b := serve(t, "a", "127.0.0.1:0"), serve(t, "a", "[::1]:0")
	vip, vip6 := netip.MustParseAddrPort("127.77.0.3:53"), netip.MustParseAddrPort("[fd77::1]:53")
	n.port(kernel.Spec{Address: vip, Endpoints: []netip.AddrPort{a}})
	port := n.port(kernel.Spec{Address: vip, IsUDP: true, Endpoints: []netip.AddrPort{a}})
	n.port(kernel.Spec{Address: vip6, Endpoints: []netip.AddrPort{b}})
	n.port(kernel.Spec{Address: vip6, IsUDP: true, Endpoints: []netip.AddrPort{b}})
	n.beat()
	for _, address := range []netip.AddrPort{vip, vip6} {
		for _, network := range []string{"tcp", "udp", "sendto"} {
			if got := tally(n.run(network, 10, address.String())); got["a "+address.String()] != 10 {
				t.Errorf("%s to %v: %v", network, address, got)
			}
		}
	}
	if got := port.Totals(); got.Flows != 20 {
		t.Errorf("flows are %d, want 20", got.Flows)
	}
}

func TestClientsOfOthers(t *testing.T) {
	n := newNode(t)
	n.open()
	a := serve(t, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi", "127.0.0.1:0")
	vip := netip.MustParseAddrPort("127.77.0.4:80")
	n.port(kernel.Spec{Address: vip, Endpoints: []netip.AddrPort{a}})
	n.beat()
	out, err := n.command(n.cgroup, "curl", "-sS", "-w", " %{remote_ip}", "http://"+vip.String()+"/").CombinedOutput()
	if err != nil || string(out) != "hi 127.77.0.4" {
		t.Errorf("curl: %s, %v", out, err)
	}
	server := exec.CommandContext(t.Context(), "redis-server", "--port", "16379", "--bind", "127.0.0.1", "--save", "")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	redis := netip.MustParseAddrPort("127.77.0.4:6379")
	n.port(kernel.Spec{Address: redis, Endpoints: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:16379")}})
	patience.Until(t, "redis answers", func() bool {
		return exec.CommandContext(t.Context(), "redis-cli", "-p", "16379", "ping").Run() == nil
	})
	out, err = n.command(n.cgroup, "redis-cli", "-h", "127.77.0.4", "set", "k", "v").CombinedOutput()
	if err != nil || string(out) != "OK\n" {
		t.Errorf("redis-cli: %s, %v", out, err)
	}
}

func TestWithoutHeartbeatConnectionsAreLeftAlone(t *testing.T) {
	n := newNode(t)
	n.pin()
	p := n.open()
	vip := serve(t, "net", "127.77.0.1:0")
	n.port(kernel.Spec{Address: vip, Endpoints: []netip.AddrPort{serve(t, "a", "127.0.0.1:0")}})
	if got := tally(n.run("tcp", 5, vip.String())); got["net "+vip.String()] != 5 {
		t.Errorf("answers before the first beat: %v", got)
	}
	stop := n.beat()
	if got := tally(n.run("tcp", 5, vip.String())); got["a "+vip.String()] != 5 {
		t.Errorf("answers with a heartbeat: %v", got)
	}
	stop() // as if the process were stopped
	time.Sleep(1600 * time.Millisecond)
	if got := tally(n.run("tcp", 5, vip.String())); got["net "+vip.String()] != 5 {
		t.Errorf("answers 1.6 s after the last beat: %v", got)
	}
	p.Beat(n.now())
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if got := tally(n.run("tcp", 5, vip.String())); got["net "+vip.String()] != 5 {
		t.Errorf("answers after Close: %v", got)
	}
}

func TestARestartKeepsCountsAndDetachLeavesNothing(t *testing.T) {
	n := newNode(t)
	n.pin()
	p := n.open()
	vip := serve(t, "net", "127.77.0.1:0")
	gone := netip.MustParseAddrPort("127.77.0.9:80")
	spec := kernel.Spec{Address: vip, Endpoints: []netip.AddrPort{serve(t, "a", "127.0.0.1:0"), serve(t, "b", "127.0.0.1:0")}}
	n.port(spec)
	n.port(kernel.Spec{Address: gone, Endpoints: spec.Endpoints})
	stop := n.beat()
	name, release := n.hold(vip.String())
	stop()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if !kernel.IsPinned(n.pins) || programs(t, n.cgroup) != 9 {
		t.Fatalf("%d programs are on the cgroup, want 9", programs(t, n.cgroup))
	}

	slices.Reverse(spec.Endpoints)
	p = n.open()
	port := n.port(spec)
	if err := p.Sweep(n.now()); err != nil {
		t.Fatal(err)
	}
	if programs(t, n.cgroup) != 9 {
		t.Errorf("%d programs are on the cgroup after a restart, want 9", programs(t, n.cgroup))
	}
	if got := port.Totals(); got.Open != 1 || got.Established != 1 {
		t.Errorf("totals after a restart are %+v, want the connection to %s", got, name)
	}
	stop = n.beat()
	if got := tally(n.run("tcp", 10, gone.String())); len(got) != 1 || !strings.Contains(first(got), "refused") {
		t.Errorf("answers of a VIP that nothing claims: %v", got)
	}
	release()
	until(t, func() bool { return port.Totals().Open == 0 })
	stop()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if freed, err := kernel.Detach(n.pins); err != nil || freed != 9 {
		t.Errorf("Detach freed %d hooks, %v", freed, err)
	}
	if _, err := os.Stat(n.pins); !os.IsNotExist(err) {
		t.Errorf("pins after Detach: %v", err)
	}
	until(t, func() bool { return programs(t, n.cgroup) == 0 })
}

// TestChangesUnderLoadNeverMisroute rewrites, resizes, removes and makes two ports while clients connect to them.
func TestChangesUnderLoadNeverMisroute(t *testing.T) {
	n := newNode(t)
	n.open()
	vips := []netip.AddrPort{serve(t, "a", "127.77.0.1:0"), serve(t, "b", "127.77.0.2:0")}
	pools := [2][]netip.AddrPort{}
	for range 24 {
		pools[0] = append(pools[0], serve(t, "a", "127.0.0.1:0"))
		pools[1] = append(pools[1], serve(t, "b", "127.0.0.1:0"))
	}
	done := make(chan []string, 2)
	for _, vip := range vips {
		go func() { done <- n.run("tcp", 2000, vip.String()) }()
	}
	var answers [][]string
	for round := 0; len(answers) < 2; round++ {
		n.plane.Beat(n.now() + time.Duration(round)*100*time.Millisecond) // what is left rests for 50 rounds
		for i, vip := range vips {
			length := 1 + (round*7+i)%24
			from := round % (25 - length)
			port := n.port(kernel.Spec{Address: vip, Endpoints: pools[i][from : from+length]}, uint32(1+round%9), 2, 3)
			if round%5 == i {
				if err := port.Close(n.now() + time.Duration(round)*100*time.Millisecond); err != nil {
					t.Fatal(err)
				}
			}
		}
		select {
		case lines := <-done:
			answers = append(answers, lines)
		default:
		}
	}
	for _, lines := range answers {
		if got := tally(lines); len(got) != 1 || strings.HasPrefix(first(got), "error") {
			t.Errorf("answers to clients of one service: %v", got)
		}
	}
}

func first(all map[string]int) string {
	for line := range all {
		return line
	}
	return ""
}

// until waits for what the kernel does a moment later.
func until(t *testing.T, is func() bool) {
	t.Helper()
	for range 500 {
		if is() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("did not come true within 10 s")
}

// BenchmarkFill makes and fills maps for 10,000 ports of 15 endpoints each, and has the verifier accept the programs with them.
func BenchmarkFill(b *testing.B) {
	n := newNode(b)
	for b.Loop() {
		p, err := kernel.Open(kernel.Options{Cgroup: n.cgroup, Capacity: kernel.CapacityFor(5_000, 75_000)})
		if err != nil {
			b.Fatal(err)
		}
		opened := time.Now()
		for i := range 10_000 {
			vip := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}), 80)
			s := kernel.Spec{Address: vip}
			for j := range 15 {
				s.Endpoints = append(s.Endpoints, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(j), byte(i >> 8), byte(i)}), 80))
			}
			port, err := p.Port(0, s)
			if err != nil {
				b.Fatal(err)
			}
			if err := port.Follow(0, steady(s.Endpoints)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(time.Since(opened).Seconds(), "s/fill")
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
