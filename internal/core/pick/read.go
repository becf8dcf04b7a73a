package pick

import (
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/health"
)

const (
	// manyPerSecond is the rate from which requests are spread by chance: with 1,000 in a tick a share of 30 % is met
	// within 1.5 points in each tick and 0.5 in each second; below it a word that all processors add to costs less than
	// one millisecond in each second.
	manyPerSecond = 10_000
	// sampledOver is the shortest time that tells a rate: half a tick, as an Update may follow a Tick at once.
	sampledOver = 50 * time.Millisecond
)

// reading is what an endpoint's counters said.
type reading struct{ flow, answered, failed, late uint64 }

// read gives what was counted since the reading before. Differences are exact although the words wrap and hold two counts
// each, as long as each count moves by less than its width between two readings.
func (e *endpoint) read(c *balance.EndpointCounters) {
	now := reading{e.flow.Load(), e.answered.Load(), e.failed.Load(), e.late.Load()}
	*c = balance.EndpointCounters{InFlight: int64(uint32(now.flow)), Standing: balance.Standing(e.standing.Load())} //nolint:gosec // a Standing.
	if c.Standing == balance.Out {
		c.OutAt, c.Cause = time.Duration(e.outAt.Load()), health.Cause(e.cause.Load()) //nolint:gosec // a Cause.
	}
	if now == e.seen { // as most are in a tick of a client that sends little
		return
	}
	answered, late := now.answered-e.seen.answered, now.late-e.seen.late
	c.Started = int64(uint32(now.flow>>32) - uint32(e.seen.flow>>32))
	c.OK = int64(answered / answeredOne) //nolint:gosec // 24 bits.
	c.Latency = time.Duration(answered&latencyMask) << latencyShift
	c.Failed = int64(now.failed - e.seen.failed) //nolint:gosec // a count of requests.
	c.LateOK = int64(uint32(late))
	c.LateFailed = int64(late >> 32) //nolint:gosec // 32 bits.
	e.seen = now
}

// read fills the counters for the loop.
func (p *Pool) read(now time.Duration) {
	elapsed := max(0, now-p.at)
	p.at = now
	p.counters.Groups = slices.Grow(p.counters.Groups[:0], len(p.groups))[:len(p.groups)]
	p.counters.Endpoints = slices.Grow(p.counters.Endpoints[:0], len(p.endpoints))[:len(p.endpoints)]
	var all int64
	for i, g := range p.groups {
		d := &p.decision.Groups[i]
		var started, inFlight int64
		for _, j := range d.Members { // each endpoint is in one group
			p.endpoints[j].read(&p.counters.Endpoints[j])
			started += p.counters.Endpoints[j].Started
			inFlight += p.counters.Endpoints[j].InFlight
		}
		c := &p.counters.Groups[i]
		*c = balance.GroupCounters{}
		if started > 0 || inFlight > 0 || !g.past.empty {
			*c = g.past.read(ageLimits{
				now: now, lead: d.ExtraRTT, baseline: p.decision.Baseline, limit: p.decision.Cap, horizon: p.decision.Horizon,
			})
		}
		c.RTT = time.Duration(g.rtt.Load())
		all += started
	}
	if elapsed >= sampledOver {
		p.sampled = float64(all) > manyPerSecond*elapsed.Seconds()
	}
}
