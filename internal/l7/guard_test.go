package l7_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-lb/weir/internal/l7"
)

// pipe gives a client's end of a connection to a server without sockets or endpoints, and the way to end both.
func pipe(tb testing.TB, o l7.Options) (net.Conn, func()) {
	tb.Helper()
	o.Upstreams, o.Protocol = only(poolOf(), nil), l7.HTTP
	s := l7.ListenNowhere(o)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	near, far := net.Pipe()
	s.ServeConn(far)
	return near, func() {
		shut(near)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Shutdown(ctx)
		if err := <-served; err != nil {
			tb.Errorf("Serve: %v", err)
		}
	}
}

func TestASlowHeadIsTimedFromItsFirstByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, end := pipe(t, l7.Options{})
		begin := time.Now()
		var talking sync.WaitGroup
		defer talking.Wait()
		defer end()
		talking.Go(func() {
			for range 1_000 { // one byte a second, for ever
				if _, err := conn.Write([]byte("G")); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		})
		answer, _ := io.ReadAll(conn)
		if statusLine(string(answer)) != "HTTP/1.1 408 Request Timeout" {
			t.Errorf("got %q", answer)
		}
		if took := time.Since(begin); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("it took %v, want 10 s", took)
		}
	})
}

func TestAKeptConnectionIsTimedByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, end := pipe(t, l7.Options{})
		defer end()
		const ask = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
		begin := time.Now()
		var talking sync.WaitGroup
		defer talking.Wait()
		talking.Go(func() {
			for range 3 { // four minutes between requests are fine
				say(conn, ask)
				time.Sleep(4 * time.Minute)
			}
		})
		answer, _ := io.ReadAll(conn)
		if got := strings.Count(string(answer), "HTTP/1.1 503 "); got != 3 {
			t.Errorf("got %d answers in %q, want 3", got, answer)
		}
		if took := time.Since(begin); took < 13*time.Minute || took > 13*time.Minute+time.Second { // 4 + 4 + 5
			t.Errorf("it took %v, want 13 min", took)
		}
	})
}

func TestAPipelinedHeadIsTimedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, end := pipe(t, l7.Options{})
		defer end()
		begin := time.Now()
		go say(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\nGET /late HTTP/1.1\r\n")
		answer, _ := io.ReadAll(conn)
		if !strings.HasPrefix(string(answer), "HTTP/1.1 503 ") || !strings.Contains(string(answer), "HTTP/1.1 408 ") {
			t.Errorf("got %q", answer)
		}
		if took := time.Since(begin); took > 12*time.Second {
			t.Errorf("it took %v, want 10 s", took)
		}
	})
}

// FuzzRequestHead sends raw bytes to the server's side: whatever they are, it answers or closes, and does not hang.
func FuzzRequestHead(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nA: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n\x00\x01\n\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		"\r\n\r\nGET / HTTP/1.0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"\n", "\r", "G", "GET / HTTP/1.1\r\n : \r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		conn, end := pipe(t, l7.Options{Timeouts: l7.Timeouts{Head: time.Second, Body: time.Second, Idle: time.Second}})
		defer end()
		if err := conn.SetDeadline(time.Now().Add(long)); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = conn.Write(raw) // fails when the server closes first
			_, _ = io.WriteString(conn, "\r\n\r\n")
		}()
		answer := make([]byte, 1<<10)
		n, err := conn.Read(answer)
		if err != nil && !bytes.HasPrefix(raw, []byte("PRI")) && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "closed") {
			t.Fatalf("neither an answer nor a closed connection: %v", err)
		}
		if err == nil && !bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 ")) && !bytes.HasPrefix(answer[:n], []byte("HTTP/1.0 ")) &&
			!bytes.HasPrefix(raw, []byte("PRI")) {
			t.Fatalf("got %q", answer[:n])
		}
	})
}
