package policy

import (
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Route is an HTTPRoute or GRPCRoute. Weir takes from it only which requests its rules are about: it routes nothing.
type Route struct {
	Kind            TargetKind // TargetHTTPRoute or TargetGRPCRoute
	Namespace, Name string
	Created         time.Time
	Hosts           []string // hostnames, *.example.com among them; empty: any
	// Services are the parents that are Services (GAMMA). A route with other parents, as a Gateway, is about the services
	// of its rules' backends.
	Services []ServicePort
	Rules    []RouteRule
}

// ServicePort is a service or one port of it.
type ServicePort struct {
	topology.ServiceName
	Port uint16 // 0: all
}

// RouteRule is one rule of a Route.
type RouteRule struct {
	Name     string
	Matches  []Match // any of them; empty: every request
	Backends []ServicePort
}

// Match is what a request has to be; every field that is set must hold.
type Match struct {
	Path    *PathMatch
	Method  string // empty: any
	Headers []ValueMatch
	Query   []ValueMatch
}

// MatchType is how text is compared.
type MatchType string

// The types of matches.
const (
	MatchExact  MatchType = "Exact"
	MatchPrefix MatchType = "PathPrefix" // by path elements; for paths only
	MatchRegex  MatchType = "RegularExpression"
)

// PathMatch is a condition on a request's path. A GRPCRoute's service and method are one, too.
type PathMatch struct {
	Type  MatchType
	Value string
}

// ValueMatch is a condition on a header or a query parameter.
type ValueMatch struct {
	Type  MatchType
	Name  string // a header's in any letter case
	Value string
}
