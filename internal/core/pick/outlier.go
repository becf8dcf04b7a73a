package pick

import (
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/health"
)

// detector is the part of a pool's outlier detection that requests see: they eject an endpoint at the failure that is one
// too many, and end trials. The loop begins and ends all other ejections and bounds their number.
type detector struct {
	rules   atomic.Pointer[health.Config] // with defaults
	asked   atomic.Pointer[health.Config] // those of them that a policy sets: endpoints of a full group follow no others
	allowed atomic.Int64                  // how many endpoints may be ejected at once
	out     atomic.Int64                  // how many are, those on trial included
}

// admit counts one more ejected endpoint, if that is allowed.
func (d *detector) admit() bool {
	for {
		n := d.out.Load()
		if n >= d.allowed.Load() {
			return false
		}
		if d.out.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// eject ejects a serving endpoint, unless as many are ejected already as may be. Requests see it at once; the loop decides
// how long the ejection lasts.
func (e *endpoint) eject(now time.Duration, by health.Cause) {
	if e.standing.Load() != serving || !e.detector.admit() {
		return
	}
	e.cause.Store(uint32(by))
	e.outAt.Store(int64(now))
	if !e.standing.CompareAndSwap(serving, out) {
		e.detector.out.Add(-1)
	}
}

// endTrial takes the outcome of a trial.
func (e *endpoint) endTrial(now time.Duration, o Outcome) {
	switch {
	case o == Success:
		if e.standing.CompareAndSwap(trying, serving) {
			e.detector.out.Add(-1)
		}
	case o.Failed():
		e.outAt.Store(int64(now))
		e.standing.CompareAndSwap(trying, out)
	default:
		e.standing.CompareAndSwap(trying, due)
	}
}

// restore ends an ejection without a trial.
func (e *endpoint) restore() {
	for {
		s := e.standing.Load()
		if s == serving || s == gone {
			return
		}
		if e.standing.CompareAndSwap(s, serving) {
			e.streaks.Store(0)
			e.detector.out.Add(-1)
			return
		}
	}
}

// remove ends the endpoint's time in the pool.
func (e *endpoint) remove() {
	switch e.standing.Swap(gone) {
	case out, due, trying:
		e.detector.out.Add(-1)
	}
}

// follow makes the endpoint stand as the loop decided, unless requests changed its standing since the loop was told: then
// the loop learns of that with the next step.
func (e *endpoint) follow(to *balance.Endpoint, told balance.Standing, now time.Duration) {
	if to.Standing == told && !to.Restored {
		return
	}
	if to.Restored {
		e.restore()
		e.streaks.Store(0)
	}
	if to.Standing == told {
		return
	}
	if to.Standing == balance.Out || to.Standing == balance.Due {
		e.eject(now, to.Cause)
	}
	if to.Standing == balance.Due {
		e.standing.CompareAndSwap(out, due)
	}
}
