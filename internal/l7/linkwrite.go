package l7

import (
	"io"
	"time"
)

// flush writes what was appended, unless another goroutine does already; that one takes it along. It does not block.
func (l *link) flush(b *batch) {
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
func (l *link) takeOutput(b *batch) bool {
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
			if l.leaving == gone && !l.ended {
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

// hangUpLocked closes a link on which all is said: a client gets the time to read that.
func (l *link) hangUpLocked() {
	if l.origin != nil {
		_ = l.Close()
		return
	}
	_ = l.SetReadDeadline(time.Now().Add(lingerTime))
	l.closeWrite()
}

// wrote accounts for output that is written; false when the connection is broken.
func (l *link) wrote() bool {
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
func (l *link) drainLater() {
	l.mu.Lock()
	l.stuck = true
	l.mu.Unlock()
	if !l.streams.running.start(l.drain) {
		_ = l.Close()
	}
}

// drain writes until there is nothing left.
func (l *link) drain() {
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

func (l *link) writeAll() {
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
func (l *link) pump(b *batch) {
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
		w.call.room(l, w.id, b)
	}
}
