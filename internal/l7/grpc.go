package l7

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
)

// isGRPC tells whether a request is a gRPC call. gRPC-Web is none: its status is in the body.
func isGRPC(f *fields) bool {
	kind, ok := strings.CutPrefix(f.first(fieldName{"Content-Type", "content-type"}), "application/grpc")
	return ok && (kind == "" || kind[0] == '+' || kind[0] == ';')
}

// grpcCall watches a call's response for its status, which comes last. A unary call is answered with its status; a stream
// at its head, since how long it goes on says nothing about the endpoint.
type grpcCall struct {
	x     *exchange
	resp  *http.Response
	timer *time.Timer
}

// unaryTail is how long after the head the status of a unary call may take, which servers send in one go with it; a
// call that takes longer counts as a stream. Twenty times a round trip between zones is ample, and soon enough for a
// stream to stop looking like an endpoint that does not answer.
const unaryTail = 20 * time.Millisecond

// grpcCall begins to watch a response; nil if it is none of gRPC.
func (x *exchange) grpcCall(resp *http.Response) *grpcCall {
	if x.done.Protocol != GRPC {
		return nil
	}
	head := x.clock()
	timer := time.AfterFunc(unaryTail, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.answer(head, pick.Success)
	})
	return &grpcCall{x: x, resp: resp, timer: timer}
}

// end concludes the call with its status.
func (c *grpcCall) end(fault *copyFault) {
	x := c.x
	status := c.resp.Trailer.Get("Grpc-Status")
	if status == "" {
		status = c.resp.Header.Get("Grpc-Status") // a response of trailers only
	}
	x.done.Status = parseGRPCStatus(status)
	x.done.Outcome = outcomeOfCall(x.done.Status, c.resp.StatusCode)
	if fault != nil {
		x.done.Outcome = pick.LocalError
		if fault.client || x.r.Context().Err() != nil && !x.isDeadlineNear() {
			x.done.Outcome = pick.Canceled
		}
	}
	c.timer.Stop()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closeTicket(x.done.Outcome)
}

// parseGRPCTimeout reads a grpc-timeout field: up to 8 digits and a unit. 0 means none, or one that makes no sense.
func parseGRPCTimeout(field string) time.Duration {
	const mostDigits = 8
	if len(field) < 2 || len(field) > mostDigits+1 {
		return 0
	}
	number, err := strconv.ParseUint(field[:len(field)-1], 10, 32)
	if err != nil {
		return 0
	}
	var unit time.Duration
	switch field[len(field)-1] {
	case 'H':
		unit = time.Hour
	case 'M':
		unit = time.Minute
	case 'S':
		unit = time.Second
	case 'm':
		unit = time.Millisecond
	case 'u':
		unit = time.Microsecond
	case 'n':
		unit = time.Nanosecond
	default:
		return 0
	}
	const longest = 10_000 * time.Hour // far above any deadline, far below what overflows
	if number > uint64(longest/unit) {
		return longest
	}
	return time.Duration(number) * unit //nolint:gosec // bounded above
}

// encodeGRPCMessage percent-encodes what a grpc-message may not hold.
func encodeGRPCMessage(text string) string {
	return escape(text, func(c byte) bool { return c >= ' ' && c <= '~' && c != '%' })
}
