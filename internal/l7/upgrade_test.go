package l7_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/l7"
)

func TestAWebSocketEchoes(t *testing.T) {
	endpoint := serve(t, func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		for {
			kind, message, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, message) != nil {
				return
			}
		}
	})
	for _, protocol := range []l7.Protocol{l7.Detect, l7.HTTP, l7.WebSocket} {
		p := start(t, l7.Options{Protocol: protocol}, endpoint)
		c, resp, err := websocket.Dial(t.Context(), p.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body != nil {
			defer func() { _ = resp.Body.Close() }()
		}
		for _, want := range []string{"one", "two"} {
			if err := c.Write(t.Context(), websocket.MessageText, []byte(want)); err != nil {
				t.Fatal(err)
			}
			if _, got, err := c.Read(t.Context()); err != nil || string(got) != want {
				t.Fatalf("got %q, %v; want %q", got, err, want)
			}
		}
		if err := c.Close(websocket.StatusNormalClosure, ""); err != nil {
			t.Error(err)
		}
		got := p.saw.next(t)
		if got.Protocol != l7.WebSocket || got.Code != 101 || got.Outcome != pick.Success || got.In == 0 || got.Out == 0 {
			t.Errorf("reported %+v", got)
		}
	}
}

const upgradeHead = "GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo/1\r\n\r\n"

func TestAnUpgradeKeepsHalfClose(t *testing.T) {
	p := start(t, l7.Options{}, serveTCP(t, func(conn *net.TCPConn) {
		r, head := hear(conn)
		if !strings.Contains(head, "Connection: Upgrade\r\n") || !strings.Contains(head, "Upgrade: echo/1\r\n") {
			t.Errorf("the endpoint heard %q", head)
		}
		say(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo/1\r\n\r\nhello ")
		all, _ := io.ReadAll(r) // until the client has said all
		say(conn, string(all))
	}))
	conn := dial(t, p.Addr())
	say(conn, upgradeHead+"at\nonce\n\n, ") // no HTTP, as it need not be
	r, head := hear(conn)
	if statusLine(head) != "HTTP/1.1 101 Switching Protocols" {
		t.Errorf("got %q", head)
	}
	say(conn, "later")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "hello at\nonce\n\n, later" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAnUpgradeThatIsDeclinedIsAnOrdinaryAnswer(t *testing.T) {
	p := start(t, l7.Options{}, serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }))
	conn := dial(t, p.Addr())
	say(conn, upgradeHead)
	if _, head := hear(conn); statusLine(head) != "HTTP/1.1 403 Forbidden" {
		t.Errorf("got %q", head)
	}
}

func TestAnUpgradeThatNobodyAskedForIsABadAnswer(t *testing.T) {
	p := start(t, l7.Options{}, serveTCP(t, func(conn *net.TCPConn) {
		hear(conn)
		say(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n")
	}))
	for _, raw := range []string{upgradeHead, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"} {
		conn := dial(t, p.Addr())
		say(conn, raw)
		if _, head := hear(conn); statusLine(head) != "HTTP/1.1 502 Bad Gateway" {
			t.Errorf("got %q", head)
		}
	}
}

func TestH2CIsNotOfferedToTheEndpoint(t *testing.T) {
	p := start(t, l7.Options{}, serve(t, func(w http.ResponseWriter, r *http.Request) {
		say(w, r.Proto+r.Header.Get("Upgrade")+r.Header.Get("Http2-Settings"))
	}))
	got := converse(t, p.Addr(), "GET / HTTP/1.1\r\nHost: h\r\nConnection: close, Upgrade, HTTP2-Settings\r\n"+
		"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n")
	if !strings.HasSuffix(got, "\r\n\r\nHTTP/1.1") {
		t.Errorf("got %q", got)
	}
}

// TestHTTP10HasNoUpgrade (RFC 9110 section 7.8): such a request is answered as if it had not asked.
func TestHTTP10HasNoUpgrade(t *testing.T) {
	p := start(t, l7.Options{}, serve(t, func(w http.ResponseWriter, r *http.Request) { say(w, "asked for "+r.Header.Get("Upgrade")+".") }))
	got := converse(t, p.Addr(), "GET / HTTP/1.0\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if statusLine(got) != "HTTP/1.0 200 OK" || !strings.HasSuffix(got, "asked for .") {
		t.Errorf("got %q", got)
	}
}
