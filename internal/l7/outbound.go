package l7

import (
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/h1"
	"github.com/weir-lb/weir/internal/h2"
)

// outbound is an HTTP/1 connection to an endpoint. It is always being read: the end of a kept one is noticed at once, and so is a byte that
// nothing asked for, which ends it.
type outbound struct {
	serial

	// The reader's own.
	list   []h1.Field
	inBody bool // a head was passed on, and its body follows

	// poll is for who uses the connection: it asks the system for news.
	poll [1]unix.PollFd
	ask  func(uintptr)

	// Guarded by the outlet's lock.
	used    int  // calls that were carried
	begun   bool // bytes of the answer came
	keep    bool // the answer lets another request follow
	isStray bool // the endpoint sent what nothing asked for
}

// maxResponseHead bounds what an endpoint may make the proxy hold: four times what a client may.
const maxResponseHead = 4 * defaultHead

func (s *streams) newOutbound(o *origin, sock *socket) *outbound {
	c := new(outbound)
	c.init(s, sock, c)
	c.origin = o
	c.ask = func(fd uintptr) {
		c.poll[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN | unix.POLLRDHUP} //nolint:gosec // a descriptor
		if _, err := unix.Poll(c.poll[:], 0); err != nil {
			c.poll[0].Revents = 0 // the write finds out
		}
	}
	return c
}

// isStale asks whether the endpoint has closed the kept connection, or said something, which the reader is about to hear of.
func (c *outbound) isStale() bool {
	if c.raw == nil {
		return false
	}
	return c.raw.Control(c.ask) != nil || c.poll[0].Revents != 0
}

// read handles what the endpoint sends until the connection ends.
func (c *outbound) read() {
	var b batch
	var err error
	for err == nil && !c.closed.Load() {
		b.flush()
		if c.isBlocked() {
			c.stash(&c.streams.buffers)
			<-c.wake
			continue
		}
		if err = c.fill(&c.streams.buffers); err == nil {
			err = c.handle(&b)
		}
	}
	c.end(err, &b)
}

// isBlocked tells whether the client has too much to read already.
func (c *outbound) isBlocked() bool {
	x, seq := c.current()
	if x == nil || c.closed.Load() {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.legOn(c, seq) == &x.far && x.far.room <= 0
}

// errStray ends a connection whose endpoint sends what was not asked for.
var errStray = errors.New("bytes that nothing asked for")

// handle does what all that was read asks for.
func (c *outbound) handle(b *batch) error {
	for {
		x, seq := c.current()
		switch {
		case x == nil && c.have == 0:
			return nil
		case x == nil:
			return c.stray()
		case !c.receive(x, seq, b):
			return nil
		}
	}
}

// stray takes note of bytes that nothing asked for, unless it was us who broke off.
func (c *outbound) stray() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isStray = c.isStray || c.leaving == staying
	return errStray
}

// receive gives the call what was read of its response; it tells whether the call is over.
func (c *outbound) receive(x *call, seq uint32, b *batch) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.legOn(c, seq) == &x.far {
		more := false
		if c.inBody {
			more = c.receiveBody(x, seq, b)
		} else {
			more = c.receiveHead(x, b)
		}
		if !more {
			return false
		}
	}
	return c.have > 0 || x.legOn(c, seq) == nil
}

// receiveHead passes a head on; false if it is not whole yet.
func (c *outbound) receiveHead(x *call, b *batch) bool {
	c.mu.Lock()
	c.begun = c.begun || c.have > 0
	c.mu.Unlock()
	raw, ok := c.nextHead()
	if !ok || over(c.headSize(), maxResponseHead) && (raw == nil || len(raw) > maxResponseHead) {
		x.broken(h2.ProtocolError, b)
		return true
	}
	if raw == nil {
		return false
	}
	h, ok := h1.ParseResponse(raw, c.list, maxResponseFields)
	c.list = h.Fields[:0]
	if !ok {
		x.broken(h2.ProtocolError, b)
		return true
	}
	x.heard = h2.Head{Status: h.Status, Length: h.Length, Fields: h.Fields}
	switch {
	case h.Status == http.StatusSwitchingProtocols:
		c.switchTo(x, h.Upgrade, b)
	case h.Status < http.StatusOK:
		x.response(0, b)
	default:
		c.answer(x, &h, raw, b)
	}
	x.heard.Fields = nil
	clear(h.Fields)
	c.took(raw)
	return true
}

// answer passes the head of an answer on.
func (c *outbound) answer(x *call, h *h1.Head, raw []byte, b *batch) {
	isBodiless := x.asked.method == http.MethodHead || h.Status == http.StatusNoContent || h.Status == http.StatusNotModified
	framing := h1.Unframed
	switch {
	case isBodiless:
		framing = h1.Empty
	case h.Chunked:
		framing = h1.Chunked
	case h.Length >= 0:
		framing = h1.Sized
	}
	c.body = h1.NewBody(framing, h.Length, maxResponseHead)
	c.inBody = !c.body.IsDone()
	var flags h2.Flags
	if !c.inBody {
		flags = h2.EndStream
		x.dirty = c.behind(raw) > 0
	}
	c.mu.Lock()
	c.keep = h.Keep && framing != h1.Unframed && (h.Status != http.StatusNoContent || !h.Chunked && h.Length <= 0)
	c.mu.Unlock()
	x.response(flags, b)
}

// receiveBody passes what is there of a body on; false if there is nothing more.
func (c *outbound) receiveBody(x *call, seq uint32, b *batch) bool {
	in, used := c.bytes(), 0
	defer func() { c.consume(used) }()
	for c.inBody && x.legOn(c, seq) == &x.far {
		part, n, broken := c.next(in[used:])
		used += n
		if broken {
			x.cutShort(b)
			return true
		}
		if n == 0 {
			return false
		}
		isDone := c.body.IsDone()
		if isDone {
			c.inBody = false
			x.dirty = used < len(in)
		}
		switch {
		case isDone && !part.end:
			x.responseTrailer(c.body.Trailer, b)
		case len(part.data) > 0 || part.end:
			x.download(part, b)
		}
	}
	return true
}

// switchTo grants the client the protocol that it asked for: from then on bytes go both ways. An answer that was not asked for, or comes
// before the request's end, is none.
func (c *outbound) switchTo(x *call, protocol string, b *batch) {
	if x.upgrade == "" || !strings.EqualFold(protocol, x.upgrade) || !x.near.finished || !x.far.ended {
		x.leaveFar(h2.Cancel, b)
		x.closeTicket(pick.ServerError)
		x.refuse(reason.EndpointReset, b)
		return
	}
	x.arrived()
	x.head = x.clock()
	x.answer(x.head, pick.Success)
	x.answering, x.tunnel = true, true
	x.done.Protocol, x.done.Code, x.done.Outcome = WebSocket, http.StatusSwitchingProtocols, pick.Success
	x.deadline, x.length, x.expected = 0, -1, -1
	x.near.finished, x.near.last, x.far.last, x.far.ended = false, false, false, false
	c.body, c.inBody = h1.NewBody(h1.Unframed, 0, 0), true
	c.mu.Lock()
	c.framing, c.patient, c.keep = h1.Unframed, true, false
	c.mu.Unlock()
	if l := x.near.link; l != nil {
		l.head(x, b)
		l.windowUpdate(0, 0, b) // what the client sent behind its request goes on
	}
}

// end ends the connection. Its call goes on elsewhere, or ends with it, unless this is how the response ends.
func (c *outbound) end(err error, b *batch) {
	x, seq := c.current()
	if x != nil && err == io.EOF && c.inBody && c.body.IsUnframed() { //nolint:errorlint // it comes bare
		x.mu.Lock()
		if x.legOn(c, seq) == &x.far {
			isTunnel := x.tunnel
			x.download(piece{end: true}, b)
			x.mu.Unlock()
			b.flush()
			if isTunnel {
				c.rest()
			}
		} else {
			x.mu.Unlock()
		}
	}
	b.flush()
	flushed := c.stop()
	c.mu.Lock()
	isKept, isStray := c.used > 0 && !c.begun, c.isStray
	c.out, c.waiting = nil, nil
	c.mu.Unlock()
	c.origin.forget(c)
	if x, seq := c.current(); x != nil {
		x.mu.Lock()
		if x.legOn(c, seq) == &x.far {
			x.far.link = nil
			x.farLost(x.headAt >= flushed || isKept && x.isRepeatable(), b)
		}
		x.mu.Unlock()
	}
	b.flush()
	if isStray {
		c.streams.reportStray(c)
	}
	c.stash(&c.streams.buffers)
	c.streams.forget(c)
}

// open writes a request's head. The caller holds the call's lock, and nothing else uses the connection.
func (c *outbound) open(x *call, b *batch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.leaving != staying || c.closed.Load() {
		return false
	}
	c.call, c.begun, c.keep = x, false, false
	c.seq++
	x.opened(c, c.seq, math.MaxInt64)
	x.headAt = c.appended
	out := c.bufferLocked()
	w := &c.lines
	w.b = append(append(append(append(out.b, x.asked.method...), ' '), x.asked.target...), " HTTP/1.1\r\n"...)
	w.Add("host", x.asked.authority)
	isWhole := x.far.last && x.far.queue.len() == 0 && len(x.far.trailer) == 0
	isSized := x.length >= 0 && (isWhole || !hasField(x.asked.fields.list, "trailer"))
	w.length, w.joins = isSized, x.asked.version == http2Version
	x.requestFields(w)
	if w.cookie != "" {
		w.Add("cookie", w.cookie)
		w.cookie = ""
	}
	if x.upgrade != "" {
		w.Add("connection", "Upgrade")
		w.Add("upgrade", x.upgrade)
	}
	c.framing = h1.Sized
	switch {
	case isWhole:
		x.far.ended, c.framing = true, h1.Empty
		if x.length < 0 && hasBodyUsually(x.asked.method) {
			w.Add("content-length", "0")
		}
	case !isSized:
		c.framing = h1.Chunked
		w.Add("transfer-encoding", "chunked")
	}
	w.b = append(w.b, "\r\n"...)
	c.noteLocked(out, w.b, b)
	w.b = nil
	return true
}

// hasBodyUsually tells whether a request without a body says so (RFC 9110 section 8.6).
func hasBodyUsually(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// reset breaks the request off: the connection cannot be used for another one.
func (c *outbound) reset(uint32, h2.Code, *batch) {
	c.mu.Lock()
	c.leaving = gone
	c.mu.Unlock()
	_ = c.Close()
}

// drop is done with the call: the connection is kept if it is known to be clean.
func (c *outbound) drop(_ uint32, how closure, b *batch) {
	c.mu.Lock()
	isClean := how == bothEnded && c.keep && !c.call.dirty && c.leaving == staying && !c.ended
	c.isStray = c.isStray || c.call.dirty
	c.call = nil
	c.used++
	c.idleAt = c.streams.now()
	if !isClean && !c.ended && c.leaving < gone {
		c.farewellLocked(gone, b)
	}
	c.mu.Unlock()
	c.signal()
	if isClean && !c.origin.keep(c) {
		_ = c.Close()
	}
}

// announce does nothing: connections to endpoints end with the last client.
func (*outbound) announce(*batch) {}

// check looks after the connection's time limits; the call's are looked after by the client's connection.
func (c *outbound) check(now time.Duration, calls []waiter, _ *batch) []waiter {
	idle := c.streams.options.Timeouts.EndpointIdle
	c.mu.Lock()
	cut := c.isStuckLocked(now) || c.leaving >= gone && now-c.leftAt > pingWait
	isIdle := c.call == nil && c.leaving == staying && idle > 0 && now-c.idleAt-watchEvery > idle
	c.mu.Unlock()
	if cut || isIdle && c.origin.forget(c) {
		_ = c.Close() // the reader finds out
	}
	return calls
}
