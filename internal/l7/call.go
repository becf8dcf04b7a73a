package l7

import (
	"sync"
	"time"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/h2"
)

// call is one request and its response on their way between two connections: near is the client's stream, far the endpoint's. The readers
// of both connections, the goroutine that dials and the watch work on it, under its lock.
//
// Calls are used again. Whoever holds one without its lock knows it by its stream, or by its life, and asks whether it still is the same
// once it has the lock.
type call struct {
	mu   sync.Mutex
	life uint64 // grows with each use

	retrier
	streams *streams
	client  *client
	near    leg
	far     leg
	applied bool    // it waits for a stream to the endpoint
	over    bool    // it is in nobody's use
	fault   h2.Code // of the client, whose stream is reset behind the answer

	// The request.
	asked    request
	raw      []byte // what the strings in asked are views of, if the client speaks HTTP/1
	upgrade  string // the protocol that the client wants to change to
	tunnel   bool   // it was granted: bytes go both ways
	ends     bool   // the client's connection ends with the answer
	dirty    bool   // the endpoint sent more than its answer
	isGRPC   bool   // by its content type
	isCall   bool   // it is gRPC in every respect: how long an answer takes is its client's business
	length   int64  // of the body, as the head says; -1: it does not
	received int64  // bytes of the body so far
	sent     int64  // bytes of the body that this attempt's endpoint was sent
	kept     []byte
	whole    bool // kept is all that was received
	resent   int
	deadline time.Duration
	pending  bool // counted among those that wait for an answer

	// The response.
	heard     h2.Head // the head that came last, or our own; valid while it is passed on
	status    int
	answering bool // its head was passed on, or we answered
	bodiless  bool // it has no body whatever its head says
	expected  int64
	got       int64
	interim   int           // how many 1xx came
	head      time.Duration // when its head came
	grpc      GRPCStatus

	headAt uint64        // where in the link's output the head is
	moved  time.Duration // when bytes last moved, by the coarse clock
	done   Result
}

const (
	// resendsMost bounds how often a request is sent again because it is known not to have been processed: enough for an endpoint that ends
	// each connection after a twentieth of the requests that arrive at once.
	resendsMost = 20
	// interimMost bounds 1xx responses: a progress report each second for a quarter of a minute.
	interimMost = 16
)

// begin makes the call that of a request on the client's connection. The caller holds its lock.
func (x *call) begin(l *outlet, id uint32, window int64) {
	x.retrier = l.streams.shared.begin(l.arrival.client.remote.Addr())
	x.streams, x.client = l.streams, l.arrival.client
	x.near.begin(l.self, id, window)
	x.length, x.expected, x.whole, x.over = -1, -1, true, false
	x.grpc = NoStatus
	x.asked.version = http2Version
	x.done = Result{Protocol: H2C, Status: NoStatus}
	x.moved = l.streams.now()
}

// run sends the request that was asked to an endpoint, or refuses it.
func (x *call) run(b *batch) {
	x.classify()
	if code := x.unacceptable(); code != "" {
		x.refuse(code, b)
		return
	}
	if !x.streams.shared.enter(x.client) {
		x.refuse(reason.PendingLimit, b)
		return
	}
	x.pending = true
	x.hash(x.client, &x.asked)
	if code := x.next(); code != "" {
		x.refuse(code, b)
		return
	}
	x.send(b)
}

// classify finds out what kind of request it is, and how long it may take.
func (x *call) classify() {
	f := &x.asked.fields
	x.isGRPC = isGRPC(f)
	if x.isGRPC {
		x.done.Protocol = GRPC
		x.isCall = x.asked.version == http2Version && x.asked.method == "POST" && f.first(fieldName{"Te", "te"}) == "trailers"
		x.expects = parseGRPCTimeout(f.first(fieldName{"Grpc-Timeout", "grpc-timeout"}))
	}
	if limit := x.timeLimit(x.streams.options.Timeouts.Request); limit > 0 {
		x.deadline = x.start + limit
	}
}

// unacceptable gives why a well-formed request is refused.
func (x *call) unacceptable() reason.Code {
	switch {
	case x.asked.method == "CONNECT":
		return reason.UnsupportedMethod
	case over(len(x.asked.target), x.streams.options.Limits.Target):
		return reason.TargetTooLong
	default:
		return ""
	}
}

// send begins an attempt at the endpoint of the ticket. What was received of the body follows, from its beginning.
func (x *call) send(b *batch) {
	if x.sent > 0 {
		x.far.queue.clear()
		x.far.queue.push(x.kept)
	}
	x.sent = 0
	x.enlist(x.streams.origin(x.ticket.Addr()), b)
}

// enlist asks for a stream, and sends what was received so far if there is one.
func (x *call) enlist(o *origin, b *batch) {
	isOpen := false
	if x.endpointsVersion() == http2Version {
		isOpen = o.open(x, b)
	} else {
		isOpen = o.use(x, b)
	}
	if isOpen {
		x.goOn(&x.far, b)
	}
}

// The versions of HTTP as a request's view has them.
const (
	http2Version  = "HTTP/2.0"
	http11Version = "HTTP/1.1"
	http10Version = "HTTP/1.0"
)

// endpointsVersion is what the endpoint is spoken to in: what the client speaks, where the port does not say.
func (x *call) endpointsVersion() string {
	switch p := x.streams.options.Protocol; {
	case p == H2C, p == GRPC, p != WebSocket && x.asked.version == http2Version:
		return http2Version
	default:
		return http11Version
	}
}

// opened goes on when the call has its stream and the head was sent. The caller holds the link's lock: nothing else may be done yet.
func (x *call) opened(l carrier, id uint32, window int64) {
	x.far.begin(l, id, window)
	x.moved = x.streams.now()
}

// admitted tries again to get a stream; it tells whether the call still waits.
func (x *call) admitted(life uint64, o *origin, b *batch) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.life != life || !x.applied {
		return false
	}
	x.applied = false
	x.enlist(o, b)
	return x.applied
}

// notConnected goes on when there is no connection to the endpoint.
func (x *call) notConnected(life uint64, e ending, b *batch) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.life == life && x.applied {
		x.applied = false
		x.fail(e, b)
	}
}

// isRepeatable tells whether nothing can happen twice if the request reaches two endpoints.
func (x *call) isRepeatable() bool { return isIdempotent(x.asked.method) && x.upgrade == "" }

// isReplayable tells whether another attempt can be sent all that was received of the body.
func (x *call) isReplayable() bool { return x.sent == 0 || x.whole }

// resend sends the request once more, to the same endpoint, since it is known that it was not processed. False if it cannot.
func (x *call) resend(b *batch) bool {
	if x.answering || !x.isReplayable() || x.resent >= resendsMost {
		return false
	}
	x.resent++
	x.send(b)
	return true
}

// fail ends an attempt without a response: another one follows, or the client is told.
func (x *call) fail(e ending, b *batch) {
	untouched := e == connectFailed || e == connectTimedOut || e == unprocessed
	if x.mayRetry(e, 0) && (untouched || x.isRepeatable()) && x.isReplayable() && x.again(e, 0) {
		x.send(b)
		return
	}
	if e == reset && x.isDeadlineNear() {
		e = overdue
	}
	x.arrived()
	x.closeTicket(e.outcome(0))
	x.refuse(e.reason(), b)
}

// legOn gives the leg that is a stream of a connection; nil if the call has none there any more.
func (x *call) legOn(l carrier, id uint32) *leg {
	switch {
	case x.near.link == l && x.near.id == id:
		return &x.near
	case x.far.link == l && x.far.id == id:
		return &x.far
	default:
		return nil
	}
}

// arrived tells that the request waits no more.
func (x *call) arrived() {
	if x.pending {
		x.pending = false
		x.streams.shared.leave(x.client)
	}
}
