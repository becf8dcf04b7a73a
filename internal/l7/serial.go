package l7

import (
	"bytes"
	"math"

	"github.com/weir-lb/weir/internal/h1"
	"github.com/weir-lb/weir/internal/h2"
)

// serial is one HTTP/1 connection, which carries one call after the other: what inbound and outbound have in common. One goroutine reads it.
type serial struct {
	outlet

	// The reader's own.
	long    []byte // the beginning of a head that a read buffer does not hold
	scanned int    // bytes of a head that were looked at in vain
	body    h1.Body

	// Guarded by the outlet's lock.
	call    *call
	seq     uint32 // the number of the call on this connection
	framing h1.Framing
	lines   lines
}

func (s *serial) init(streams *streams, sock *socket, self carrier) {
	s.outlet = outlet{socket: sock, streams: streams, self: self, window: math.MaxInt64, idleAt: streams.now()}
	sock.bind(&streams.buffers)
	sock.wake = make(chan struct{}, 1)
}

// lines writes fields as HTTP/1 has them.
type lines struct {
	b      []byte
	length bool // Content-Length is as the head says
	joins  bool // Cookies, which HTTP/2 lets clients split, become one (RFC 9113 section 8.2.3)
	cookie string
}

// Add adds a field.
func (l *lines) Add(name, value string) { l.b = h1.AppendField(l.b, name, value) }

// AddField adds a field.
func (l *lines) AddField(f h2.Field) {
	switch {
	case f.Name == "content-length" && !l.length:
	case f.Name == "cookie" && l.joins && l.cookie == "":
		l.cookie = f.Value
	case f.Name == "cookie" && l.joins:
		l.cookie += "; " + f.Value
	default:
		l.Add(f.Name, f.Value)
	}
}

// current gives the call that is under way, and its number here; nil if there is none.
func (s *serial) current() (*call, uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.call, s.seq
}

// nextHead gives the head that what was read begins with; nil if it is not whole yet. Ok is false if a line ends in a bare LF. What it gives
// has to be taken with took, and is valid until then.
func (s *serial) nextHead() (raw []byte, ok bool) {
	in := s.bytes()
	if s.long == nil && len(in) < readSize {
		end, next, ok := h1.Scan(in, s.scanned)
		s.scanned = next
		if end == 0 {
			return nil, ok
		}
		return in[:end:end], ok
	}
	before := len(s.long)
	s.long = append(s.long, in...)
	end, next, ok := h1.Scan(s.long, s.scanned)
	s.scanned = next
	if end == 0 {
		s.consume(len(in))
		return nil, ok
	}
	s.consume(end - before)
	return s.long[:end:end], ok
}

// took takes a head out of what was read.
func (s *serial) took(raw []byte) {
	if s.long == nil {
		s.consume(len(raw))
	}
	s.long, s.scanned = nil, 0
}

// headSize is how much of a head is there.
func (s *serial) headSize() int { return len(s.long) + s.have }

// behind is how much was read behind a head that was not taken yet.
func (s *serial) behind(raw []byte) int {
	if s.long == nil {
		return s.have - len(raw)
	}
	return s.have
}

// firstLine is how long the first line of what is there of a head is.
func (s *serial) firstLine() int {
	b := s.long
	if b == nil {
		b = s.bytes()
	}
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return i
	}
	return len(b)
}

// data sends what there is unless too much waits for the socket already.
func (s *serial) data(g *leg, p []byte, b *batch) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return 0
	}
	if len(p) > 0 && s.pendingLocked() >= backlog {
		if !g.waiting {
			g.waiting = true
			s.waiting = append(s.waiting, waiter{g.call, g.id})
		}
		return 0
	}
	out := s.bufferLocked()
	grown := out.b
	switch {
	case len(p) == 0:
	case s.framing == h1.Chunked:
		grown = h1.AppendChunk(grown, p)
	default:
		grown = append(grown, p...)
	}
	if g.last && len(g.trailer) == 0 {
		g.ended = true
		switch {
		case g.call.tunnel:
			s.leaving = shutting
		case s.framing == h1.Chunked:
			grown = append(grown, h1.LastChunk...)
		}
	}
	s.noteLocked(out, grown, b)
	return len(p)
}

// trailer ends a body that is in chunks; no other has a place for fields.
func (s *serial) trailer(g *leg, fields []h2.Field, b *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.ended = true
	if s.ended || s.framing != h1.Chunked {
		return
	}
	out := s.bufferLocked()
	w := &s.lines
	w.b = append(out.b, "0\r\n"...)
	for i := range fields {
		if fields[i].Name != filterStateLower {
			w.AddField(fields[i])
		}
	}
	w.b = append(w.b, "\r\n"...)
	s.noteLocked(out, w.b, b)
	w.b = nil
}

// open is for connections to endpoints.
func (*serial) open(*call, *batch) bool { return false }

// head is for connections of clients.
func (*serial) head(*call, *batch) {}

// windowUpdate has the reader go on.
func (s *serial) windowUpdate(uint32, uint32, *batch) { s.signal() }

// rest waits until all that was said is written and the call is over, or the connection is closed.
func (s *serial) rest() {
	for !s.closed.Load() {
		s.mu.Lock()
		over := s.call == nil && s.pendingLocked() == 0 && !s.writing
		s.mu.Unlock()
		if over {
			return
		}
		<-s.wake
	}
}

// stop closes the connection and waits until nothing is being written: then it is known how much was.
func (s *serial) stop() (flushed uint64) {
	_ = s.Close()
	for {
		s.mu.Lock()
		isWriting := s.writing
		flushed = s.flushed
		s.ended = s.ended || !isWriting
		s.mu.Unlock()
		if !isWriting {
			return flushed
		}
		<-s.wake
	}
}

// next gives the next part of the body that in begins with, and how much of in it took; broken if that is no body. A trailer section, or the end
// of what was read, gives none.
func (s *serial) next(in []byte) (part piece, used int, broken bool) {
	data, used, refused := s.body.Next(in)
	if refused != "" || used == 0 && len(in) == readSize {
		return piece{}, 0, true
	}
	return piece{data: data, end: s.body.IsDone() && len(s.body.Trailer) == 0}, used, false
}
