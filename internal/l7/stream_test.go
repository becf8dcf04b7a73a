package l7_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/l7"
)

// versions gives a client for each version of HTTP.
func versions(t *testing.T) map[string]*http.Client {
	t.Helper()
	return map[string]*http.Client{"HTTP/1": client(t, false), "HTTP/2": client(t, true)}
}

func TestEachPieceOfAResponseArrivesAtOnce(t *testing.T) {
	for _, length := range []string{"", "6"} {
		t.Run("length "+length, func(t *testing.T) {
			for name, c := range versions(t) {
				t.Run(name, func(t *testing.T) {
					heard := make(chan struct{})
					p := start(t, l7.Options{}, serve(t, func(w http.ResponseWriter, _ *http.Request) {
						if length != "" {
							w.Header().Set("Content-Length", length)
						}
						for range 3 {
							say(w, "ab")
							w.(http.Flusher).Flush()
							<-heard
						}
					}))
					resp, err := c.Do(request(t, "GET", p.url, nil))
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = resp.Body.Close() }()
					for range 3 {
						if _, err := io.ReadFull(resp.Body, make([]byte, 2)); err != nil {
							t.Fatal(err)
						}
						heard <- struct{}{}
					}
				})
			}
		})
	}
}

func TestTheHeadArrivesBeforeTheBody(t *testing.T) {
	for name, c := range versions(t) {
		t.Run(name, func(t *testing.T) {
			heard := make(chan struct{})
			p := start(t, l7.Options{}, serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.(http.Flusher).Flush()
				<-heard
			}))
			resp, err := c.Do(request(t, "GET", p.url, nil))
			if err != nil {
				t.Fatal(err)
			}
			close(heard)
			_ = resp.Body.Close()
		})
	}
}

func TestBothDirectionsFlowAtTheSameTime(t *testing.T) {
	for name, c := range versions(t) {
		t.Run(name, func(t *testing.T) {
			p := start(t, l7.Options{}, serve(t, func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).EnableFullDuplex()
				w.(http.Flusher).Flush()
				b := make([]byte, 10)
				for {
					n, err := r.Body.Read(b)
					say(w, string(b[:n]))
					w.(http.Flusher).Flush()
					if err != nil {
						return
					}
				}
			}))
			body, pipe := io.Pipe()
			resp, err := c.Do(request(t, "POST", p.url, body))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			for _, word := range []string{"one", "two", "three"} {
				say(pipe, word)
				b := make([]byte, len(word))
				if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != word {
					t.Fatalf("got %q, %v; want %q", b, err, word)
				}
			}
			shut(pipe)
			if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
				t.Errorf("got %q, %v after the end", rest, err)
			}
		})
	}
}

func TestTrailersPassBothWays(t *testing.T) {
	for name, c := range versions(t) {
		t.Run(name, func(t *testing.T) {
			p := start(t, l7.Options{}, serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Trailer", "Announced")
				_, _ = io.Copy(w, r.Body)
				w.Header().Set("Announced", r.Trailer.Get("Sum"))
				w.Header().Set(http.TrailerPrefix+"Surprise", "yes")
			}))
			r := request(t, "POST", p.url, io.MultiReader(strings.NewReader("body")))
			r.Trailer = http.Header{"Sum": {"42"}}
			resp, text := do(t, c, r)
			if text != "body" || resp.Trailer.Get("Announced") != "42" || resp.Trailer.Get("Surprise") != "yes" {
				t.Errorf("got %q with trailer %v", text, resp.Trailer)
			}
		})
	}
}

func TestARequestTrailerNeedsNoAnnouncement(t *testing.T) {
	heads := make(chan string, 1)
	p := start(t, l7.Options{}, serveTCP(t, func(conn *net.TCPConn) {
		r, _ := hear(conn)
		var rest strings.Builder
		for !strings.HasSuffix(rest.String(), "\r\n\r\n") {
			line, err := r.ReadString('\n')
			if err != nil {
				break
			}
			rest.WriteString(line)
		}
		heads <- rest.String()
		say(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}))
	converse(t, p.Addr(), "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"+
		"1\r\na\r\n0\r\nSum: 7\r\nContent-Length: 3\r\n\r\n")
	if got, want := <-heads, "1\r\na\r\n0\r\nSum: 7\r\n\r\n"; got != want {
		t.Errorf("the endpoint got %q, want %q", got, want)
	}
}

func TestContinueIsTheEndpointsToSay(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
	t.Run("an endpoint that wants the body gets it", func(t *testing.T) {
		p := start(t, l7.Options{}, serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
		conn := dial(t, p.Addr())
		say(conn, head)
		r, got := hear(conn)
		if statusLine(got) != "HTTP/1.1 100 Continue" {
			t.Fatalf("got %q", got)
		}
		say(conn, "hi")
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if text, _ := io.ReadAll(resp.Body); string(text) != "hi" {
			t.Errorf("got %q", text)
		}
	})
	t.Run("an endpoint that does not is spared", func(t *testing.T) {
		p := start(t, l7.Options{}, serveTCP(t, func(conn *net.TCPConn) {
			hear(conn)
			say(conn, "HTTP/1.1 413 Request Entity Too Large\r\nContent-Length: 0\r\n\r\n")
		}))
		got := converse(t, p.Addr(), head)
		if statusLine(got) != "HTTP/1.1 413 Request Entity Too Large" || strings.Contains(got, "100 Continue") {
			t.Errorf("got %q", got)
		}
	})
}

func TestAnEarlyAnswerReachesAClientThatStillSends(t *testing.T) {
	p := start(t, l7.Options{}, serveTCP(t, func(conn *net.TCPConn) {
		hear(conn)
		say(conn, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
		_, _ = io.Copy(io.Discard, conn)
	}))
	// The client never sends the rest: nobody may wait for it.
	got := converse(t, p.Addr(), "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nabc")
	if statusLine(got) != "HTTP/1.1 403 Forbidden" || !strings.HasSuffix(got, "\r\n\r\nno") {
		t.Errorf("got %q", got)
	}
}

func TestABrokenResponseIsNotTakenForAWholeOne(t *testing.T) {
	for _, sent := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nx\r\n",
	} {
		p := start(t, l7.Options{}, serveTCP(t, func(conn *net.TCPConn) {
			hear(conn)
			say(conn, sent)
		}))
		resp, err := client(t, false).Do(request(t, "GET", p.url, nil))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err == nil || string(text) != "half" {
			t.Errorf("%q: got %q, %v", sent, text, err)
		}
		if got := p.saw.next(t); got.Outcome != pick.LocalError || got.Code != 200 {
			t.Errorf("%q: reported %+v", sent, got)
		}
	}
}

func TestAnAnswerThatIsNoHTTPIsABadGateway(t *testing.T) {
	for _, sent := range []string{
		"HTTP/1.1 042 What\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "hello\r\n\r\n", "HTTP/1.1 200 OK\r\nA b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 300<<10) + "\r\n\r\n",
	} {
		p := start(t, l7.Options{}, serveTCP(t, func(conn *net.TCPConn) {
			hear(conn)
			say(conn, sent)
		}))
		if resp, _ := do(t, client(t, false), request(t, "GET", p.url, nil)); resp.StatusCode != 502 {
			t.Errorf("%.40q: got %d, want 502", sent, resp.StatusCode)
		}
		if got := p.saw.next(t); got.Outcome != pick.Failure || got.Reason != "EndpointReset" {
			t.Errorf("%.40q: reported %+v", sent, got)
		}
	}
}

func TestAClientThatLeavesSaysNothingAboutTheEndpoint(t *testing.T) {
	arrived := make(chan struct{})
	p := start(t, l7.Options{}, serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done() // the endpoint learns of it as well
	}))
	conn := dial(t, p.Addr())
	say(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	<-arrived
	shut(conn)
	if got := p.saw.next(t); got.Outcome != pick.Canceled || got.Reason != "ClientGone" {
		t.Errorf("reported %+v", got)
	}
}

func TestLargeBodiesPassUnchanged(t *testing.T) {
	for name, c := range versions(t) {
		t.Run(name, func(t *testing.T) {
			p := start(t, l7.Options{}, serve(t, func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).EnableFullDuplex()
				_, _ = io.Copy(w, r.Body)
			}))
			var want strings.Builder
			for i := range 200_000 {
				fmt.Fprintf(&want, "%d,", i)
			}
			if _, got := do(t, c, request(t, "PUT", p.url, strings.NewReader(want.String()))); got != want.String() {
				t.Errorf("got %d bytes, want %d", len(got), want.Len())
			}
		})
	}
}

// readLine reads up to a line feed.
func readLine(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("after %q: %v", line, err)
	}
	return line
}
