package sim

import (
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
)

// stage is where an exchange is.
type stage uint8

const (
	waiting   stage = iota // at the client, for a retry
	leaving                // on the way to the endpoint
	queued                 // for a worker
	serving                // by a worker
	held                   // a poll, at the endpoint
	swallowed              // the endpoint will never answer
	returning              // on the way back
	open                   // a stream after its headers
	broken                 // a stream that was reset, on the way back
)

// form is what a request asks for.
type form uint8

const (
	plain form = iota
	poll
	stream
)

// maxTried bounds how many endpoints a retry is told to avoid.
const maxTried = 8

// exchange is one attempt of a request. A retry is another one, which takes over what belongs to the request; the first
// may go on at the endpoint without a client that waits for it.
type exchange struct {
	// The request.
	due    time.Duration
	work   time.Duration // what it takes a worker of usual speed
	hold   time.Duration // of polls and streams
	luck   uint64        // all other chance of the request comes from here, so that it is the same with every strategy
	cost   float64       // of all attempts so far
	client int32
	form   form
	tries  uint8 // attempts so far
	again  uint8 // those of them that the balancer made by itself after a refused connection
	tried  [maxTried]uint32

	// The attempt.
	generation uint32 // of the slot: differs between the exchanges that use it
	server     int32
	stage      stage
	abandoned  bool // the client has given up
	connects   bool // it opens a connection first
	refused    bool // no endpoint took it
	outcome    pick.Outcome
	rtt        time.Duration // how long connecting takes
	ticket     pick.Ticket
}

// avoid lists the endpoints that were tried.
func (x *exchange) avoid() []uint32 { return x.tried[:min(int(x.tries), maxTried)] }

// exchanges are all exchanges, in slots that are used again.
type exchanges struct {
	all  []exchange
	free []uint32
}

// add gives a slot for an exchange of which nothing is known.
func (x *exchanges) add() uint32 {
	if n := len(x.free); n > 0 {
		i := x.free[n-1]
		x.free = x.free[:n-1]
		return i
	}
	x.all = append(x.all, exchange{})
	return uint32(len(x.all) - 1) //nolint:gosec // a run has far fewer under way.
}

// remove frees a slot. Events about it are void from now on.
func (x *exchanges) remove(i uint32) {
	x.all[i] = exchange{generation: x.all[i].generation + 1}
	x.free = append(x.free, i)
}

// waits tells whether the client still waits for the answer that the event would end the patience for.
func (x *exchanges) waits(e *event) bool {
	a := &x.all[e.about]
	return a.generation == e.tag && a.stage != open && a.stage != broken
}

// renew gives the request of an exchange a new one, at the client.
func (x *exchanges) renew(i uint32) uint32 {
	j := x.add()
	a, b := &x.all[i], &x.all[j]
	b.due, b.work, b.hold, b.luck, b.cost = a.due, a.work, a.hold, a.luck, a.cost
	b.client, b.form, b.tries, b.again, b.tried = a.client, a.form, a.tries, a.again, a.tried
	return j
}
