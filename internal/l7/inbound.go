package l7

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/h1"
	"github.com/weir-lb/weir/internal/h2"
)

// inbound is a client's HTTP/1 connection. Its reader parses a request, begins a call, and feeds it with the body; then it waits for the
// client to leave, or for the next request. A request that comes before the one before it was answered stays where it is.
type inbound struct {
	serial

	// The reader's own.
	timed     bool // a read deadline stands, by which the head has to be whole
	later     bool // a head was seen: HTTP/2 may not begin any more
	discarded int  // bytes that came when all was said
	held      bool // a request is there, or the beginning of one, that has to wait for the one before it

	asking atomic.Bool // a part of a head is there

	// Guarded by the outlet's lock.
	keep bool // another request may follow the one under way
}

const (
	// lingerTime lets a client read its refusal before the connection is reset; a round trip between continents.
	lingerTime = 500 * time.Millisecond
	// lingerBytes bounds what is read while the client has not got all of it: what a socket's buffer holds.
	lingerBytes = 256 << 10
)

// serveHTTP1 carries a client's connection to its end. early was read from it; a read deadline stands for the first head.
func (s *streams) serveHTTP1(a *arrival, early []byte, opened func(io.Closer)) {
	s.coarse.CompareAndSwap(0, int64(s.shared.clock()))
	c := &inbound{timed: true}
	c.init(s, newSocket(a.conn, early), c)
	c.arrival = a
	opened(c)
	s.enter(c)
	if s.stopping.Load() {
		c.announce(nil)
	}
	c.read()
}

// read handles what the client sends until the connection ends.
func (c *inbound) read() {
	var b batch
	c.handle(&b)
	for err := error(nil); err == nil && !c.closed.Load(); {
		b.flush()
		switch {
		case c.isBlocked():
			c.stash(&c.streams.buffers)
			<-c.wake
		case c.held:
			c.held = false // the request before it is over
		default:
			if err = c.fill(&c.streams.buffers); err != nil {
				err = c.silence(err, &b)
			}
		}
		if err == nil {
			c.handle(&b)
		}
	}
	c.end(&b)
}

// isBlocked tells whether the reader has to wait for the call before it reads on: a whole request waits already, or too much of a body. When all
// is said it may have to wait for the end.
func (c *inbound) isBlocked() bool {
	x, seq := c.current()
	if c.closed.Load() {
		return false
	}
	if x == nil {
		return c.discarded > lingerBytes
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.legOn(c, seq) != &x.near:
		return false
	case x.near.finished && !x.tunnel:
		return c.held
	default:
		return x.near.room <= 0
	}
}

// handle does what all that was read asks for.
func (c *inbound) handle(b *batch) {
	for {
		x, seq := c.current()
		switch {
		case x != nil:
			if !c.feed(x, seq, b) {
				return
			}
		case c.isLeaving():
			c.discarded += c.have
			c.consume(c.have)
			return
		case !c.begin(b):
			return
		}
	}
}

func (c *inbound) isLeaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaving >= gone
}

// feed gives the call what was read of its body; it tells whether the call is over.
func (c *inbound) feed(x *call, seq uint32, b *batch) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	in, used := c.bytes(), 0
	defer func() { c.consume(used) }()
	for x.legOn(c, seq) == &x.near {
		switch {
		case x.tunnel:
			if used == len(in) {
				return false
			}
			_ = x.upload(piece{data: in[used:]}, b) // fails for HTTP/2 only
			used = len(in)
			continue
		case x.near.finished:
			c.held = len(in) > used
			return false
		}
		part, n, broken := c.next(in[used:])
		used += n
		switch {
		case broken:
			x.clientErred(reason.MalformedRequest, b)
		case n == 0:
			return false
		case c.body.IsDone() && !part.end:
			x.uploadTrailer(c.body.Trailer, b)
		case len(part.data) > 0 || part.end:
			_ = x.upload(part, b) // as above
		}
	}
	return true
}

// begin begins the request that what was read begins with; false if it is not whole yet.
func (c *inbound) begin(b *batch) bool {
	for c.long == nil && bytes.HasPrefix(c.bytes(), []byte("\r\n")) { // RFC 9112 section 2.2: empty lines before a request are ignored
		c.consume(2)
		c.scanned = 0
	}
	raw, ok := c.nextHead()
	limits := &c.streams.options.Limits
	switch {
	case !ok:
		c.refuse(reason.MalformedRequest, b)
		return true
	case over(c.firstLine(), limits.Target):
		c.refuse(reason.TargetTooLong, b)
		return true
	case raw == nil && over(c.headSize(), limits.Head), raw != nil && over(len(raw), limits.Head):
		c.refuse(reason.HeadTooLarge, b)
		return true
	case raw == nil || c.isPreface(raw):
		c.timeHead()
		return false
	case !c.later && strings.HasPrefix(h2.Preface, string(raw)):
		c.refuse(reason.MalformedRequest, b)
		return true
	}
	c.asking.Store(false)
	if c.timed {
		c.timed = false
		_ = c.SetReadDeadline(time.Time{}) // fails on a closed connection only, which the next read finds out
	}
	x := c.attach()
	defer x.mu.Unlock()
	x.raw = append(x.raw[:0], raw...)
	c.took(raw)
	h, refused := h1.ParseRequest(x.raw, x.asked.fields.list[:0], limits.Fields)
	x.asked = request{
		method: h.Method, target: h.Target, authority: h.Authority, version: http11Version, fields: fields{list: h.Fields},
	}
	if refused != "" {
		x.refuse(refused, b)
		return true
	}
	if h.Old {
		x.asked.version = http10Version
	}
	c.later = true
	c.ask(x, &h)
	x.run(b)
	return true
}

// ask notes what a request's head says.
func (c *inbound) ask(x *call, h *h1.Head) {
	framing := h1.Empty
	switch {
	case h.Chunked:
		framing = h1.Chunked
	case h.Length > 0:
		framing = h1.Sized
	}
	c.body = h1.NewBody(framing, h.Length, c.streams.options.Limits.Head)
	x.length, x.upgrade = h.Length, h.Upgrade
	x.near.finished = framing == h1.Empty
	x.far.last = x.near.finished
	c.mu.Lock()
	c.keep = h.Keep
	c.mu.Unlock()
}

// isPreface tells whether a head is the beginning of HTTP/2's preface, of which more may come.
func (c *inbound) isPreface(raw []byte) bool {
	if c.later {
		return false
	}
	rest, ok := strings.CutPrefix(h2.Preface, string(raw))
	return ok && strings.HasPrefix(rest, string(c.bytes()[min(len(raw), c.have):]))
}

// timeHead has the head be whole in time, from its first byte.
func (c *inbound) timeHead() {
	c.asking.Store(c.headSize() > 0)
	if limit := c.streams.options.Timeouts.Head; limit > 0 && !c.timed && c.headSize() > 0 {
		c.timed = true
		_ = c.SetReadDeadline(time.Now().Add(limit)) // as above
	}
}

// attach makes a call for a request that begins here, and gives it locked.
func (c *inbound) attach() *call {
	x, _ := c.streams.calls.Get().(*call)
	x.mu.Lock()
	c.mu.Lock()
	c.call, c.keep = x, false
	c.seq++
	c.framing = h1.Empty
	seq := c.seq
	c.mu.Unlock()
	x.begin(&c.outlet, seq, math.MaxInt64)
	x.asked.version = http11Version
	x.done.Protocol = HTTP
	return x
}

// refuse answers what is no request, or takes too long to be one.
func (c *inbound) refuse(code reason.Code, b *batch) {
	x := c.attach()
	defer x.mu.Unlock()
	x.refuse(code, b)
}

// silence judges why nothing more could be read; no error means that there is something to say.
func (c *inbound) silence(err error, b *batch) error {
	x, seq := c.current()
	if x == nil {
		if err == io.EOF { //nolint:errorlint // it comes bare
			c.rest() // it may still read what was said
		}
		if !os.IsTimeout(err) || !c.timed || c.headSize() == 0 || c.isLeaving() {
			return err
		}
		c.timed = false
		_ = c.SetReadDeadline(time.Time{})
		c.refuse(reason.HeadTimeout, b)
		return nil
	}
	if err == io.EOF && c.finish(x, seq, b) { //nolint:errorlint // it comes bare
		c.rest()
	}
	return err
}

// finish ends the client's side of a tunnel; false if there is none.
func (c *inbound) finish(x *call, seq uint32, b *batch) bool {
	x.mu.Lock()
	isTunnel := x.legOn(c, seq) == &x.near && x.tunnel
	if isTunnel {
		_ = x.upload(piece{end: true}, b)
	}
	x.mu.Unlock()
	b.flush()
	return isTunnel
}

// Close closes the connection. A client that knows its answer's end by the connection's must not take a part for the whole.
func (c *inbound) Close() error {
	c.mu.Lock()
	isCut := c.framing == h1.Unframed && !c.patient && (c.call != nil || c.writing || c.pendingLocked() > 0)
	c.mu.Unlock()
	if isCut {
		reject(c.Conn)
	}
	return c.serial.Close()
}

// end ends the connection, and with it the call.
func (c *inbound) end(b *batch) {
	b.flush()
	x, seq := c.current()
	c.mu.Lock()
	c.ended = true
	c.out, c.waiting = nil, nil
	c.mu.Unlock()
	if x != nil {
		x.mu.Lock()
		if x.legOn(c, seq) == &x.near {
			x.clientLeft(b)
		}
		x.mu.Unlock()
		b.flush()
	}
	c.stash(&c.streams.buffers)
	_ = c.Close()
	c.streams.forget(c)
	c.streams.left(c, c.arrival)
}

// head writes a response's head, and decides how its body is framed and whether the connection goes on.
func (c *inbound) head(x *call, b *batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, isOld := &x.heard, x.asked.version == http10Version
	isSwitch := h.Status == http.StatusSwitchingProtocols
	isInterim := h.Status < http.StatusOK && !isSwitch
	if c.ended || isInterim && isOld {
		return
	}
	out := c.bufferLocked()
	w := &c.lines
	w.b = append(append(append(out.b, x.asked.version...), ' '), statusOf(h.Status)...)
	w.b = append(append(append(w.b, ' '), http.StatusText(h.Status)...), "\r\n"...)
	if !isInterim {
		c.frameLocked(x, isOld)
	}
	w.length = c.framing == h1.Sized || x.near.ended && h.Status != http.StatusNoContent
	x.responseFields(w)
	switch {
	case isInterim:
	case isSwitch:
		c.patient, c.keep = true, false
		w.Add("connection", "Upgrade")
		w.Add("upgrade", x.upgrade)
	default:
		c.closingLocked(x, isOld)
	}
	w.b = append(w.b, "\r\n"...)
	c.noteLocked(out, w.b, b)
	w.b = nil
}

// frameLocked decides how a response is framed. A trailer section needs chunks.
func (c *inbound) frameLocked(x *call, isOld bool) {
	h := &x.heard
	switch {
	case x.near.ended:
		c.framing = h1.Empty
	case x.tunnel:
		c.framing = h1.Unframed
	case h.Length >= 0 && (isOld || !hasField(h.Fields, "trailer")):
		c.framing = h1.Sized
	case isOld:
		c.framing = h1.Unframed
	default:
		c.framing = h1.Chunked
	}
}

func hasField(list []h2.Field, name string) bool {
	for i := range list {
		if list[i].Name == name {
			return true
		}
	}
	return false
}

// closingLocked writes the fields that frame a response, and decides whether the connection goes on.
func (c *inbound) closingLocked(x *call, isOld bool) {
	w := &c.lines
	if x.near.ended && !x.bodiless && x.heard.Length < 0 {
		w.Add("content-length", "0")
	}
	// A request whose rest may still come ends the connection: where the next one would begin is not certain to be reached.
	c.keep = c.keep && c.framing != h1.Unframed && x.near.finished && !x.ends && !c.streams.stopping.Load()
	switch {
	case !c.keep:
		w.Add("connection", "close")
	case isOld:
		w.Add("connection", "keep-alive")
	}
	if c.framing == h1.Chunked {
		w.Add("transfer-encoding", "chunked")
	}
}

// reset ends the connection: after a whole answer, when the rest of the request is not wanted, or since the answer breaks off.
func (c *inbound) reset(_ uint32, _ h2.Code, b *batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.leaving >= gone || c.call == nil {
		return
	}
	how := gone
	if !c.call.near.ended && c.framing == h1.Unframed && !c.call.tunnel {
		how = breaking // or its end would look like the end of the answer
	}
	c.farewellLocked(how, b)
}

// drop is done with the call.
func (c *inbound) drop(_ uint32, how closure, b *batch) {
	c.mu.Lock()
	c.call = nil
	c.idleAt = c.streams.now()
	if how != byPeer && !c.ended && c.leaving < gone && (!c.keep || c.streams.stopping.Load()) {
		c.farewellLocked(gone, b)
	}
	c.mu.Unlock()
	c.signal()
}

// announce ends a connection without a request; all others end with theirs.
func (c *inbound) announce(*batch) {
	c.mu.Lock()
	isIdle := c.call == nil && c.leaving == staying
	c.mu.Unlock()
	if isIdle && !c.asking.Load() {
		_ = c.Close()
	}
}

// check looks after the connection's time limits and its call's.
func (c *inbound) check(now time.Duration, calls []waiter, b *batch) []waiter {
	idle := c.streams.options.Timeouts.Idle
	c.mu.Lock()
	cut := c.isStuckLocked(now) || c.isUnclosedLocked(now, lingerTime)
	cut = cut || c.call == nil && c.leaving == staying && idle > 0 && now-c.idleAt-watchEvery > idle
	x, seq := c.call, c.seq
	c.mu.Unlock()
	switch {
	case cut:
		_ = c.Close() // the reader finds out
	case x != nil:
		x.check(c, seq, b)
	}
	return calls
}
