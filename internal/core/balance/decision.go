package balance

import (
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Decision is what a data plane follows until the next step. Everything in it is to be read only.
type Decision struct {
	overflow.Decision // Routes have the groups' shares; their indexes are those of Groups and Endpoints

	Groups    []Group       // in the order of use, home first
	Endpoints []Endpoint    // as they were applied
	Allowed   int           // how many endpoints may be ejected at once
	Horizon   time.Duration // the age, beyond Group.ExtraRTT, from which an unanswered request is overdue: two times the longest latency that counts
	// Active: steps are needed although nothing may be counted. A data plane may stop otherwise, and go on with the next
	// request.
	Active bool
}

// Group is a group of endpoints.
type Group struct {
	route.Group
	overflow.GroupStatus

	Home     bool          // the first group
	Zone     topology.Zone // of home: the client's
	Usable   int           // endpoints that are ready and neither ejected nor drained
	Drained  bool
	Panics   bool          // ejected endpoints are to be used like all others, as too few are left; see Config.Panic
	Failing  bool          // a retry had better go to another group
	Full     bool          // it has more load than it can serve: failures in a row do not show which endpoint is bad
	RTT      time.Duration // of connecting; 0: not known
	Limit    time.Duration // the longest latency that counts
	ExtraRTT time.Duration // how much longer connecting takes than at home; 0 while one of the two is not known

	id         int     // see overflow.Group
	ok, failed float64 // decayed numbers of answers
	load       load
	serving    slowdown // sum over the serving endpoints, in a step in which the group is full
}

// Endpoint is an endpoint and its state in outlier detection.
type Endpoint struct {
	health.Record // Out, Until when, and the Ejections so far

	Group    int // index into Decision.Groups
	Standing Standing
	Cause    health.Cause // of the last pause
	Restored bool         // returned by this step without a trial: failures in a row before do not count any longer
	Drained  bool
	InFlight int64
	Slowdown float64 // recent, with a prior; 1 is normal
	Ramp     float64 // how much of its weight counts; below 1 while it starts slowly

	joined   time.Duration // when it was added, became ready, or returned
	outAt    time.Duration
	row      int // failures in a row, by the counts
	recent   slowdown
	interval health.Tally // since outliers were last compared

	route.Endpoint
}

// Standing is how an endpoint is treated.
//
//	Serving ──failures──► Out ──pause over──► Due ──one request──► Trying ──success──► Serving
//	                       ▲                   ▲──────canceled───────┘ └──failure──► Out
type Standing uint8

// The standings. An endpoint that is not Serving is ejected.
const (
	Unknown Standing = iota // in counters alone: the data plane does not detect outliers
	Serving
	Out    // it gets no requests
	Due    // the pause is over: it is to get one request as a trial, or a few where a data plane cannot count to one
	Trying // that request is under way
)

// Status is a Decision that shares nothing with the loop, for people and metrics.
type Status = Decision

// Status returns a copy of the loop's state.
func (l *Loop) Status() Status {
	s := l.decision
	s.Groups, s.Endpoints = slices.Clone(s.Groups), slices.Clone(s.Endpoints)
	s.Routes, s.Decision.Groups = slices.Clone(s.Routes), nil
	return s
}

// Brief is the part of a Status that shows whether something happened. It is cheap enough to be read after every step.
type Brief struct {
	State     overflow.State
	Ejections int64 // pauses ever of the endpoints that are there: it falls when one of them is removed
}

// Brief returns what changes seldom. It allocates nothing.
func (l *Loop) Brief() Brief {
	b := Brief{State: l.decision.State}
	for i := range l.decision.Endpoints {
		b.Ejections += l.decision.Endpoints[i].Ejections
	}
	return b
}
