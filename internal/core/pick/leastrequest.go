package pick

import "math"

// leastRequest compares some endpoints at random by requests in flight alone.
type leastRequest struct {
	endpoints []*endpoint
	choices   int
}

func newLeastRequest(endpoints []*endpoint, choices int) *leastRequest {
	if choices <= 0 {
		choices = 2
	}
	return &leastRequest{endpoints: endpoints, choices: min(choices, len(endpoints))}
}

// pick walks from a random endpoint by a random stride, so that one random number is enough and, unless the stride
// divides their number, no endpoint is compared twice.
func (p *leastRequest) pick(random, _ uint64) *endpoint {
	n := uint64(len(p.endpoints))
	at := below(upper(random), n)
	stride := uint64(1)
	if n > 2 {
		stride += below(lower(random), n-1)
	}
	best, least := p.endpoints[at], int64(math.MaxInt64)
	for range p.choices {
		if e := p.endpoints[at]; e.standing.Load() == serving && e.inFlight() < least {
			best, least = e, e.inFlight()
		}
		if at += stride; at >= n {
			at -= n
		}
	}
	return best
}
