package l7_test

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/l7"
)

// heads gives what an endpoint hears when a client sends fields, one line each, sorted.
func heads(t *testing.T, f l7.Forwarding, fields ...string) []string {
	t.Helper()
	heard := make(chan string, 1)
	p := start(t, l7.Options{Forwarding: f}, serveTCP(t, func(conn *net.TCPConn) {
		_, head := hear(conn)
		heard <- head
		say(conn, "HTTP/1.1 204 No Content\r\n\r\n")
	}))
	raw := "GET / HTTP/1.1\r\nHost: shop\r\n"
	for _, field := range fields {
		raw += field + "\r\n"
	}
	conn := dial(t, p.Addr())
	say(conn, raw+"\r\n")
	lines := strings.Split(strings.TrimSpace(<-heard), "\r\n")[1:]
	hear(conn)
	slices.Sort(lines)
	return lines
}

func TestWhatEndpointsHearOfTheClient(t *testing.T) {
	for _, c := range []struct {
		name       string
		forwarding l7.Forwarding
		sent, want []string
	}{
		{
			"nothing said",
			l7.Forwarding{},
			nil,
			[]string{"Host: shop", "X-Forwarded-For: 127.0.0.1", "X-Forwarded-Host: shop", "X-Forwarded-Proto: http"},
		},
		{
			"another proxy before",
			l7.Forwarding{},
			[]string{"X-Forwarded-For: 10.0.0.1", "X-Forwarded-For: 10.0.0.2", "X-Forwarded-Proto: https", "X-Forwarded-Host: www", "Forwarded: for=10.0.0.1"},
			[]string{
				`Forwarded: for=10.0.0.1, for=127.0.0.1;proto=http;host="shop"`, "Host: shop",
				"X-Forwarded-For: 10.0.0.1, 10.0.0.2, 127.0.0.1", "X-Forwarded-Host: www", "X-Forwarded-Proto: https",
			},
		},
		{
			"clients that are not trusted",
			l7.Forwarding{Untrusted: true, Forwarded: true, Via: "weir"},
			[]string{"X-Forwarded-For: 10.0.0.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: www", "X-Forwarded-Port: 1", "Forwarded: for=10.0.0.1", "Via: 1.0 a"},
			[]string{
				`Forwarded: for=127.0.0.1;proto=http;host="shop"`, "Host: shop", "Via: 1.0 a, 1.1 weir",
				"X-Forwarded-For: 127.0.0.1", "X-Forwarded-Host: shop", "X-Forwarded-Proto: http",
			},
		},
		{
			"fields of the connection",
			l7.Forwarding{},
			[]string{
				"Connection: keep-alive, X-Mine , ,x-other", "X-Mine: 1", "X-Other: 2", "X-Stays: 3", "Keep-Alive: timeout=5",
				"Proxy-Connection: keep-alive", "Proxy-Authorization: x", "TE: gzip, trailers", "Upgrade: foo", "User-Agent: me",
			},
			[]string{
				"Host: shop", "Te: trailers", "User-Agent: me", "X-Forwarded-For: 127.0.0.1", "X-Forwarded-Host: shop",
				"X-Forwarded-Proto: http", "X-Stays: 3",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, heads(t, c.forwarding, c.sent...)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestFieldsOfTheEndpointsConnectionStayThere(t *testing.T) {
	p := start(t, l7.Options{Forwarding: l7.Forwarding{Via: "weir"}}, serveTCP(t, func(conn *net.TCPConn) {
		hear(conn)
		say(conn, "HTTP/1.1 200 OK\r\nConnection: X-Mine\r\nX-Mine: 1\r\nKeep-Alive: timeout=5\r\nDate: x\r\nContent-Length: 0\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n")
	}))
	got := converse(t, p.Addr(), "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	want := "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 0\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nVia: 1.1 weir\r\nConnection: close\r\n\r\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
