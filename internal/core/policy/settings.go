package policy

import (
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Client is whose requests are asked about.
type Client struct {
	Node      string
	Zone      topology.Zone
	Namespace string // of the pod; empty: not known, or no pod, and no rule that asks for pods or namespaces applies
	Pod       Labels // of the pod
	// Serves lists the services that the client is an endpoint of.
	Serves []topology.ServiceName
}

// Destination is what is asked for.
type Destination struct {
	Service topology.ServiceName
	Port    topology.Port
}

// Settings are what holds for a client and a destination, every default filled in.
type Settings struct {
	Algorithm         Algorithm // empty: nobody chose one, the data plane's default holds
	ChoiceCount       int
	ActiveRequestBias float64
	HashFunction      HashFunction
	MinRingSize       uint64
	MaxRingSize       uint64
	TableSize         uint64
	HashPolicies      []HashPolicy // empty if Algorithm does not hash
	Routes            []RouteHash  // in the order in which a request is compared with them; empty if no policy is about one
	EndpointHashKey   EndpointHashKey
	Locality          LocalitySettings
	Outlier           *OutlierSettings   // nil: only the rules that weir always has
	SlowStart         *SlowStartSettings // nil: the slow start that weir always has
	Panic             *float64           // percent; nil: nobody chose one, the rules that weir always has hold

	Fields []Field // every field that a policy has set, in the order of the CRD's
	Notes  []Note  // what was said and has no effect
}

// RouteHash is a route's rule with the hash policies that hold for its requests.
type RouteHash struct {
	Route        string   // kind namespace/name, and the rule's name or number, for people
	Hosts        []string // one, *.example.com among them; empty: any
	Match        Match
	HashPolicies []HashPolicy
	Origin       *Origin // who said so about the route; nil: what holds for the service
}

// LocalitySettings are a Locality with its defaults.
type LocalitySettings struct {
	Disabled  bool
	ZoneKey   string
	Affinity  []AffinityWeight
	Weights   []Weight
	Failover  []Failover   // never empty
	Threshold *float64     // percent; nil: only what the endpoints do moves traffic
	Overflow  OverflowMode // empty: nobody chose one
	LoadBand  LoadBand     // of OverflowLoadBand
	Costs     []Cost
	Explicit  bool // some policy says something about locality
}

// AffinityWeight is an Affinity with its weight.
type AffinityWeight struct {
	Key    string
	Weight uint32
}

// OutlierSettings are an OutlierDetection with its defaults. A detector with zero hosts or failures does not work.
type OutlierSettings struct {
	Interval, BaseEjectionTime, MaxEjectionTime time.Duration
	MaxEjectionPercent                          float64

	ServerErrors, GatewayErrors, LocalErrors int // in a row; 0: off

	SuccessRateStdev         float64
	SuccessRateMinimumHosts  int // 0: off
	SuccessRateRequestVolume int
	FailureThreshold         float64 // percent
	FailureMinimumHosts      int     // 0: off
	FailureRequestVolume     int
}

// SlowStartSettings are a SlowStart with its defaults.
type SlowStartSettings struct {
	Window           time.Duration
	MinWeightPercent float64
	Aggression       float64
}

// Field is a field that holds and where it was written.
type Field struct {
	Path   string // in the CRD's spelling, below spec: loadBalancer.maglev.tableSize
	Value  string // for people
	Origin Origin
}

// Note is something a policy says that has no effect here, and why.
type Note struct {
	Path    string
	Origin  Origin
	Message string
}
