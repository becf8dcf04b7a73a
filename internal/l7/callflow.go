package l7

import (
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/h2"
)

// move sends p to a leg behind what waits there already, and gives what was sent back to the window of the other leg, where it came from.
func (x *call) move(to, from *leg, p []byte, b *batch) {
	if to.link != nil && to.queue.len() > 0 {
		to.queue.push(p)
		p = nil
	}
	if to.link == nil {
		to.queue.push(p)
		return
	}
	waits := to.queue.len() > 0
	if waits {
		p = to.queue.bytes()
	}
	n := 0
	if len(p) > 0 || to.last && !to.ended && len(to.trailer) == 0 {
		n = to.link.data(to, p, b)
	}
	if waits {
		to.queue.drop(n)
	} else if n < len(p) {
		to.queue.push(p[n:])
	}
	if to.last && !to.ended && to.queue.len() == 0 && len(to.trailer) > 0 {
		to.link.trailer(to, to.trailer, b)
	}
	if n > 0 {
		x.moved = x.streams.now()
		if to == &x.far {
			x.sent += int64(n)
		} else {
			x.done.Out += int64(n)
		}
		from.give(n, b)
	}
}

// room goes on with a leg whose link can take data again.
func (x *call) room(l carrier, id uint32, b *batch) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if g := x.legOn(l, id); g != nil {
		g.waiting = false
		x.goOn(g, b)
	}
}

// goOn sends what waits for a leg.
func (x *call) goOn(g *leg, b *batch) {
	if g.link == nil || g.isSent() {
		return
	}
	other := &x.far
	if g == &x.far {
		other = &x.near
	}
	x.move(g, other, nil, b)
	x.settle(b)
}

// body takes a frame of the request's body in.
func (x *call) body(f *h2.Frame, b *batch) error {
	p, padding, err := f.Body()
	if err != nil {
		return err
	}
	if g := &x.near; !g.finished && g.room < int64(len(p)+padding) {
		return &h2.Error{Code: h2.FlowControlError, Stream: g.id, Fault: "more DATA than the stream's window"}
	}
	return x.upload(piece{p, padding, f.Has(h2.EndStream)}, b)
}

// upload takes a part of the request's body in.
func (x *call) upload(part piece, b *batch) error {
	g, p, padding, end := &x.near, part.data, part.padding, part.end
	if g.finished {
		return &h2.Error{Code: h2.StreamClosed, Stream: g.id, Fault: "DATA after the stream's end"}
	}
	g.room -= int64(len(p) + padding)
	g.give(padding, b)
	x.received += int64(len(p))
	x.done.In = x.received
	x.moved = x.streams.now()
	if x.length >= 0 && (x.received > x.length || end && x.received < x.length) {
		return &h2.Error{Code: h2.ProtocolError, Stream: g.id, Fault: "Content-Length differs from the DATA"}
	}
	x.keep(p)
	if end {
		g.finished = true
		x.far.last = true
	}
	x.move(&x.far, g, p, b)
	x.settle(b)
	return nil
}

// keptBody bounds what is remembered of a body: larger ones are uploads, which their clients repeat themselves.
const keptBody = 16 << 10

// keep remembers a short body, so that it can be sent again.
func (x *call) keep(p []byte) {
	if !x.whole {
		return
	}
	if x.answering || len(x.kept)+len(p) > keptBody {
		x.whole, x.kept = false, x.kept[:0]
		return
	}
	x.kept = append(x.kept, p...)
}

// bodyTrailer takes the request's trailer section in, which ends it.
func (x *call) bodyTrailer(fields []h2.Field, b *batch) error {
	g := &x.near
	if g.finished {
		return &h2.Error{Code: h2.StreamClosed, Stream: g.id, Fault: "HEADERS after the stream's end"}
	}
	if err := h2.CheckTrailer(fields); err != nil {
		return &h2.Error{Code: h2.ProtocolError, Stream: g.id, Fault: err.Error()}
	}
	if x.length >= 0 && x.received < x.length {
		return &h2.Error{Code: h2.ProtocolError, Stream: g.id, Fault: "Content-Length differs from the DATA"}
	}
	x.uploadTrailer(fields, b)
	return nil
}

// uploadTrailer ends the request with a trailer section.
func (x *call) uploadTrailer(fields []h2.Field, b *batch) {
	x.near.finished = true
	x.far.trailer = append(x.far.trailer[:0], fields...)
	x.far.last = true
	x.move(&x.far, &x.near, nil, b)
	x.settle(b)
}

// clientBroke ends a call whose request turned out to be malformed.
func (x *call) clientBroke(code h2.Code, b *batch) {
	x.leaveFar(h2.Cancel, b)
	x.closeTicket(pick.Canceled)
	x.arrived()
	if !x.answering {
		x.done.Reason, x.done.Code = reason.MalformedRequest, refusalFor(reason.MalformedRequest).status
	}
	x.done.Outcome = pick.Canceled
	x.leaveNear(code, b)
	x.settle(b)
}

// clientErred ends a call whose request turned out to be malformed in a way that HTTP/1 can still be told of.
func (x *call) clientErred(code reason.Code, b *batch) {
	if x.answering {
		x.clientBroke(h2.ProtocolError, b)
		return
	}
	x.leaveFar(h2.Cancel, b)
	x.closeTicket(pick.Canceled)
	x.refuse(code, b)
}

// clientLeft ends a call whose client gave up, or is gone. Its stream is gone already.
func (x *call) clientLeft(b *batch) {
	x.near.leave(byPeer, b)
	e := clientGone
	if x.isDeadlineNear() {
		e = overdue
	}
	x.leaveFar(h2.Cancel, b)
	x.arrived()
	if !x.answering {
		x.closeTicket(e.outcome(0))
		x.refuse(e.reason(), b)
		return
	}
	x.cut(e)
	x.settle(b)
}

// cut notes that a response was not passed on whole.
func (x *call) cut(e ending) {
	if x.far.finished && !x.open {
		x.done.Outcome = pick.Canceled // the endpoint had done its part
		return
	}
	x.done.Outcome = e.outcome(0)
	x.closeTicket(x.done.Outcome)
}
