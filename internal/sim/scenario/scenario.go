// Package scenario holds the inputs of the simulator and the demo: a cluster, its clients and its endpoints, and what
// happens to them when. A scenario is one text file; Parse and String are inverse.
//
// The package balances nothing and knows no clock. What a scenario means is said here once for all of its players: which endpoints a place
// names, what a step does to an endpoint, how long work takes. It refuses what cannot be played, with the file, the line and
// the field.
package scenario

import (
	"slices"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Scenario is one input. It is immutable: any number of runs may share it.
type Scenario struct {
	Name  string // the file's name without its ending
	Title string // one line: what happens
	About string // what to look at, as paragraphs; may be empty

	// Snapshot is the cluster at the beginning: nodes, exactly one service with its endpoints, costs. It is what explain
	// plans.
	Snapshot  topology.Snapshot
	Clients   []Clients // by zone, sorted, each zone once
	Server    Server    // what each endpoint can do
	Network   Network
	Request   Request
	Price     Price
	Discovery Discovery
	Day       *Day       // nil: rates change by steps only
	Autoscale *Autoscale // nil: the number of pods changes by steps only
	NodePools *NodePools // nil: there is always room for a pod

	Length   time.Duration // of the run
	NoWarmup bool          // figures count the first seconds of the run, too
	Stress   Window        // what is measured; the time before it is the calm that it is compared with
	// Affected are the zones whose clients the stress is about, sorted; reaction is measured at them. Empty: all.
	Affected []topology.Zone
	Steps    []Step // by time, then line

	Explain string // what explain says of the Snapshot, a golden; may be empty
	Results string // what a short run of each strategy comes to, a golden; may be empty
}

// Window is a part of a run, from From, before To.
type Window struct{ From, To time.Duration }

// Clients are the clients of one zone: processes with a balancer each, which know nothing of each other.
type Clients struct {
	Zone  topology.Zone
	Count int
	Rate  float64 // requests per second of all of them together
	// Shares says how the rate is divided, one for each client, summing to 1. Nil: evenly.
	Shares []float64
}

// Kind is a family of distributions of service times.
type Kind string

// The kinds.
const (
	Constant    Kind = "constant"
	Exponential Kind = "exponential"
	Lognormal   Kind = "lognormal" // by mean and coefficient of variation
	Bimodal     Kind = "bimodal"   // the fraction Heavy of requests takes Factor times what the others take; the mean is Mean
)

// Distribution is how long a request takes a worker.
type Distribution struct {
	Kind   Kind
	Mean   time.Duration
	CV     float64 // Lognormal: standard deviation over mean
	Heavy  float64 // Bimodal: the fraction of requests that take long, between 0 and 1
	Factor float64 // Bimodal: how many times longer they take than the others
}

// Server is what an endpoint can do.
type Server struct {
	Workers int // requests served at once
	Queue   int // requests that wait, first come first served; one more is answered 503 at once
	Service Distribution
	// Speeds are factors on the speed of single endpoints: 0.5 takes twice as long. Not named: 1.
	Speeds []Speed
	Start  time.Duration // from a pod's creation to its readiness
	Cold   float64       // factor on service times of a pod that has just become ready; 0 and 1: none
	Warm   time.Duration // how long that factor takes to fall to 1, in a straight line
	Drain  time.Duration // how long a terminating pod goes on serving
}

// Speed is the speed of some endpoints.
type Speed struct {
	Where  Where
	Factor float64
}

// Network is the latency of network paths: round trips. A request takes half of one there, and half back.
type Network struct {
	SameZone     time.Duration
	CrossZone    time.Duration
	CrossCluster time.Duration
	Jitter       float64 // each direction is longer by an exponential time with this fraction of it as mean
}

// Request is what clients send and how patient they are.
type Request struct {
	Timeout  time.Duration // of a request, all its attempts included
	Good     time.Duration // a success that took at most this is good; 0: five mean service times
	Attempt  time.Duration // timeout of one attempt; 0: Timeout
	Retries  int           // further attempts after a failed one
	Budget   float64       // retries are at most this fraction of a client's recent requests; 0: no limit
	Backoff  time.Duration // mean of the exponential pause before the first retry; it doubles with each
	Bytes    float64       // of request and answer together: what a crossing is paid for
	Polls    float64       // fraction of requests that wait at the endpoint for Hold, without a worker, before they are answered
	Streams  float64       // fraction of requests that are answered and then stay open for Hold (mean, exponential), each as Load workers
	Hold     time.Duration
	Load     float64 // fraction of a worker that an open stream takes
	Accepted bool    // whether a failed attempt whose answer was an error status is tried again, beside refused and reset ones
}

// Price is what bytes cost.
type Price struct {
	PerGB float64 // dollars for 10^9 bytes at topology.Cost 1, both directions together
}

// Discovery is how late the clients learn of changes.
type Discovery struct {
	Delay  time.Duration // from a change of readiness or hints to a client's new endpoints, mean
	Jitter float64       // fraction of Delay by which clients differ, evenly
	Lost   time.Duration // from the loss of a zone's nodes until their endpoints are not ready; 0: at once
}

// Day is how all rates change in a day: multiplied by a sine between Low and High.
type Day struct {
	Period    time.Duration
	Low, High float64
	// Lag shifts a zone's day, as users of other regions have it. Nil: none.
	Lag map[topology.Zone]time.Duration
}

// Autoscale is a HorizontalPodAutoscaler on mean utilisation.
type Autoscale struct {
	Min, Max      int
	Target        float64       // utilisation of workers, 0 to 1
	Every         time.Duration // sync period; Kubernetes: 15 s
	Tolerance     float64       // relative deviation that is ignored; Kubernetes: 0.1
	Window        time.Duration // over which utilisation is averaged; metrics-server: 15 s to 60 s
	Stabilization time.Duration // how long the highest recommendation holds against scaling down; Kubernetes: 5 min
}

// NodePools bound how many pods have room, and make nodes when there is none.
type NodePools struct {
	PodsPerNode int
	Max         int           // nodes of a zone
	Boot        time.Duration // from a pod without room to a node that takes it
	Idle        time.Duration // how long a node is empty before it goes; 0: it stays
}

// Verb is what a step does.
type Verb string

// The verbs.
const (
	Rate    Verb = "rate"    // multiply the clients' base rate by Factor, reached in a straight line after Over
	Slow    Verb = "slow"    // multiply service times by Factor
	Delay   Verb = "delay"   // lengthen each round trip by Time
	Fail    Verb = "fail"    // answer the fraction Ratio of requests with an error, at once
	Hang    Verb = "hang"    // take requests and never answer
	Refuse  Verb = "refuse"  // refuse connections and reset those under way
	Heal    Verb = "heal"    // end slow, delay, fail, hang and refuse
	Lose    Verb = "lose"    // the zone's nodes are gone: endpoints swallow everything, and are unready after Discovery.Lost
	Return  Verb = "return"  // they are back
	Rollout Verb = "rollout" // replace all pods, Count at a time, each batch when the one before is ready
	Scale   Verb = "scale"   // set the number of pods in a zone to Count
	Drain   Verb = "drain"   // ask all clients to leave the zone alone for Time; what weir's annotation does, others ignore it
)

// Step is something that happens.
type Step struct {
	At     time.Duration
	Verb   Verb
	Where  Where
	Factor float64
	Ratio  float64
	Time   time.Duration
	Over   time.Duration
	Count  int
	Line   int // in the file
}

// Where names clients or endpoints.
type Where struct {
	Zone    topology.Zone // empty: all zones
	Cluster string        // empty: the clients' own, with Zone; with neither: everything
	// First and Last number endpoints of the zone from 1, in the order of the snapshot; 0: all of them.
	First, Last int
	Part        float64 // the first ones that make this fraction, rounded up; 0: all
}

// Warmup gives how long the beginning of the run is that no figure counts.
func (s *Scenario) Warmup() time.Duration {
	if s.NoWarmup {
		return 0
	}
	return Warmup
}

// Service gives the one service.
func (s *Scenario) Service() *topology.Service { return s.Snapshot.Services[0] }

// GoodWithin gives how long a good request takes at most: Request.Good or, where that is 0, five mean service times.
func (s *Scenario) GoodWithin() time.Duration {
	const services = 5
	if s.Request.Good > 0 {
		return s.Request.Good
	}
	return services * s.Server.Service.Mean
}

// Speed gives the factor on the speed of an endpoint, named as Where.Has names it: that of the last of Speeds that means
// it, 1 when there is none.
func (s *Server) Speed(zone topology.Zone, cluster string, place, count int) float64 {
	for _, sp := range slices.Backward(s.Speeds) {
		if sp.Where.Has(zone, cluster, place, count) {
			return sp.Factor
		}
	}
	return 1
}

// Paragraphs gives About as it is to be set anew: a line for each paragraph.
func (s *Scenario) Paragraphs() []string {
	var paragraphs []string
	for text := range strings.SplitSeq(s.About, "\n\n") {
		if words := strings.Fields(text); len(words) > 0 {
			paragraphs = append(paragraphs, strings.Join(words, " "))
		}
	}
	return paragraphs
}
