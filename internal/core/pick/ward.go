package pick

import (
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/health"
)

// ward is what the endpoints of a pool share about health.
type ward struct {
	rules   atomic.Pointer[health.Config] // with defaults
	allowed atomic.Int64                  // how many may sit out at once
	out     atomic.Int64                  // how many do, those on trial included
}

// admit takes one of the places for those who sit out, if there is one.
func (w *ward) admit() bool {
	for {
		n := w.out.Load()
		if n >= w.allowed.Load() {
			return false
		}
		if w.out.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (w *ward) discharge() { w.out.Add(-1) }

// nurse ends and begins pauses.
func (p *Pool) nurse(now time.Duration) {
	rules := p.ward.rules.Load()
	var all health.Tally
	for _, m := range p.members {
		did := health.Tally{OK: float64(m.did.ok + m.did.lateOK), Failed: float64(m.did.failed + m.did.lateFailed)}
		m.health.Observe(rules, now, p.left.health, did)
		if rules.Outliers != nil {
			m.interval = m.interval.Add(did)
		}
		all = all.Add(m.health.Recent)
	}
	p.detect(now, rules.Outliers)
	for _, m := range p.members {
		if m.standing.Load() == serving && !m.health.Out && m.health.FailsOften(rules, all) {
			m.eject(now, health.ByRules)
		}
		p.settle(m, now)
	}
	p.spare(now)
}

// detect ends the turns of outliers, once in an interval.
func (p *Pool) detect(now time.Duration, o *health.Outliers) {
	if o != nil && now-p.detected < o.Interval {
		return
	}
	p.detected = now
	if o == nil {
		return
	}
	p.tallies = resize(p.tallies, len(p.members))
	for i, m := range p.members {
		p.tallies[i] = m.interval
		m.interval = health.Tally{}
	}
	for _, i := range o.Outlying(p.tallies) {
		p.members[i].eject(now, health.ByPolicy)
	}
}

// spare calls endpoints back where too many sit out. Of the pool no more than the rules allow may. Of a group the same
// holds, unless another group is known to do well: then the group may go as a whole, as a lost zone should. If no other
// group does better, what its endpoints suffer from is not their own, and leaving them only moves it on to the next.
func (p *Pool) spare(now time.Duration) {
	if p.ward.out.Load() == 0 {
		return
	}
	for p.ward.out.Load() > p.ward.allowed.Load() {
		if !p.recall(p.members, now) {
			break
		}
	}
	rules := p.ward.rules.Load()
	for i, g := range p.groups {
		p.inGroup = p.inGroup[:0]
		sitOut := 0
		for _, j := range g.Members {
			p.inGroup = append(p.inGroup, p.members[j])
			if p.members[j].health.Out {
				sitOut++
			}
		}
		for sitOut > rules.Allowed(len(g.Ready)) && !p.wellBeyond(i) && p.recall(p.inGroup, now) {
			sitOut--
		}
	}
}

// wellBeyond tells whether a group other than this one has answered lately, and well.
func (p *Pool) wellBeyond(group int) bool {
	for i, g := range p.groups {
		if i != group && g.ok >= heardOf && !g.failing() {
			return true
		}
	}
	return false
}

// settle brings an endpoint's record in line with its standing, which requests may have changed.
func (p *Pool) settle(m *member, now time.Duration) {
	switch m.standing.Load() {
	case serving:
		if m.health.Out {
			m.health.Return(now)
			m.joined = now // a process that has just come back is as cold as a new one
		}
	case out:
		at := time.Duration(m.outAt.Load())
		// The time it went out is later than the start of the pause on record only if the trial has failed since.
		if !m.health.Out || at >= m.health.Until {
			m.health.Eject(p.ward.rules.Load(), health.Cause(m.cause.Load()), at, p.random()) //nolint:gosec // a Cause.
		}
		if now >= m.health.Until {
			m.standing.CompareAndSwap(out, due)
		}
	case due:
		// No request came by to try it, so nobody needs it; it must not hold a place that others may need.
		if now >= m.health.Until+p.ward.rules.Load().MaxPause {
			m.restore()
		}
	}
}

// recall brings back whoever of these would come back first; false if nobody sits out.
func (p *Pool) recall(members []*member, now time.Duration) bool {
	var first *member
	for _, m := range members {
		if m.health.Out && (first == nil || m.health.Until < first.health.Until) {
			first = m
		}
	}
	if first == nil {
		return false
	}
	first.restore()
	p.settle(first, now)
	return true
}
