package balance

import (
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/overflow"
)

const (
	// slowStart is how long a new endpoint counts as slow: processes warm caches, connections and compilers first.
	slowStart = 10 * time.Second
	// newSlowdown is the prior of a new endpoint: it gets about 1/2.5 of the others' requests.
	newSlowdown = 2.5
	// slowdownPrior is how many samples at the prior slowdown an endpoint is taken to have had; with slowdownTau it lets an
	// endpoint that is avoided be tried again within seconds.
	slowdownPrior = 2.0
	slowdownTau   = 2.0 // seconds
	// forgotten is a number of samples that changes no sum with the prior. Decaying further would end in numbers so small
	// that processors are slow with them.
	forgotten = 1e-30
)

// slowdown is an endpoint's recent latency in multiples of the reference.
type slowdown struct {
	samples, sum float64
	ok, seconds  float64 // good answers, and the sum of their latencies
}

// observe brings what is known of each endpoint up to date, in one pass as there may be many, and notes which of them the
// outlier detection has to look at. It gives the sum of their tallies.
func (l *Loop) observe(now time.Duration, in *Counters) (all health.Tally) {
	endpoints := l.decision.Endpoints
	l.counters.Endpoints = slices.Grow(l.counters.Endpoints[:0], len(endpoints))[:len(endpoints)]
	l.suspects, l.out = l.suspects[:0], 0
	base, few := l.reference.prior(), float64(l.rules.Failures)
	for i := range endpoints {
		e, c := &endpoints[i], &in.Endpoints[i]
		e.InFlight = c.InFlight
		l.counters.Endpoints[i] = overflow.EndpointCounters{
			InFlight: c.InFlight, OK: c.OK + c.LateOK, Failed: c.Failed + c.LateFailed, Latency: c.Latency,
		}
		if c.LateOK > 0 {
			l.counters.Endpoints[i].Latency += time.Duration(c.LateOK * int64(l.decision.Groups[e.Group].Limit))
		}
		e.recent.add(c, &l.reference, l.decay.slowdown)
		prior := base
		if now-e.joined < slowStart && l.config.SlowStart == nil {
			prior = newSlowdown * base
		}
		e.Slowdown = e.recent.mean(prior)
		e.read(now, c)
		if e.Standing != Serving {
			l.out++
		}
		tally := c.tally()
		e.Observe(&l.rules, now, l.decay.health, tally)
		if l.rules.Outliers != nil {
			e.interval = e.interval.Add(tally)
		}
		all = all.Add(e.Recent)
		if e.Standing != Serving || e.Out || c.Standing == Unknown || e.Recent.Failed >= few || l.rules.Outliers != nil {
			l.suspects = append(l.suspects, i)
		}
	}
	return all
}

// add takes what was counted, with the fraction of the old that is kept.
func (s *slowdown) add(c *EndpointCounters, ref *reference, keep float64) {
	bad := c.Failed + c.LateOK + c.LateFailed
	if c.OK+bad == 0 && s.samples < forgotten {
		*s = slowdown{}
		return
	}
	s.samples, s.sum = s.samples*keep, s.sum*keep
	s.ok, s.seconds = s.ok*keep+float64(c.OK), s.seconds*keep+c.Latency.Seconds()
	if c.OK+bad > 0 {
		s.samples += float64(c.OK) + float64(bad)
		s.sum += ref.slowdowns(c.Latency, c.OK) + float64(bad)*ref.cap
	}
}

// without gives what is left when o is taken away.
func (s *slowdown) without(o slowdown) slowdown {
	return slowdown{samples: max(0, s.samples-o.samples), sum: max(0, s.sum-o.sum)}
}

// mean is the slowdown, with a prior.
func (s *slowdown) mean(prior float64) float64 {
	return (s.sum + slowdownPrior*prior) / (s.samples + slowdownPrior)
}

// reference is what latencies are compared with: the strategy's baseline, or while there is none the recent mean of all
// endpoints, as a choice between endpoints only needs to know which is slower.
type reference struct {
	baseline     time.Duration // 0: not known
	cap          float64
	samples, sum float64 // decayed; sum in seconds
}

func (r *reference) fade(keep float64) { r.samples, r.sum = r.samples*keep, r.sum*keep }

func (r *reference) add(n int64, latency time.Duration) {
	r.samples += float64(n)
	r.sum += latency.Seconds()
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

// prior is the slowdown of an endpoint without samples: that of all where it is faster than the baseline, else 1.
// Where requests take a third of the baseline, which is never below a millisecond, an endpoint at slowdown 1 would be the
// slowest of all and, with few requests at once, be left out for good.
func (r *reference) prior() float64 {
	if r.baseline == 0 || r.samples < slowdownPrior {
		return 1
	}
	return min(1, r.sum/r.samples/r.baseline.Seconds())
}
