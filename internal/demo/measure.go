package demo

import (
	"slices"
	"sync"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// bucketWidth is the grain at which faults and recoveries are dated: the agents decide every 100 ms.
const bucketWidth = 100 * time.Millisecond

// When a spill counts as visible, and when as over.
const (
	spillShare   = 0.10 // of a zone's answers in one bucket: ten times what calm may leak
	spillAnswers = 2    // at least: one answer may be a probe
	returnShare  = 0.95 // of a zone's answers come from the zone again …
	returnSpan   = 10   // … over this many buckets: 1 s
)

// Figures sum up requests of one or all zones.
type Figures struct {
	Requests int     `json:"requests"`
	Rate     float64 `json:"rate"`    // requests due per second
	InZone   float64 `json:"inZone"`  // of the requests that an endpoint answered: fraction answered in the client's zone
	Spill    float64 `json:"spill"`   // the rest of them
	Success  float64 `json:"success"` // of all requests: fraction answered 2xx within a second of when they were due
	P50      Millis  `json:"p50Millis"`
	P99      Millis  `json:"p99Millis"`   // from when a request was due to when it was answered or given up
	Stall    Millis  `json:"stallMillis"` // the longest that a request was sent after it was due: the machine's fault
	Cost     float64 `json:"cost"`        // mean cost of an answered request; 1 is one crossing between zones
	Errors   Errors  `json:"errors"`
}

// Millis is a latency in milliseconds, as machines read it.
type Millis float64

// Errors count the requests that were not answered well, by how they ended.
type Errors struct {
	Late      int `json:"late"`      // no answer within a second
	Erroneous int `json:"erroneous"` // an endpoint answered other than 2xx
	Rejected  int `json:"rejected"`  // the agent answered for want of an endpoint
	Broken    int `json:"broken"`    // the connection to the agent broke
	Dropped   int `json:"dropped"`   // not even sent, because too many were outstanding
}

// tally adds up samples.
type tally struct {
	results  [outcomes]int
	answered int
	crossed  int
	cost     float64
	stall    time.Duration // the longest
	latency  histogram
}

func (t *tally) add(s sample, cost topology.Cost) {
	t.results[s.result]++
	if s.served >= 0 {
		t.answered++
		t.cost += float64(cost)
		if s.served != s.zone {
			t.crossed++
		}
	}
	t.stall = max(t.stall, s.sent-s.due)
	t.latency.add(s.done - s.due)
}

func (t *tally) merge(o *tally) {
	for i, n := range o.results {
		t.results[i] += n
	}
	t.answered += o.answered
	t.crossed += o.crossed
	t.cost += o.cost
	t.stall = max(t.stall, o.stall)
	t.latency.merge(&o.latency)
}

// figures sums up what was due in the given time. Nothing answered reads as all in zone, nothing due as all well: there
// is nothing to complain of.
func (t *tally) figures(over time.Duration) Figures {
	f := Figures{
		InZone: 1, Success: 1,
		P50: millis(t.latency.quantile(0.50)), P99: millis(t.latency.quantile(0.99)), Stall: millis(t.stall),
		Errors: Errors{
			Late: t.results[late], Erroneous: t.results[erroneous], Rejected: t.results[rejected],
			Broken: t.results[broken], Dropped: t.results[dropped],
		},
	}
	for _, n := range t.results {
		f.Requests += n
	}
	if over > 0 {
		f.Rate = float64(f.Requests) / over.Seconds()
	}
	if f.Requests > 0 {
		f.Success = float64(t.results[good]) / float64(f.Requests)
	}
	if t.answered > 0 {
		f.Spill = float64(t.crossed) / float64(t.answered)
		f.InZone = 1 - f.Spill
		f.Cost = t.cost / float64(t.answered)
	}
	return f
}

func millis(d time.Duration) Millis { return Millis(float64(d) / float64(time.Millisecond)) }

// recorder files samples by phase and zone, and by zone and time. It is safe for concurrent use.
type recorder struct {
	costs  [][]topology.Cost // from client zone to endpoint zone, by index
	mu     sync.Mutex
	starts []time.Duration // of each phase begun
	phases [][]tally       // by phase, then zone
	lines  []timeline      // by zone
}

// timeline is what one zone's clients saw, bucket by bucket since the run began.
type timeline []tally

func newRecorder(costs [][]topology.Cost) *recorder {
	return &recorder{costs: costs, lines: make([]timeline, len(costs))}
}

// enter begins the next phase.
func (r *recorder) enter(at time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starts = append(r.starts, at)
	r.phases = append(r.phases, make([]tally, len(r.costs)))
}

// record files one request: in the phase in which it was due, and in the bucket in which it was done. What was due
// before the first phase is not counted.
func (r *recorder) record(s sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var cost topology.Cost
	if s.served >= 0 {
		cost = r.costs[s.zone][s.served]
	}
	for i, start := range slices.Backward(r.starts) {
		if s.due >= start {
			r.phases[i][s.zone].add(s, cost)
			break
		}
	}
	r.lines[s.zone].at(bucketOf(s.done)).add(s, cost)
}

func bucketOf(at time.Duration) int { return int(max(at, 0) / bucketWidth) }

func (l *timeline) at(bucket int) *tally {
	for len(*l) <= bucket {
		*l = append(*l, tally{})
	}
	return &(*l)[bucket]
}

// recent sums up what each zone's clients saw in the last full buckets before now.
func (r *recorder) recent(now time.Duration, buckets int) []Figures {
	r.mu.Lock()
	defer r.mu.Unlock()
	figures := make([]Figures, len(r.lines))
	end := bucketOf(now)
	begin := max(end-buckets, 0)
	for zone, line := range r.lines {
		sum := line.sum(begin, end)
		figures[zone] = sum.figures(time.Duration(end-begin) * bucketWidth)
	}
	return figures
}

func (l *timeline) sum(begin, end int) tally {
	var sum tally
	for i := begin; i < min(end, len(*l)); i++ {
		sum.merge(&(*l)[i])
	}
	return sum
}

// spillAfter gives how many seconds after since the zone's spill became visible, counted to the end of the first bucket
// with enough answers from other zones; nil if it did not before until. A spill that was there already counts from the
// first bucket.
func (l *timeline) spillAfter(since, until time.Duration) *float64 {
	for i := bucketOf(since); i < len(*l) && time.Duration(i)*bucketWidth < until; i++ {
		t := &(*l)[i]
		if t.crossed >= spillAnswers && float64(t.crossed) >= spillShare*float64(t.answered) {
			return seconds(time.Duration(i+1)*bucketWidth - since)
		}
	}
	return nil
}

// returnAfter gives how many seconds after since the zone's traffic was back, counted to the beginning of the first
// stretch of returnSpan buckets in which it stayed in zone; nil if there was none before until.
func (l *timeline) returnAfter(since, until time.Duration) *float64 {
	last := min(bucketOf(until), len(*l)) - returnSpan
	for i := bucketOf(since); i <= last; i++ {
		span := l.sum(i, i+returnSpan)
		if span.answered > 0 && float64(span.answered-span.crossed) >= returnShare*float64(span.answered) {
			return seconds(max(time.Duration(i)*bucketWidth-since, 0))
		}
	}
	return nil
}

func seconds(d time.Duration) *float64 { return new(d.Seconds()) }
