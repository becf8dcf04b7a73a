package l7_test

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/weir-lb/weir/internal/l7"
)

// TestTheEndOfAnHTTP2ConnectionHasTwoSteps: a request that the client sends before it hears of the end is answered, one after it is refused.
func TestTheEndOfAnHTTP2ConnectionHasTwoSteps(t *testing.T) {
	p := start(t, l7.Options{}, rawServer(t, answerAll("late")))
	conn := rawClient(t, p.Addr())
	conn.get(1)
	if got := conn.reply(1); got.status != "200" {
		t.Fatalf("got %+v", got)
	}
	down := make(chan error, 1)
	go func() { down <- p.Shutdown(t.Context()) }()
	var ping [8]byte
	announced := false
	for ping == [8]byte{} {
		f, err := conn.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch f := f.(type) {
		case *http2.GoAwayFrame:
			announced = f.LastStreamID == 1<<31-1 && f.ErrCode == http2.ErrCodeNo
		case *http2.PingFrame:
			ping = f.Data
		}
	}
	if !announced {
		t.Error("the end was not announced before")
	}
	conn.get(3) // the client has not read the announcement yet, as far as the proxy knows
	_ = conn.WritePing(true, ping)
	var last uint32
	var body string
	for f := conn.hear(); f != nil; f = conn.hear() {
		switch f := f.(type) {
		case *http2.GoAwayFrame:
			last = f.LastStreamID
		case *http2.DataFrame:
			body += string(f.Data())
		}
	}
	if last != 3 || body != "late" {
		t.Errorf("got %q, and %d as the last stream", body, last)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

// TestTimeLimitsOfHTTP2Connections plays them in virtual time.
func TestTimeLimitsOfHTTP2Connections(t *testing.T) {
	for name, c := range map[string]struct {
		act  func(*peer, http2.Frame) func() // gives what to write, which may block
		want time.Duration
	}{
		"silent":             {func(*peer, http2.Frame) func() { return nil }, 15 * time.Second},
		"answers PING":       {pong, 5 * time.Minute},
		"breaks off a block": {openBlock, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := l7.ListenNowhere(l7.Options{Protocol: l7.H2C, Upstreams: only(poolOf(), nil)})
				near, far := net.Pipe()
				s.ServeConn(far)
				begin := time.Now()
				p := newPeer(t, near)
				writes := make(chan func(), 100)
				var writing sync.WaitGroup
				writing.Go(func() {
					say(near, http2.ClientPreface)
					_ = p.WriteSettings()
					for write := range writes {
						write()
					}
				})
				for {
					f, err := p.ReadFrame()
					if err != nil {
						break
					}
					if write := c.act(p, f); write != nil {
						writes <- write
					}
				}
				if took := time.Since(begin); took < c.want-time.Second || took > c.want+3*time.Second {
					t.Errorf("closed after %v, want %v", took, c.want)
				}
				shut(near)
				close(writes)
				writing.Wait()
				_ = s.Shutdown(t.Context())
			})
		})
	}
}

func pong(p *peer, f http2.Frame) func() {
	ping, ok := f.(*http2.PingFrame)
	if !ok || ping.IsAck() {
		return nil
	}
	data := ping.Data
	return func() { _ = p.WritePing(true, data) }
}

func openBlock(p *peer, f http2.Frame) func() {
	if f.Header().Type == http2.FrameSettings && f.Header().Flags.Has(http2.FlagSettingsAck) {
		return func() { _ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1}) }
	}
	return pong(p, f)
}

// TestShutdownEndsConnectionsThatAreBeingMade: the connection to an endpoint may be there only after all that were open have been closed.
func TestShutdownEndsConnectionsThatAreBeingMade(t *testing.T) {
	endpoint := rawServer(t, func(p *peer) {
		for p.hear() != nil { // it never answers
		}
	})
	for range 200 {
		s, err := l7.Listen(netip.MustParseAddrPort("127.0.0.1:0"), l7.Options{Upstreams: only(poolOf(endpoint), nil)})
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- s.Serve() }()
		c := rawClient(t, s.Addr())
		c.get(1)
		_, _ = c.ReadFrame() // its connection is served
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = s.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Error(err)
		}
		shut(c.conn)
	}
}
