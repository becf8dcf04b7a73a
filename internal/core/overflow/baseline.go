package overflow

import "math"

const (
	minutes = 60 // closed slots that are remembered: an hour, long enough to outlast an incident
	hours   = 24 // means of an hour that are remembered: a slow drift cannot teach the law to accept it within a day
)

// baseline learns what an answer takes when nothing is wrong (docs/overflow-law.md 2), from home while it is calm.
//
// Its history has two levels: slots of about a minute, of which the last hour is kept, and means of an hour, of which
// the last day is kept. The baseline is the smallest of them all. An hour is a mean and not a minimum, because the
// minimum of 1,440 noisy means lies far below any of them.
type baseline struct {
	value float64 // seconds, at least BaselineMin; 0: not known yet
	noise float64 // squared coefficient of variation of a single request, waiting in queues together included

	open    slot
	minutes [minutes]closedSlot
	minute  int // where the next closed slot goes
	hour    slot
	hours   [hours]closedSlot
	nextOf  int // where the next hour goes

	basis    float64 // requests behind value, until it is settled
	windowed bool    // a window of first answers was full
	settled  bool    // there is at least one slot; before, value is the fastest that was seen
	slowFor  float64 // seconds that home has been slow with nowhere better to go
}

// slot gathers the requests of an interval.
type slot struct {
	window
	squares float64 // of the mean of each part, times its requests
	parts   float64
}

// closedSlot is what is remembered of a slot; mean 0: nothing.
type closedSlot struct{ mean, noise float64 }

// window adds up the latencies of some requests in a row, in seconds: all, failures as the cap, and the good ones alone.
type window struct {
	requests, sum, good, goodSum float64

	seconds float64 // since the first of them
	least   float64 // requests that make it full
}

func newBaseline() baseline { return baseline{noise: 1} }

// see takes the first answers of any group: until home has filled a slot, the fastest window of any group is the best
// guess, and before the first window is full whatever has been seen. The quick answers are the first that arrive, so that a
// window of less time than answers take is no evidence, however many there were; and each window of a group is twice as
// long as the one before, as the least of many short ones would be far below what is normal.
func (b *baseline) see(k *Constants, dt float64, w *window, in *GroupCounters) {
	if b.settled {
		return
	}
	if w.requests > 0 {
		w.seconds += dt
	}
	if in.OK == 0 {
		return
	}
	w.add(k, in)
	mean := w.sum / w.requests
	lasts := w.seconds >= k.shortMemory(mean)
	full := lasts && w.requests >= max(k.WindowSamples, w.least)
	if mean > 0 && (!b.windowed || full && mean < b.value) {
		b.value, b.basis = max(mean, k.BaselineMin.Seconds()), 1
		if lasts {
			b.basis = w.requests
		}
	}
	if full {
		b.windowed = true
		*w = window{least: 2 * w.requests}
	}
}

// learn takes home's answers of a calm step.
func (b *baseline) learn(k *Constants, dt float64, in *GroupCounters) {
	b.open.seconds += dt
	if in.OK+in.Failed > 0 && b.value > 0 {
		b.open.part(float64(in.OK+in.Failed), b.open.add(k, in))
	}
	if b.open.seconds < k.SlotMin.Seconds() || b.open.requests < k.SlotSamples {
		return
	}
	b.settled = true
	b.recall(k)
	if b.open.seconds >= k.SlotLength.Seconds() {
		b.close()
	}
}

// add takes the answers of one step and gives what they add to the sum. Failures count as the cap, as they do in the
// sensor: a service that always fails one request in a hundred is normal like that. What the cap is a multiple of is
// taken from the good answers here, and not from the baseline, which would grow on itself.
func (w *window) add(k *Constants, in *GroupCounters) float64 {
	w.good += float64(in.OK)
	w.goodSum += in.Latency.Seconds()
	sum := in.Latency.Seconds()
	if w.good > 0 {
		sum += float64(in.Failed) * k.Cap * w.goodSum / w.good
	}
	w.requests += float64(in.OK + in.Failed)
	w.sum += sum
	return sum
}

// part takes n requests as one more sample of the slot's noise.
func (s *slot) part(n, sum float64) {
	s.squares += sum * sum / n
	s.parts++
}

// closed gives the slot's mean and noise. The noise is measured from the means of the parts, each of which varies by
// the variance of one request over its number of requests, and more where requests of one step share a queue: that is
// the noise that the sensor sees.
func (s *slot) closed() closedSlot {
	c := closedSlot{noise: 1}
	if s.requests > 0 {
		c.mean = s.sum / s.requests
	}
	if s.parts > 1 && c.mean > 0 {
		variance := max(0, s.squares-s.sum*c.mean) / (s.parts - 1)
		c.noise = variance / (c.mean * c.mean)
	}
	return c
}

// close moves the open slot into the history.
func (b *baseline) close() {
	b.minutes[b.minute] = b.open.closed()
	b.minute = (b.minute + 1) % minutes
	b.hour.seconds += b.open.seconds
	b.hour.requests += b.open.requests
	b.hour.sum += b.open.sum
	b.open = slot{}
	if b.hour.seconds >= 3600 {
		b.hours[b.nextOf] = b.hour.closed()
		b.nextOf = (b.nextOf + 1) % hours
		b.hour = slot{}
	}
}

// filled gives the part of a ring that was ever written; next is where the next slot goes.
func filled(ring []closedSlot, next int) []closedSlot {
	if ring[len(ring)-1] == (closedSlot{}) {
		return ring[:next]
	}
	return ring
}

// recall finds the smallest mean of the open slot and the history, and the mean noise.
func (b *baseline) recall(k *Constants) {
	now := b.open.closed()
	least, noise, n := now.mean, now.noise, 1.0
	for _, c := range filled(b.minutes[:], b.minute) {
		if c.mean > 0 {
			least = min(least, c.mean)
			noise += c.noise
			n++
		}
	}
	for _, c := range filled(b.hours[:], b.nextOf) {
		if c.mean > 0 {
			least = min(least, c.mean)
		}
	}
	b.value, b.noise = max(least, k.BaselineMin.Seconds()), noise/n
}

// escape lets slow become normal, if home has been slow for long with nowhere better to go: the baseline and its whole
// history grow. What is more than 2 Cap times slower than the baseline counts as failed and is never accepted: such a service
// is broken, not changed.
func (b *baseline) escape(k *Constants, dt float64) {
	b.slowFor += dt
	if b.slowFor < k.EscapeAfter.Seconds() {
		return
	}
	factor := math.Exp(dt / k.EscapeTime.Seconds())
	b.value *= factor
	b.open = slot{}
	for i := range b.minutes {
		b.minutes[i].mean *= factor
	}
	for i := range b.hours {
		b.hours[i].mean *= factor
	}
	b.hour.sum *= factor
}

// threshold is the slowdown at which home arms (docs/overflow-law.md 3): the user's limit, or as far above normal as this
// client's own estimate can be by chance, whichever is more. Before the baseline is settled it is as uncertain itself. A jump
// of latency makes the open slot look noisy and must not hide behind that: samples between 0 and Cap with a mean of 1 have a
// variance below Cap.
func (b *baseline) threshold(k *Constants, weight float64) float64 {
	samples := weight + k.PriorCalm
	variance := min(b.noise, k.Cap) * weight / (samples * samples)
	if !b.settled {
		noise := min(max(b.noise, b.open.closed().noise), k.Cap)
		variance = noise * (weight/(samples*samples) + 1/max(1, b.basis))
	}
	return max(k.HomeSlowdown, 1+k.NoiseBand*math.Sqrt(variance))
}
