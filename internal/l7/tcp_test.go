package l7_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/l7"
)

// answering is an endpoint that answers once its client has said all.
func answering(t *testing.T) netip.AddrPort {
	t.Helper()
	return serveTCP(t, func(conn *net.TCPConn) {
		all, _ := io.ReadAll(conn)
		say(conn, "heard "+string(all))
	})
}

func TestBytesPassBothWaysAndHalfCloseIsKept(t *testing.T) {
	for _, protocol := range []l7.Protocol{l7.TCP, l7.Detect} {
		p := start(t, l7.Options{Protocol: protocol}, refusing(t), answering(t))
		conn := dial(t, p.Addr())
		say(conn, "\x16\x03\x01 not HTTP")
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(conn); err != nil || string(got) != "heard \x16\x03\x01 not HTTP" {
			t.Errorf("%v: got %q, %v", protocol, got, err)
		}
		got := p.saw.next(t)
		if got.Protocol != l7.TCP || got.Outcome != pick.Success || got.In != 12 || got.Out != 18 || got.Code != 0 {
			t.Errorf("reported %+v", got)
		}
	}
}

func TestAServerThatSpeaksFirstIsServed(t *testing.T) {
	p := start(t, l7.Options{Timeouts: l7.Timeouts{Detect: 10 * time.Millisecond}}, serveTCP(t, func(conn *net.TCPConn) {
		say(conn, "220 ready\n")
		line, _ := bufio.NewReader(conn).ReadString('\n')
		say(conn, "250 "+line)
	}))
	conn := dial(t, p.Addr())
	r := bufio.NewReader(conn)
	if got := readLine(t, r); got != "220 ready\n" {
		t.Errorf("got %q", got)
	}
	say(conn, "GET looks like HTTP, but it is too late for that\n")
	if got := readLine(t, r); !strings.HasPrefix(got, "250 GET looks") {
		t.Errorf("got %q", got)
	}
}

func TestAHeadInPiecesIsStillDetected(t *testing.T) {
	p := start(t, l7.Options{}, serveTCP(t, func(conn *net.TCPConn) {
		_, head := hear(conn)
		say(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nSeen: "+statusLine(head)+"\r\n\r\n")
	}))
	conn := dial(t, p.Addr())
	if err := conn.SetNoDelay(true); err != nil {
		t.Fatal(err)
	}
	for _, piece := range []string{"G", "ET", " / HTTP/1.1\r", "\nHost: h\r\n", "\r\n"} {
		say(conn, piece)
	}
	if _, head := hear(conn); !strings.Contains(head, "Seen: GET / HTTP/1.1\r\n") {
		t.Errorf("got %q", head)
	}
}

func TestATCPClientWithoutAnEndpointIsReset(t *testing.T) {
	for _, endpoints := range [][]netip.AddrPort{nil, {refusing(t)}} {
		p := start(t, l7.Options{Protocol: l7.TCP}, endpoints...)
		conn, err := net.Dial("tcp", p.Addr().String())
		if err == nil { // the reset may come that early
			_, err = io.ReadAll(conn)
			shut(conn)
		}
		if err == nil {
			t.Error("got an orderly end")
		}
		if got := p.saw.next(t); !got.Outcome.Failed() || got.Reason == "" {
			t.Errorf("reported %+v", got)
		}
	}
}

func TestATCPEndpointThatBreaksIsAFailure(t *testing.T) {
	p := start(t, l7.Options{Protocol: l7.TCP}, serveTCP(t, func(conn *net.TCPConn) {
		_, _ = conn.Read(make([]byte, 1))
		_ = conn.SetLinger(0)
	}))
	conn := dial(t, p.Addr())
	say(conn, "x")
	if _, err := io.ReadAll(conn); err == nil {
		t.Log("the client saw an orderly end") // allowed: a reset is not always seen as one
	}
	if got := p.saw.next(t); got.Outcome != pick.LocalError {
		t.Errorf("reported %+v", got)
	}
}

func TestTCPConnectionsGetUntilTheContextEnds(t *testing.T) {
	arrived := make(chan struct{}, 2)
	p := start(t, l7.Options{Protocol: l7.TCP}, serveTCP(t, func(conn *net.TCPConn) {
		first := make([]byte, 1)
		_, _ = io.ReadFull(conn, first)
		arrived <- struct{}{}
		_, _ = io.Copy(io.Discard, conn)
		say(conn, "heard "+string(first))
	}))
	finishing, cut := dial(t, p.Addr()), dial(t, p.Addr())
	say(finishing, "a")
	say(cut, "b")
	<-arrived // a connection that still waits to be accepted is nobody's to finish
	<-arrived
	ctx, cancel := context.WithCancel(t.Context())
	down := make(chan error, 1)
	go func() { down <- p.Shutdown(ctx) }()
	if err := finishing.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(finishing); err != nil || string(got) != "heard a" {
		t.Errorf("got %q, %v", got, err)
	}
	select {
	case err := <-down:
		t.Fatalf("Shutdown did not wait: %v", err)
	default:
	}
	cancel()
	if err := <-down; err == nil {
		t.Error("Shutdown cut a connection and did not say so")
	}
	if _, err := cut.Read(make([]byte, 1)); err == nil {
		t.Error("the connection was not cut")
	}
}
