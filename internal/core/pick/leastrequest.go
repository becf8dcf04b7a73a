package pick

import "math"

// newLeastRequest makes a picker that compares endpoints by requests in flight.
func newLeastRequest(c *Config, endpoints []*endpoint) picker {
	if !equalWeights(endpoints) {
		return newLeastWeighted(c, endpoints)
	}
	p := &leastRequest{endpoints: endpoints, draws: c.Choices, slow: c.SlowStart != nil}
	if p.draws <= 0 {
		p.draws = 2
	}
	// With eight draws for each endpoint all but 1/3000 of the endpoints are seen: more would only take time.
	p.draws = min(p.draws, 8*len(endpoints))
	return p
}

// leastRequest draws some endpoints and takes the one with the fewest requests in flight, the first of those.
//
// Source: Envoy's least request with equal weights, and gRFC A48: draws with replacement. With a slow start Envoy turns to
// the weighted kind; here an endpoint that starts slowly is left out of the comparison as often as it lacks weight.
type leastRequest struct {
	endpoints []*endpoint
	draws     int
	slow      bool // some may start slowly
}

func (p *leastRequest) pick(random, _ uint64) *endpoint {
	n := uint64(len(p.endpoints))
	var best, last *endpoint
	least := int64(math.MaxInt64)
	numbers := numbers{random: random, word: random}
	for range p.draws {
		last = p.endpoints[below(numbers.next(), n)]
		if last.standing.Load() != serving || p.slow && !last.joins(numbers.next()) {
			continue
		}
		if active := last.inFlight(); active < least {
			best, least = last, active
		}
	}
	if best == nil && p.slow {
		return p.further(&numbers)
	}
	if best == nil {
		return last
	}
	return best
}

// further looks for any endpoint that takes part, when none of those drawn does.
func (p *leastRequest) further(numbers *numbers) *endpoint {
	var e *endpoint
	for range maxPassedBy {
		e = p.endpoints[below(numbers.next(), uint64(len(p.endpoints)))]
		if e.standing.Load() == serving && e.joins(numbers.next()) {
			break
		}
	}
	return e
}

// numbers stretches one random number to any number of 32-bit ones: its own halves first, then what mix makes of it.
type numbers struct {
	random, word, steps uint64
	half                bool // the upper half of word is used up
}

func (s *numbers) next() uint64 {
	if !s.half {
		s.half = true
		return upper(s.word)
	}
	number := lower(s.word)
	s.half = false
	s.steps += golden
	s.word = mix(s.random + s.steps)
	return number
}

// leastWeighted takes an endpoint with a probability in proportion to weight / (in flight + 1)^bias.
//
// Source: Envoy's least request with unequal weights, whose scheduler gives the same shares but needs a lock and
// weights that it takes again at each pick; the number of choices counts in neither. Departure: the shares are exact up
// to fewWeighted endpoints. Among more, so many are drawn by weight and one of them by what it has in flight, which
// gives the idlest some percent less than that.
type leastWeighted struct {
	endpoints []*endpoint
	weights   []float64
	index     weightedIndex       // by weight
	favour    [manyActive]float64 // 1 / (in flight + 1)^bias
	bias      float64
}

const (
	// fewWeighted is how many endpoints are looked at: a cache line each, 16 cost less than a microsecond.
	fewWeighted = 16
	// manyActive is the number in flight from which the power is computed instead of looked up, which takes 30 ns.
	manyActive = 256
)

func newLeastWeighted(c *Config, endpoints []*endpoint) *leastWeighted {
	weights := make([]float64, len(endpoints))
	for i, e := range endpoints {
		weights[i] = float64(weightOf(&e.target))
	}
	p := &leastWeighted{endpoints: endpoints, weights: weights, index: sharedIndex(weights), bias: 1}
	if c.Bias != nil {
		p.bias = *c.Bias
	}
	for active := range p.favour {
		p.favour[active] = math.Pow(float64(active+1), -p.bias)
	}
	return p
}

func (p *leastWeighted) pick(random, _ uint64) *endpoint {
	var drawn [fewWeighted]*endpoint
	var sums [fewWeighted]float64
	few := min(len(p.endpoints), fewWeighted)
	all := few == len(p.endpoints)
	numbers := numbers{random: random, word: random}
	sum := 0.0
	for k := range few {
		if all {
			drawn[k] = p.endpoints[k]
			sum += p.favoured(drawn[k]) * p.weights[k]
		} else {
			drawn[k] = p.endpoints[p.index.at(numbers.next())]
			sum += p.favoured(drawn[k])
		}
		sums[k] = sum
	}
	number := float64(numbers.next()) / (1 << 32) * sum
	for k := range few {
		if number < sums[k] {
			return drawn[k]
		}
	}
	return drawn[0] // none of them serves
}

// favoured is what counts for an endpoint besides its weight.
func (p *leastWeighted) favoured(e *endpoint) float64 {
	if e.standing.Load() != serving {
		return 0
	}
	favour := 0.0
	if active := e.inFlight(); active < manyActive {
		favour = p.favour[active]
	} else {
		favour = math.Pow(float64(active+1), -p.bias)
	}
	if ramp := e.ramp.Load(); ramp != 0 {
		favour *= float64(ramp) / (1 << 16)
	}
	return favour
}
