package l7

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/reason"
)

// requestGuard stands between a client's connection and net/http. It holds a request's head back until it is whole and known to
// be unambiguous, follows the body's framing, and keeps time: net/http repairs what it should refuse (a Content-Length
// beside chunks, bare LF, folded lines), and closes without an answer where 408 is due.
//
// What it refuses it replaces by a request with the method refusedMethod, which no client can send through a guard: so
// the answer is written in order, by the handler that writes all answers. It hands out one message at a time.
//
// Read is for one goroutine at a time; deadlines and Close may be set from others, as net/http does.
type requestGuard struct {
	net.Conn
	client   *client
	framer   framer
	timeouts Timeouts
	closed   func()      // called once; set before the guard is used
	once     sync.Once   // guards closed
	awake    atomic.Bool // something was handed out

	// upgrading holds back what follows a request for another protocol until it is declined or granted: it need not be
	// HTTP.
	upgrading atomic.Bool

	// The reader's own.
	store []byte // the array that in lives in, kept for the next head
	in    []byte // received and not handed out yet
	clear int    // bytes at the start of in that may be handed out
	end   error  // what Read says when all is handed out

	mu       sync.Mutex
	refused  reason.Code // why the request with the refusedMethod stands there
	hungUp   bool        // nothing is read any more
	asked    time.Time   // the deadline that net/http wants
	headBy   time.Time   // when the head that is arriving must be whole; zero: none is arriving
	writable time.Time   // the write deadline that is set
}

const (
	// guardRead is how much is read at once: most heads fit.
	guardRead = 4 << 10
	// lingerTime lets a client read its refusal before the connection is reset; a round trip between continents.
	lingerTime = 500 * time.Millisecond
	// lingerBytes bounds what is read for that: what a socket's buffer holds.
	lingerBytes = 256 << 10
)

var errFraming = errors.New("the body's framing is broken")

// newGuard watches over conn. early was read from it already; headBy is when the first head must be whole, if that is known.
func newGuard(conn net.Conn, early []byte, headBy time.Time, o *Options) *requestGuard {
	g := &requestGuard{
		Conn:     conn,
		framer:   framer{limits: o.Limits},
		timeouts: o.Timeouts,
		closed:   func() {},
		store:    early,
		in:       early,
		headBy:   headBy,
	}
	g.expectHead()
	return g
}

// Read hands out bytes that were found good.
func (g *requestGuard) Read(p []byte) (int, error) {
	for {
		if g.clear > 0 {
			n := copy(p, g.in[:g.clear])
			g.in, g.clear = g.in[n:], g.clear-n
			g.awake.Store(true)
			return n, nil
		}
		if g.end != nil {
			return 0, g.end
		}
		if direct := g.framer.direct(); direct > 0 && len(g.in) == 0 {
			n, err := g.Conn.Read(p[:min(int64(len(p)), direct)])
			g.framer.passed(n)
			return n, err
		}
		if err := g.advance(); err != nil {
			return 0, err
		}
	}
}

// advance looks at what was received, or receives more.
func (g *requestGuard) advance() error {
	wasHead := g.framer.state == inHead
	held := wasHead && g.upgrading.Load() && !over(len(g.in), g.framer.limits.Head)
	if len(g.in) > 0 && !held {
		if wasHead {
			g.expectHead()
		}
		drop, pass, refused := g.framer.next(g.in)
		switch {
		case refused != "":
			return g.refuse(refused)
		case drop > 0 || pass > 0:
			g.in, g.clear = g.in[drop:], pass
			if wasHead && pass > 0 {
				g.setHeadBy(time.Time{})
				g.upgrading.Store(g.framer.upgrade)
			}
			return nil
		}
	}
	return g.receive()
}

func (g *requestGuard) receive() error {
	if len(g.in) == 0 {
		g.in = g.store[:0]
	}
	if cap(g.in)-len(g.in) == 0 {
		grown := make([]byte, len(g.in), len(g.in)+guardRead)
		copy(grown, g.in)
		g.store, g.in = grown, grown
	}
	n, err := g.Conn.Read(g.in[len(g.in):cap(g.in)])
	g.in = g.in[:len(g.in)+n]
	if n > 0 || err == nil {
		return nil
	}
	if os.IsTimeout(err) && g.isHeadOverdue() {
		if len(g.in) == 0 {
			return io.EOF // a client that never asked needs no answer
		}
		return g.refuse(reason.HeadTimeout)
	}
	if err == io.EOF && len(g.in) > 0 && g.framer.state == inHead { //nolint:errorlint // net.Conn returns it bare
		return io.ErrUnexpectedEOF
	}
	return err
}

// refuse puts a request that stands for the refusal in the place of a head, or breaks the body.
func (g *requestGuard) refuse(code reason.Code) error {
	g.end = io.EOF
	g.mu.Lock()
	g.refused = code
	g.mu.Unlock()
	g.setHeadBy(time.Time{})
	if g.framer.state != inHead {
		return errFraming
	}
	g.in = []byte(refusedMethod + " / HTTP/1.1\r\nHost: refused\r\nConnection: close\r\n\r\n")
	g.clear = len(g.in)
	return nil
}

// expectHead starts the clock of a head, if it does not run.
func (g *requestGuard) expectHead() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timeouts.Head > 0 && g.headBy.IsZero() {
		g.headBy = time.Now().Add(g.timeouts.Head)
		_ = g.applyLocked() // fails on a closed connection only, which the next Read finds out
	}
}

func (g *requestGuard) setHeadBy(t time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.headBy != t {
		g.headBy = t
		_ = g.applyLocked() // as above
	}
}

func (g *requestGuard) isHeadOverdue() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.headBy.IsZero() && !time.Now().Before(g.headBy)
}

// SetReadDeadline keeps the earlier of net/http's deadline and the head's.
func (g *requestGuard) SetReadDeadline(t time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = t
	return g.applyLocked()
}

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (g *requestGuard) SetDeadline(t time.Time) error {
	if err := g.SetReadDeadline(t); err != nil {
		return err
	}
	return g.SetWriteDeadline(t)
}

// hangUp ends all reading, for good: whatever deadline is asked for later.
func (g *requestGuard) hangUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hungUp = true
	_ = g.applyLocked() // fails on a closed connection only
}

func (g *requestGuard) applyLocked() error {
	if g.hungUp {
		return g.Conn.SetReadDeadline(time.Unix(1, 0))
	}
	t := g.asked
	if t.IsZero() || !g.headBy.IsZero() && g.headBy.Before(t) {
		t = g.headBy
	}
	return g.Conn.SetReadDeadline(t)
}

// Write gives up on a client that takes nothing for as long as a body may stall.
func (g *requestGuard) Write(p []byte) (int, error) {
	if stall := g.timeouts.Body; stall > 0 {
		now := time.Now()
		// Half of the time left is as good as all of it, and saves most of the calls.
		if g.writable.Sub(now) < stall/2 {
			g.writable = now.Add(stall)
			if err := g.SetWriteDeadline(g.writable); err != nil {
				return 0, err
			}
		}
	}
	return g.Conn.Write(p)
}

// release lets everything pass from now on, for a connection that was upgraded: what was received and is still here
// comes first.
func (g *requestGuard) release() {
	g.framer.state = opaque
	g.timeouts.Body = 0
}

// CloseWrite ends the proxy's side only.
func (g *requestGuard) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}

// Close closes the connection; after a refusal it lets the client read that first.
func (g *requestGuard) Close() error {
	var err error
	g.once.Do(func() {
		if g.refusal() != "" || g.isHungUp() {
			g.linger()
		}
		err = g.Conn.Close()
		g.closed()
	})
	return err
}

// refusal gives why the guard refused something; empty if it did not. A Close may come while another message is read.
func (g *requestGuard) refusal() reason.Code {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}

func (g *requestGuard) isHungUp() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hungUp
}

// linger ends this side and reads what the client still sends: to close with bytes unread would reset the connection
// and tear the refusal out of the client's hands. Errors mean that there is no client to wait for.
func (g *requestGuard) linger() {
	if g.CloseWrite() != nil || g.Conn.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, g.Conn, lingerBytes)
}
