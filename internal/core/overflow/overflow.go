// Package overflow decides, tick by tick, which share of a client's requests goes to which group of endpoints: in the
// zone while the zone copes, the excess to the cheapest zone that is better, and back again.
//
// A Strategy is told the time and what was counted since the step before, and answers with shares, states and reasons.
// It knows no clock, no goroutine and no randomness: equal histories give equal decisions, in the simulator, in tests
// and in the agent. It promises nothing between two steps; the request path only reads the last Decision.
package overflow

import (
	"time"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Group is a set of endpoints that a strategy treats as one. The first group is home: the pool that the plan gives to
// this client. Every other group holds what is left of one zone of one cluster.
type Group struct {
	ID        int           // of the same group in each Layout; others have others
	Zone      topology.Zone // the home group's: the client's zone, even if the plan lends it endpoints of other zones
	Cluster   string
	Cost      topology.Cost // of a request from the client to this group
	Tier      int           // lower ones are spilled to first, whatever they cost
	Endpoints []int         // indexes into Layout.Endpoints
	// Near: it is the rest of the client's zone, and home the client's node.
	Near bool
}

// Layout is what a strategy works on until the next change of endpoints.
type Layout struct {
	Groups    []Group // in the order in which they are used, which route.Groups makes: home, then by tier and cost
	Endpoints int     // how many endpoints there are in all groups
}

// Counters is what this client saw since the step before. Its slices belong to the caller and are reused.
type Counters struct {
	Groups    []GroupCounters    // one for each of Layout.Groups
	Endpoints []EndpointCounters // one for each endpoint of the layout
}

// GroupCounters is what one group did since the step before. Ages are multiples of the baseline in the last Decision, at
// most its Cap; before there is a baseline they are not counted.
type GroupCounters struct {
	Sent    int64         // requests started
	OK      int64         // requests answered well
	Failed  int64         // requests that failed, timed out or were overdue; each is one sample of Cap
	Latency time.Duration // sum over OK, each at most Cap baselines (winsorised), the way there and back included
	Waiting int64         // requests in flight, unanswered, for longer than one baseline
	Aged    float64       // sum over Waiting of the age, in baselines, each at most Cap
	Usable  int           // endpoints that are not sitting out
	RTT     time.Duration // measured connect time; 0: not known
	Drained bool          // the operator wants nothing sent here
}

// EndpointCounters is what one endpoint is doing.
type EndpointCounters struct {
	InFlight int64
	OK       int64
	Failed   int64
	Latency  time.Duration // sum over OK
}

// Decision is what the request path follows until the next step.
type Decision struct {
	// Routes are the groups in use with their shares, summing to 1 - Shed; a route may name a subset of a group's
	// endpoints (Hazl adds them one at a time).
	Routes []Route
	// Confined keeps requests on the routes even when all endpoints of all routes sit out. Otherwise such requests go to
	// the other groups in waterfall order until the next step.
	Confined bool
	// Panic disbelieves everybody's health: requests go to those who sit out as to everybody.
	Panic    bool
	Shed     float64       // fraction of requests to reject with 503
	Baseline time.Duration // the learned no-stress latency; 0: not known yet
	Cap      float64       // the largest slowdown a single request may report
	Groups   []GroupStatus // one for each of Layout.Groups
	State    State
	Reason   reason.Reason // of the last transition
	Since    time.Duration // when the last transition was
}

// Route is a share of requests for a set of endpoints.
type Route struct {
	Group     int
	Share     float64
	Endpoints []int // nil: all of the group
}

// GroupStatus is what a person wants to see of a group.
type GroupStatus struct {
	Share     float64 // of requests, as decided
	Slowdown  float64 // recent; 1 is normal, 0 not known
	Delivered float64 // recent fraction of requests that were answered well
	Allowed   float64 // requests per second the group is allowed
	Demand    float64 // requests per second that want to go there
}

// State is where the client's zone stands.
type State uint8

// The states of docs/overflow-law.md 8.
const (
	Calm State = iota
	Overflow
	Crisis
	Evacuated
	Recovering
	NoHelp
)

// String gives the state's name as metrics and tables have it.
func (s State) String() string {
	return [...]string{"calm", "overflow", "crisis", "evacuated", "recovering", "no-help"}[s]
}

// Strategy turns what was seen into shares. One goroutine at a time.
type Strategy interface {
	// Reset tells the strategy that the endpoints changed. What it has learned of groups that are still there (by ID) stays.
	Reset(now time.Duration, layout Layout)
	// Step takes the counters since the step before and decides until the next one. The Decision's slices belong to the
	// strategy: they hold until the next Step or Reset.
	Step(now time.Duration, c *Counters) Decision
}
