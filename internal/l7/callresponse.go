package l7

import (
	"net/http"
	"strconv"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/h2"
)

// response takes a response's head in, an interim one as well. A malformed one is as good as none.
func (x *call) response(d *h2.Decoder, b *batch) {
	if x.answering {
		x.responseTrailer(d, b)
		return
	}
	list, end := d.Fields, d.EndsStream()
	h, err := h2.ParseResponse(list)
	interim := h.Status >= 100 && h.Status < 200
	if err != nil || interim && (end || x.interim >= interimMost) {
		x.broken(h2.ProtocolError, b)
		return
	}
	if interim {
		x.interim++
		x.sendHead(&h, list[0].Value, 0, b)
		return
	}
	x.status = h.Status
	if x.mayRetry(answered, h.Status) && isIdempotent(x.asked.method) && x.isReplayable() && x.again(answered, h.Status) {
		x.far.finished = end
		x.leaveFar(h2.Cancel, b)
		x.send(b)
		return
	}
	x.arrived()
	x.answering = true
	x.far.finished = end
	x.expected = h.Length
	x.bodiless = x.asked.method == http.MethodHead || h.Status == http.StatusNoContent || h.Status == http.StatusNotModified
	x.done.Code, x.done.Outcome = h.Status, outcomeOfStatus(h.Status)
	x.head = x.clock()
	if x.isGRPC {
		x.grpc = parseGRPCStatus((&fields{list: h.Fields}).first(fieldName{"Grpc-Status", "grpc-status"}))
	} else {
		x.answer(x.head, x.done.Outcome)
	}
	if end && !x.bodiless && h.Length > 0 {
		x.cutShort(b)
		return
	}
	var flags h2.Flags
	if end || x.bodiless {
		flags, x.near.ended, x.near.last = h2.EndStream, true, true
	}
	x.sendHead(&h, list[0].Value, flags, b)
	if end {
		x.responseEnd(b)
	}
	x.settle(b)
}

// data takes a part of the response's body in.
func (x *call) data(f *h2.Frame, b *batch) {
	g := &x.far
	p, padding, err := f.Body()
	if err != nil {
		x.broken(h2.ProtocolError, b)
		return
	}
	end := f.Has(h2.EndStream)
	if g.room -= int64(len(p) + padding); g.room < 0 {
		x.broken(h2.FlowControlError, b)
		return
	}
	if !x.answering {
		x.broken(h2.ProtocolError, b) // a body without a head
		return
	}
	x.got += int64(len(p))
	switch {
	case x.bodiless && len(p) > 0:
		// What a client must not take for an answer to something else is never passed on.
		x.misbehaved(b)
		return
	case x.expected >= 0 && !x.bodiless && (x.got > x.expected || end && x.got < x.expected):
		x.cutShort(b)
		return
	}
	g.give(padding, b)
	if end {
		g.finished = true
		x.near.last = true
	}
	if x.near.link != nil && !x.near.ended {
		x.move(&x.near, g, p, b)
	}
	if end {
		x.responseEnd(b)
	}
	x.settle(b)
}

// responseTrailer takes a response's trailer section in.
func (x *call) responseTrailer(d *h2.Decoder, b *batch) {
	list := d.Fields
	if !d.EndsStream() || h2.CheckTrailer(list) != nil || x.expected >= 0 && !x.bodiless && x.got < x.expected {
		x.cutShort(b)
		return
	}
	g := &x.far
	g.finished = true
	if x.isGRPC {
		if status := (&fields{list: list}).first(fieldName{"Grpc-Status", "grpc-status"}); status != "" {
			x.grpc = parseGRPCStatus(status)
		}
	}
	x.near.last = true
	if x.near.link != nil && !x.near.ended {
		if x.near.queue.len() > 0 {
			x.near.trailer = append(x.near.trailer[:0], list...)
		} else {
			x.near.link.trailer(&x.near, list, b)
		}
	}
	x.responseEnd(b)
	x.settle(b)
}

// responseEnd concludes the attempt: the endpoint has said all. It need not hear the rest of the request.
func (x *call) responseEnd(b *batch) {
	if x.isGRPC {
		x.concludeCall()
	}
	x.closeTicket(x.done.Outcome)
	x.leaveFar(h2.Cancel, b)
}

// concludeCall finds out what a gRPC call's status says. A unary call is answered with its status; a stream at its head, since how long it
// goes on says nothing about the endpoint.
func (x *call) concludeCall() {
	x.done.Status = x.grpc
	x.done.Outcome = outcomeOfCall(x.grpc, x.status)
	if x.clock()-x.head > unaryTail {
		x.answer(x.head, pick.Success)
	}
}

// broken ends an attempt whose answer is none, or breaks off.
func (x *call) broken(code h2.Code, b *batch) {
	x.leaveFar(code, b)
	if !x.answering {
		x.fail(reset, b)
		return
	}
	e := reset
	if x.isDeadlineNear() {
		e = overdue
	}
	x.cut(e)
	x.endNear(b)
}

// cutShort ends a response whose length or trailer is not what it should be.
func (x *call) cutShort(b *batch) { x.broken(h2.ProtocolError, b) }

// endNear resets the client's stream, so that it does not take a part of the answer for the whole.
func (x *call) endNear(b *batch) {
	x.leaveNear(h2.InternalError, b)
	x.settle(b)
}

// misbehaved ends an attempt at an endpoint that sends a body where none may be. The client has its whole answer.
func (x *call) misbehaved(b *batch) {
	x.leaveFar(h2.ProtocolError, b)
	x.done.Outcome = pick.LocalError
	x.closeTicket(pick.LocalError)
	x.settle(b)
}

// farReset takes note that the endpoint reset the stream.
func (x *call) farReset(code h2.Code, b *batch) {
	x.far.leave(byPeer, b)
	switch {
	case x.bodiless && x.near.ended:
		x.closeTicket(x.done.Outcome) // the answer was whole
		x.settle(b)
	case code == h2.RefusedStream && !x.answering:
		x.refused(b)
	default:
		x.broken(code, b)
	}
}

// refused goes on when it is known that the endpoint did not process the request: it is sent again, whatever its method.
func (x *call) refused(b *batch) {
	if !x.resend(b) {
		x.fail(x.howRefused(), b)
	}
}

// howRefused tells apart requests that can be sent elsewhere from those whose body is gone.
func (x *call) howRefused() ending {
	if x.isReplayable() {
		return unprocessed
	}
	return reset
}

// refuse answers the request without an endpoint. It only can if no response's head was sent.
func (x *call) refuse(code reason.Code, b *batch) {
	r := refusalFor(code)
	x.arrived()
	x.done.Reason, x.done.Code, x.done.Outcome = code, r.status, pick.Failure
	if r.status < http.StatusInternalServerError {
		x.done.Outcome = pick.Canceled
	}
	x.answering = true
	x.near.last = true
	if x.isGRPC || x.streams.options.Protocol == GRPC {
		x.done.Status, x.done.Code = r.grpc, http.StatusOK
	}
	if code == reason.ClientGone {
		x.done.Status, x.done.Code = NoStatus, r.status
	} else if l := x.near.link; l != nil {
		text := x.refusalHead(l, &r, b)
		x.move(&x.near, &x.far, text, b)
	}
	x.settle(b)
}

// refusalHead sends a refusal's head, and gives the text that follows.
func (x *call) refusalHead(l *link, r *refusal, b *batch) []byte {
	explained := x.streams.texts[r.code]
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	e := l.encoder
	e.Add(":status", strconv.Itoa(x.done.Code))
	for _, set := range x.key.cookies {
		e.AddField(h2.Field{Name: "set-cookie", Value: set, Sensitive: true})
	}
	e.Add("weir-reason", string(r.code))
	if x.done.Status != NoStatus {
		e.Add("content-type", "application/grpc")
		e.Add("grpc-status", strconv.Itoa(int(r.grpc)))
		e.Add("grpc-message", encodeGRPCMessage("weir: "+explained))
		x.near.ended = true
		l.blockLocked(x.near.id, h2.EndStream, b)
		return nil
	}
	text := "weir: " + explained + "\n"
	e.Add("content-type", "text/plain; charset=utf-8")
	e.Add("content-length", strconv.Itoa(len(text)))
	if r.retryAfter {
		e.Add("retry-after", "1")
	}
	var flags h2.Flags
	if x.asked.method == http.MethodHead {
		flags, x.near.ended, text = h2.EndStream, true, ""
	}
	l.blockLocked(x.near.id, flags, b)
	return []byte(text)
}
