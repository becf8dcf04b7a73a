package balance

import (
	"time"

	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/overflow"
)

// A zone with more load than it can serve times out and answers 503. To eject endpoints for that takes capacity from a zone
// that lacks it, so that the next endpoint is overloaded, too. While a group is full, endpoints are ejected only by comparison
// with their peers in it: if all are slow it is the load, if one is it is a fault.
const (
	// fullSlowdown is how many times longer than normal the good answers of a full group take: queues are longer than the
	// work itself, and shorter ones cause neither timeouts nor 503s. A fault without load leaves good answers quick.
	fullSlowdown = 2.0
	// fullLoad is the requests sent over the most that were answered well, from which a group is full, however quick its
	// good answers are: servers that reject what is too much have no queues. A fifth more is not reached by chance.
	fullLoad = 1.2
	// fullGood is the part of all requests that has to be answered well for that to count as what a group can serve.
	fullGood = 0.9
	// fullAnswers is how many recent good answers tell how long they take. A group without any is dead, not full.
	fullAnswers = 4.0
	// peakTau is the memory of the most that a group answered, in seconds.
	peakTau = 60.0
)

// load is what a group is asked for and what it answers, decayed as its ok and failed are: with a memory of a second these
// are rates per second.
type load struct {
	sent, answered float64
	took           float64 // seconds, sum over answered
	peak           float64 // most answered lately while nearly all was, for each endpoint; 0: it never was
}

// add takes what was counted, late good answers included.
func (l *load) add(c *overflow.GroupCounters, late int64, limit time.Duration, d decay) {
	l.sent = l.sent*d.delivered + float64(c.Sent)
	l.answered = l.answered*d.delivered + float64(c.OK+late)
	l.took = l.took*d.delivered + c.Latency.Seconds() + float64(late)*limit.Seconds()
}

// exceeds tells whether the load is more than so many endpoints can serve, by the latency of a good answer when nothing is
// wrong (0: not known) and by the most that they ever answered.
func (l *load) exceeds(usual time.Duration, endpoints int, keep float64) bool {
	per := float64(max(1, endpoints))
	l.peak *= keep
	if l.answered >= fullGood*l.sent {
		l.peak = max(l.peak, l.answered/per)
	}
	if l.answered < fullAnswers {
		return false
	}
	return usual > 0 && l.took > fullSlowdown*usual.Seconds()*l.answered || l.peak > 0 && l.sent > fullLoad*l.peak*per
}

// sumServing sums up what is known of the serving endpoints of full groups, which isOutlier compares one of them with.
func (l *Loop) sumServing() {
	for i := range l.decision.Groups {
		g := &l.decision.Groups[i]
		if !g.Full {
			continue
		}
		g.serving = slowdown{}
		for _, j := range g.Members {
			if e := &l.decision.Endpoints[j]; e.Standing == Serving {
				g.serving.samples += e.recent.samples
				g.serving.sum += e.recent.sum
			}
		}
	}
}

// someSamples is more than rounding leaves of a difference that is nothing.
const someSamples = 1e-6

// isOutlier tells whether a serving endpoint of a full group fails, and is much worse than its peers.
func (l *Loop) isOutlier(e *Endpoint) bool {
	if l.rules.Failures <= 0 || e.Recent.Failed < float64(l.rules.Failures) {
		return false
	}
	rest := l.decision.Groups[e.Group].serving.without(e.recent)
	return rest.samples > someSamples && e.recent.mean(1) >= health.OddsOfRest*rest.mean(1)
}
