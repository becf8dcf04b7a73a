package l7

import (
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/h2"
)

// leaveFar is done with the endpoint's stream. One that has not ended on both sides is reset with the code.
func (x *call) leaveFar(code h2.Code, b *batch) {
	x.applied = false
	if g := &x.far; g.ended && g.finished {
		g.leave(bothEnded, b)
	} else {
		g.reset(code, b)
	}
}

// leaveNear is done with the client's stream, likewise.
func (x *call) leaveNear(code h2.Code, b *batch) {
	if g := &x.near; g.ended && g.finished && code == h2.NoError {
		g.leave(bothEnded, b)
	} else {
		g.reset(code, b)
	}
}

// settle ends what is over: a client's stream whose answer was sent whole, and the call when both streams are.
func (x *call) settle(b *batch) {
	if x.over {
		return
	}
	if x.tunnel && x.near.link != nil && x.far.link != nil {
		if x.near.ended && x.far.ended {
			x.closeTicket(x.done.Outcome)
			x.far.leave(bothEnded, b)
			x.near.leave(bothEnded, b)
		}
	} else if x.near.link != nil && x.near.ended {
		x.leaveNear(x.fault, b) // without a fault: a client that still sends need not (RFC 9113 section 8.1)
		if x.far.link != nil && !x.far.finished && !x.bodiless {
			x.leaveFar(h2.Cancel, b)
		}
	}
	if x.near.link == nil && x.far.link == nil && !x.applied {
		x.finish()
	}
}

// finish reports the call and makes it ready for its next use.
func (x *call) finish() {
	x.arrived()
	x.closeTicket(pick.Canceled) // does nothing unless a fault of our own left the ticket open
	x.result(&x.done)
	x.upstream.observer().Request(x.done)
	x.forget()
	x.streams.calls.Put(x)
}

// keptHead is what is kept of a call's memory for heads: usual ones are smaller.
const keptHead = 8 << 10

// forget clears what was the last request's, but for memory that the next one can use.
func (x *call) forget() {
	x.life++
	x.near.clear()
	x.far.clear()
	list, kept := x.asked.fields.list, x.kept
	clear(list)
	if cap(kept) > keptQueue {
		kept = nil
	}
	x.retrier = retrier{}
	x.asked = request{fields: fields{list: list[:0]}}
	x.kept = kept[:0]
	x.over, x.fault = true, h2.NoError
	x.heard = h2.Head{}
	x.upgrade, x.tunnel, x.ends, x.dirty = "", false, false, false
	if cap(x.raw) > keptHead {
		x.raw = nil
	}
	x.applied, x.isGRPC, x.isCall, x.pending, x.answering, x.bodiless = false, false, false, false, false, false
	x.received, x.sent, x.resent, x.got, x.interim, x.status = 0, 0, 0, 0, 0, 0
	x.deadline, x.head = 0, 0
}
