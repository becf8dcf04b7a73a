package l7_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/l7"
)

// TestNoClientGetsAnotherOnesAnswer: an endpoint that sends a body where none may be, or more than it said, has its connection closed. Each
// client asks for what no other one does.
func TestNoClientGetsAnotherOnesAnswer(t *testing.T) {
	for name, c := range map[string]struct{ method, answer string }{
		"HEAD with a body":                {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 38\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
		"204 with a body":                 {"GET", "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
		"204 with a length":               {"GET", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"},
		"304 with a body":                 {"GET", "HTTP/1.1 304 Not Modified\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
		"more than the length":            {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
		"more than the chunks":            {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
		"an answer that is not asked for": {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, l7.Options{Protocol: l7.HTTP}, serveTCP(t, func(conn *net.TCPConn) {
				r := bufio.NewReader(conn)
				for {
					asked, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					if asked.URL.Path == "/bad" {
						say(conn, c.answer)
						continue
					}
					say(conn, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(asked.URL.Path), asked.URL.Path))
				}
			}))
			for i := range 20 {
				bad, good := dial(t, p.Addr()), dial(t, p.Addr())
				say(bad, c.method+" /bad HTTP/1.1\r\nHost: h\r\n\r\n")
				r, _ := hear(bad)
				if saw := p.saw.next(t); saw.Outcome != pick.LocalError && name != "204 with a length" {
					t.Errorf("reported %+v", saw)
				}
				path := "/" + strconv.Itoa(i)
				say(good, "GET "+path+" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
				if got, err := io.ReadAll(good); err != nil || !strings.HasSuffix(string(got), "\r\n\r\n"+path) {
					t.Fatalf("got %q, %v, want %s", got, err, path)
				}
				p.saw.next(t)
				_ = r
				shut(bad)
			}
		})
	}
}

// TestBytesOnAKeptConnectionEndIt: they come later, when nothing was asked.
func TestBytesOnAKeptConnectionEndIt(t *testing.T) {
	ended := make(chan error, 1)
	late := make(chan struct{})
	p := start(t, l7.Options{Protocol: l7.HTTP}, serveTCP(t, func(conn *net.TCPConn) {
		hear(conn)
		say(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		<-late
		say(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		_, err := conn.Read(make([]byte, 1))
		ended <- err
	}))
	do(t, client(t, false), request(t, "GET", p.url, nil))
	late <- struct{}{}
	if err := <-ended; err == nil {
		t.Error("the connection was used again")
	}
}

// closing is an endpoint that closes a connection after every few answers, and counts the requests that it got.
func closing(tb testing.TB, after int, heard *atomic.Int64) func(*net.TCPConn) {
	tb.Helper()
	return func(conn *net.TCPConn) {
		r := bufio.NewReader(conn)
		for range after {
			asked, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			body, _ := io.ReadAll(asked.Body)
			heard.Add(1)
			say(conn, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		}
	}
}

// TestRequestsSurviveConnectionsThatEndpointsClose: the endpoint closes without a word after an answer. No idempotent request is lost, and as
// good as no other: only those that cross with the close may be.
func TestRequestsSurviveConnectionsThatEndpointsClose(t *testing.T) {
	const large = 40 << 10 // more than is kept to be sent again
	for name, size := range map[string]int{"GET": 1, "POST": 1, "PUT": large} {
		t.Run(name, func(t *testing.T) {
			method, body := name, strings.Repeat("x", size)
			var heard, lost atomic.Int64
			p := start(t, l7.Options{Protocol: l7.HTTP, Upstreams: only(poolOf(serveTCP(t, closing(t, 5, &heard))), nil)})
			const clients, each = 4, 500
			var asking sync.WaitGroup
			for range clients {
				asking.Go(func() {
					c := client(t, false)
					for range each {
						resp, err := c.Do(request(t, method, p.url, strings.NewReader(body)))
						if err != nil {
							t.Error(err)
							return
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
						if resp.StatusCode != http.StatusOK {
							lost.Add(1)
						}
					}
				})
			}
			asking.Wait()
			t.Logf("%d of %d lost, %d heard", lost.Load(), clients*each, heard.Load())
			if got := lost.Load(); method == "GET" && got > 0 || got > clients*each/100 {
				t.Errorf("%d of %d were lost", got, clients*each)
			}
			if method != "GET" && heard.Load() > clients*each {
				t.Errorf("%d requests arrived, %d were sent", heard.Load(), clients*each)
			}
		})
	}
}

func TestACutAnswerIsAnErrorForAnHTTP10Client(t *testing.T) {
	p := start(t, l7.Options{Protocol: l7.HTTP}, serveTCP(t, func(conn *net.TCPConn) {
		hear(conn)
		say(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
	}))
	conn := dial(t, p.Addr())
	say(conn, "GET / HTTP/1.0\r\n\r\n")
	if got, err := io.ReadAll(conn); err == nil {
		t.Errorf("got %q and an orderly end", got)
	}
}

func TestTargetsAndHostsAreNotRepaired(t *testing.T) {
	p := start(t, l7.Options{Protocol: l7.HTTP}, serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it reached the endpoint") }))
	for _, head := range []string{
		"GET mailto:a HTTP/1.1\r\nHost: h", "GET a HTTP/1.1\r\nHost: h", "GET * HTTP/1.1\r\nHost: h", "GET ftp://h/ HTTP/1.1\r\nHost: h",
		"GET http:/// HTTP/1.1\r\nHost: h", "GET http://u@h/ HTTP/1.1\r\nHost: h", "GET / HTTP/1.1\r\nHost:", "GET / HTTP/1.1\r\nHost: h/x",
		"GET / HTTP/1.1\r\nHost: u@h", "GET / HTTP/1.1\r\nHost: h, i",
	} {
		if got := converse(t, p.Addr(), head+"\r\n\r\n"); statusLine(got) != "HTTP/1.1 400 Bad Request" {
			t.Errorf("%q: got %q", head, got)
		}
	}
}

func TestAnswersThatCanBeReadInTwoWaysAreNone(t *testing.T) {
	for name, answer := range map[string]string{
		"HTTP/1.0 with chunks":        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"a length beside chunks":      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"two lengths":                 "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
		"a coding before chunked":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"an unknown coding":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n",
		"bare line feeds":             "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
		"a folded field":              "HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n",
		"endless interim answers":     strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 100) + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"another version":             "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
		"a control character":         "HTTP/1.1 200 OK\r\nA: b\x00\r\nContent-Length: 0\r\n\r\n",
		"a protocol nobody asked for": "HTTP/1.1 101 Switching Protocols\r\n\r\n",
	} {
		p := start(t, l7.Options{Protocol: l7.HTTP}, serveTCP(t, func(conn *net.TCPConn) {
			hear(conn)
			say(conn, answer)
			_, _ = io.Copy(io.Discard, conn)
		}))
		conn := dial(t, p.Addr())
		say(conn, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		got, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(got), "HTTP/1.1 502 Bad Gateway\r\n") || strings.Count(string(got), "103") > 16 {
			t.Errorf("%s: got %d interim answers, %q, %v", name, strings.Count(string(got), "103"), got[max(0, len(got)-300):], err)
		}
	}
}

// TestTrailersDoNotFrame: those of an answer that nothing announced, as of a request, pass without the fields that belong to a head.
func TestTrailersDoNotFrame(t *testing.T) {
	p := start(t, l7.Options{Protocol: l7.HTTP}, serveTCP(t, func(conn *net.TCPConn) {
		hear(conn)
		say(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nConnection: close\r\nContent-Length: 5\r\nTransfer-Encoding: x\r\nHost: i\r\nSum: 7\r\n\r\n")
	}))
	got := converse(t, p.Addr(), "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	if _, trailer, _ := strings.Cut(got, "\r\n\r\n"); trailer != "0\r\nSum: 7\r\n\r\n" {
		t.Errorf("got %q", got)
	}
}

// TestBytesOfEachOffset cuts a conversation at each of its bytes, on either side: what arrives whole is right, and what does not is an error.
func TestBytesOfEachOffset(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nSum: 7\r\n\r\n"
	const ask = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
	var cut atomic.Int64
	p := start(t, l7.Options{Protocol: l7.HTTP, Upstreams: only(poolOf(serveTCP(t, func(conn *net.TCPConn) {
		asked, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		if body, err := io.ReadAll(asked.Body); err == nil && string(body) != "ab" {
			t.Errorf("the endpoint got %q", body)
		}
		n := int(cut.Load())
		say(conn, answer[:n/2])
		time.Sleep(time.Millisecond)
		say(conn, answer[n/2:n])
		if n%2 == 0 {
			_ = conn.SetLinger(0)
		}
	})), nil)})
	for n := range len(answer) + 1 {
		cut.Store(int64(n))
		conn := dial(t, p.Addr())
		say(conn, ask)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		whole := resp.StatusCode == 200 && err == nil && string(body) == "hello"
		if whole != (n == len(answer)) && resp.StatusCode != 502 && err == nil {
			t.Errorf("cut at %d: got %d %q, %v", n, resp.StatusCode, body, err)
		}
		shut(conn)
	}
	cut.Store(int64(len(answer)))
	for n := range len(ask) {
		conn := dial(t, p.Addr())
		say(conn, ask[:n])
		if n%2 == 0 {
			_ = conn.SetLinger(0)
		}
		shut(conn)
	}
	if got := converse(t, p.Addr(), strings.Replace(ask, "Host", "Connection: close\r\nHost", 1)); !strings.Contains(got, "hello") {
		t.Errorf("in the end got %q", got)
	}
}

// TestOurOwnWantOfFileDescriptorsIsNotTheEndpointsFault leaves the process without any for a moment.
func TestOurOwnWantOfFileDescriptorsIsNotTheEndpointsFault(t *testing.T) {
	p := start(t, l7.Options{Protocol: l7.HTTP}, failing(t, 200))
	conn := dial(t, p.Addr())
	say(conn, "GET / HTTP/1.1\r\nHost: h\r\n")
	waitFor(t, func() bool {
		p.saw.mu.Lock()
		defer p.saw.mu.Unlock()
		return p.saw.open == 1
	})
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	none := before
	none.Cur = 3
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	say(conn, "\r\n")
	_, head := hear(conn)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if statusLine(head) != "HTTP/1.1 503 Service Unavailable" || !strings.Contains(head, "Retry-After: 1\r\n") {
		t.Errorf("got %q", head)
	}
	if saw := p.saw.next(t); saw.Reason != reason.ConnectionLimit || p.pool.Status().Endpoints[0].InFlight != 0 {
		t.Errorf("reported %+v", saw)
	}
}
