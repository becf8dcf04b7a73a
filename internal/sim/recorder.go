package sim

import (
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/sim/scenario"
)

// outcome is a request that is over.
type outcome struct {
	ending

	zone    int // of the client
	due     time.Duration
	took    time.Duration
	tries   int
	cost    float64
	taken   bool // by an endpoint
	crossed bool // which is not in the client's zone
}

// period is a part of the run.
type period int

const (
	beginning period = iota // not counted
	calm
	stressed
	after
	periods
)

// recorder counts requests by when they were due.
type recorder struct {
	sc       *scenario.Scenario
	affected []bool // by zone

	tenths  []tally      // of a second, one for each zone
	sums    [][]sum      // by period and zone
	seconds []*histogram // by second and zone; nil before the first request and after the last
	closed  int          // seconds of which nothing more can come
	spare   []*histogram
	points  []Point // one for each second
}

// tally counts requests.
type tally struct {
	requests, good, success, shed, taken, crossed int32
	cost                                          float64
}

func (t *tally) merge(o *tally) {
	t.requests += o.requests
	t.good += o.good
	t.success += o.success
	t.shed += o.shed
	t.taken += o.taken
	t.crossed += o.crossed
	t.cost += o.cost
}

// sum is what a zone's clients saw in a period.
type sum struct {
	tally

	attempts int64
	took     time.Duration // of all
	latency  histogram
}

func (s *sum) merge(o *sum) {
	s.tally.merge(&o.tally)
	s.attempts += o.attempts
	s.took += o.took
	s.latency.merge(&o.latency)
}

// tenth is the grain in which reactions are measured.
const tenth = 100 * time.Millisecond

func newRecorder(sc *scenario.Scenario) *recorder {
	r := &recorder{sc: sc}
	for i := range sc.Clients {
		r.affected = append(r.affected, len(sc.Affected) == 0 || slices.Contains(sc.Affected, sc.Clients[i].Zone))
	}
	zones := len(sc.Clients)
	r.tenths = make([]tally, int((sc.Length+tenth-1)/tenth)*zones)
	r.sums = make([][]sum, periods)
	for p := range r.sums {
		r.sums[p] = make([]sum, zones)
	}
	n := int((sc.Length + time.Second - 1) / time.Second)
	r.points = make([]Point, n)
	r.seconds = make([]*histogram, n*zones)
	return r
}

// period tells which part of the run a moment is in.
func (r *recorder) period(at time.Duration) period {
	switch {
	case at < r.sc.Warmup():
		return beginning
	case at < r.sc.Stress.From:
		return calm
	case at < r.sc.Stress.To:
		return stressed
	default:
		return after
	}
}

// one counts a single request. The latency of a failed one becomes the timeout.
func (o *outcome) one(sc *scenario.Scenario) tally {
	t := tally{requests: 1, cost: o.cost}
	switch {
	case !o.success:
		o.took = sc.Request.Timeout
	case o.took <= sc.GoodWithin():
		t.success, t.good = 1, 1
	default:
		t.success = 1
	}
	if o.shed {
		t.shed = 1
	}
	if o.taken {
		t.taken = 1
		if o.crossed {
			t.crossed = 1
		}
	}
	return t
}

// add counts a request, of which one is the tally.
func (s *sum) add(o *outcome, one *tally) {
	s.tally.merge(one)
	s.attempts += int64(o.tries)
	s.took += o.took
	s.latency.add(o.took)
}

// add counts a request.
func (r *recorder) add(o *outcome) {
	zones := len(r.affected)
	one := o.one(r.sc)
	r.tenths[int(o.due/tenth)*zones+o.zone].merge(&one)
	r.sums[r.period(o.due)][o.zone].add(o, &one)
	h := &r.seconds[int(o.due/time.Second)*zones+o.zone]
	if *h == nil {
		*h = r.histogram()
	}
	(*h).add(o.took)
}

// histogram gives an empty one.
func (r *recorder) histogram() *histogram {
	n := len(r.spare)
	if n == 0 {
		return new(histogram)
	}
	h := r.spare[n-1]
	r.spare = r.spare[:n-1]
	*h = histogram{}
	return h
}

// second is the end of a second of the run, at which so many pods are ready. The seconds of which no request can be under
// way any more are closed.
func (r *recorder) second(now time.Duration, ready int) {
	r.points[int(now/time.Second)-1].Pods = ready
	q := &r.sc.Request
	patience := q.Timeout
	if q.Polls > 0 {
		patience += q.Hold
	}
	for time.Duration(r.closed+1)*time.Second+patience < now {
		r.close()
	}
}

// close makes the point of the first open second.
func (r *recorder) close() {
	zones := len(r.affected)
	p := &r.points[r.closed]
	p.At = time.Duration(r.closed) * time.Second
	p.Zones = make([]ZonePoint, zones)
	var all tally
	merged := r.histogram()
	for z := range zones {
		var t tally
		for i := range int(time.Second / tenth) {
			if at := (r.closed*int(time.Second/tenth)+i)*zones + z; at < len(r.tenths) {
				t.merge(&r.tenths[at])
			}
		}
		all.merge(&t)
		p.Zones[z] = ZonePoint{
			Zone: r.sc.Clients[z].Zone, Requests: int64(t.requests), Good: int64(t.good),
			Failed: int64(t.requests - t.success), Answered: int64(t.taken), Crossed: int64(t.crossed),
		}
		if h := &r.seconds[r.closed*zones+z]; *h != nil {
			p.Zones[z].P99 = (*h).quantile(0.99)
			merged.merge(*h)
			r.spare = append(r.spare, *h)
			*h = nil
		}
	}
	p.P50, p.P99 = merged.quantile(0.5), merged.quantile(0.99)
	p.Dollars = dollars(r.sc, all.cost) // in a second
	r.spare = append(r.spare, merged)
	r.closed++
}

// dollars gives what a second's sum of costs comes to in an hour.
func dollars(sc *scenario.Scenario, costPerSecond float64) float64 {
	const perGB, secondsPerHour = 1e9, 3600
	return costPerSecond * sc.Request.Bytes / perGB * sc.Price.PerGB * secondsPerHour
}

// covers tells whether the second that ends now is a second of the stress.
func (r *recorder) covers(now time.Duration) bool {
	return now-time.Second >= r.sc.Stress.From && now <= r.sc.Stress.To
}

// stress tells whether the stress is on.
func (r *recorder) stress(now time.Duration) bool {
	return now >= r.sc.Stress.From && now < r.sc.Stress.To
}
