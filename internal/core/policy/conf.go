package policy

import (
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Conf is a configuration as an author wrote it: nil means that nothing was said. A list that was said to be empty is not
// nil.
type Conf struct {
	LoadBalancer     *LoadBalancer
	HashPolicies     []HashPolicy
	EndpointHashKey  *EndpointHashKey
	Locality         Locality
	OutlierDetection *OutlierDetection
	SlowStart        *SlowStart // atomic in merges
	PanicThreshold   *float64   // percent
}

// Algorithm is how an endpoint is chosen.
type Algorithm string

// The algorithms.
const (
	RoundRobin   Algorithm = "RoundRobin"
	LeastRequest Algorithm = "LeastRequest"
	Random       Algorithm = "Random"
	RingHash     Algorithm = "RingHash"
	Maglev       Algorithm = "Maglev"
)

// IsHashing tells whether the algorithm follows a request's hash.
func (a Algorithm) IsHashing() bool { return a == RingHash || a == Maglev }

// LoadBalancer is a union: only the block that Type names may be there. A merge replaces it whole when Type changes.
type LoadBalancer struct {
	Type         Algorithm
	LeastRequest *LeastRequestConf
	RingHash     *RingHashConf
	Maglev       *MaglevConf
	// Whole is set by Merge alone: a weaker load balancer does not count, though it be of the same type, because a rule
	// between the two has another type. Without it the merge were not associative.
	Whole bool
}

// LeastRequestConf has a default of 2 choices and a bias of 1.
type LeastRequestConf struct {
	ChoiceCount       *int     // at least 2
	ActiveRequestBias *float64 // at least 0
}

// HashFunction is how endpoints are hashed onto a ring.
type HashFunction string

// The hash functions.
const (
	XXHash      HashFunction = "XXHash"
	MurmurHash2 HashFunction = "MurmurHash2"
)

// RingHashConf has defaults of XXHash, 1,024 and MaxRingSize entries.
type RingHashConf struct {
	HashFunction HashFunction // empty: nothing was said
	MinRingSize  *uint64      // 1 to MaxRingSize
	MaxRingSize  *uint64      // 1 to MaxRingSize, at least MinRingSize
}

// MaglevConf has a default of DefaultTableSize entries.
type MaglevConf struct {
	TableSize *uint64 // a prime up to MaxTableSize
}

// The bounds of the hashing algorithms, which are Envoy's.
const (
	DefaultMinRingSize = 1024
	MaxRingSize        = 8 << 20
	DefaultTableSize   = 65_537
	MaxTableSize       = 5_000_011
)

// HashPolicyType is what a hash is made of.
type HashPolicyType string

// The types of hash policies.
const (
	HashHeader         HashPolicyType = "Header"
	HashCookie         HashPolicyType = "Cookie"
	HashSourceIP       HashPolicyType = "SourceIP"
	HashQueryParameter HashPolicyType = "QueryParameter"
	HashFilterState    HashPolicyType = "FilterState"
)

// HashPolicy is one step of making a request's hash. Name is the header, cookie, query parameter or filter state key.
type HashPolicy struct {
	Type     HashPolicyType
	Name     string // empty for SourceIP
	Terminal bool   // if there is a hash after this step, it is final

	// Of a Cookie: with a TTL one is generated where the client has none; 0 makes it a session cookie.
	TTL  *time.Duration // nil: none is generated
	Path string         // of a generated cookie; empty: no attribute
}

// EndpointHashKeyType is what endpoints are hashed by.
type EndpointHashKeyType string

// The types of endpoint hash keys.
const (
	HashKeyAddress    EndpointHashKeyType = "Address" // ip:port
	HashKeyPodName    EndpointHashKeyType = "PodName"
	HashKeyLabel      EndpointHashKeyType = "Label"      // of the pod
	HashKeyAnnotation EndpointHashKeyType = "Annotation" // of the pod
)

// EndpointHashKey says what identifies an endpoint on a ring or table. An endpoint without the label, annotation or pod is
// hashed by its address.
type EndpointHashKey struct {
	Type EndpointHashKeyType
	Key  string // of the label or annotation
}

// Locality says which endpoints are near, and where to go when those do not suffice.
type Locality struct {
	Disabled          *bool      // all endpoints are home
	ZoneKey           *string    // the label that makes a zone; default topology.kubernetes.io/zone
	Affinity          []Affinity // weights inside the zone
	Weights           []Weight   // in place of the zone: endpoints by a label's value, with fixed weights
	Failover          []Failover // default: one rule, Any
	FailoverThreshold *float64   // percent of healthy home endpoints below which others take a part
	Overflow          Overflow
	Costs             []Cost // of crossing from zone to zone, before those of the topology
}

// Affinity prefers endpoints that share the client's value of a label: the pod's, else the node's, on both sides. Weights
// are for the group that the first matching affinity makes; either all affinities have one or none has.
type Affinity struct {
	Key    string
	Weight *uint32 // above 0; default 9, 90, 900 … from the last to the first; what matches none has 1
}

// Weight gives endpoints with that value of a label, the pod's or the node's, a share of the traffic by weight (the
// matchers of the mesh's specification). Endpoints that none matches are for failover.
type Weight struct {
	Key, Value string
	Weight     uint32
}

// Failover is one rule for traffic that home does not take. For a client the rules that its zone is among From are
// asked in order; an endpoint belongs to the first whose To it matches, and to none after a None. Zones are values of the
// zone key.
type Failover struct {
	From []topology.Zone // client zones; nil: any
	To   FailoverType
	Zone []topology.Zone // of Only and AnyExcept
}

// FailoverType is where a Failover goes.
type FailoverType string

// The types of failover.
const (
	FailoverAny       FailoverType = "Any"
	FailoverOnly      FailoverType = "Only"
	FailoverAnyExcept FailoverType = "AnyExcept"
	FailoverNone      FailoverType = "None" // terminal: no later rule counts
)

// OverflowMode is how load moves between zones while endpoints are healthy.
type OverflowMode string

// The modes of overflow.
const (
	OverflowAdaptive OverflowMode = "Adaptive" // weir's own law
	OverflowLoadBand OverflowMode = "LoadBand" // HAZL's band of requests in flight for each endpoint
	OverflowDisabled OverflowMode = "Disabled" // only failing health moves traffic
)

// Overflow says how load moves between zones. Nil fields leave the service's annotations and the agent's flags in force.
type Overflow struct {
	Mode     *OverflowMode
	LoadBand *LoadBand // atomic in merges; only with OverflowLoadBand, which it means where nobody names a mode
}

// LoadBand is a band of mean requests in flight for each active endpoint; 0 < Low < High.
type LoadBand struct{ Low, High float64 }

// Cost is what it costs to go from a zone to another, in cost units.
type Cost struct {
	From, To topology.Zone
	Cost     float64
}

// OutlierDetection says who sits out for how long. A detector works only if its block is there; the rules that weir
// always has go on beside them.
type OutlierDetection struct {
	Interval           *time.Duration
	BaseEjectionTime   *time.Duration
	MaxEjectionTime    *time.Duration
	MaxEjectionPercent *float64 // 0 to 100
	Consecutive        *Consecutive
	SuccessRate        *SuccessRate
	FailurePercentage  *FailurePercentage
}

// Consecutive ends an endpoint's turn after that many failures of a kind in a row; nil or 0: that kind does not.
type Consecutive struct {
	ServerErrors  *int // any 5xx, and what never was answered
	GatewayErrors *int // 502, 503, 504, and what never was answered
	LocalErrors   *int // refused, reset or timed out
}

// SuccessRate ends the turn of who answers well less often than the others: below the mean by Stdev standard deviations.
type SuccessRate struct {
	Stdev         *float64 // default 1.9
	MinimumHosts  *int     // default 5
	RequestVolume *int     // in an interval; default 100
}

// FailurePercentage ends the turn of who fails in an interval more often than Threshold percent.
type FailurePercentage struct {
	Threshold     *float64 // default 85
	MinimumHosts  *int     // default 5
	RequestVolume *int     // in an interval; default 50
}

// SlowStart gives a new endpoint less for a while: weight × max(MinWeightPercent/100, (age/Window)^(1/Aggression)). Only
// RoundRobin and LeastRequest follow it, and the data plane's own algorithm where nobody names one.
type SlowStart struct {
	Window           time.Duration // above 0
	MinWeightPercent *float64      // default 10
	Aggression       *float64      // above 0; default 1
}
