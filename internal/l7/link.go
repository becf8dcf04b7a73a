package l7

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/h2"
)

// link is one HTTP/2 connection, a client's or one to an endpoint. One goroutine reads it; whoever has something for the peer appends it
// to out, and the batch in which that happened writes it.
//
// Locks: a call's before a link's, and never two links'.
type link struct {
	*socket
	streams *streams
	arrival *arrival // nil: the link goes to an endpoint
	origin  *origin  // nil: the link comes from a client

	// The reader's own.
	decoder *h2.Decoder
	begun   bool  // the peer's first SETTINGS came
	unread  int64 // bytes of data for which the connection's window was not given back yet
	room    int64 // what the peer may still send on the connection
	flood   flood

	last    atomic.Uint32 // highest stream of the peer's that began
	eager   atomic.Bool   // more than answers to pings came since the last ping
	frames  atomic.Int64  // with data that the peer was sent, as far as nothing was forgiven for them
	heard   atomic.Int64  // when the last frame came, by the streams' coarse clock
	blockBy atomic.Int64  // when the header block that is arriving must be whole; 0: none is arriving

	mu       sync.Mutex
	calls    map[uint32]*call
	resets   resets
	encoder  *h2.Encoder
	peer     h2.Settings
	settled  bool  // the peer's first SETTINGS came
	window   int64 // what the peer lets us send on the connection
	next     uint32
	out      *outBuffer
	appended uint64 // bytes given to out since the beginning
	flushed  uint64 // bytes given to the system since the beginning
	queued   bool   // a batch will flush it
	writing  bool   // some goroutine writes it, and has outgoing
	outgoing *outBuffer
	stuck    bool // the socket took nothing more, and a goroutine waits for it
	seen     progress
	waiting  []waiter // calls with data that the connection could not take
	leaving  leaving
	leftAt   time.Duration
	idleAt   time.Duration // since when there is no call
	pingAt   time.Duration // when the ping was sent that was not answered; 0: none
	nextPing time.Duration // before that, an endpoint that says nothing is not asked again
	ended    bool          // nothing is sent any more
}

// waiter is a call that waits for room on a link, by the number of its stream there.
type waiter struct {
	call *call
	id   uint32
}

// progress is how much a stuck socket had taken when, as far as somebody looked.
type progress struct {
	bytes int64
	at    time.Duration
}

// leaving is how far a link is on its way to its end.
type leaving uint8

const (
	staying   leaving = iota
	announced         // a client was told that a last stream will be named
	going             // no stream begins any more; the last one to end closes
	gone              // all is said, and the peer has to close
)

const (
	// backlog is how much may wait for a socket before data waits in the calls: a round trip's worth between zones.
	backlog = 256 << 10
	// backlogMost is when a peer that reads nothing is given up: heads and answers to pings are not held back.
	backlogMost = 4 << 20
	// linkWindow is what a peer may send on a connection before it hears from us. It is given back as data arrives: what bounds memory are the
	// windows of the streams, so that a receiver that is slow stops nobody else on a connection it shares.
	linkWindow = 1 << 20
	// goAwayWait is how long a client may take to answer the PING that follows an announcement; later it is told the last stream.
	goAwayWait = time.Second
)

func (s *streams) newLink(sock *socket) *link {
	l := &link{
		socket:  sock,
		streams: s,
		calls:   make(map[uint32]*call),
		encoder: h2.NewEncoder(),
		peer:    h2.DefaultSettings(),
		window:  h2.DefaultWindow,
		room:    linkWindow,
		next:    1,
	}
	sock.bind(&s.buffers)
	l.heard.Store(int64(s.now()))
	l.idleAt = s.now()
	return l
}

// find gives the call of a stream; nil if there is none.
func (l *link) find(id uint32) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[id]
}

// callsLocked gives all calls with their streams here, behind those that are in the memory to use.
func (l *link) callsLocked(calls []waiter) []waiter {
	for id, x := range l.calls {
		calls = append(calls, waiter{x, id})
	}
	return calls
}

// drop ends a stream. The caller holds its call's lock.
func (l *link) drop(id uint32, c closure, b *batch) {
	l.mu.Lock()
	delete(l.calls, id)
	l.resets.add(id, c)
	if len(l.calls) == 0 {
		l.idleAt = l.streams.now()
		if l.leaving == going && !l.ended {
			l.farewellLocked(b)
		}
	}
	l.mu.Unlock()
	if l.origin != nil && l.origin.hungry.Load() > 0 {
		b.serve(l.origin)
	}
}

// farewellLocked has the link closed once all that is said is written.
func (l *link) farewellLocked(b *batch) {
	l.leaving, l.leftAt = gone, l.streams.now()
	l.dirtyLocked(b)
}

// bufferLocked gives the place for output. The caller holds mu and checked that the link has not ended.
func (l *link) bufferLocked() *outBuffer {
	if l.out == nil {
		l.out, _ = l.streams.buffers.out.Get().(*outBuffer)
		if l.out == nil {
			l.out = &outBuffer{b: make([]byte, 0, outSize)}
		}
	}
	return l.out
}

// dirtyLocked has the batch write what there is, unless another one will.
func (l *link) dirtyLocked(b *batch) {
	if !l.queued {
		l.queued = true
		b.links = append(b.links, l)
	}
}

// pendingLocked is how much waits to be written.
func (l *link) pendingLocked() int {
	if l.out == nil {
		return 0
	}
	return len(l.out.b)
}

// reset ends a stream with a code.
func (l *link) reset(id uint32, code h2.Code, b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	out := l.bufferLocked()
	l.noteLocked(out, h2.AppendReset(out.b, id, code), b)
}

// noteLocked takes over output that something was appended to.
func (l *link) noteLocked(out *outBuffer, grown []byte, b *batch) {
	l.appended += uint64(len(grown) - len(out.b))
	out.b = grown
	l.dirtyLocked(b)
}

func (l *link) windowUpdate(id, increment uint32, b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	out := l.bufferLocked()
	l.noteLocked(out, h2.AppendWindowUpdate(out.b, id, increment), b)
}

// data sends as much of p, which is all that a leg has, as the windows and the backlog allow, and tells how much that was. A leg that could
// send more but for the connection waits for it. The caller holds the call's lock.
func (l *link) data(g *leg, p []byte, b *batch) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return 0
	}
	for {
		size := min(int64(len(p)-n), h2.MaxPayload, g.window, l.window)
		full := l.pendingLocked() >= backlog
		if len(p) > n && (size <= 0 || full) {
			if g.window > 0 && !g.waiting {
				g.waiting = true
				l.waiting = append(l.waiting, waiter{g.call, g.id})
			}
			return n
		}
		size = max(size, 0)
		end := n + int(size)
		var flags h2.Flags
		if g.last && len(g.trailer) == 0 && end == len(p) {
			flags, g.ended = h2.EndStream, true
		}
		if size > 0 || g.ended {
			out := l.bufferLocked()
			l.noteLocked(out, h2.AppendData(out.b, g.id, flags, p[n:end]), b)
		}
		l.frames.Add(1)
		g.window -= size
		l.window -= size
		if n = end; n == len(p) {
			return n
		}
	}
}

// trailer sends a trailer section, which ends the stream.
func (l *link) trailer(g *leg, fields []h2.Field, b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g.ended = true
	if l.ended {
		return
	}
	for i := range fields {
		if fields[i].Name != filterStateLower {
			l.encoder.AddField(fields[i])
		}
	}
	l.blockLocked(g.id, h2.EndStream, b)
}

// blockLocked sends the block that the encoder has.
func (l *link) blockLocked(id uint32, flags h2.Flags, b *batch) {
	out := l.bufferLocked()
	l.noteLocked(out, l.encoder.Append(out.b, id, flags, h2.MaxPayload), b)
}
