package l7

import (
	"io"
	"sync"
	"time"

	"github.com/weir-lb/weir/internal/h2"
)

// carrier is one connection as the calls on it see it. All that is sent is appended to the connection's output, and noted in the batch that
// writes it. The caller holds the call's lock.
type carrier interface {
	// open begins a request of an endpoint.
	open(x *call, b *batch) bool
	// head passes the head that the call has heard to its client. It is also the response's end if the near leg has ended.
	head(x *call, b *batch)
	// data sends as much of p, which is all that a leg has, as there is room for, and tells how much that was.
	data(g *leg, p []byte, b *batch) int
	// trailer sends a trailer section, which ends the message.
	trailer(g *leg, fields []h2.Field, b *batch)
	// reset breaks a leg off.
	reset(id uint32, code h2.Code, b *batch)
	// windowUpdate lets the peer send more.
	windowUpdate(id, increment uint32, b *batch)
	// drop ends a leg.
	drop(id uint32, c closure, b *batch)
}

// outlet is the sending half of a connection: whoever has something for the peer appends it to out, and the batch in which that happened
// writes it, without waiting for the peer.
//
// Locks: a call's before an outlet's, and never two outlets'.
type outlet struct {
	*socket
	streams  *streams
	self     carrier
	arrival  *arrival // nil: the connection goes to an endpoint
	origin   *origin  // nil: the connection comes from a client
	isShared bool     // many calls write at the same time

	mu       sync.Mutex
	window   int64 // what the peer lets us send on the connection
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
	patient  bool          // the peer may take nothing for as long as it likes
	idleAt   time.Duration // since when there is no call
	ended    bool          // nothing is sent any more
}

// waiter is a call that waits for room on a connection, by the number of its stream there.
type waiter struct {
	call *call
	id   uint32
}

// progress is how much a stuck socket had taken when, as far as somebody looked.
type progress struct {
	bytes int64
	at    time.Duration
}

// leaving is how far a connection is on its way to its end.
type leaving uint8

const (
	staying   leaving = iota
	announced         // a client was told that a last stream will be named
	going             // no stream begins any more; the last one to end closes
	shutting          // our side ends once all is written; the peer may go on
	gone              // all is said, and the peer has to close
	breaking          // likewise, and the peer must see that what it got is not all
)

const (
	// backlog is how much may wait for a socket before data waits in the calls: a round trip's worth between zones.
	backlog = 256 << 10
	// backlogMost is when a peer that reads nothing is given up: heads and answers to pings are not held back.
	backlogMost = 4 << 20
)

// farewellLocked has the connection end once all that is said is written.
func (l *outlet) farewellLocked(how leaving, b *batch) {
	l.leaving, l.leftAt = how, l.streams.now()
	l.dirtyLocked(b)
}

// bufferLocked gives the place for output. The caller holds mu and checked that the link has not ended.
func (l *outlet) bufferLocked() *outBuffer {
	if l.out == nil {
		l.out, _ = l.streams.buffers.out.Get().(*outBuffer)
		if l.out == nil {
			l.out = &outBuffer{b: make([]byte, 0, outSize)}
		}
	}
	return l.out
}

// dirtyLocked has the batch write what there is, unless another one will.
func (l *outlet) dirtyLocked(b *batch) {
	if !l.queued {
		l.queued = true
		b.outlets = append(b.outlets, l)
	}
}

// pendingLocked is how much waits to be written.
func (l *outlet) pendingLocked() int {
	if l.out == nil {
		return 0
	}
	return len(l.out.b)
}

// noteLocked takes over output that something was appended to.
func (l *outlet) noteLocked(out *outBuffer, grown []byte, b *batch) {
	l.appended += uint64(len(grown) - len(out.b))
	out.b = grown
	l.dirtyLocked(b)
}

// flush writes what was appended, unless another goroutine does already; that one takes it along. It does not block.
func (l *outlet) flush(b *batch) {
	l.mu.Lock()
	l.queued = false
	if l.writing || l.ended {
		l.mu.Unlock()
		return
	}
	l.writing = true
	l.mu.Unlock()
	if l.raw == nil {
		l.drainLater()
		return
	}
	for turn := 0; l.takeOutput(b); turn++ {
		if turn == writesInTurn {
			l.drainLater() // others bring more all the time, and this reader has its own peer to read
			return
		}
		l.streams.writes.Add(1)
		if err := l.raw.Write(l.tryWrite); err != nil {
			l.wfault = err
		}
		if len(l.sending) > 0 && l.wfault == nil {
			l.drainLater() // the socket is full
			return
		}
		if !l.wrote() {
			return
		}
	}
}

// writesInTurn is how often a reader writes the same link before it leaves that to a goroutine of its own.
const writesInTurn = 8

// takeOutput gives the writer what there is to be sent; false when there is nothing, and nobody writes from then on.
func (l *outlet) takeOutput(b *batch) bool {
	for {
		l.pump(b)
		l.mu.Lock()
		empty := l.pendingLocked() == 0
		if empty && len(l.waiting) > 0 && l.window > 0 && !l.ended {
			l.mu.Unlock() // the window grew since
			continue
		}
		done := empty || l.ended
		if done {
			l.writing = false
			l.signal()
			if l.leaving >= shutting && !l.ended {
				l.hangUpLocked()
			}
		} else {
			l.outgoing, l.out = l.out, nil
			l.sending = l.outgoing.b
		}
		l.mu.Unlock()
		return !done
	}
}

// hangUpLocked closes a connection on which all is said: a client gets the time to read that.
func (l *outlet) hangUpLocked() {
	l.leftAt = l.streams.now()
	switch {
	case l.leaving == shutting:
		l.closeWrite()
	case l.leaving == breaking:
		reject(l.Conn)
		_ = l.Close()
	case l.origin != nil:
		_ = l.Close()
	default:
		_ = l.SetReadDeadline(time.Now().Add(lingerTime))
		l.closeWrite()
	}
}

// wrote accounts for output that is written; false when the connection is broken.
func (l *outlet) wrote() bool {
	l.mu.Lock()
	l.flushed += uint64(len(l.outgoing.b) - len(l.sending))
	broken := l.wfault
	if broken != nil {
		l.writing = false
	}
	done := l.outgoing
	l.outgoing, l.sending = nil, nil
	l.mu.Unlock()
	if cap(done.b) <= outKept {
		done.b = done.b[:0]
		l.streams.buffers.out.Put(done)
	}
	if broken != nil {
		_ = l.Close() // the reader finds out, and ends the link
		return false
	}
	return true
}

// drainLater leaves the rest to a goroutine of its own, which may wait for the socket.
func (l *outlet) drainLater() {
	l.mu.Lock()
	l.stuck = true
	l.mu.Unlock()
	if !l.streams.running.start(l.drain) {
		l.mu.Lock()
		l.writing = false
		l.mu.Unlock()
		_ = l.Close()
	}
}

// drain writes until there is nothing left.
func (l *outlet) drain() {
	var b batch
	for {
		if len(l.sending) > 0 {
			l.streams.writes.Add(1)
			l.writeAll()
			if !l.wrote() {
				return
			}
		}
		more := l.takeOutput(&b)
		if !more {
			l.mu.Lock()
			l.stuck = false
			l.mu.Unlock()
		}
		b.flush() // of others: what they are sent must not wait for this peer
		if !more {
			return
		}
	}
}

func (l *outlet) writeAll() {
	if l.raw != nil {
		if err := l.raw.Write(l.endWrite); err != nil {
			l.wfault = err
		}
		return
	}
	n, err := l.Write(l.sending)
	l.sending = l.sending[n:]
	if err == nil && len(l.sending) > 0 {
		err = io.ErrShortWrite
	}
	l.wfault = err
}

// pump lets calls go on that waited for the connection. Each may send a part of the backlog: none waits for another one's whole body.
func (l *outlet) pump(b *batch) {
	for {
		l.mu.Lock()
		if len(l.waiting) == 0 || l.window <= 0 || l.pendingLocked() >= backlog || l.ended {
			l.mu.Unlock()
			return
		}
		w := l.waiting[0]
		n := copy(l.waiting, l.waiting[1:])
		l.waiting[n] = waiter{}
		l.waiting = l.waiting[:n]
		l.mu.Unlock()
		w.call.room(l.self, w.id, b)
	}
}

// isUnclosedLocked tells whether the peer had its time to close a connection on which all is said, and that is written.
func (l *outlet) isUnclosedLocked(now, limit time.Duration) bool {
	return l.leaving >= gone && !l.writing && l.pendingLocked() == 0 && now-l.leftAt-watchEvery > limit
}

// isStuckLocked tells whether the peer has taken nothing for too long, or too much waits for it.
func (l *outlet) isStuckLocked(now time.Duration) bool {
	if l.pendingLocked() > backlogMost {
		return true
	}
	limit := l.streams.options.Timeouts.Body
	if !l.stuck || l.patient {
		l.seen = progress{}
		return false
	}
	if taken := l.taken.Load(); l.seen.at == 0 || taken != l.seen.bytes {
		l.seen = progress{taken, now}
	}
	return limit > 0 && now-l.seen.at > limit
}
