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
	// slowdownPrior is how many samples at the usual slowdown an endpoint is taken to have had; with slowdownTau it lets an
	// endpoint that is avoided be tried again within seconds.
	slowdownPrior = 2.0
	slowdownTau   = 2.0 // seconds
	// defaultCap is the largest slowdown of one request when the strategy names none: that of the overflow law.
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

// step is one turn of the loop: read, judge, decide, publish.
func (p *Pool) step(now time.Duration) {
	elapsed := max(0, now-p.at)
	p.at = now
	p.left.after(elapsed, p.ward.rules.Load())
	p.observe(now)
	p.count(now, elapsed)
	p.nurse(now)
	p.mark(now)
	p.warm(now)
	p.decision = p.options.Strategy.Step(now, &p.counters)
	p.follow()
	p.grade()
	p.bound()
	p.publish()
	p.rest(now)
}

// observe reads what the endpoints did.
func (p *Pool) observe(now time.Duration) {
	keep := p.left.slowdown
	ref := &p.reference
	ref.samples, ref.sum = ref.samples*keep, ref.sum*keep
	for _, m := range p.members {
		if m.read(); m.did.ok > 0 {
			ref.samples += float64(m.did.ok)
			ref.sum += m.did.latency.Seconds()
		}
	}
	usual, startsByPolicy := ref.usual(), p.prepared.config.SlowStart != nil
	for _, m := range p.members {
		m.recent.fold(&m.did, ref, keep)
		prior := usual
		if now-m.joined < slowStart && !startsByPolicy {
			prior = newcomerSlowdown * usual
		}
		// A store takes the line from those who read it, a look does not; few weights change in a tick.
		if weight := uint32(max(1, m.recent.slowdown(prior)*weightOne)); weight != m.weight.Load() {
			m.weight.Store(weight)
		}
	}
}

// left is what the time since the step before leaves of what is remembered. Simulated steps are nearly all of one length.
type left struct {
	elapsed, memory             time.Duration
	slowdown, delivered, health float64
}

func (l *left) after(elapsed time.Duration, rules *health.Config) {
	if l.elapsed == elapsed && l.memory == rules.Memory {
		return
	}
	*l = left{
		elapsed: elapsed, memory: rules.Memory, health: rules.Keep(elapsed),
		slowdown:  math.Exp(-elapsed.Seconds() / slowdownTau),
		delivered: math.Exp(-elapsed.Seconds() / deliveredTau),
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
		if longest := int64(limit + max(0, g.lead)); longest != g.limit.Load() {
			g.limit.Store(longest)
		}
		g.past.fit(horizon(limit)+max(0, g.lead), p.shards)
	}
}

// rest lets the pool sleep when nothing is under way and nothing unwinds.
func (p *Pool) rest(now time.Duration) {
	idle := now - p.busy
	if idle < restAfter || (p.decision.State != overflow.Calm && idle < unwindAfter) || len(p.drains) > 0 || p.warming {
		if !p.awake.Load() {
			p.awake.Store(true)
		}
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
