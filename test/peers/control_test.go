package peers_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

// startNaive starts a proxy that does all wrong: it passes on what each client sends, whatever it is, over connections that it keeps, and
// takes one answer for each client from there.
func startNaive(t *testing.T, ip string, routes []route) *proxy {
	t.Helper()
	p := newProxy(t, "naive", ip, routes)
	for _, r := range routes {
		l, err := net.Listen("tcp", p.address[r.name]) //nolint:noctx // binds at once.
		if err != nil {
			t.Fatal(err)
		}
		n := &naive{endpoint: r.endpoint}
		var serving sync.WaitGroup
		serving.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				n.serve(c)
				_ = c.Close()
			}
		})
		t.Cleanup(func() {
			_ = l.Close()
			serving.Wait()
		})
	}
	return p
}

type naive struct {
	endpoint string
	kept     net.Conn
	answers  *bufio.Reader
}

func (n *naive) serve(c net.Conn) {
	request := make([]byte, 1<<20)
	size, err := c.Read(request)
	if err != nil {
		return
	}
	if n.kept == nil {
		if n.kept, err = net.Dial("tcp", n.endpoint); err != nil { //nolint:noctx // answers at once.
			return
		}
		n.answers = bufio.NewReader(n.kept)
	}
	_, _ = n.kept.Write(request[:size])
	resp, err := http.ReadResponse(n.answers, nil)
	if err != nil {
		_ = n.kept.Close()
		n.kept = nil
		return
	}
	_ = resp.Write(c)
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

// TestTheTablesNoticeAProxyThatPassesAll shows that the forms find what they are there for. The forms are the classical ones, since such a
// proxy leaves most clients waiting.
func TestTheTablesNoticeAProxyThatPassesAll(t *testing.T) {
	p := newPair(t, "127.78.3.1", startNaive)
	noticed, foreign := 0, 0
	for _, f := range readForms(t, "requests.txt")[3:15] {
		r := p.run(t, f, "sloppy")
		if len(r.faults(f)) > 0 {
			noticed++
		}
		if len(r.next) > 0 {
			foreign++
		}
	}
	if noticed < 12 || foreign == 0 {
		t.Errorf("%d of 12 forms are noticed, and in %d a client got a foreign answer", noticed, foreign)
	}
}
