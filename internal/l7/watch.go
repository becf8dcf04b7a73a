package l7

import (
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/h2"
)

const (
	// watchEvery is how exact time limits are: a tenth of what is noticed, and rare enough to cost nothing.
	watchEvery = 100 * time.Millisecond
	// endpointPing is how often an endpoint is pinged that says nothing but answers to pings: grpc servers close a connection that pings
	// them more often.
	endpointPing = 5 * time.Minute
)

// watch keeps the coarse clock and all time limits of links and calls, until the server ends.
func (s *streams) watch() {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	var b batch
	var conns []watched
	var calls []waiter
	for {
		now := s.shared.clock()
		s.coarse.Store(int64(now))
		conns = s.all(conns[:0])
		for _, l := range conns {
			calls = l.check(now, calls[:0], &b)
		}
		s.serveAll(&b)
		b.flush()
		clear(conns)
		clear(calls[:cap(calls)])
		select {
		case <-ticker.C:
		case <-s.life.Done():
			return
		}
	}
}

// serveAll gives streams to calls that wait for a link whose output was full, which tells nobody that it is not any more.
func (s *streams) serveAll(b *batch) {
	if known := s.origins.Load(); known != nil {
		for _, o := range *known {
			if o.hungry.Load() > 0 {
				b.serve(o)
			}
		}
	}
}

// check looks after a link and its calls. calls is memory to use.
func (l *link) check(now time.Duration, calls []waiter, b *batch) []waiter {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return calls
	}
	cut := l.isStuckLocked(now) || l.isSilentLocked(now, b)
	l.ageLocked(now, b)
	idle := l.origin != nil && l.leaving == gone
	calls = l.callsLocked(calls)
	l.mu.Unlock()
	if idle {
		l.origin.withdraw(l)
	}
	if by := l.blockBy.Load(); by != 0 && now > time.Duration(by) {
		cut = true
	}
	if cut {
		_ = l.Close() // the reader finds out
		return calls
	}
	for _, w := range calls {
		w.call.check(l, w.id, b)
	}
	return calls
}

// isSilentLocked asks a peer that says nothing whether it lives, and tells whether the answer did not come.
func (l *link) isSilentLocked(now time.Duration, b *batch) bool {
	heard := time.Duration(l.heard.Load())
	if heard >= l.pingAt {
		l.pingAt = 0
	}
	if l.pingAt > 0 {
		return heard < l.pingAt && now-l.pingAt > pingWait
	}
	if now-heard < pingAfter || l.origin != nil && !l.eager.Load() && now < l.nextPing {
		return false
	}
	l.eager.Store(false)
	l.pingAt, l.nextPing = now, now+endpointPing
	out := l.bufferLocked()
	l.noteLocked(out, h2.AppendPing(out.b, 0, [8]byte{}), b)
	return false
}

// ageLocked ends a link that is not used any more, and leads one that ends to its end.
func (l *link) ageLocked(now time.Duration, b *batch) {
	t := &l.streams.options.Timeouts
	idle := t.Idle
	if l.origin != nil {
		idle = t.EndpointIdle
	}
	unused := len(l.calls) == 0 && l.leaving == staying
	switch {
	case unused && !l.settled && t.Head > 0 && now-l.idleAt > t.Head && l.origin == nil,
		unused && idle > 0 && now-l.idleAt > idle:
		l.goAwayLocked(h2.NoError, "idle", b)
		l.farewellLocked(gone, b)
	case l.leaving == announced && now-l.leftAt > goAwayWait:
		l.nameLastLocked(b)
	case l.isUnclosedLocked(now, pingWait):
		_ = l.Close()
	}
}

// check looks at a call's time limits.
func (x *call) check(l carrier, id uint32, b *batch) {
	x.mu.Lock()
	defer x.mu.Unlock()
	// Each call is looked at once, by the client's link; by the endpoint's when there is no other.
	g := x.legOn(l, id)
	if x.over || g == nil || g == &x.far && x.near.link != nil {
		return
	}
	now := x.clock()
	if x.isGRPC && x.head > 0 && !x.answered && now-x.head > unaryTail {
		x.answer(x.head, pick.Success)
	}
	switch {
	case x.deadline > 0 && now >= x.deadline:
		x.late(overdue, b)
	case x.answering:
		x.checkAnswer(now, b)
	default:
		x.checkRequest(now, b)
	}
}

// isQuiet tells whether no byte moved for longer than a limit, if there is one.
func (x *call) isQuiet(now, limit time.Duration) bool {
	return limit > 0 && now-x.moved-watchEvery > limit // moved may be too early by a tick
}

// checkRequest looks at a call that waits for its response's head.
func (x *call) checkRequest(now time.Duration, b *batch) {
	t := &x.streams.options.Timeouts
	clients := x.far.isSent() && !x.far.last // it is for the client to go on
	switch {
	case x.applied && x.isQuiet(now, t.Response):
		x.late(timedOut, b) // no stream became free
	case x.isCall || x.far.link == nil:
	case clients && x.isQuiet(now, t.Body):
		x.leaveFar(h2.Cancel, b)
		x.closeTicket(pick.Canceled)
		x.refuse(reason.BodyTimeout, b)
	case !clients && x.isQuiet(now, t.Response):
		x.late(timedOut, b)
	}
}

// checkAnswer looks at a call whose answer has begun. One on which nothing is said may last for ever.
func (x *call) checkAnswer(now time.Duration, b *batch) {
	switch {
	case x.tunnel, !x.isQuiet(now, x.streams.options.Timeouts.Body):
	case x.near.link == nil:
		x.misbehaved(b) // the answer was whole, but its stream did not end
	case x.near.queue.len() > 0:
		x.clientStalled(b)
	}
}

// late ends a call whose time is over.
func (x *call) late(e ending, b *batch) {
	x.leaveFar(h2.Cancel, b)
	if x.answering {
		x.cut(e)
		x.endNear(b)
		return
	}
	x.closeTicket(e.outcome(0))
	x.refuse(e.reason(), b)
}

// clientStalled ends a call whose client does not read its answer.
func (x *call) clientStalled(b *batch) {
	x.leaveFar(h2.Cancel, b)
	x.cut(clientGone)
	x.leaveNear(h2.Cancel, b)
	x.settle(b)
}
