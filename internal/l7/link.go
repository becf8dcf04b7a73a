package l7

import (
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/h2"
)

// link is one HTTP/2 connection, a client's or one to an endpoint. One goroutine reads it.
type link struct {
	outlet

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

	// Guarded by the outlet's lock.
	calls    map[uint32]*call
	resets   resets
	encoder  *h2.Encoder
	peer     h2.Settings
	settled  bool // the peer's first SETTINGS came
	next     uint32
	pingAt   time.Duration // when the ping was sent that was not answered; 0: none
	nextPing time.Duration // before that, an endpoint that says nothing is not asked again
}

const (
	// pingAfter is how long an HTTP/2 connection may be silent before it is asked whether it lives: one that lost its
	// peer without a word would take every new request with it.
	pingAfter = 10 * time.Second
	// pingWait is how long the answer may take.
	pingWait = 5 * time.Second
	// linkWindow is what a peer may send on a connection before it hears from us. It is given back as data arrives: what bounds memory are the
	// windows of the streams, so that a receiver that is slow stops nobody else on a connection it shares.
	linkWindow = 1 << 20
	// goAwayWait is how long a client may take to answer the PING that follows an announcement; later it is told the last stream.
	goAwayWait = time.Second
)

func (s *streams) newLink(sock *socket) *link {
	l := &link{
		calls:   make(map[uint32]*call),
		encoder: h2.NewEncoder(),
		peer:    h2.DefaultSettings(),
		room:    linkWindow,
		next:    1,
	}
	l.outlet = outlet{socket: sock, streams: s, self: l, isShared: true, window: h2.DefaultWindow}
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
			l.farewellLocked(gone, b)
		}
	}
	l.mu.Unlock()
	if l.origin != nil && l.origin.hungry.Load() > 0 {
		b.serve(l.origin)
	}
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

func (l *link) windowUpdate(id, increment uint32, b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	out := l.bufferLocked()
	l.noteLocked(out, h2.AppendWindowUpdate(out.b, id, increment), b)
}

// data sends as much of p as the windows and the backlog allow. A leg that could send more but for the connection waits for it.
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
