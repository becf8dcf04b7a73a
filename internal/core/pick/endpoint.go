package pick

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/health"
)

// endpoint is what requests and the loop share about one endpoint. Tickets point at it, so an answer that comes after
// the endpoint was removed does no harm.
//
// The first 64 bytes are one cache line: what a request writes. A choice between two endpoints reads two such lines.
// They are not sharded: a choice by load needs the exact number in flight, so that word is shared in any case,
// and the other words of its line cost little more once the line is here.
type endpoint struct {
	flow     atomic.Uint64 // requests started (upper half) and in flight (lower half)
	answered atomic.Uint64 // good answers in time (upper 24 bits) and the sum of their latencies (lower 40 bits)
	failed   atomic.Uint64 // failed in time
	late     atomic.Uint64 // after they were overdue: failed (upper half) and good (lower half)
	weight   atomic.Uint32 // recent slowdown in 1/256, written by the loop
	standing atomic.Uint32 // see the standings
	streaks  atomic.Uint64 // failures in a row, by kind; see lengthen
	outAt    atomic.Int64  // when it was last ejected
	detector *detector

	// target's Addr, Zone, Cluster and Cost never change, and requests may read them. The rest belongs to the loop, which
	// makes new pickers when it changes.
	target Target
	id     uint32
	ramp   atomic.Uint32 // how much of its weight counts while it starts slowly, in 1/65536; 0: all. Written by the loop
	cause  atomic.Uint32 // health.Cause of the last ejection

	// Of ticks alone.
	shown   uint32 // its standing in the last view
	seen    reading
	drained bool
	_       [3]byte // up to 256 B: a multiple of 64 that is a size class, so that lines stay whole
}

// The standings of an endpoint are those of the loop, and one more. Requests move an endpoint from serving to out and away
// from trying, the loop does the rest; gone is final.
const (
	serving = uint32(balance.Serving)
	out     = uint32(balance.Out)
	due     = uint32(balance.Due)
	trying  = uint32(balance.Trying)
	gone    = trying + 1 // removed
)

const (
	startOne     = 1<<32 + 1      // flow: one more started, one more in flight
	finishOne    = math.MaxUint64 // flow: one less in flight; adding it subtracts 1
	answeredOne  = 1 << 40
	latencyMask  = answeredOne - 1
	latencyShift = 10 // latencies are summed in 1,024 ns: fine enough for 10 µs, and 40 bits last for 13 days of waiting
	failedLate   = 1 << 32
	weightOne    = 256 // slowdown 1; a step of 1/256 is far below the noise of a slowdown
)

// change takes over what may change of an endpoint while it stays the same.
func (e *endpoint) change(to *Target) {
	own := &e.target
	if to.Unready && !own.Unready { // the number of ejected endpoints is bounded, and this one gets no requests anyway
		e.restore()
	}
	// One by one: requests read the others.
	own.Home, own.Tier, own.Unready = to.Home, to.Tier, to.Unready
	own.Weight, own.HashKey, own.Affinity, own.AffinityWeight = to.Weight, to.HashKey, to.Affinity, to.AffinityWeight
}

// inFlight gives how many requests occupy the endpoint.
func (e *endpoint) inFlight() int64 { return int64(uint32(e.flow.Load())) }

func newEndpoint(id uint32, t Target, d *detector) *endpoint {
	e := &endpoint{id: id, detector: d, target: t}
	e.standing.Store(serving)
	e.weight.Store(weightOne)
	return e
}

// load is what a choice by load compares: requests in flight, this one included, times the recent slowdown.
type load struct {
	product uint64
	weight  uint32 // the slowdown
}

// load gives the endpoint's load. One that does not serve is never better than one that does.
func (e *endpoint) load() load {
	weight := e.weight.Load()
	if e.standing.Load() != serving {
		return load{math.MaxUint64, weight}
	}
	return load{(uint64(uint32(e.flow.Load())) + 1) * uint64(weight), weight}
}

// succeed takes a good answer.
func (e *endpoint) succeed(latency time.Duration, a arrival) {
	if a == inTime {
		const half = 1 << (latencyShift - 1) // rounds to the nearest unit, so that the mean stays true
		e.answered.Add(answeredOne | uint64(latency+half)>>latencyShift)
	} else {
		e.late.Add(1)
	}
	if e.streaks.Load() != 0 {
		e.streaks.Store(0)
	}
}

// fail takes a failure and ejects the endpoint if it was one too many by the rules.
func (e *endpoint) fail(now time.Duration, a arrival, o Outcome, rules *health.Config) {
	e.countFailure(a)
	rows := e.streaks.Load()
	for !e.streaks.CompareAndSwap(rows, lengthen(rows, o)) {
		rows = e.streaks.Load()
	}
	if by := rules.Trips(streaks(lengthen(rows, o))); by != health.NotOut {
		e.eject(now, by)
	}
}

// countFailure counts a failed request that does not eject the endpoint, such as one that the client canceled after a very
// long wait.
func (e *endpoint) countFailure(a arrival) {
	if a == inTime {
		e.failed.Add(1)
	} else {
		e.late.Add(failedLate)
	}
}
