package l7

import (
	"errors"
	"io"
	"time"

	"github.com/weir-lb/weir/internal/h2"
)

// end ends the link: its calls go on elsewhere, or end with it.
func (l *link) end(err error, b *batch) {
	fault, isFault := errors.AsType[*h2.Error](err)
	if isFault {
		l.goAway(fault, b)
	}
	b.flush()
	l.mu.Lock()
	l.ended = true
	calls, flushed := l.callsLocked(make([]waiter, 0, len(l.calls))), l.flushed
	if l.outgoing != nil {
		flushed += uint64(len(l.outgoing.b)) // some of it may be on its way
	}
	l.calls, l.waiting, l.out = nil, nil, nil
	l.mu.Unlock()
	if l.origin != nil {
		l.origin.lost(l)
	}
	inOrder(calls)
	for _, w := range calls {
		x, id := w.call, w.id
		x.mu.Lock()
		switch x.legOn(l, id) {
		case &x.near:
			x.clientLeft(b)
		case &x.far:
			x.far.link = nil
			x.farLost(x.headAt >= flushed, b)
		}
		x.mu.Unlock()
	}
	b.flush()
	if isFault && l.arrival != nil {
		l.linger()
	}
	l.stash(&l.streams.buffers)
	_ = l.Close()
	l.streams.forget(l)
	if l.arrival != nil {
		l.streams.left(l, l.arrival)
	}
}

// linger lets a client read why its connection ends: to close with bytes unread would tear that out of its hands.
func (l *link) linger() {
	_ = l.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, l.Conn, lingerBytes)
}
