package l7_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/l7"
)

func TestARequestIsAnsweredByAnEndpoint(t *testing.T) {
	endpoint := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		say(w, fmt.Sprintf("%s %s %s %s", r.Proto, r.Method, r.RequestURI, body))
	})
	for _, c := range []struct {
		name     string
		protocol l7.Protocol
		h2       bool
		want     string
	}{
		{"HTTP/1.1 detected", l7.Detect, false, "HTTP/1.1 POST /a%2Fb?c=d e"},
		{"HTTP/2 detected", l7.Detect, true, "HTTP/2.0 POST /a%2Fb?c=d e"},
		{"HTTP/1.1", l7.HTTP, false, "HTTP/1.1 POST /a%2Fb?c=d e"},
		{"HTTP/2", l7.HTTP, true, "HTTP/2.0 POST /a%2Fb?c=d e"},
		{"HTTP/1.1 to an h2c endpoint", l7.H2C, false, "HTTP/2.0 POST /a%2Fb?c=d e"},
		{"HTTP/2 to a WebSocket endpoint", l7.WebSocket, true, "HTTP/1.1 POST /a%2Fb?c=d e"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := start(t, l7.Options{Protocol: c.protocol}, endpoint)
			resp, text := do(t, client(t, c.h2), request(t, "POST", p.url+"/a%2Fb?c=d", strings.NewReader("e")))
			if resp.StatusCode != 200 || text != c.want {
				t.Errorf("got %d %q, want %q", resp.StatusCode, text, c.want)
			}
			got := p.saw.next(t)
			if got.Endpoint != endpoint || got.Zone != "a" || got.Code != 200 || got.Attempts != 1 ||
				got.In != 1 || got.Out != int64(len(c.want)) || got.Duration <= 0 {
				t.Errorf("reported %+v", got)
			}
		})
	}
}

func TestCurlWorksUnmodified(t *testing.T) {
	endpoint := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		say(w, fmt.Sprintf("%s %d", r.Proto, len(body)))
	})
	p := start(t, l7.Options{}, endpoint)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "HTTP/1.1 0"},
		{[]string{"--http1.0"}, "HTTP/1.1 0"},
		{[]string{"--http2-prior-knowledge"}, "HTTP/2.0 0"},
		{[]string{"-H", "Expect: 100-continue", "--data-binary", strings.Repeat("x", 100_000)}, "HTTP/1.1 100000"},
		{[]string{"-H", "Transfer-Encoding: chunked", "--data-binary", "abc"}, "HTTP/1.1 3"},
	} {
		args := append([]string{"--silent", "--show-error", "--fail", "--max-time", "10"}, c.args...)
		out, err := exec.CommandContext(t.Context(), "curl", append(args, p.url)...).CombinedOutput()
		if err != nil || string(out) != c.want {
			t.Errorf("curl %v: %q, %v; want %q", c.args, out, err, c.want)
		}
	}
}

func TestWrkWorksUnmodified(t *testing.T) {
	p := start(t, l7.Options{Upstreams: only(poolOf(failing(t, 200), failing(t, 200)), nil)})
	out, err := exec.CommandContext(t.Context(), "wrk", "-t1", "-c8", "-d1s", p.url).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Requests/sec") ||
		strings.Contains(string(out), "Non-2xx") || strings.Contains(string(out), "Socket errors") {
		t.Errorf("wrk: %v\n%s", err, out)
	}
}

func TestAResponseIsPassedOnAsItIs(t *testing.T) {
	for _, c := range []struct{ name, method, sent, want string }{
		{
			"with a length", "GET",
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: x\r\n\r\nhi",
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: x\r\nConnection: close\r\n\r\nhi",
		},
		{
			"an answer to HEAD", "HEAD",
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: x\r\n\r\n",
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: x\r\nConnection: close\r\n\r\n",
		},
		{
			"no content", "GET",
			"HTTP/1.1 204 No Content\r\nDate: x\r\nEtag: \"1\"\r\n\r\n",
			"HTTP/1.1 204 No Content\r\nDate: x\r\nEtag: \"1\"\r\nConnection: close\r\n\r\n",
		},
		{
			"not modified", "GET",
			"HTTP/1.1 304 Not Modified\r\nDate: x\r\nEtag: \"1\"\r\n\r\n",
			"HTTP/1.1 304 Not Modified\r\nDate: x\r\nEtag: \"1\"\r\nConnection: close\r\n\r\n",
		},
		{
			"until the end of an HTTP/1.0 connection", "GET",
			"HTTP/1.0 200 OK\r\nDate: x\r\n\r\nhi",
			"HTTP/1.1 200 OK\r\nDate: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
		},
		{
			"chunks with a trailer that was announced", "GET",
			"HTTP/1.1 200 OK\r\nDate: x\r\nTrailer: Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nSum: 7\r\n\r\n",
			"HTTP/1.1 200 OK\r\nDate: x\r\nTrailer: Sum\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nSum: 7\r\n\r\n",
		},
		{
			"early hints first", "GET",
			"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\nDate: x\r\n\r\n",
			"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\nDate: x\r\nConnection: close\r\n\r\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			endpoint := serveTCP(t, func(conn *net.TCPConn) {
				hear(conn)
				say(conn, c.sent)
			})
			p := start(t, l7.Options{}, endpoint)
			got := converse(t, p.Addr(), c.method+" / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestAnHTTP10ClientGetsNoChunks(t *testing.T) {
	endpoint := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		say(w, "one")
		w.(http.Flusher).Flush()
		say(w, "two")
	})
	p := start(t, l7.Options{}, endpoint)
	got := converse(t, p.Addr(), "GET / HTTP/1.0\r\n\r\n")
	if statusLine(got) != "HTTP/1.0 200 OK" || !strings.HasSuffix(got, "\r\n\r\nonetwo") || strings.Contains(got, "chunked") {
		t.Errorf("got %q", got)
	}
}

func TestConnectionsAreKept(t *testing.T) {
	conns := make(chan string, 10)
	endpoint := serve(t, func(_ http.ResponseWriter, r *http.Request) { conns <- r.RemoteAddr })
	p := start(t, l7.Options{}, endpoint)
	conn := dial(t, p.Addr())
	r := bufio.NewReader(conn)
	for range 3 {
		say(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	first := <-conns
	for range 2 {
		if next := <-conns; next != first {
			t.Errorf("a request came on %s, the one before on %s", next, first)
		}
	}
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	endpoint := serve(t, func(w http.ResponseWriter, r *http.Request) { say(w, r.URL.Path) })
	p := start(t, l7.Options{}, endpoint)
	got := converse(t, p.Addr(), "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"+
		"POST /2 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n\r\n"+
		"GET /3 HTTP/1.1\r\nHost: h\r\n\r\nGET /4 HTTP/1.1\nHost: h\n\n")
	for _, want := range []string{"\r\n\r\n/1HTTP/1.1 200", "\r\n\r\n/2HTTP/1.1 200", "\r\n\r\n/3HTTP/1.1 400"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}
