package route

import (
	"net/netip"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Endpoint is an endpoint of a service port as one client sees it.
type Endpoint struct {
	Addr    netip.AddrPort // identity
	Zone    topology.Zone
	Cluster string
	Cost    topology.Cost // of a request from this client
	Home    bool          // belongs to the group that the plan gives to this client
	Tier    int           // of endpoints that are not home: lower tiers are spilled to first, whatever they cost
	Near    bool          // home is the client's node, and this one is elsewhere in its zone: used before other zones
	Unready bool          // counts in its group's health, and is never picked

	Weight  uint32 // of requests, relative to the others of its group; 0: 1
	HashKey string // what it is hashed by; empty: Addr
	// Affinity names a part of home that gets a share of home's requests by AffinityWeight, the same in all endpoints of
	// that part; empty: home has no parts, or this endpoint is in the part that has no name.
	Affinity       string
	AffinityWeight uint32 // 0: home has no parts
}

// Key gives the identity of the endpoint's group.
func (e *Endpoint) Key() GroupKey {
	if e.Home {
		return GroupKey{Home: true}
	}
	return GroupKey{Tier: e.Tier, Cluster: e.Cluster, Zone: e.Zone}
}

// Distinct gives each address once, as it was named first: an endpoint that two EndpointSlices name is one endpoint.
func Distinct(endpoints []Endpoint) []Endpoint {
	seen := make(map[netip.AddrPort]bool, len(endpoints))
	once := make([]Endpoint, 0, len(endpoints))
	for _, e := range endpoints {
		if !seen[e.Addr] {
			seen[e.Addr] = true
			once = append(once, e)
		}
	}
	return once
}
