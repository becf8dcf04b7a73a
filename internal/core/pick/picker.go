package pick

import "sync/atomic"

// picker proposes one endpoint of a route. A new algorithm is one file with one picker, and its name in Algorithms and
// in newPlain, or in newHashTable if it hashes.
//
// It is safe for concurrent use, never blocks and allocates nothing. It is made when a route's endpoints change and
// swapped whole. What it proposes may have stopped serving a moment ago; the view then looks further.
type picker interface {
	// pick gives an endpoint of the route, which has at least one. random is uniform and new for each call; key is the
	// request's, or random if it has none. Nil: the key's endpoint is not available.
	pick(random, key uint64) *endpoint
}

// newPlain makes the picker of an algorithm that does not hash for endpoints, of which there is at least one. They are all
// alike but for their weights.
func newPlain(c *Config, endpoints []*endpoint, counter *counter) picker {
	switch c.Algorithm {
	case RoundRobin:
		return newRoundRobin(c, endpoints, counter)
	case Random:
		return &uniform{endpoints: endpoints}
	case LeastRequest:
		return newLeastRequest(c, endpoints)
	default:
		return starting(c, &powerOfTwo{endpoints: endpoints})
	}
}

// weightOf is an endpoint's weight among the others.
func weightOf(t *Target) uint64 { return uint64(max(1, t.Weight)) }

// equalWeights tells whether weights make no difference.
func equalWeights(endpoints []*endpoint) bool {
	for _, e := range endpoints {
		if weightOf(&e.target) != weightOf(&endpoints[0].target) {
			return false
		}
	}
	return true
}

// below gives a number in [0, n) from 32 bits that are uniform: the product's upper half (Lemire 2019), without the
// correction for a bias that is n/2^32 at most.
func below(bits32, n uint64) uint64 { return bits32 * n >> 32 }

// upper and lower split a random number in two.
func upper(random uint64) uint64 { return random >> 32 }
func lower(random uint64) uint64 { return random & (1<<32 - 1) }

// scatter makes a number that is independent of the upper bits of x for all that choosing needs (the multiplier is the
// golden ratio's, the finisher that of splitmix64).
func scatter(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	return x ^ x>>31
}

// mix is scatter with a second round (splitmix64's finisher): what it makes of x, x + golden, x + 2 golden and so on are
// as good as independent random numbers, if x is one.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// golden is 2^64 divided by the golden ratio: adding it again and again visits the unit interval more evenly than any
// other step.
const golden = 0x9e3779b97f4a7c15

// counter is a counter that all processors add to, alone on its cache line.
type counter struct {
	_ [64]byte
	n atomic.Uint64
	_ [56]byte
}
