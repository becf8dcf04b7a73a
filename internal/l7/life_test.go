package l7_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-lb/weir/internal/l7"
)

func TestARemovedEndpointFinishesWhatItBegan(t *testing.T) {
	closed := make(chan string, 10)
	arrived, answer := make(chan struct{}), make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		say(w, "old")
	}))
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- c.RemoteAddr().String()
		}
	}
	s.Start()
	defer s.Close()
	old := addrOf(s.Listener)
	fresh := serve(t, func(w http.ResponseWriter, _ *http.Request) { say(w, "new") })
	p := start(t, l7.Options{}, old)
	conn := dial(t, p.Addr())
	const ask = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
	say(conn, ask)
	<-arrived
	update(p.pool, fresh)
	p.Keep([]netip.AddrPort{fresh})
	select {
	case c := <-closed:
		t.Fatalf("connection %s was cut under a request", c)
	default:
	}
	answer <- struct{}{}
	r, head := hear(conn)
	body := make([]byte, 3)
	if _, err := io.ReadFull(r, body); err != nil || statusLine(head) != "HTTP/1.1 200 OK" || string(body) != "old" {
		t.Errorf("got %q %q, %v", head, body, err)
	}
	<-closed // the kept connection went with its last request
	say(conn, ask)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("the client's connection was cut: %v", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if text, _ := io.ReadAll(resp.Body); string(text) != "new" {
		t.Errorf("got %q", text)
	}
}

func TestIdleConnectionsToARemovedEndpointAreClosed(t *testing.T) {
	closed := make(chan struct{}, 10)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	s.Start()
	defer s.Close()
	p := start(t, l7.Options{}, addrOf(s.Listener))
	do(t, client(t, false), request(t, "GET", p.url, nil))
	p.Keep(nil)
	select {
	case <-closed:
	case <-time.After(long):
		t.Error("the idle connection stayed")
	}
}

func TestShutdownLetsRequestsFinish(t *testing.T) {
	arrived, answer := make(chan struct{}), make(chan struct{})
	p := start(t, l7.Options{}, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		say(w, "done")
	}))
	busy := dial(t, p.Addr())
	say(busy, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	<-arrived
	silent := dial(t, p.Addr())
	down := make(chan error, 1)
	go func() { down <- p.Shutdown(t.Context()) }()
	if all, err := io.ReadAll(silent); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") || len(all) > 0 {
		t.Errorf("the idle client got %q, %v", all, err)
	}
	if conn, err := net.Dial("tcp", p.Addr().String()); err == nil {
		shut(conn)
		t.Error("a new connection was accepted")
	}
	select {
	case err := <-down:
		t.Fatalf("Shutdown did not wait: %v", err)
	default:
	}
	close(answer)
	all, err := io.ReadAll(busy)
	if err != nil || !strings.Contains(string(all), "Connection: close\r\n") || !strings.HasSuffix(string(all), "done") {
		t.Errorf("got %q, %v", all, err)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
	p.saw.mu.Lock()
	defer p.saw.mu.Unlock()
	if p.saw.open != 0 {
		t.Errorf("%d connections are still counted", p.saw.open)
	}
}

// TestShutdownBeforeServe plays the shortest of lives: an agent whose neighbour could not listen.
func TestShutdownBeforeServe(t *testing.T) {
	for range 100 {
		s, err := l7.Listen(netip.MustParseAddrPort("127.0.0.1:0"), l7.Options{Upstreams: only(poolOf(), newRecorder())})
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- s.Serve() }()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

// TestAConnectionAfterTheEndIsClosed has clients that were accepted just before Shutdown and reach the server after it.
func TestAConnectionAfterTheEndIsClosed(t *testing.T) {
	for _, protocol := range []l7.Protocol{l7.HTTP, l7.TCP, l7.Detect} {
		t.Run(protocol.String(), func(t *testing.T) {
			p := start(t, l7.Options{Protocol: protocol, Limits: l7.Limits{Connections: 1}})
			if err := p.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			for range 3 {
				near, far := net.Pipe()
				defer shut(near)
				p.ServeConn(far)
				if _, err := near.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
					t.Errorf("got %v, want a closed connection", err)
				}
			}
			p.saw.mu.Lock()
			defer p.saw.mu.Unlock()
			if p.saw.open != 0 {
				t.Errorf("%d connections are still counted", p.saw.open)
			}
		})
	}
}

func TestShutdownCutsWhatDoesNotEnd(t *testing.T) {
	arrived := make(chan struct{})
	p := start(t, l7.Options{}, serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	conn := dial(t, p.Addr())
	say(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	<-arrived
	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	if err := p.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if all, _ := io.ReadAll(conn); len(all) > 0 {
		t.Errorf("got %q", all)
	}
}

func TestShutdownLetsStreamsFinish(t *testing.T) {
	p := start(t, l7.Options{}, serveGRPC(t, words))
	stream, err := dialGRPC(t, p).NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/test.Words/Any")
	if err != nil {
		t.Fatal(err)
	}
	exchange := func(word string) {
		t.Helper()
		if err := stream.SendMsg(wrapperspb.String(word)); err != nil {
			t.Fatal(err)
		}
		receive(t, stream, word)
	}
	exchange("before")
	down := make(chan error, 1)
	go func() { down <- p.Shutdown(t.Context()) }()
	for { // until the port is closed
		conn, err := net.Dial("tcp", p.Addr().String())
		if err != nil {
			break
		}
		shut(conn)
	}
	exchange("after")
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(new(wrapperspb.StringValue)); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

func TestAnUpgradedConnectionGetsUntilTheContextEnds(t *testing.T) {
	p := start(t, l7.Options{}, serveTCP(t, func(conn *net.TCPConn) {
		r, _ := hear(conn)
		say(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo/1\r\n\r\n")
		_, _ = io.Copy(conn, r)
	}))
	conn := dial(t, p.Addr())
	say(conn, upgradeHead)
	r, _ := hear(conn)
	ctx, cancel := context.WithCancel(t.Context())
	down := make(chan error, 1)
	go func() { down <- p.Shutdown(ctx) }()
	say(conn, "still here\n")
	if got := readLine(t, r); got != "still here\n" {
		t.Errorf("got %q", got)
	}
	cancel()
	if err := <-down; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := r.ReadByte(); err == nil {
		t.Error("the connection was not cut")
	}
}
