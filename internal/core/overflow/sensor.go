package overflow

import (
	"math"
	"time"
)

// sensor is what a client knows of one group (docs/overflow-law.md 1): one number that sees latency, failures and
// the age of requests still unanswered, and how much of what was sent came back.
type sensor struct {
	weight, sum float64 // decayed number of samples, and sum of their slowdowns
	sent        rate
	transit     transit
	ok, due     float64 // decayed: answered well; sent one delay earlier
	rtt         float64 // seconds; 0: not known

	memory          float64 // seconds that a sample counts
	slowdown        float64 // recent mean; 1 is normal
	delay           float64 // seconds that a request takes from the client, network included
	delivered       float64 // recent fraction of requests that were answered well
	good            int64   // answers of the last step, if all were good; 0: some were not, or there were none
	lastDue, lastOK float64 // of the last step: sent one delay earlier, and answered well
	samples         float64 // answers of the last step
	waiting         float64 // requests that wait for longer than a baseline
	heard           bool    // whether there was any sample in the last step
}

func newSensor() sensor { return sensor{slowdown: 1, delivered: 1} }

// reading is what a sensor needs besides the counters.
type reading struct {
	now      time.Duration
	dt       float64 // seconds since the step before
	baseline float64 // seconds; 0: not known
	homeRTT  float64 // seconds; 0: not known
	prior    float64 // requests at slowdown 1 that are taken to have been seen
	crisis   float64 // the slowdown at which home's crisis begins

	// What dt leaves of the longest memories, which are those of who gets few requests.
	longest   fading
	delivered float64
}

// step folds what was counted since the step before.
func (s *sensor) step(k *Constants, r *reading, in *GroupCounters) {
	if in.RTT > 0 {
		s.rtt = in.RTT.Seconds()
	}
	perSecond := s.sent.step(float64(in.Sent), r.longest)
	s.memory = samplesIn(k.MemorySamples, perSecond, k.shortMemory(r.baseline), k.MemoryMax.Seconds())

	samples := float64(in.OK + in.Failed)
	slowdowns := s.answers(k, r, in) + float64(in.Failed)*k.Cap
	keep := r.longest.keep
	if s.memory != k.MemoryMax.Seconds() {
		keep = math.Exp(-r.dt / s.memory)
	}
	s.weight = s.weight*keep + samples
	s.sum = s.sum*keep + slowdowns

	waiting, aged := float64(in.Waiting), min(max(in.Aged, 0), float64(in.Waiting)*k.Cap)
	if r.baseline == 0 {
		waiting, aged = 0, 0 // ages are counted in baselines
	}
	s.slowdown = (s.sum + aged + r.prior) / (s.weight + waiting + r.prior)
	s.delay = s.slowdown * max(0, r.baseline+s.extraRTT(r.homeRTT))
	s.deliver(k, r, in)

	s.samples, s.waiting = samples, waiting
	s.heard, s.good = samples > 0, 0
	if in.Failed == 0 && slowdowns <= samples*r.crisis {
		s.good = in.OK
	}
}

// answers gives the sum of the slowdowns of the good answers. The way to the group is no fault of its endpoints: what
// it is longer than the way home is taken off.
func (s *sensor) answers(k *Constants, r *reading, in *GroupCounters) float64 {
	n := float64(in.OK)
	if r.baseline == 0 {
		return n
	}
	own := in.Latency.Seconds() - n*s.extraRTT(r.homeRTT)
	return min(max(0, own/r.baseline), n*k.Cap)
}

// deliver compares what was answered well with what was sent one delay earlier, so that requests still under way are
// not taken for lost.
func (s *sensor) deliver(k *Constants, r *reading, in *GroupCounters) {
	s.transit.push(r.now, float64(in.Sent))
	due := s.transit.pop(r.now - time.Duration(s.delay*float64(time.Second)))
	keep := r.delivered
	if s.memory < k.DeliveredMax.Seconds() {
		keep = math.Exp(-r.dt / s.memory)
	}
	s.lastDue, s.lastOK = due, float64(in.OK)
	s.ok = s.ok*keep + float64(in.OK)
	s.due = s.due*keep + due
	s.delivered = min(1, (s.ok+k.PriorArmed)/(s.due+k.PriorArmed))
}

// extraRTT is how much longer the way here is than the way home.
func (s *sensor) extraRTT(home float64) float64 {
	if s.rtt == 0 || home == 0 {
		return 0
	}
	return s.rtt - home
}

// forget drops bad memories, so that an evacuated zone is judged by what it does now.
func (s *sensor) forget() {
	s.weight, s.sum, s.ok, s.due = 0, 0, 0, 0
	s.slowdown, s.delivered = 1, 1
	s.transit = transit{}
}

// shortMemory is the shortest useful memory and the shortest time in which the effect of a change can be seen: answers
// take a baseline to arrive.
func (k *Constants) shortMemory(baseline float64) float64 {
	return max(k.MemoryMin.Seconds(), k.MemoryBaselines*baseline)
}

// transitSteps is how many steps in which something was sent are remembered: 6.4 s of them at 10 a second, more than the
// delay of any service whose baseline is below 0.8 s. Older ones count as due.
const transitSteps = 64

// transit is a queue of what was sent and is not due yet.
type transit struct {
	at          [transitSteps]time.Duration
	sent        [transitSteps]float64
	first, size int
	early       float64 // pushed out by newer ones
}

func (t *transit) push(now time.Duration, n float64) {
	if n <= 0 {
		return
	}
	if t.size == transitSteps {
		t.early += t.sent[t.first]
		t.first = (t.first + 1) % transitSteps
		t.size--
	}
	last := (t.first + t.size) % transitSteps
	t.at[last], t.sent[last] = now, n
	t.size++
}

// pop takes out what was sent until then.
func (t *transit) pop(until time.Duration) float64 {
	due := t.early
	t.early = 0
	for t.size > 0 && t.at[t.first] <= until {
		due += t.sent[t.first]
		t.first = (t.first + 1) % transitSteps
		t.size--
	}
	if t.size == 0 {
		t.first = 0 // where memory is at hand
	}
	return due
}
