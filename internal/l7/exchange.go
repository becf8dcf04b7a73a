package l7

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
)

// exchange is one request and its response on their way through the web engine. One goroutine at a time, but for mu.
type exchange struct {
	*web
	retrier
	guard   *requestGuard
	w       http.ResponseWriter
	r       *http.Request
	asked   request // the view of r
	rc      *http.ResponseController
	body    *body       // nil: the request has none
	trailer http.Header // of the request, filled in at its body's end
	upgrade string      // the protocol that the client wants to change to
	waiting bool        // counted as pending
	done    Result

	mu sync.Mutex // retrier, while a gRPC call may be answered by a timer
}

var (
	errNoResponse  = errors.New("no response in time")
	errRequestOver = errors.New("the request's time is over")
)

// classify finds out what kind of request it is.
func (x *exchange) classify() {
	x.done.Status = NoStatus
	switch {
	case isGRPC(&x.asked.fields):
		x.done.Protocol = GRPC
		x.expects = parseGRPCTimeout(x.r.Header.Get("Grpc-Timeout"))
	case x.r.ProtoMajor == 2:
		x.done.Protocol = H2C
	default:
		x.done.Protocol = HTTP
		x.upgrade = upgradeOf(x.r.Header)
	}
}

// run sends the request to endpoint after endpoint until one answers.
func (x *exchange) run() {
	x.hash(x.guard.client, &x.asked)
	if code := x.next(); code != "" {
		x.refuse(code)
		return
	}
	ctx, cancel := x.bounded()
	defer cancel()
	for {
		a := x.attempt(ctx)
		if x.mayRetry(a.ending, a.status()) && x.isSafe(a) && x.again(a.ending, a.status()) {
			a.takeBack()
			a.discard()
			continue
		}
		x.conclude(a)
		return
	}
}

// conclude passes the last attempt's answer on, or says why there is none.
func (x *exchange) conclude(a *attempt) {
	defer a.release()
	x.arrived()
	if a.ending == answered {
		x.respond(a)
		return
	}
	code := a.ending.reason()
	if a.ending == clientBroke {
		code = x.clientFault()
	}
	x.closeTicket(a.ending.outcome(0))
	x.refuse(code)
}

// arrived tells that the request waits no more.
func (x *exchange) arrived() {
	if x.waiting {
		x.waiting = false
		x.web.shared.leave(x.guard.client)
	}
}

// finish reports the exchange, however it ended.
func (x *exchange) finish() {
	x.arrived()
	x.closeTicket(pick.Canceled) // does nothing unless a fault of our own left the ticket open
	x.guard.upgrading.Store(false)
	if x.body != nil {
		var all bool
		if x.done.In, all = x.body.close(); !all && x.r.ProtoMajor == 1 {
			x.guard.hangUp() // net/http would wait for the rest, and so would a reader that is under way
		}
	}
	x.result(&x.done)
	x.upstream.observer().Request(x.done)
}

// bounded gives the request its time.
func (x *exchange) bounded() (context.Context, context.CancelFunc) {
	limit := x.timeLimit(x.options.Timeouts.Request)
	if limit == 0 {
		return x.r.Context(), func() {}
	}
	return context.WithTimeoutCause(x.r.Context(), limit, errRequestOver)
}

func (x *exchange) prepareBody() {
	if x.r.Body == nil || x.r.Body == http.NoBody || x.r.ContentLength == 0 {
		return
	}
	x.trailer = make(http.Header, len(x.r.Trailer))
	for name := range x.r.Trailer {
		if name != FilterStateField {
			x.trailer[name] = nil // announced; the values come last
		}
	}
	x.body = &body{
		source:  x.r.Body,
		keep:    isIdempotent(x.r.Method),
		control: x.rc,
		trailer: x.endTrailer,
	}
	if x.r.ProtoMajor == 1 {
		x.body.stall = max(x.options.Timeouts.Body, 0)
		// The endpoint may answer while the client still sends: net/http would else swallow the rest first.
		_ = x.rc.EnableFullDuplex()
	}
}

// endTrailer copies the request's trailer, announced or not, but for what frames a message.
func (x *exchange) endTrailer() {
	for name, values := range x.r.Trailer {
		if name != "Content-Length" && name != "Host" && name != FilterStateField && !isHopByHop(name) {
			x.trailer[name] = values
		}
	}
}

// isSafe tells whether nothing can happen twice if the request is sent again after a.
func (x *exchange) isSafe(a *attempt) bool {
	sent := a.ending != connectFailed && a.ending != connectTimedOut
	if sent && (!isIdempotent(x.r.Method) || x.upgrade != "") {
		return false
	}
	return x.body == nil || x.body.isRepeatable()
}

// judge tells how an attempt ended that brought no response.
func (x *exchange) judge(ctx context.Context, err error) ending {
	switch cause := context.Cause(ctx); {
	case x.clientFault() != "":
		return clientBroke
	case errors.Is(cause, errNoResponse):
		return timedOut
	case errors.Is(cause, errRequestOver):
		return overdue
	case x.r.Context().Err() != nil:
		if x.isDeadlineNear() {
			return overdue
		}
		return clientGone
	default:
		e := endingOf(err)
		if e == reset && x.isDeadlineNear() {
			return overdue
		}
		return e
	}
}

// clientFault names what was wrong with the client's body; empty if nothing was, or the client just left.
func (x *exchange) clientFault() reason.Code {
	if x.body == nil || x.r.Context().Err() == nil && !x.body.isBroken() {
		return ""
	}
	// net/http cancels a request whose body cannot be read before that read returns; it is about to.
	err := x.body.failure()
	if err == nil {
		return ""
	}
	if refused := x.guard.refusal(); refused != "" {
		return refused // asked there, since net/http has its own words for a broken trailer
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return reason.BodyTimeout
	}
	if x.r.Context().Err() == nil {
		return reason.MalformedRequest // net/http itself could not read it
	}
	return ""
}

// refuse answers the request without an endpoint. It only can if no response's head was sent.
func (x *exchange) refuse(code reason.Code) {
	r := refusalFor(code)
	x.done.Reason, x.done.Code, x.done.Outcome = code, r.status, pick.Failure
	if r.status < http.StatusInternalServerError {
		x.done.Outcome = pick.Canceled
	}
	if code == reason.ClientGone {
		panic(http.ErrAbortHandler) // net/http's way to close without an answer; finish reports
	}
	h := x.w.Header()
	clear(h)
	addCookies(h, x.key.cookies)
	h.Set("Weir-Reason", string(code))
	if x.done.Protocol == GRPC || x.options.Protocol == GRPC && x.r.ProtoMajor == 2 {
		x.done.Status, x.done.Code = r.grpc, http.StatusOK
		h.Set("Content-Type", "application/grpc")
		h.Set("Grpc-Status", strconv.Itoa(int(r.grpc)))
		h.Set("Grpc-Message", encodeGRPCMessage("weir: "+x.texts[code]))
		x.w.WriteHeader(http.StatusOK)
		return
	}
	text := "weir: " + x.texts[code] + "\n"
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	if r.retryAfter {
		h.Set("Retry-After", "1")
	}
	if x.r.ProtoMajor == 1 && (r.ends() || x.body != nil && !x.body.isWhole()) {
		h.Set("Connection", "close")
	}
	x.w.WriteHeader(r.status)
	if x.r.Method != http.MethodHead {
		n, _ := io.WriteString(x.w, text)
		x.done.Out += int64(n)
	}
}
