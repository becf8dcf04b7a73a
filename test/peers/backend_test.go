package peers_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/patience"
)

// quiet is how long a sloppy backend waits for more of a request that is not complete before it answers what it has.
const quiet = 250 * time.Millisecond

// looseLine is what a sloppy backend takes for a request line, wherever it stands.
var looseLine = regexp.MustCompile(`(?m)^[ \t]*([!#$%&'*+.^_\x60|~0-9A-Za-z-]+)[ \t]+(/\S*|\*|\S+://\S+)(?:[ \t]+HTTP/\S+)?[ \t]*\r?$`)

// backend is an endpoint that keeps connections and records what it receives, byte for byte. A strict one reads requests
// to the letter of RFC 9112 and answers what it cannot read with 400. A sloppy one sends an answer for each line
// that looks like a request's, which is what the worst servers make of bodies and fields whose limits they misjudge.
type backend struct {
	strict   bool
	scripted func(c net.Conn, m *message) (handled bool) // answers in place of the backend
	address  string

	mu    sync.Mutex
	open  map[net.Conn]bool
	lists []*bytes.Buffer // what each connection received
}

// startBackend serves on a free port of ip for the length of the test.
func startBackend(t *testing.T, ip string, b *backend) *backend {
	t.Helper()
	l, err := net.Listen("tcp", ip+":0") //nolint:noctx // binds at once.
	if err != nil {
		t.Fatal(err)
	}
	b.address, b.open = l.Addr().String(), map[net.Conn]bool{}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			received := b.add(c)
			serving.Go(func() {
				defer b.remove(c)
				b.serve(c, received)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		b.closeAll()
		serving.Wait()
	})
	return b
}

func (b *backend) add(c net.Conn) *bytes.Buffer {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open[c] = true
	b.lists = append(b.lists, &bytes.Buffer{})
	return b.lists[len(b.lists)-1]
}

func (b *backend) remove(c net.Conn) {
	_ = c.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, c)
}

func (b *backend) closeAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.open {
		_ = c.Close()
	}
}

// reset closes the connections and forgets what was received.
func (b *backend) reset(t *testing.T) {
	t.Helper()
	b.closeAll()
	patience.Until(t, "the backend's connections end", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.open) == 0
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lists = nil
}

// received gives what each connection since the last reset received.
func (b *backend) received() (raw []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.lists {
		raw = append(raw, l.String())
	}
	return raw
}

// answer is what a backend sends for a request. The field tells also the client of a HEAD which request it is for.
func answer(method, target string) string {
	text := fmt.Sprintf("for %s %s", method, target)
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-Answer: %s\r\n\r\n", len(text), text)
	if method == "HEAD" {
		return head
	}
	return head + text
}

func (b *backend) serve(c net.Conn, received *bytes.Buffer) {
	var pending []byte
	continued := false
	buffer := make([]byte, 64<<10)
	for {
		if !b.strict && len(pending) > 0 {
			_ = c.SetReadDeadline(time.Now().Add(quiet))
		} else {
			_ = c.SetReadDeadline(time.Time{})
		}
		n, err := c.Read(buffer)
		b.mu.Lock()
		received.Write(buffer[:n])
		b.mu.Unlock()
		pending = append(pending, buffer[:n]...)
		var silent error // nothing more comes
		if n == 0 && isTimeout(err) {
			silent = err
		} else if err != nil {
			return
		}
		if pending, err = b.answer(c, pending, silent); err != nil {
			return
		}
		if asks := len(pending) > 0 && bytes.Contains(pending, []byte("\r\n\r\n")) && expects(pending); asks && !continued {
			_, _ = c.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
			continued = true
		} else if len(pending) == 0 {
			continued = false
		}
	}
}

// expects reports whether an incomplete request waits for a 100.
func expects(pending []byte) bool {
	return bytes.Contains(bytes.ToLower(pending), []byte("\r\nexpect: 100-continue\r\n"))
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// answer answers the complete requests among the pending bytes, and gives what is left. A sloppy backend answers once a
// request is complete or broken, or nothing more comes.
func (b *backend) answer(c net.Conn, pending []byte, silent error) ([]byte, error) {
	if !b.strict {
		if _, rest, err := parseRequest(pending); len(pending) > 0 && (silent != nil || err == nil && len(rest) == 0 || err != nil && !errors.Is(err, errIncomplete)) {
			var all strings.Builder
			for _, line := range looseLine.FindAllSubmatch(pending, -1) {
				all.WriteString(answer(string(line[1]), string(line[2])))
			}
			_, err := c.Write([]byte(all.String()))
			return nil, err
		}
		return pending, nil
	}
	for len(pending) > 0 {
		m, rest, err := parseRequest(pending)
		switch {
		case errors.Is(err, errIncomplete):
			return pending, nil
		case err != nil:
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
			return nil, err
		case b.scripted != nil && b.scripted(c, m):
		default:
			if _, err := c.Write([]byte(answer(m.method, m.target))); err != nil {
				return nil, err
			}
		}
		pending = rest
	}
	return nil, nil
}
