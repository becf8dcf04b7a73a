package policy

import "github.com/weir-lb/weir/api/conf"

// What a policy says is written in the types of api/conf, which the resource LoadBalancingPolicy embeds. These are its names
// for the core and the data planes.

//nolint:revive // The names are explained where they are declared.
type (
	Conf                = conf.Conf
	Number              = conf.Number
	Duration            = conf.Duration
	Algorithm           = conf.Algorithm
	LoadBalancer        = conf.LoadBalancer
	LeastRequestConf    = conf.LeastRequestConf
	HashFunction        = conf.HashFunction
	RingHashConf        = conf.RingHashConf
	MaglevConf          = conf.MaglevConf
	HashPolicyType      = conf.HashPolicyType
	HashPolicy          = conf.HashPolicy
	HeaderKey           = conf.HeaderKey
	CookieKey           = conf.CookieKey
	QueryParameterKey   = conf.QueryParameterKey
	FilterStateKey      = conf.FilterStateKey
	EndpointHashKeyType = conf.EndpointHashKeyType
	EndpointHashKey     = conf.EndpointHashKey
	Locality            = conf.Locality
	Affinity            = conf.Affinity
	Weight              = conf.Weight
	Failover            = conf.Failover
	FailoverFrom        = conf.FailoverFrom
	FailoverTo          = conf.FailoverTo
	FailoverType        = conf.FailoverType
	Overflow            = conf.Overflow
	OverflowMode        = conf.OverflowMode
	LoadBand            = conf.LoadBand
	Cost                = conf.Cost
	OutlierDetection    = conf.OutlierDetection
	Consecutive         = conf.Consecutive
	SuccessRate         = conf.SuccessRate
	FailurePercentage   = conf.FailurePercentage
	SlowStart           = conf.SlowStart
)

// The values of api/conf's enumerations.
const (
	RoundRobin   = conf.RoundRobin
	LeastRequest = conf.LeastRequest
	Random       = conf.Random
	RingHash     = conf.RingHash
	Maglev       = conf.Maglev

	XXHash      = conf.XXHash
	MurmurHash2 = conf.MurmurHash2

	HashHeader         = conf.HashHeader
	HashCookie         = conf.HashCookie
	HashSourceIP       = conf.HashSourceIP
	HashQueryParameter = conf.HashQueryParameter
	HashFilterState    = conf.HashFilterState

	HashKeyAddress    = conf.HashKeyAddress
	HashKeyPodName    = conf.HashKeyPodName
	HashKeyLabel      = conf.HashKeyLabel
	HashKeyAnnotation = conf.HashKeyAnnotation

	FailoverAny       = conf.FailoverAny
	FailoverOnly      = conf.FailoverOnly
	FailoverAnyExcept = conf.FailoverAnyExcept
	FailoverNone      = conf.FailoverNone

	OverflowAdaptive = conf.OverflowAdaptive
	OverflowLoadBand = conf.OverflowLoadBand
	OverflowDisabled = conf.OverflowDisabled
)

// The bounds of the hashing algorithms, which are Envoy's.
const (
	DefaultMinRingSize = 1024
	MaxRingSize        = 8 << 20
	DefaultTableSize   = 65_537
	MaxTableSize       = 5_000_011
)
