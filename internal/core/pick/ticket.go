package pick

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Ticket is one attempt: Answer it once, Close it once; more often does no harm. It is a value, for one goroutine at a
// time, and must not be copied once it is in use. It stays good when its endpoint is removed from the pool or the pool
// is forgotten. The zero Ticket may be answered and closed, without effect.
type Ticket struct {
	endpoint *endpoint
	group    *group
	slot     *atomic.Uint64 // where the age set counts it
	start    time.Duration
	tag      uint32
	trial    bool
	answered bool
	failed   bool
	closed   bool
}

// Addr is where to send the attempt.
func (t *Ticket) Addr() netip.AddrPort { return t.endpoint.target.Addr }

// ID identifies the endpoint for Request.Avoid for as long as the pool lives.
func (t *Ticket) ID() uint32 { return t.endpoint.id }

// Zone is the endpoint's zone.
func (t *Ticket) Zone() topology.Zone { return t.endpoint.target.Zone }

// Cost is the cost of a request to the endpoint.
func (t *Ticket) Cost() topology.Cost { return t.endpoint.target.Cost }

// Answer records that the endpoint answered, or failed to: at response headers for HTTP, at the trailers or the end of
// a unary gRPC call, at connect for TCP. It takes the latency sample and ends the attempt's time in the age set.
//
// Canceled says nothing about the endpoint and takes no sample, with one exception: a client that gave up after more
// than Cap baselines has seen a black hole, or what looks like one, and counts as a failed sample. It does not count
// towards failures in a row, as the endpoint was never heard to fail.
func (t *Ticket) Answer(now time.Duration, o Outcome) {
	if t.endpoint == nil || t.answered {
		return
	}
	t.answered = true
	found := leave(t.slot, t.tag)
	latency := max(0, now-t.start)
	limit := time.Duration(t.group.limit.Load())
	switch {
	case o == Success:
		t.endpoint.succeed(min(latency, limit), found)
	case o.Failed():
		t.failed = true
		t.fail(now, found, o)
	case latency > limit:
		t.endpoint.countFailure(found)
	}
	if t.trial {
		t.endpoint.endTrial(now, o)
	}
}

// Close records that the attempt is over and no longer occupies the endpoint. A failure counts one more failed sample
// (a stream that broke after its headers); it does not count twice if Answer already told of one. Without an Answer
// before it, Close answers too.
func (t *Ticket) Close(now time.Duration, o Outcome) {
	if t.endpoint == nil || t.closed {
		return
	}
	t.closed = true
	if !t.answered {
		t.Answer(now, o)
	} else if o.Failed() && !t.failed {
		t.fail(now, inTime, o)
	}
	t.endpoint.flow.Add(finishOne)
}

// fail takes a failure, by the rules that hold for the endpoint's group.
func (t *Ticket) fail(now time.Duration, a arrival, o Outcome) {
	rules := &t.endpoint.detector.rules
	if t.group.full.Load() {
		rules = &t.endpoint.detector.asked
	}
	t.endpoint.fail(now, a, o, rules.Load())
}

// Connected records how long a new connection to the endpoint took. The pool takes it for the length of the way to the
// endpoint's group.
func (t *Ticket) Connected(took time.Duration) {
	if t.endpoint != nil {
		t.group.connected(took)
	}
}
