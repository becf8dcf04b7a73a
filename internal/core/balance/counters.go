package balance

import (
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/overflow"
)

// Counters is what a data plane counted since the step before. The slices belong to the data plane and may be reused.
type Counters struct {
	Groups    []GroupCounters    // one for each of Decision.Groups
	Endpoints []EndpointCounters // one for each of Decision.Endpoints
}

// GroupCounters is what is known of a group beside the sums over its endpoints. The zero value is a data plane that keeps
// no ages of requests: slow endpoints are then noticed when they answer.
type GroupCounters struct {
	Unanswered int64         // requests that wait for an answer
	Waiting    int64         // those of Unanswered older than one Decision.Baseline
	Aged       float64       // sum of the ages of Waiting, in baselines, each at most Decision.Cap
	Overdue    int64         // requests that became older than Decision.Horizon since the step before; each counts as failed
	RTT        time.Duration // of connecting; 0: not known
}

// EndpointCounters is what one endpoint did since the step before, and how it stands.
type EndpointCounters struct {
	Started    int64         // requests
	OK         int64         // answered well, and not Overdue before
	Failed     int64         // failed, and not Overdue before
	Latency    time.Duration // sum over OK, each at most Group.Limit where the data plane can tell
	LateOK     int64         // answered well after they were Overdue
	LateFailed int64         // failed after they were Overdue
	InFlight   int64         // requests that occupy the endpoint now

	// Standing is how the data plane treats the endpoint, where it detects outliers itself: it may move an endpoint from
	// Serving to Out, and to Trying and from there to Serving, Out or Due. OutAt and Cause say since when and why the
	// endpoint is Out. Unknown: the loop detects outliers by the counts and by Streaks alone.
	Standing Standing
	OutAt    time.Duration
	Cause    health.Cause
	// Streaks are the failures in a row at the reading, for a data plane that counts them and detects nothing. Zero: the
	// loop takes failures without any good answer for failures in a row, of no kind.
	Streaks health.Streaks
}

func (c *EndpointCounters) tally() health.Tally {
	return health.Tally{OK: float64(c.OK + c.LateOK), Failed: float64(c.Failed + c.LateFailed)}
}

// count sums up the endpoints by group for the strategy, and all of them for the reference.
func (l *Loop) count(now time.Duration, in *Counters) {
	groups := l.decision.Groups
	l.counters.Groups = slices.Grow(l.counters.Groups[:0], len(groups))[:len(groups)]
	l.reference.fade(l.decay.slowdown)
	for i := range groups {
		g, seen, c := &groups[i], &in.Groups[i], &l.counters.Groups[i]
		g.RTT = seen.RTT
		*c = overflow.GroupCounters{RTT: seen.RTT, Waiting: seen.Waiting, Aged: seen.Aged, Failed: seen.Overdue}
		late := int64(0) // good answers
		for _, j := range g.Members {
			e := &in.Endpoints[j]
			c.Sent += e.Started
			c.OK += e.OK
			c.Failed += e.Failed
			c.Latency += e.Latency
			late += e.LateOK
		}
		if seen.Unanswered > 0 || c.Sent > 0 {
			l.busy = now
		}
		l.reference.add(c.OK, c.Latency)
		g.load.add(c, late, g.Limit, l.decay)
		g.Full = g.load.exceeds(l.reference.baseline+max(0, g.ExtraRTT), len(g.Ready), l.decay.peak) && !l.rules.WhateverLoad
		g.ok = g.ok*l.decay.delivered + float64(c.OK)
		g.failed = g.failed*l.decay.delivered + float64(c.Failed)
	}
}
