package policy

import (
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Client is the client that requests come from.
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

// Settings are what holds for a client and a destination.
type Settings struct {
	// Conf is all that was said and has an effect, with every default filled in. OutlierDetection and SlowStart are nil where
	// no policy sets them, LoadBalancer.Type is empty where no policy sets it, and there is no Overflow.Mode where none sets that:
	// the rules and flags of the data plane hold. Resolve sets LoadBalancer with all its blocks and EndpointHashKey.
	Conf
	Routes []RouteHash // in the order in which a request is compared with them; empty if no policy is about one
	// HasLocality tells that some policy says something about locality.
	HasLocality bool

	Fields []Field          // every field that a policy has set, in the order of the CRD's
	Notes  []reason.Finding // what was said and has no effect
}

// RouteHash is a route's rule with the hash policies that hold for its requests.
type RouteHash struct {
	Route        string   // kind namespace/name, and the rule's name or number, for people
	Hosts        []string // one, *.example.com among them; empty: any
	Match        Match
	HashPolicies []HashPolicy
	Origin       *Origin // the policy about the route; nil: what holds for the service
}

// Field is a field that holds and where it was written.
type Field struct {
	Path   string // in the CRD's spelling, below spec: loadBalancer.maglev.tableSize
	Value  string // for people
	Origin Origin
}
