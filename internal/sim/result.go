package sim

import (
	"net/netip"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// Result is one run: one scenario, one strategy, one seed.
type Result struct {
	Scenario string
	Strategy string
	Seed     uint64

	Window   Figures // all clients while the stress is on
	Affected Figures // the clients of Scenario.Affected in that time
	Others   Figures // all other clients in that time; zero when there are none
	Calm     Figures // all clients from Scenario.Warmup to the beginning of the stress
	After    Figures // all clients from the end of the stress on
	Whole    Figures // all clients from Scenario.Warmup on

	// React is how long after the beginning of the stress the affected clients' good share was back at 95 % of what it
	// was in the calm, and stayed there for a second; 0: it never left. Nil: not before the stress ended.
	React *time.Duration
	// Return is how long after the end of the stress the affected clients' in-zone share was back within a point of the
	// calm's, and stayed there for two seconds. Nil: not before the run ended.
	Return *time.Duration
	// Oscillation is the standard deviation of the affected clients' spill share from one second to the next, in the
	// second half of the stress. It is a fraction.
	Oscillation float64
	// PeakLoad is the largest load of an endpoint in a second of the stress: the work that arrived over what it can do
	// in a second; above 1 its queue grows.
	PeakLoad float64

	Line      []Point    // one for each second of the run
	Endpoints []Endpoint // every pod there ever was, in order of creation

	Requests int64  // simulated
	Events   int64  // handled by the loop
	Digest   uint64 // of everything that happened, in order: equal runs have equal digests
}

// Warmup is the beginning of each run that no figure counts.
const Warmup = scenario.Warmup

// Figures sum up requests, by when they were sent.
type Figures struct {
	Requests int64
	Rate     float64 // per second
	Success  float64 // fraction answered well before the timeout; 1 without requests
	Good     float64 // fraction answered well within Request.Good
	InZone   float64 // of the requests that an endpoint took: fraction in the client's own zone and cluster; 1 without any
	Shed     float64 // fraction rejected by the balancer
	Attempts float64 // per request
	Cost     float64 // topology.Cost per request, all attempts included
	// CrossBytes is the bytes per second that crossed a zone, weighted by topology.Cost; Dollars is what they cost in an
	// hour at this rate.
	CrossBytes float64
	Dollars    float64
	// Latencies of all requests, from when they were due; a failed one counts as the timeout.
	Mean, P50, P99, P999 time.Duration
}

// Point is one second of a run.
type Point struct {
	At    time.Duration
	Zones []ZonePoint // in the order of Scenario.Clients
	P50   time.Duration
	P99   time.Duration // of all clients
	Pods  int           // ready ones
	// Dollars is the cost of cross-zone bytes in an hour at this second's rate.
	Dollars float64
}

// ZonePoint is what the clients of a zone saw in a second.
type ZonePoint struct {
	Zone     topology.Zone
	Requests int64
	Good     int64
	Failed   int64
	Answered int64 // taken by an endpoint
	Crossed  int64 // of Answered: not in the client's zone
	P99      time.Duration
}

// Endpoint is what one pod did.
type Endpoint struct {
	Addr    netip.Addr
	Zone    topology.Zone
	Cluster string
	// Requests that arrived while the stress was on.
	Requests int64
	// Load is the work that arrived over what the pod could do, while the stress was on: mean, and the largest of a second.
	Load, Peak float64
	// Line is the load of each second; 0 while it is not there.
	Line []float32
}
