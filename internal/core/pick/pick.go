// Package pick chooses an endpoint for each request.
//
// A Pool is the live state of one service port on one client: its endpoints, what they are doing, and the view that
// requests follow. Pick reads the view and adds to counters; it takes no lock and makes no garbage. Tick gives
// the counters to the control loop (package balance) and publishes the next view. The package reads no clock and starts no
// goroutine: the time is an argument.
package pick

import (
	"fmt"
	"strings"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Target is an endpoint as a pool needs it.
type Target = route.Endpoint

// Verdict is the outcome of a Pick.
type Verdict uint8

// The verdicts.
const (
	Picked     Verdict = iota
	NoEndpoint         // there is none to pick
	Shed               // the service is overloaded everywhere and asked for shedding
)

// Outcome is how an attempt went.
type Outcome uint8

// The outcomes.
const (
	Success      Outcome = iota
	Failure              // the endpoint's fault, of no other kind: a 429
	Canceled             // given up by the client: says nothing about the endpoint, unless it had waited for very long
	ServerError          // a 5xx that is no GatewayError
	GatewayError         // 502, 503, 504
	LocalError           // refused, reset or timed out: nothing was answered
)

// Failed tells whether it was the endpoint's fault.
func (o Outcome) Failed() bool { return o != Success && o != Canceled }

// Request is what the pool has to know of a request.
type Request struct {
	Key    uint64   // hash of what the request should stick to
	HasKey bool     // whether Key counts
	Avoid  []uint32 // Ticket.ID of endpoints that were tried already
}

// Algorithm names how a route's endpoints are chosen.
type Algorithm string

// The algorithms.
const (
	PowerOfTwo   Algorithm = "PowerOfTwo"   // of two at random, the one with less (in flight + 1) × recent slowdown
	RoundRobin   Algorithm = "RoundRobin"   // one after the other
	Random       Algorithm = "Random"       // any
	LeastRequest Algorithm = "LeastRequest" // of some at random, the one with the fewest in flight
	RingHash     Algorithm = "RingHash"     // the one that the request's key belongs to, on a ring of hashes
	Maglev       Algorithm = "Maglev"       // the same, in a table that gives each an even part
)

// HashFunction is how endpoints are hashed onto a ring.
type HashFunction string

// The hash functions. Empty means XXHash.
const (
	XXHash      HashFunction = "XXHash"
	MurmurHash2 HashFunction = "MurmurHash2"
)

// Config is how a pool chooses. It may be changed while requests are under way. The zero value works. Of the algorithms,
// PowerOfTwo, RoundRobin and LeastRequest follow SlowStart; PowerOfTwo alone follows that which is in force without one.
type Config struct {
	balance.Config // of the pool's loop

	Algorithm Algorithm // empty: PowerOfTwo
	Choices   int       // LeastRequest: how many to compare; 0: 2, as more make clients crowd the same endpoint
	Bias      *float64  // LeastRequest with unequal weights: weight / (in flight + 1)^Bias; nil: 1

	HashFunction HashFunction
	MinRingSize  uint64 // RingHash; 0: 1,024
	MaxRingSize  uint64 // RingHash; 0: 8 Mi
	TableSize    uint64 // Maglev, a prime; 0: 65,537
}

// SlowStart gives a new endpoint less for a while.
type SlowStart = balance.SlowStart

// Algorithms lists all algorithms, the default first.
func Algorithms() []Algorithm {
	return []Algorithm{PowerOfTwo, RoundRobin, Random, LeastRequest, RingHash, Maglev}
}

// hashes tells whether the algorithm goes by a request's key alone.
func (a Algorithm) hashes() bool { return a == RingHash || a == Maglev }

// ParseAlgorithm reads an algorithm's name, in upper or lower case; empty means the default.
func ParseAlgorithm(s string) (Algorithm, error) {
	for _, a := range Algorithms() {
		if s == "" || strings.EqualFold(s, string(a)) {
			return a, nil
		}
	}
	return "", fmt.Errorf("unknown algorithm %q: want one of %v", s, Algorithms())
}

// Options configure a Pool. The zero value works.
type Options struct {
	Zone topology.Zone // the client's
	// Random is safe for concurrent use; each Pick takes one number. Nil: a sequence of the pool's own, the same in each
	// run, on which processors contend.
	Random   func() uint64
	Strategy overflow.Strategy // of this pool alone; nil: everything goes to the home group
	Config   Config
	Rotate   uint64 // any number that differs between clients: which of several zones of equal cost comes first
	Parallel int    // how many requests are under way at the same instant, usually the number of processors; 0: 4
	_        struct{}
}
