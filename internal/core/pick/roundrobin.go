package pick

import (
	"math"
	"slices"
)

// newRoundRobin makes a picker that takes turns. Among equal weights it is plain rotation. With others an endpoint of
// weight w has w turns in each period of as many turns as the weights, without their common divisor, add up to; in any
// such number of consecutive picks, wherever they begin, each endpoint has exactly that many.
//
// Source: the counts are those of Envoy's earliest-deadline-first scheduler. The order is ours: a scheduler's queue
// would need a lock, a counter only needs the next number of a counter.
func newRoundRobin(c *Config, endpoints []*endpoint, counter *counter) picker {
	var p picker
	if equalWeights(endpoints) {
		p = &roundRobin{endpoints: endpoints, counter: counter}
	} else if weights, sum := reducedWeights(endpoints); sum <= maxSchedule {
		p = &scheduled{endpoints: endpoints, counter: counter, order: schedule(weights, sum)}
	} else {
		p = newStrided(endpoints, counter, weights)
	}
	return starting(c, p)
}

// maxSchedule bounds the memory of a schedule, to 8 KiB, and the time that making it takes, to some 0.2 ms.
const maxSchedule = 4096

// reducedWeights gives the weights without their greatest common divisor, and their sum, which is below 2^32: weights
// that are too large for that lose their lower bits.
func reducedWeights(endpoints []*endpoint) (weights []uint64, sum uint64) {
	weights = make([]uint64, len(endpoints))
	divisor := uint64(0)
	for i, e := range endpoints {
		weights[i] = weightOf(&e.target)
		divisor = gcd(divisor, weights[i])
		sum += weights[i]
	}
	for ; sum/divisor >= 1<<32; divisor *= 2 {
	}
	sum = 0
	for i := range weights {
		weights[i] = max(1, weights[i]/divisor)
		sum += weights[i]
	}
	return weights, sum
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// roundRobin takes the endpoints one after the other. Its counter is one word for all processors; that is what the
// order costs. It outlives the picker, so that a change of endpoints does not start again from the first.
type roundRobin struct {
	endpoints []*endpoint
	counter   *counter
}

func (p *roundRobin) pick(_, _ uint64) *endpoint {
	return p.endpoints[p.counter.n.Add(1)%uint64(len(p.endpoints))]
}

// scheduled follows a period that is written out.
type scheduled struct {
	endpoints []*endpoint
	counter   *counter
	order     []uint16
}

func (p *scheduled) pick(_, _ uint64) *endpoint {
	return p.endpoints[p.order[p.counter.n.Add(1)%uint64(len(p.order))]]
}

// schedule spreads each one's turns evenly over the period. The first ones are staggered in steps of the golden ratio,
// as endpoints of the same weight would otherwise come in a row.
func schedule(weights []uint64, sum uint64) []uint16 {
	const indexBits = 16
	due := make([]uint64, 0, sum) // when in the period, in 2^-48, and which endpoint
	for i, weight := range weights {
		stagger := upper(uint64(i) * golden)
		for j := range weight {
			due = append(due, (j<<32+stagger)<<16/weight<<indexBits|uint64(i)) //nolint:gosec // an index.
		}
	}
	slices.Sort(due)
	order := make([]uint16, len(due))
	for k, d := range due {
		order[k] = uint16(d & (1<<indexBits - 1))
	}
	return order
}

// strided gives each endpoint as many positions on a circle as its weight, and goes around it in steps that come to every
// place once before they come to the first again. Nothing is written out, so its size does not depend on the weights.
type strided struct {
	endpoints []*endpoint
	counter   *counter
	index     weightedIndex
	step      uint64
}

// newStrided takes the most even of the steps around the golden part of the circle: it spreads the turns of each endpoint,
// whatever its weight.
func newStrided(endpoints []*endpoint, counter *counter, weights []uint64) *strided {
	p := &strided{endpoints: endpoints, counter: counter, index: newWeightedIndex(weights)}
	const steps = 64 // there is an even one among so many: quotients of 5 and less are frequent
	least := uint64(math.MaxUint64)
	first := uint64(float64(p.index.whole)/math.Phi) - steps/2
	for step := first; step < first+steps; step++ {
		if bunching := bunching(p.index.whole, step); bunching < least {
			p.step, least = step, bunching
		}
	}
	return p
}

// bunching tells how far from even the steps come, by the largest quotient of the continued fraction of step/whole (Niederreiter
// 1992, chapter 3); infinite if they miss positions.
func bunching(whole, step uint64) uint64 {
	largest := uint64(0)
	for step > 1 {
		largest = max(largest, whole/step)
		whole, step = step, whole%step
	}
	if step == 0 {
		return math.MaxUint64
	}
	return max(largest, whole)
}

func (p *strided) pick(_, _ uint64) *endpoint {
	counter := p.counter.n.Add(1) % p.index.whole
	return p.endpoints[p.index.at(counter*p.step%p.index.whole)]
}

// starting makes a picker follow a slow start, if there is one.
func starting(c *Config, p picker) picker {
	if c.SlowStart == nil {
		return p
	}
	return &thinned{picker: p}
}

// thinned passes by an endpoint that starts slowly, as often as it lacks weight, and takes the next one in its place.
type thinned struct{ picker }

func (p *thinned) pick(random, key uint64) *endpoint {
	spare := random >> 16 % (maxPassedBy + 1)
	var kept *endpoint
	for i := range uint64(maxPassedBy + 1) {
		e := p.picker.pick(random, key)
		if e.joins(random) {
			return e
		}
		if i == spare {
			kept = e
		}
		random = mix(random + golden)
	}
	return kept
}

// maxPassedBy bounds how many are passed by. Where so many are, most endpoints are new, and going on would change little in
// which is found: it is one of those then, at random, as the last one of a fixed number may always be the same.
const maxPassedBy = 8

// joins tells whether an endpoint takes part in a choice: always, unless it starts slowly. Only the lower 16 bits of
// random count; they are uniform.
func (e *endpoint) joins(random uint64) bool {
	ramp := e.ramp.Load()
	return ramp == 0 || random&(1<<16-1) < uint64(ramp)
}
