package topology

import (
	"cmp"
	"net/netip"
	"slices"
)

// Condition is a three-valued endpoint condition: an EndpointSlice may leave each of them out.
type Condition uint8

// The values of a Condition.
const (
	Unknown Condition = iota
	True
	False
)

// Conditions are an endpoint's conditions as its EndpointSlice has them.
//
// Source: reference of kube-proxy 1.36: ready and serving hold when true or unknown, terminating only when true. The
// EndpointSlice API gives unknown the same meaning; the upstream controller's own reading (unknown is not ready) is not
// followed, see ADR-0004.
type Conditions struct {
	Ready, Serving, Terminating Condition
}

// EndpointPort is one numbered port of an endpoint, by the name of the service port it answers.
type EndpointPort struct {
	Name        string
	Protocol    Protocol
	AppProtocol string
	Port        uint16
}

// Hints say which zones and which nodes should use an endpoint. Both lists are sorted and hold no duplicates; the API
// allows 8 of each.
type Hints struct {
	Zones []Zone
	Nodes []string
}

// IsZero tells whether there is no hint at all.
func (h Hints) IsZero() bool { return len(h.Zones) == 0 && len(h.Nodes) == 0 }

// Equal tells whether both say the same.
func (h Hints) Equal(o Hints) bool {
	return slices.Equal(h.Zones, o.Zones) && slices.Equal(h.Nodes, o.Nodes)
}

// Endpoint is one place that answers requests for a service.
type Endpoint struct {
	Addr    netip.Addr     // identity, together with Ports
	Ports   []EndpointPort // sorted by name, protocol and number
	Zone    Zone           // empty: not known
	Node    string         // empty: not known
	Cluster string         // empty: this cluster
	Pod     string         // namespace/name of the pod, for people; may be empty
	Conditions
	Hints Hints // as they stand on the EndpointSlice; after planning, as the plan wants them
}

// Family gives the family of the endpoint's address.
func (e *Endpoint) Family() Family { return FamilyOf(e.Addr) }

// IsReady tells whether the endpoint takes new requests in normal operation.
func (e *Endpoint) IsReady() bool { return e.Ready != False }

// IsServing tells whether the endpoint answers, be it terminating or not.
func (e *Endpoint) IsServing() bool { return e.Serving != False }

// IsTerminating tells whether the endpoint is going away.
func (e *Endpoint) IsTerminating() bool { return e.Terminating == True }

// Port finds the endpoint's port that answers the service port p.
func (e *Endpoint) Port(p Port) (EndpointPort, bool) {
	for _, ep := range e.Ports {
		if ep.Name == p.Name && ep.Protocol == p.Protocol {
			return ep, true
		}
	}
	return EndpointPort{}, false
}

// CompareEndpoints orders endpoints by address, ports and cluster: the order of Service.Endpoints.
func CompareEndpoints(a, b Endpoint) int {
	return cmp.Or(
		a.Addr.Compare(b.Addr),
		slices.CompareFunc(a.Ports, b.Ports, compareEndpointPorts),
		cmp.Compare(a.Cluster, b.Cluster),
	)
}

func compareEndpointPorts(a, b EndpointPort) int {
	return cmp.Or(
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Protocol, b.Protocol),
		cmp.Compare(a.Port, b.Port),
		cmp.Compare(a.AppProtocol, b.AppProtocol),
	)
}
