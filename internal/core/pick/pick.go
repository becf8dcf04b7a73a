// Package pick chooses an endpoint for each request.
//
// A Pool is the live state of one service port on one client: its endpoints, what they are doing, and the view that
// requests follow. Pick reads the view and adds to counters; it takes no lock and makes no garbage. Tick folds the
// counters, asks the overflow strategy and the health rules, and publishes the next view. The package knows no clock and
// starts no goroutine: it is told the time.
package pick

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Target is an endpoint as a pool needs it.
type Target struct {
	Addr    netip.AddrPort // identity
	Zone    topology.Zone
	Cluster string
	Cost    topology.Cost // of a request from this client
	Home    bool          // belongs to the pool that the plan gives to this client
}

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
	Success  Outcome = iota
	Failure          // reset, timeout, refused, 5xx, 429: the endpoint's fault
	Canceled         // given up by the client: says nothing about the endpoint, unless it had waited for very long
)

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
)

// Algorithms lists all algorithms, the default first.
func Algorithms() []Algorithm { return []Algorithm{PowerOfTwo, RoundRobin, Random, LeastRequest} }

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
	Random    func() uint64
	Strategy  overflow.Strategy // of this pool alone; nil: everything goes to the home group
	Algorithm Algorithm         // empty: PowerOfTwo
	Choices   int               // LeastRequest: how many to compare; 0: 2, as more make clients crowd the same endpoint
	Health    health.Config
	Rotate    uint64 // any number that differs between clients: which of several equally dear zones comes first
	Parallel  int    // how many requests are under way at the same instant, usually the number of processors; 0: 4
	_         struct{}
}
