package l7_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/l7"
)

// much is more than what sockets and the proxy hold of an answer.
const much = 16 << 20

// lastRead reads until the endpoint has said all, of which the proxy holds a part, and the rest after a pause.
func lastRead(t *testing.T, p *proxy, conn net.Conn, pause func()) (total int64, err error) {
	t.Helper()
	b := make([]byte, 64<<10)
	for {
		n, err := conn.Read(b)
		if total += int64(n); err != nil {
			return total, err
		}
		select {
		case <-p.saw.more:
		case <-time.After(time.Millisecond):
			continue
		}
		break
	}
	pause()
	_ = conn.SetDeadline(time.Now().Add(long))
	rest, err := io.Copy(io.Discard, conn)
	return total + rest, err
}

// TestASlowClientGetsAllOfTheLastAnswer: the connection ends with it, and much of it waits when the endpoint has said all.
func TestASlowClientGetsAllOfTheLastAnswer(t *testing.T) {
	for name, ask := range map[string]string{
		"it closes":            "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
		"the end is the close": "GET / HTTP/1.0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, l7.Options{}, serve(t, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(bytes.Repeat([]byte("x"), much))
			}))
			conn := dial(t, p.Addr())
			say(conn, ask)
			if n, err := lastRead(t, p, conn, func() { time.Sleep(6 * time.Second) }); n < much || err != nil {
				t.Errorf("got %d bytes of %d, %v", n, much, err)
			}
		})
	}
}

// TestAnEarlyAnswerIsWholeWhateverTheClientSends: it goes on sending what nobody wants while it reads.
func TestAnEarlyAnswerIsWholeWhateverTheClientSends(t *testing.T) {
	p := start(t, l7.Options{}, serveTCP(t, func(conn *net.TCPConn) {
		hear(conn)
		say(conn, fmt.Sprintf("HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n", much))
		_, _ = conn.Write(bytes.Repeat([]byte("x"), much))
		_, _ = io.Copy(io.Discard, conn)
	}))
	conn := dial(t, p.Addr())
	say(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000\r\n\r\n")
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for block := make([]byte, 64<<10); ; time.Sleep(time.Millisecond) {
			if _, err := conn.Write(block); err != nil {
				return
			}
		}
	}()
	if n, _ := lastRead(t, p, conn, func() { time.Sleep(100 * time.Millisecond) }); n < much { // it may end in a reset, as it was not read itself
		t.Errorf("got %d bytes of %d", n, much)
	}
	shut(conn)
	<-sent
}

// TestAClientThatSaysItIsDoneGetsAllOfItsAnswer: it ends its side while it reads.
func TestAClientThatSaysItIsDoneGetsAllOfItsAnswer(t *testing.T) {
	p := start(t, l7.Options{}, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(much))
		_, _ = w.Write(bytes.Repeat([]byte("x"), much))
	}))
	conn := dial(t, p.Addr())
	say(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	n, err := lastRead(t, p, conn, func() {
		_ = conn.CloseWrite()
		time.Sleep(100 * time.Millisecond)
	})
	if n < much || err != nil {
		t.Errorf("got %d bytes of %d, %v", n, much, err)
	}
}

// TestAnAnswerThatIsCutDoesNotLookWhole, where its end is the connection's.
func TestAnAnswerThatIsCutDoesNotLookWhole(t *testing.T) {
	p := start(t, l7.Options{}, serve(t, func(w http.ResponseWriter, r *http.Request) {
		say(w, "half")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	conn := dial(t, p.Addr())
	say(conn, "GET / HTTP/1.0\r\n\r\n")
	r, _ := hear(conn)
	if _, err := io.ReadFull(r, make([]byte, len("half"))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = p.Shutdown(ctx)
	if _, err := r.ReadByte(); err == nil || err == io.EOF {
		t.Errorf("the answer ended with %v", err)
	}
}
