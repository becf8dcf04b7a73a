package l7_test

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/weir-lb/weir/internal/h2"
	"github.com/weir-lb/weir/internal/l7"
)

// frugal is an endpoint that makes no garbage: it answers each request with 100 bytes, all that one read brought with one write.
func frugal(tb testing.TB) netip.AddrPort {
	tb.Helper()
	return serveTCP(tb, func(conn *net.TCPConn) {
		if _, err := io.ReadFull(conn, make([]byte, len(h2.Preface))); err != nil {
			return
		}
		say(conn, string(h2.AppendSettings(nil)))
		in, out, text := make([]byte, 0, 256<<10), make([]byte, 0, 256<<10), make([]byte, 100)
		for {
			n, err := conn.Read(in[len(in):cap(in)])
			if err != nil {
				return
			}
			in = in[:len(in)+n]
			used := 0
			for out = out[:0]; ; {
				f, n, err := h2.Next(in[used:])
				if n == 0 || err != nil {
					break
				}
				if used += n; f.Type == h2.Headers {
					out = h2.Frame{Type: h2.Headers, Flags: h2.EndHeaders, Stream: f.Stream}.AppendHeader(out, 1)
					out = append(out, 0x88) // :status: 200
					out = h2.AppendData(out, f.Stream, h2.EndStream, text)
				}
			}
			in = in[:copy(in, in[used:])]
			if _, err := conn.Write(out); err != nil {
				return
			}
		}
	})
}

// asker sends the same request again and again, some at once, and makes no garbage.
type asker struct {
	tb      testing.TB
	conn    net.Conn
	block   []byte
	next    uint32
	in, out []byte
}

func newAsker(tb testing.TB, p netip.AddrPort) *asker {
	tb.Helper()
	a := &asker{tb: tb, conn: dial(tb, p), next: 1, in: make([]byte, 0, 256<<10), out: make([]byte, 0, 256<<10)}
	_ = a.conn.SetDeadline(time.Time{})
	say(a.conn, h2.Preface+string(h2.AppendSettings(nil))+string(h2.AppendWindowUpdate(nil, 0, 1<<30)))
	var known, first appender
	coder := hpack.NewEncoder(&first)
	fields := []hpack.HeaderField{
		{Name: ":method", Value: "GET"},
		{Name: ":scheme", Value: "http"},
		{Name: ":authority", Value: "shop.example"},
		{Name: ":path", Value: "/a/b?c=d"},
		{Name: "user-agent", Value: "tester"},
		{Name: "accept", Value: "*/*"},
		{Name: "x-request-id", Value: "1"},
	}
	for _, f := range fields {
		_ = coder.WriteField(f)
	}
	taught := len(first)
	for _, f := range fields {
		_ = coder.WriteField(f)
	}
	known = append(known, first[taught:]...)
	a.block = first[:taught]
	a.ask(1)
	a.block = known
	return a
}

type appender []byte

func (a *appender) Write(p []byte) (int, error) {
	*a = append(*a, p...)
	return len(p), nil
}

// ask sends n requests with one write and waits for all answers.
func (a *asker) ask(n int) {
	a.out = a.out[:0]
	for range n {
		a.out = h2.Frame{Type: h2.Headers, Flags: h2.EndHeaders | h2.EndStream, Stream: a.next}.AppendHeader(a.out, len(a.block))
		a.out = append(a.out, a.block...)
		a.next += 2
	}
	if _, err := a.conn.Write(a.out); err != nil {
		a.tb.Error(err)
		return
	}
	for n > 0 {
		got, err := a.conn.Read(a.in[len(a.in):cap(a.in)])
		if err != nil {
			a.tb.Error(err)
			return
		}
		a.in = a.in[:len(a.in)+got]
		used := 0
		for {
			f, length, err := h2.Next(a.in[used:])
			if length == 0 || err != nil {
				break
			}
			used += length
			switch {
			case f.Type == h2.Data && f.Has(h2.EndStream):
				n--
			case f.Type == h2.Reset || f.Type == h2.GoAway:
				a.tb.Errorf("got %d %x", f.Type, f.Payload)
				return
			case f.Type == h2.Headers && f.Payload[0] != 0x88:
				a.tb.Errorf("got a head %x", f.Payload)
				return
			}
		}
		a.in = a.in[:copy(a.in, a.in[used:])]
	}
}

// TestAStreamMakesNoGarbage counts everything in the process: the client and the endpoint of this test make none either.
func TestAStreamMakesNoGarbage(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has pools forget a part of what they are given")
	}
	p := start(t, l7.Options{Upstreams: only(poolOf(frugal(t)), nil)})
	a := newAsker(t, p.Addr())
	a.ask(100)
	const streams = 20
	if got := testing.AllocsPerRun(500, func() { a.ask(streams) }); got >= streams/2 {
		t.Errorf("%v allocations for %d streams", got, streams)
	} else {
		t.Logf("%v allocations for %d streams", got, streams)
	}
}

// TestWritesAreShared: 8 connections with 10 streams each take at most one write for two requests, answers and both sides included.
func TestWritesAreShared(t *testing.T) {
	p := start(t, l7.Options{Upstreams: only(poolOf(frugal(t)), nil)})
	const conns, streams, rounds = 8, 10, 200
	var askers [conns]*asker
	for i := range askers {
		askers[i] = newAsker(t, p.Addr())
	}
	before := l7.Writes(p.Server)
	var asking sync.WaitGroup
	for _, a := range askers {
		asking.Go(func() {
			for range rounds {
				a.ask(streams)
			}
		})
	}
	asking.Wait()
	perRequest := float64(l7.Writes(p.Server)-before) / (conns * streams * rounds)
	t.Logf("%.2f writes per request", perRequest)
	if perRequest > 0.5 {
		t.Errorf("%.2f writes per request, want 0.5 at most", perRequest)
	}
}

// BenchmarkHTTP2 asks over 8 connections with 10 streams each. Compare ratios of one run.
func BenchmarkHTTP2(b *testing.B) {
	endpoint := frugal(b)
	for name, addr := range map[string]netip.AddrPort{
		"path=direct": endpoint, "path=weir": start(b, l7.Options{Upstreams: only(poolOf(endpoint), nil)}).Addr(),
	} {
		b.Run(name, func(b *testing.B) {
			const conns, streams = 8, 10
			var asking sync.WaitGroup
			var askers [conns]*asker
			for i := range askers {
				askers[i] = newAsker(b, addr)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for _, a := range askers {
				asking.Go(func() {
					for range b.N/conns/streams + 1 {
						a.ask(streams)
					}
				})
			}
			asking.Wait()
		})
	}
}
