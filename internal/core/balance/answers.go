package balance

import (
	"time"

	"github.com/weir-lb/weir/internal/core/health"
)

// Answers is what was answered lately, for people: a slowdown mixes latency and failures. The zero value is nothing.
type Answers struct {
	ok, seconds float64 // good answers, and the sum of their latencies
	tally       health.Tally
}

// Answers gives what the endpoint answered lately.
func (e *Endpoint) Answers() Answers { return Answers{e.recent.ok, e.recent.seconds, e.Recent} }

// Add gives the answers of both.
func (a Answers) Add(b Answers) Answers {
	return Answers{a.ok + b.ok, a.seconds + b.seconds, a.tally.Add(b.tally)}
}

// Latency is the mean latency of good answers; 0: there was none.
func (a Answers) Latency() time.Duration {
	if a.ok < forgotten {
		return 0
	}
	return time.Duration(a.seconds / a.ok * float64(time.Second))
}

// FailureRatio is the part of answers that were failures; 0 also where there was none.
func (a Answers) FailureRatio() float64 {
	all := a.tally.OK + a.tally.Failed
	if all < forgotten {
		return 0
	}
	return a.tally.Failed / all
}
