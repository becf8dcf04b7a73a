package pick

import (
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
)

// reading is what an endpoint's counters said.
type reading struct{ flow, answered, failed, late uint64 }

// did is what an endpoint did between two readings.
type did struct {
	sent       int64
	ok         int64         // answered well and in time
	latency    time.Duration // sum over ok
	failed     int64         // in time
	lateOK     int64
	lateFailed int64
	inFlight   int64 // at the last reading
}

// read takes a reading. Differences are exact although the words wrap and hold two counts each, as long as each count
// moves by less than its width between two readings.
func (m *member) read() {
	now := reading{m.flow.Load(), m.answered.Load(), m.failed.Load(), m.late.Load()}
	if now == m.seen { // as most do in a tick of a client that sends little
		m.did = did{inFlight: int64(uint32(now.flow))}
		return
	}
	answered, late := now.answered-m.seen.answered, now.late-m.seen.late
	m.did = did{
		sent:       int64(uint32(now.flow>>32) - uint32(m.seen.flow>>32)),
		ok:         int64(answered / answeredOne), //nolint:gosec // 24 bits.
		latency:    time.Duration(answered&latencyMask) << latencyShift,
		failed:     int64(now.failed - m.seen.failed), //nolint:gosec // a count of requests.
		lateOK:     int64(uint32(late)),
		lateFailed: int64(late >> 32), //nolint:gosec // 32 bits.
		inFlight:   int64(uint32(now.flow)),
	}
	m.seen = now
}

// recent is an endpoint's slowdown as a choice between endpoints sees it.
type recent struct{ samples, sum float64 }

// fold adds what was done at a reference latency; keep is the fraction of the old that is kept.
func (r *recent) fold(d *did, ref *reference, keep float64) {
	if d.ok+d.failed+d.lateOK+d.lateFailed == 0 {
		r.samples, r.sum = r.samples*keep, r.sum*keep
		return
	}
	bad := float64(d.failed + d.lateOK + d.lateFailed)
	r.samples = r.samples*keep + float64(d.ok) + bad
	r.sum = r.sum*keep + ref.slowdowns(d.latency, d.ok) + bad*ref.cap
}

// slowdown is the mean, with a prior.
func (r *recent) slowdown(prior float64) float64 {
	return (r.sum + slowdownPrior*prior) / (r.samples + slowdownPrior)
}

// reference is what latencies are compared with: the strategy's baseline, or while there is none the recent mean of the
// whole pool, as a choice between endpoints only needs to know who is slower.
type reference struct {
	baseline     time.Duration // 0: not known
	cap          float64
	samples, sum float64 // decayed; sum in seconds
}

func (r *reference) slowdowns(latency time.Duration, n int64) float64 {
	seconds := r.baseline.Seconds()
	if seconds == 0 && r.samples > 0 {
		seconds = r.sum / r.samples
	}
	if seconds == 0 {
		return float64(n)
	}
	return min(latency.Seconds()/seconds, float64(n)*r.cap)
}

// usual is the slowdown of who is not known: that of the pool where it is faster than its baseline, else 1. In a pool whose
// requests take a third of the baseline, which is never below a millisecond, an endpoint at slowdown 1 would be the slowest
// of all and, with few requests at once, be left out for good.
func (r *reference) usual() float64 {
	if r.baseline == 0 || r.samples < slowdownPrior {
		return 1
	}
	return min(1, r.sum/r.samples/r.baseline.Seconds())
}

// count fills the counters for the strategy with what was done.
func (p *Pool) count(now, elapsed time.Duration) {
	p.counters.Groups = resize(p.counters.Groups, len(p.groups))
	p.counters.Endpoints = resize(p.counters.Endpoints, len(p.members))
	keep := p.left.delivered
	var sent int64
	for i, g := range p.groups {
		var inFlight int64
		c := &p.counters.Groups[i]
		*c = overflow.GroupCounters{RTT: time.Duration(g.rtt.Load())}
		for _, j := range g.Members {
			m := p.members[j]
			c.Sent += m.did.sent
			c.OK += m.did.ok
			c.Failed += m.did.failed
			c.Latency += m.did.latency
			inFlight += m.did.inFlight
			p.counters.Endpoints[j] = overflow.EndpointCounters{
				InFlight: m.did.inFlight, OK: m.did.ok + m.did.lateOK, Failed: m.did.failed + m.did.lateFailed,
				Latency: m.did.latency + time.Duration(m.did.lateOK*g.limit.Load()),
			}
		}
		if c.Sent > 0 || inFlight > 0 || !g.past.empty {
			p.age(g, c, now)
		}
		g.ok, g.failed = g.ok*keep+float64(c.OK), g.failed*keep+float64(c.Failed)
		sent += c.Sent
	}
	if elapsed >= sampledOver {
		p.sampled = float64(sent) > manyPerSecond*elapsed.Seconds()
	}
}

// age adds what the age set says.
func (p *Pool) age(g *group, c *overflow.GroupCounters, now time.Duration) {
	seen := g.past.read(ageing{
		now: now, lead: g.lead, baseline: p.reference.baseline, limit: p.reference.cap,
		horizon: horizon(time.Duration(g.limit.Load()) - max(0, g.lead)),
	})
	c.Waiting, c.Aged = seen.waiting, seen.aged
	c.Failed += seen.overdue
	if seen.unanswered > 0 || c.Sent > 0 {
		p.busy = now
	}
}

// mark fills the counters with who is drained and who is usable.
func (p *Pool) mark(now time.Duration) {
	if drains := p.lift(now); drains || p.draining {
		p.draining, p.stale = drains, true
		p.evade()
	}
	for i, g := range p.groups {
		g.usable, g.drained = 0, p.draining
		for _, j := range g.Members {
			m := p.members[j]
			s := m.standing.Load()
			if s != m.stood {
				m.stood, p.stale = s, true
			}
			g.drained = g.drained && m.drained
			if !m.drained && !m.target.Unready && (s == serving || s == due) {
				g.usable++
			}
		}
		p.counters.Groups[i].Usable, p.counters.Groups[i].Drained = g.usable, g.drained
	}
}

// evade marks who is drained: nobody, if that would leave nobody.
func (p *Pool) evade() {
	anyone := false
	for _, m := range p.members {
		_, m.drained = p.drains[m.target.Zone]
		anyone = anyone || !m.drained
	}
	for _, m := range p.members {
		m.drained = m.drained && anyone
	}
}
