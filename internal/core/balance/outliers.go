package balance

import (
	"time"

	"github.com/weir-lb/weir/internal/core/health"
)

// detect begins and ends pauses; all is what all endpoints did lately.
func (l *Loop) detect(now time.Duration, in *Counters, all health.Tally) {
	l.compare(now)
	l.sumServing()
	for _, i := range l.suspects {
		e := &l.decision.Endpoints[i]
		if e.Standing == Serving && !e.Out {
			l.eject(e, now, l.fails(e, &in.Endpoints[i], all))
		}
		l.reconcile(e, now)
	}
	l.spare(now)
}

// read takes over what the data plane says of the endpoint's standing, or what its counts say of it.
func (e *Endpoint) read(now time.Duration, c *EndpointCounters) {
	e.Restored = false
	if c.Standing != Unknown {
		e.Standing, e.outAt, e.Cause = c.Standing, c.OutAt, c.Cause
		return
	}
	good, failed := c.OK+c.LateOK, c.Failed+c.LateFailed
	e.row = min(e.row+int(failed), health.MaxStreak)
	if good > 0 {
		e.row = 0
	}
	switch {
	case e.Standing != Due: // a trial's result it is not
	case good > 0:
		e.Standing = Serving
	case failed > 0:
		e.Standing, e.outAt = Out, now
	}
}

// fails tells by which rules, if any, a serving endpoint is to be ejected. A data plane that detects outliers has counted
// failures in a row itself.
func (l *Loop) fails(e *Endpoint, c *EndpointCounters, all health.Tally) health.Cause {
	full := l.decision.Groups[e.Group].Full
	if c.Standing == Unknown {
		row := c.Streaks
		if row == (health.Streaks{}) {
			row.Any = uint16(e.row) //nolint:gosec // 16 bits.
		}
		if by := l.rules.Trips(row); by == health.ByPolicy || by == health.ByRules && !full {
			return by
		}
	}
	if full && l.isOutlier(e) || !full && e.FailsOften(&l.rules, all) {
		return health.ByRules
	}
	return health.NotOut
}

// compare ejects endpoints that fail more than the others, once in an interval.
func (l *Loop) compare(now time.Duration) {
	o := l.rules.Outliers
	if o != nil && now-l.compared < o.Interval {
		return
	}
	l.compared = now
	if o == nil {
		return
	}
	endpoints := l.decision.Endpoints
	l.tallies = l.tallies[:0]
	for i := range endpoints {
		l.tallies = append(l.tallies, endpoints[i].interval)
		endpoints[i].interval = health.Tally{}
	}
	for _, i := range o.Outlying(l.tallies) {
		l.eject(&endpoints[i], now, health.ByPolicy)
	}
}

// eject ejects a serving endpoint by these rules, if any, unless as many are ejected already as may be.
func (l *Loop) eject(e *Endpoint, now time.Duration, by health.Cause) {
	if by != health.NotOut && e.Standing == Serving && l.out < l.decision.Allowed {
		e.Standing, e.outAt, e.Cause = Out, now, by
		l.out++
		g := &l.decision.Groups[e.Group]
		g.serving = g.serving.without(e.recent)
	}
}

// reconcile brings the record of an endpoint in line with its standing.
func (l *Loop) reconcile(e *Endpoint, now time.Duration) {
	switch e.Standing {
	case Out:
		// The time it went out is later than the start of the pause on record only if the trial has failed since.
		if !e.Out || e.outAt >= e.Until {
			e.Eject(&l.rules, e.Cause, e.outAt, l.options.Random())
		}
		if now >= e.Until || l.isMissed(e, now) {
			e.Standing = Due
		}
	case Due:
		// No request has tried it, so it is not needed; it must not count among the ejected ones, whose number is bounded.
		if now >= e.Until+l.rules.MaxPause {
			l.restore(e)
		}
	default:
		e.reconcile(now)
	}
}

// isMissed tells whether the pause of an endpoint is over early, as its group is full: it has been as long as a first one, and
// a trial shows whether the endpoint has recovered.
func (l *Loop) isMissed(e *Endpoint, now time.Duration) bool {
	return l.decision.Groups[e.Group].Full && e.Cause == health.ByRules && now >= e.outAt+l.rules.Pause
}

// reconcile ends the pause of an endpoint that serves.
func (e *Endpoint) reconcile(now time.Duration) {
	if e.Standing == Serving && e.Out {
		e.Return(now)
		e.joined = now // a process that has just returned has cold caches, as a new one has
	}
}

// restore ends an ejection without a trial.
func (l *Loop) restore(e *Endpoint) {
	if e.Standing != Serving {
		l.out--
	}
	e.Standing, e.Restored, e.row = Serving, true, 0
}

// spare ends ejections where there are too many. The rules bound their number among all endpoints. The same bound holds for
// each group unless another group answers well: then the whole group may be ejected, as a lost zone should be. If no other
// group does better, the cause is not in these endpoints, and ejecting them only moves the failures to the next group.
func (l *Loop) spare(now time.Duration) {
	if l.out == 0 {
		return
	}
	for l.out > l.decision.Allowed && l.recall(anyGroup, now) {
	}
	for i := range l.decision.Groups {
		g, out := &l.decision.Groups[i], 0
		for _, j := range g.Members {
			if l.decision.Endpoints[j].Out {
				out++
			}
		}
		for out > l.rules.Allowed(len(g.Ready)) && !l.wellBeyond(i) && l.recall(i, now) {
			out--
		}
	}
}

// wellBeyond tells whether a group other than this one has answered lately, and well.
func (l *Loop) wellBeyond(group int) bool {
	for i := range l.decision.Groups {
		if g := &l.decision.Groups[i]; i != group && g.ok >= recentlyGood && !g.fails() {
			return true
		}
	}
	return false
}

const anyGroup = -1

// recall ends that ejection in a group which would end first; false if there is none.
func (l *Loop) recall(group int, now time.Duration) bool {
	var first *Endpoint
	for i := range l.decision.Endpoints {
		e := &l.decision.Endpoints[i]
		if e.Out && (group == anyGroup || e.Group == group) && (first == nil || e.Until < first.Until) {
			first = e
		}
	}
	if first == nil {
		return false
	}
	l.restore(first)
	l.reconcile(first, now)
	return true
}
