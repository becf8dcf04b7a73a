package pick

import (
	"math"
	"time"

	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/overflow"
)

const (
	// slowStart is how long a new endpoint counts as slow: processes warm caches, connections and compilers first.
	slowStart = 10 * time.Second
	// newcomerSlowdown is the prior of a new endpoint: it gets about 1/2.5 of the others' requests.
	newcomerSlowdown = 2.5
	// slowdownPrior is how many samples at slowdown 1 an endpoint is taken to have had; with slowdownTau it lets an
	// endpoint that is avoided be tried again within seconds.
	slowdownPrior = 2.0
	slowdownTau   = 2.0 // seconds
	// defaultCap is the largest slowdown of one request when the strategy names none (reference/overflow.md 4.1).
	defaultCap = 8.0
	// manyPerSecond is the rate from which requests are spread by chance: with 1,000 in a tick a share of 30 % is met
	// within 1.5 points in each tick and 0.5 in each second; below it a word that all processors add to costs less than
	// one millisecond in each second.
	manyPerSecond = 10_000
	// sampledOver is the shortest time that tells a rate: half a tick, as an Update may follow a Tick at once.
	sampledOver = 50 * time.Millisecond
	// restAfter is how long the pool goes on ticking after the last request: five times the slowdown's memory, and a
	// newcomer's whole slow start.
	restAfter = 10 * time.Second
	// unwindAfter is the same while the strategy is not calm; without requests it has nothing to learn, so this only
	// bounds what an unused pool costs.
	unwindAfter = time.Minute
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
func (r *recent) fold(d did, ref reference, keep float64) {
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

// step is one turn of the loop: read, judge, decide, publish.
func (p *Pool) step(now time.Duration) {
	elapsed := max(0, now-p.at)
	p.at = now
	p.observe(now, elapsed)
	p.nurse(now, elapsed)
	p.count(now, elapsed)
	p.decision = p.options.Strategy.Step(now, &p.counters)
	p.follow()
	p.publish()
	p.rest(now)
}

// observe reads what the endpoints did.
func (p *Pool) observe(now, elapsed time.Duration) {
	keep := math.Exp(-elapsed.Seconds() / slowdownTau)
	ref := &p.reference
	ref.samples, ref.sum = ref.samples*keep, ref.sum*keep
	for _, m := range p.members {
		m.read()
		ref.samples += float64(m.did.ok)
		ref.sum += m.did.latency.Seconds()
	}
	for _, m := range p.members {
		m.recent.fold(m.did, *ref, keep)
		prior := 1.0
		if now-m.joined < slowStart {
			prior = newcomerSlowdown
		}
		m.weight.Store(uint32(max(1, m.recent.slowdown(prior)*weightOne)))
	}
}

// nurse ends and begins pauses.
func (p *Pool) nurse(now, elapsed time.Duration) {
	rules := p.ward.rules
	var all health.Tally
	for _, m := range p.members {
		m.health.Observe(rules, now, elapsed, health.Tally{
			OK: float64(m.did.ok + m.did.lateOK), Failed: float64(m.did.failed + m.did.lateFailed),
		})
		all = all.Add(m.health.Recent)
	}
	for _, m := range p.members {
		if m.standing.Load() == serving && !m.health.Out && m.health.FailsOften(rules, all.Without(m.health.Recent)) {
			m.eject(now)
		}
		p.settle(m, now)
	}
	for p.ward.out.Load() > p.ward.allowed.Load() {
		if !p.recall(now) {
			break
		}
	}
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
			m.health.Eject(p.ward.rules, at, p.random())
		}
		if now >= m.health.Until {
			m.standing.CompareAndSwap(out, due)
		}
	}
}

// recall brings back whoever would come back first; false if nobody sits out. It is for pools that have shrunk.
func (p *Pool) recall(now time.Duration) bool {
	var first *member
	for _, m := range p.members {
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

// count fills the counters for the strategy.
func (p *Pool) count(now, elapsed time.Duration) {
	p.mark(now)
	p.counters.Groups = resize(p.counters.Groups, len(p.groups))
	p.counters.Endpoints = resize(p.counters.Endpoints, len(p.members))
	keep := math.Exp(-elapsed.Seconds() / deliveredTau)
	var sent int64
	for i, g := range p.groups {
		c := &p.counters.Groups[i]
		*c = overflow.GroupCounters{RTT: time.Duration(g.rtt.Load()), Drained: g.drained, Usable: g.usable}
		for _, j := range g.members {
			m := p.members[j]
			c.Sent += m.did.sent
			c.OK += m.did.ok
			c.Failed += m.did.failed
			c.Latency += m.did.latency
			p.counters.Endpoints[j] = overflow.EndpointCounters{
				InFlight: m.did.inFlight, OK: m.did.ok + m.did.lateOK, Failed: m.did.failed + m.did.lateFailed,
				Latency: m.did.latency + time.Duration(m.did.lateOK*g.limit.Load()),
			}
		}
		p.age(g, c, now)
		g.ok, g.failed = g.ok*keep+float64(c.OK), g.failed*keep+float64(c.Failed)
		c.Slowdown = p.slowdowns(g, c)
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

// slowdowns gives the sum of a group's slowdowns, without the longer way; seconds while there is no baseline.
func (p *Pool) slowdowns(g *group, c *overflow.GroupCounters) float64 {
	own := (c.Latency - time.Duration(c.OK)*g.lead).Seconds()
	if p.reference.baseline == 0 {
		return max(0, own)
	}
	return min(max(0, own/p.reference.baseline.Seconds()), float64(c.OK)*p.reference.cap)
}

// mark finds who is drained and who is usable.
func (p *Pool) mark(now time.Duration) {
	anyone := false
	drains := p.lift(now)
	for _, m := range p.members {
		_, m.drained = p.drains[m.target.Zone]
		anyone = anyone || !m.drained
	}
	for _, g := range p.groups {
		g.usable, g.drained = 0, drains && anyone
		for _, i := range g.members {
			m := p.members[i]
			m.drained = m.drained && anyone
			g.drained = g.drained && m.drained
			if s := m.standing.Load(); !m.drained && (s == serving || s == due) {
				g.usable++
			}
		}
	}
}

// follow takes over the decision's baseline: how long a latency counts, and how old a request may be.
func (p *Pool) follow() {
	p.reference.baseline, p.reference.cap = p.decision.Baseline, p.decision.Cap
	if p.reference.cap <= 0 {
		p.reference.cap = defaultCap
	}
	limit := unknownLimit
	if p.reference.baseline > 0 {
		limit = time.Duration(p.reference.cap * float64(p.reference.baseline))
	}
	for _, g := range p.groups {
		g.lead = 0
		if way, home := g.rtt.Load(), p.groups[0].rtt.Load(); way > 0 && home > 0 {
			g.lead = time.Duration(way - home)
		}
		g.limit.Store(int64(limit + max(0, g.lead)))
		g.past.fit(horizon(limit)+max(0, g.lead), p.shards)
	}
}

// rest lets the pool sleep when nothing is under way and nothing unwinds.
func (p *Pool) rest(now time.Duration) {
	idle := now - p.busy
	if idle < restAfter || (p.decision.State != overflow.Calm && idle < unwindAfter) || len(p.drains) > 0 {
		p.awake.Store(true)
		return
	}
	p.awake.Store(false)
	for _, m := range p.members {
		if m.flow.Load()>>32 != m.seen.flow>>32 {
			p.awake.Store(true) // a request came in while we went to sleep
			return
		}
	}
}

// resize gives a slice of that length, reusing s where it is long enough.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
