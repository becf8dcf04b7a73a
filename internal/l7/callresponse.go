package l7

import (
	"net/http"
	"strconv"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/h2"
)

// response takes the response's head that was heard in, an interim one as well.
func (x *call) response(flags h2.Flags, b *batch) {
	h, end := &x.heard, flags&h2.EndStream != 0
	if h.Status < http.StatusOK {
		if x.interim++; end || x.interim > interimMost {
			x.broken(h2.ProtocolError, b)
		} else if x.near.link != nil {
			x.near.link.head(x, b)
		}
		return
	}
	x.status = h.Status
	if x.mayRetry(answered, h.Status) && x.isRepeatable() && x.isReplayable() && x.again(answered, h.Status) {
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
	if end || x.bodiless {
		x.near.ended, x.near.last = true, true
	}
	if x.near.link != nil {
		x.near.link.head(x, b)
	}
	if end {
		x.responseEnd(b)
	}
	x.settle(b)
}

// data takes a frame of the response's body in.
func (x *call) data(f *h2.Frame, b *batch) {
	p, padding, err := f.Body()
	if err != nil {
		x.broken(h2.ProtocolError, b)
		return
	}
	if x.far.room < int64(len(p)+padding) {
		x.broken(h2.FlowControlError, b)
		return
	}
	x.download(piece{p, padding, f.Has(h2.EndStream)}, b)
}

// piece is a part of a body.
type piece struct {
	data    []byte
	padding int
	end     bool // it is the last
}

// download takes a part of the response's body in.
func (x *call) download(part piece, b *batch) {
	g, p, padding, end := &x.far, part.data, part.padding, part.end
	g.room -= int64(len(p) + padding)
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
	if end && !x.tunnel {
		x.responseEnd(b)
	}
	x.settle(b)
}

// responseTrailer takes a response's trailer section in, which ends it.
func (x *call) responseTrailer(list []h2.Field, b *batch) {
	if x.expected >= 0 && !x.bodiless && x.got < x.expected {
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
	if x.dirty {
		x.done.Outcome = pick.LocalError
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
	x.answering, x.ends = true, r.ends()
	x.near.last = true
	if x.isGRPC || x.streams.options.Protocol == GRPC && x.asked.version == http2Version {
		x.done.Status, x.done.Code = r.grpc, http.StatusOK
	}
	if code == reason.ClientGone {
		x.done.Status, x.done.Code = NoStatus, r.status
	} else if l := x.near.link; l != nil {
		text := x.refusal(&r)
		l.head(x, b)
		x.move(&x.near, &x.far, []byte(text), b)
	}
	x.settle(b)
}

// refusal makes a refusal's head, and gives the text that follows.
func (x *call) refusal(r *refusal) string {
	explained := x.streams.texts[r.code]
	h := &x.heard
	*h = h2.Head{Status: x.done.Code, Length: -1, Fields: []h2.Field{{Name: "weir-reason", Value: string(r.code)}}}
	if x.done.Status != NoStatus {
		x.near.ended = true
		h.Fields = append(
			h.Fields, h2.Field{Name: "content-type", Value: "application/grpc"},
			h2.Field{Name: "grpc-status", Value: strconv.Itoa(int(r.grpc))},
			h2.Field{Name: "grpc-message", Value: encodeGRPCMessage("weir: " + explained)},
		)
		return ""
	}
	text := "weir: " + explained + "\n"
	h.Length = int64(len(text))
	h.Fields = append(
		h.Fields, h2.Field{Name: "content-type", Value: "text/plain; charset=utf-8"},
		h2.Field{Name: "content-length", Value: strconv.Itoa(len(text))},
	)
	if r.retryAfter {
		h.Fields = append(h.Fields, h2.Field{Name: "retry-after", Value: "1"})
	}
	if x.asked.method == http.MethodHead {
		x.near.ended, text = true, ""
	}
	return text
}
