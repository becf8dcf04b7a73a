package l7_test

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/l7"
	"github.com/weir-lb/weir/internal/patience"
)

// dialFrom opens a raw HTTP/2 connection from an address of its own.
func dialFrom(tb testing.TB, from string, to netip.AddrPort, settings ...http2.Setting) *peer {
	tb.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.Dial("tcp", to.String())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { shut(conn) })
	if err := conn.SetDeadline(time.Now().Add(3 * long)); err != nil {
		tb.Fatal(err)
	}
	say(conn, http2.ClientPreface)
	p := newPeer(tb, conn)
	_ = p.WriteSettings(settings...)
	return p
}

// TestAGreedyClientKeepsNobodyElseWaiting: 17 connections with all the streams that they may have, whose bodies never come, and PINGs
// answered.
func TestAGreedyClientKeepsNobodyElseWaiting(t *testing.T) {
	p := start(t, l7.Options{Upstreams: only(poolOf(rawServer(t, func(p *peer) {
		for f := p.hear(); f != nil; f = p.hear() {
			if h, ok := f.(*http2.MetaHeadersFrame); ok && h.PseudoValue("method") == "GET" {
				p.head(h.StreamID, true, ":status: 200")
			}
		}
	})), nil)})
	var connected sync.WaitGroup
	for range 17 {
		greedy := dialFrom(t, "127.0.0.1", p.Addr())
		for i := range uint32(250) {
			greedy.post(2*i + 1)
		}
		connected.Go(func() { greedy.isOpen() }) // all of it was read
	}
	connected.Wait()
	decent := dialFrom(t, "127.0.0.2", p.Addr())
	decent.get(1)
	if got := decent.reply(1); got.status != "200" {
		t.Errorf("another client got %+v", got)
	}
	greedy := dialFrom(t, "127.0.0.1", p.Addr())
	greedy.get(1)
	if got := greedy.reply(1); got.status != "503" || got.reason != string(reason.PendingLimit) {
		t.Errorf("the greedy client got %+v", got)
	}
}

// TestABodyThatStallsGivesItsPlaceBack: what waits for its client does not wait for ever.
func TestABodyThatStallsGivesItsPlaceBack(t *testing.T) {
	p := start(t, l7.Options{Timeouts: l7.Timeouts{Body: 200 * time.Millisecond}}, rawServer(t, func(p *peer) {
		for f := p.hear(); f != nil; f = p.hear() {
		}
	}))
	conn := rawClient(t, p.Addr())
	conn.post(1)
	_ = conn.WriteData(1, false, []byte("some"))
	if got := conn.reply(1); got.status != "408" || got.reason != string(reason.BodyTimeout) {
		t.Errorf("got %+v", got)
	}
	if saw := p.saw.next(t); saw.Outcome != pick.Canceled || saw.Reason != reason.BodyTimeout {
		t.Errorf("reported %+v", saw)
	}
}

// TestAnAnswerThatIsNotReadIsGivenUp: its stream ends, and says nothing about the endpoint.
func TestAnAnswerThatIsNotReadIsGivenUp(t *testing.T) {
	p := start(t, l7.Options{Timeouts: l7.Timeouts{Body: 300 * time.Millisecond}}, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		say(w, strings.Repeat("x", 100_000))
	}))
	conn := dialFrom(t, "127.0.0.1", p.Addr(), http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	conn.get(1)
	if got := conn.reply(1); got.status != "200" || got.body != strings.Repeat("x", 10) || got.reset != "CANCEL" {
		t.Errorf("got %+v", got)
	}
	if saw := p.saw.next(t); saw.Outcome != pick.Canceled {
		t.Errorf("reported %+v", saw)
	}
	if !conn.isOpen() {
		t.Error("the connection was closed")
	}
}

// TestAnswersThatAreNotReadAreHeldInBounds: all the streams of a connection, no window, and large answers.
func TestAnswersThatAreNotReadAreHeldInBounds(t *testing.T) {
	block := bytes.Repeat([]byte("x"), 64<<10)
	p := start(t, l7.Options{Upstreams: only(poolOf(serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 16 << 4 { // 16 MiB
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})), nil)})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	conn := dialFrom(t, "127.0.0.1", p.Addr(), http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	for i := range uint32(250) {
		conn.get(2*i + 1)
	}
	for range 250 { // heads
		if f, ok := conn.hear().(*http2.MetaHeadersFrame); !ok {
			t.Fatalf("got %v", f)
		}
	}
	time.Sleep(500 * time.Millisecond) // what comes behind the heads
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("%d MiB are held, the endpoint's included", grown>>20)
	}
	other := rawClient(t, p.Addr())
	other.get(1)
	for n := 0; n < 60_000; {
		d, ok := other.hear().(*http2.DataFrame)
		if ok {
			n += len(d.Data())
		}
	}
}

// TestFloodsEndTheConnection: each is named in the log and ends with ENHANCE_YOUR_CALM, and another client's requests are answered meanwhile.
func TestFloodsEndTheConnection(t *testing.T) {
	for name, act := range map[string]func(*peer, uint32){
		"PING":                       func(p *peer, _ uint32) { _ = p.WritePing(false, [8]byte{}) },
		"SETTINGS":                   func(p *peer, _ uint32) { _ = p.WriteSettings() },
		"empty DATA":                 func(p *peer, _ uint32) { _ = p.WriteData(1, false, nil) },
		"PRIORITY or unknown frames": func(p *peer, _ uint32) { _ = p.WritePriority(1, http2.PriorityParam{StreamDep: 3}) },
		"WINDOW_UPDATE":              func(p *peer, _ uint32) { _ = p.WriteWindowUpdate(1, 1) },
		"rapid reset": func(p *peer, i uint32) {
			p.get(2*i + 3)
			_ = p.WriteRSTStream(2*i+3, http2.ErrCodeCancel)
		},
		"CONTINUATION flood": func(p *peer, i uint32) {
			if i == 0 {
				_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: 3})
			}
			_ = p.WriteContinuation(3, false, nil)
		},
		"HPACK bomb": func(p *peer, i uint32) {
			if i == 0 {
				p.bigHead(3, append([]string{":method: GET", ":scheme: http", ":authority: h", ":path: /"}, "x: "+strings.Repeat("x", 4_000))...)
				_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: 5})
			}
			_ = p.WriteContinuation(5, false, bytes.Repeat([]byte{0x80 | 62}, 16_000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := new(patience.Log)
			p := start(t, l7.Options{
				Upstreams: only(poolOf(rawServer(t, func(p *peer) {
					for f := p.hear(); f != nil; f = p.hear() {
						if h, ok := f.(*http2.MetaHeadersFrame); ok && h.PseudoValue("path") == "/good" {
							p.head(h.StreamID, true, ":status: 200")
						}
					}
				})), nil),
				Logger: slog.New(slog.NewTextHandler(log, nil)),
			})
			conn := dialFrom(t, "127.0.0.1", p.Addr())
			conn.post(1)
			var flooding sync.WaitGroup
			flooding.Go(func() {
				for i := range uint32(50_000) {
					act(conn, i)
				}
			})
			good := rawClient(t, p.Addr())
			for i := range uint32(20) {
				good.head(2*i+1, true, ":method: GET", ":scheme: http", ":authority: h", ":path: /good")
				if got := good.reply(2*i + 1); got.status != "200" {
					t.Errorf("another client got %+v", got)
				}
			}
			quiet := newPeer(t, conn.conn)
			var got string
			for {
				f, err := quiet.ReadFrame()
				if err != nil {
					break
				}
				if away, ok := f.(*http2.GoAwayFrame); ok {
					got = away.ErrCode.String()
					break
				}
			}
			shut(conn.conn)
			flooding.Wait()
			if got != "ENHANCE_YOUR_CALM" {
				t.Errorf("got %q", got)
			}
			want := name
			if name == "HPACK bomb" {
				want = "CONTINUATION flood"
			}
			if !strings.Contains(log.String(), want) || !strings.Contains(log.String(), "address=127.0.0.1") {
				t.Errorf("the log has %q", log)
			}
		})
	}
}

// TestManyCancelledCallsAreNoFlood: a client that gives up what it waits for, stream after stream, at a rate that people can cause.
func TestManyCancelledCallsAreNoFlood(t *testing.T) {
	p := start(t, l7.Options{Upstreams: only(poolOf(rawServer(t, func(p *peer) {
		for f := p.hear(); f != nil; f = p.hear() {
		}
	})), nil)})
	conn := rawClient(t, p.Addr())
	for round := range uint32(2) {
		for i := range uint32(250) {
			conn.get(500*round + 2*i + 1)
		}
		for i := range uint32(250) {
			_ = conn.WriteRSTStream(500*round+2*i+1, http2.ErrCodeCancel)
		}
	}
	if !conn.isOpen() {
		t.Error("the connection was closed")
	}
}

// TestAStreamOnWhichNothingIsSaidLives: whatever the limits on stalled bodies are, a stream that has its response's head may be silent.
func TestAStreamOnWhichNothingIsSaidLives(t *testing.T) {
	p := start(t, l7.Options{Timeouts: l7.Timeouts{Body: 100 * time.Millisecond, Response: 100 * time.Millisecond}}, rawServer(t, func(p *peer) {
		for f := p.hear(); f != nil; f = p.hear() {
			switch f := f.(type) {
			case *http2.MetaHeadersFrame:
				p.head(f.StreamID, false, ":status: 200")
			case *http2.DataFrame:
				_ = p.WriteData(f.StreamID, f.StreamEnded(), f.Data())
			}
		}
	}))
	conn := rawClient(t, p.Addr())
	conn.post(1)
	time.Sleep(700 * time.Millisecond)
	_ = conn.WriteData(1, true, []byte("still here"))
	if got := conn.reply(1); got.status != "200" || got.body != "still here" || !got.ended {
		t.Errorf("got %+v", got)
	}
}

// TestALargeAnswerMayHaveManyUpdates: x/net's client sends a WINDOW_UPDATE for each 4 KiB, twice.
func TestALargeAnswerMayHaveManyUpdates(t *testing.T) {
	block := bytes.Repeat([]byte("x"), 64<<10)
	const blocks = 400
	p := start(t, l7.Options{}, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range blocks {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	if _, text := do(t, client(t, true), request(t, "GET", p.url, nil)); len(text) != blocks*len(block) {
		t.Errorf("got %d bytes", len(text))
	}
}

// TestAnEndpointThatTakesNoStreamsGetsFewConnections: calls wait for a stream, and not for ever.
func TestAnEndpointThatTakesNoStreamsGetsFewConnections(t *testing.T) {
	var conns sync.Map
	p := start(t, l7.Options{Timeouts: l7.Timeouts{Response: 300 * time.Millisecond}}, rawServer(t, func(p *peer) {
		conns.Store(p, true)
		for f := p.hear(); f != nil; f = p.hear() {
			if h, ok := f.(*http2.MetaHeadersFrame); ok {
				_ = p.WriteRSTStream(h.StreamID, http2.ErrCodeRefusedStream)
			}
		}
	}, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0}))
	conn := rawClient(t, p.Addr())
	conn.get(1)
	if got := conn.reply(1); got.status != "504" && got.status != "502" {
		t.Errorf("got %+v", got)
	}
	n := 0
	conns.Range(func(any, any) bool { n++; return true })
	if n > 256 {
		t.Errorf("%d connections", n)
	}
}
