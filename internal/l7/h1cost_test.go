package l7_test

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/l7"
)

// plain is an endpoint that makes no garbage: it answers each request, which has to come in one piece, with 100 bytes in one write.
func plain(tb testing.TB) netip.AddrPort {
	tb.Helper()
	return serveTCP(tb, func(conn *net.TCPConn) {
		in, out := make([]byte, 4<<10), []byte("HTTP/1.1 200 OK\r\nContent-Length: 100\r\nContent-Type: text/plain\r\n\r\n"+strings.Repeat("x", 100))
		for {
			n, err := conn.Read(in)
			if err != nil || !bytes.HasSuffix(in[:n], []byte("\r\n\r\n")) && !bytes.HasSuffix(in[:n], []byte("\r\n\r\nbody")) {
				return
			}
			if _, err := conn.Write(out); err != nil {
				return
			}
		}
	})
}

// plainAsker gives a function that sends the same request and waits for its answer, and makes no garbage.
func plainAsker(tb testing.TB, p netip.AddrPort, raw string) func() {
	tb.Helper()
	conn := dial(tb, p)
	_ = conn.SetDeadline(time.Time{})
	ask, in := []byte(raw), make([]byte, 4<<10)
	end := []byte(strings.Repeat("x", 100))
	return func() {
		if _, err := conn.Write(ask); err != nil {
			tb.Error(err)
			return
		}
		have := 0
		for !bytes.HasSuffix(in[:have], end) {
			n, err := conn.Read(in[have:])
			if err != nil {
				tb.Error(err)
				return
			}
			have += n
		}
	}
}

// TestARequestMakesNoGarbage counts everything in the process: the client and the endpoint of this test make none either.
func TestARequestMakesNoGarbage(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has pools forget a part of what they are given")
	}
	for name, raw := range map[string]string{
		"GET":  "GET /a/b?c=d HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: tester\r\nAccept: */*\r\nX-Request-Id: 1\r\n\r\n",
		"POST": "POST /a/b?c=d HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: tester\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\nbody",
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, l7.Options{Protocol: l7.HTTP, Upstreams: only(poolOf(plain(t)), nil)})
			ask := plainAsker(t, p.Addr(), raw)
			for range 20 {
				ask()
			}
			before := l7.Writes(p.Server)
			const requests = 2_000
			if got := testing.AllocsPerRun(requests, ask); got > 0 {
				t.Errorf("%v allocations per request", got)
			}
			if got := float64(l7.Writes(p.Server)-before) / (requests + 1); got != 2 {
				t.Errorf("%v writes per request, want 2", got)
			}
		})
	}
}

// TestWhatAConnectionTakes: two file descriptors while a request is under way, one and little memory while there is none.
func TestWhatAConnectionTakes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("file descriptors are counted in /proc, which only Linux has")
	}
	arrived, answer := make(chan struct{}), make(chan struct{})
	p := start(t, l7.Options{Protocol: l7.HTTP, Upstreams: only(poolOf(serveTCP(t, func(conn *net.TCPConn) {
		hear(conn)
		arrived <- struct{}{}
		<-answer
		say(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	})), nil)})
	open := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	before := open()
	const conns = 50
	all := make([]*net.TCPConn, conns)
	for i := range all {
		all[i] = dial(t, p.Addr())
		say(all[i], "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		<-arrived
	}
	// The test itself has two for each: the client's end, and the endpoint's.
	if got := open() - before; got > 4*conns {
		t.Errorf("%d file descriptors for %d connections", got-2*conns, conns)
	}
	close(answer)
	for _, conn := range all {
		hear(conn)
	}
}

// TestAnIdleConnectionTakesLittleMemory counts the heap and the stacks that 1,000 of them add.
func TestAnIdleConnectionTakesLittleMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory of its own")
	}
	p := start(t, l7.Options{Protocol: l7.HTTP, Upstreams: only(poolOf(plain(t)), nil)})
	plainAsker(t, p.Addr(), "GET / HTTP/1.1\r\nHost: h\r\n\r\n")()
	used := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := used()
	const conns = 1_000
	for range conns {
		plainAsker(t, p.Addr(), "GET / HTTP/1.1\r\nHost: h\r\n\r\n")()
	}
	if got := (used() - before) / conns; got > 8<<10 { // the client's end is the test's own, and counted with it
		t.Errorf("%d bytes for a connection", got)
	} else {
		t.Logf("%d bytes for a connection", got)
	}
}
