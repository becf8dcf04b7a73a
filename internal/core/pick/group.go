package pick

import (
	"math"
	"sync/atomic"
	"time"
)

// group is what requests and ticks share about a group of endpoints.
type group struct {
	limit   atomic.Int64 // the longest latency that counts, in ns; written by ticks
	rtt     atomic.Int64 // of connecting, in ns; 0: not known. Written by requests
	full    atomic.Bool  // see balance.Group; written by ticks
	counter *counter     // of pickers that take turns

	// Of ticks alone.
	past            history
	ages            *ageSet // for requests that start now
	failing, panics bool    // as the loop decided
	changes         int     // counts changes of what a view shows of the endpoints
	moves           int     // counts changes of the endpoints that keys belong to
}

func newGroup() *group {
	g := &group{counter: new(counter)}
	g.limit.Store(math.MaxInt64) // until the first step, which comes before the first request
	return g
}

// rttUp is the fraction of a longer connect time that the RTT follows: queues make connecting slow for a while, another
// network path makes it slow for good.
const rttUp = 16

// connected follows shorter times at once and longer ones slowly.
func (g *group) connected(took time.Duration) {
	for took > 0 {
		old := g.rtt.Load()
		next := int64(took)
		if old > 0 && next > old {
			next = old + (next-old)/rttUp
		}
		if g.rtt.CompareAndSwap(old, next) {
			return
		}
	}
}
