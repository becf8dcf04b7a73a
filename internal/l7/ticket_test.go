package l7_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/l7"
)

// TestEveryTicketIsClosed drives every way that a request can end and asks the pool whether anything is still in flight.
func TestEveryTicketIsClosed(t *testing.T) {
	mixed := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/fail":
			w.WriteHeader(500)
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/half":
			w.Header().Set("Content-Length", "10")
			say(w, "half")
		case "/hang":
			<-r.Context().Done()
		}
	})
	ask := func(path string) func(*testing.T, *proxy) {
		return func(t *testing.T, p *proxy) {
			t.Helper()
			conn := dial(t, p.Addr())
			say(conn, "GET "+path+" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
			_, _ = io.ReadAll(conn)
		}
	}
	for _, c := range []struct {
		name     string
		endpoint netip.AddrPort
		options  l7.Options
		act      func(*testing.T, *proxy)
	}{
		{"answered", mixed, l7.Options{}, ask("/")},
		{"failed", mixed, l7.Options{Retry: l7.Retry{On: l7.On5xx}}, ask("/fail")},
		{"reset", mixed, l7.Options{}, ask("/abort")},
		{"broken half-way", mixed, l7.Options{}, ask("/half")},
		{"timed out", mixed, l7.Options{Timeouts: l7.Timeouts{Response: short}}, ask("/hang")},
		{"refused", refusing(t), l7.Options{}, ask("/")},
		{"left by the client", mixed, l7.Options{}, func(t *testing.T, p *proxy) {
			t.Helper()
			conn := dial(t, p.Addr())
			say(conn, "GET /hang HTTP/1.1\r\nHost: h\r\n\r\n")
			shut(conn)
		}},
		{"malformed half-way", mixed, l7.Options{}, func(t *testing.T, p *proxy) {
			t.Helper()
			converse(t, p.Addr(), chunked("1\r\nabc"))
		}},
		{"a call", serveGRPC(t, words), l7.Options{}, func(t *testing.T, p *proxy) {
			t.Helper()
			_ = dialGRPC(t, p).Invoke(t.Context(), "/test.Words/One", wrapperspb.String("fail"), new(wrapperspb.StringValue))
		}},
		{"TCP", answering(t), l7.Options{Protocol: l7.TCP}, func(t *testing.T, p *proxy) {
			t.Helper()
			conn := dial(t, p.Addr())
			_ = conn.CloseWrite()
			_, _ = io.ReadAll(conn)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := start(t, c.options, c.endpoint)
			c.act(t, p)
			saw := p.saw.next(t)
			for _, e := range p.pool.Status().Endpoints {
				if e.InFlight != 0 {
					t.Errorf("%d in flight after %+v", e.InFlight, saw)
				}
			}
		})
	}
}

// TestAnEndpointThatAcceptsNothingInTime fills the queue of a socket that never accepts: Linux then drops what knocks.
func TestAnEndpointThatAcceptsNothingInTime(t *testing.T) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port))
	for { // until nobody gets in any more
		conn, err := net.DialTimeout("tcp", addr.String(), 2*short)
		if err != nil {
			break
		}
		defer shut(conn)
	}
	p := start(t, l7.Options{Timeouts: l7.Timeouts{Connect: short}, Retry: l7.Retry{Attempts: 1}}, addr)
	begin := time.Now()
	resp, text := do(t, client(t, false), request(t, "GET", p.url, nil))
	if resp.StatusCode != 504 || resp.Header.Get("Weir-Reason") != string(reason.ConnectTimeout) || !strings.Contains(text, "in time") {
		t.Errorf("got %d %v %q", resp.StatusCode, resp.Header, text)
	}
	if took := time.Since(begin); took < short {
		t.Errorf("gave up after %v already", took)
	}
}
