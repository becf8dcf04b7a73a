package convert

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Zones gives the zone of each node by its name; the empty zone for a node without one. A node that is missing is not
// known at all.
type Zones map[string]topology.Zone

// ZonesOf gathers the zones of nodes.
func ZonesOf(nodes []topology.Node) Zones {
	zones := make(Zones, len(nodes))
	for _, n := range nodes {
		zones[n.Name] = n.Zone
	}
	return zones
}

// Slices converts the EndpointSlices of one Service, of both families, to its endpoints in no particular order.
//
// Only the first address of an endpoint counts, as in kube-proxy. A condition that is missing stays unknown. An
// endpoint without a zone has that of its node. The endpoints of a slice with a source cluster are that cluster's. Slices of type FQDN, endpoints without an address and ports without a
// number are reported and left out.
//
// Several slices may hold the same address and port. It is then taken from one endpoint only: from one that is ready
// before one that is not, from one that stays before one that terminates, and else from the slice that comes first by
// name. kube-proxy lets the slice that it happens to read last win. The same address with another port number is
// another endpoint, as there.
func Slices(list []*discoveryv1.EndpointSlice, zones Zones) ([]topology.Endpoint, []reason.Finding) {
	list = slices.SortedFunc(slices.Values(list), func(a, b *discoveryv1.EndpointSlice) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var all []topology.Endpoint
	var found []reason.Finding
	for _, s := range list {
		p := problems{object: sliceRef(s)}
		all = append(all, p.slice(s, zones)...)
		found = append(found, p.list...)
	}
	return merge(all), found
}

// Endpoints gives the endpoints of one EndpointSlice with their indexes in it. What Slices would leave out is left out.
func Endpoints(s *discoveryv1.EndpointSlice) iter.Seq2[int, *topology.Endpoint] {
	return func(yield func(int, *topology.Endpoint) bool) {
		p := problems{object: sliceRef(s)}
		family, ok := p.family(s)
		if !ok {
			return
		}
		ports := p.slicePorts(s.Ports)
		for i := range s.Endpoints {
			addr, ok := p.endpointAddr("", s.Endpoints[i].Addresses, family)
			if !ok {
				continue
			}
			e := p.endpoint("", &s.Endpoints[i])
			e.Addr, e.Ports = addr, ports
			if !yield(i, &e) {
				return
			}
		}
	}
}

func sliceRef(s *discoveryv1.EndpointSlice) reason.Object {
	return reason.Object{Kind: "EndpointSlice", Namespace: namespace(s.Namespace), Name: s.Name}
}

// sliceService names the Service that a slice belongs to; empty when it does not say.
func sliceService(s *discoveryv1.EndpointSlice) topology.ServiceName {
	return topology.ServiceName{Namespace: namespace(s.Namespace), Name: s.Labels[api.LabelServiceName]}
}

// family reads the address type of a slice.
func (p *problems) family(s *discoveryv1.EndpointSlice) (topology.Family, bool) {
	switch s.AddressType {
	case discoveryv1.AddressTypeIPv4:
		return topology.IPv4, true
	case discoveryv1.AddressTypeIPv6:
		return topology.IPv6, true
	case discoveryv1.AddressTypeFQDN:
		p.add("addressType", "FQDN has no address to send to: the slice is left out")
	default:
		p.add("addressType", "unknown type %q, want IPv4 or IPv6: the slice is left out", s.AddressType)
	}
	return 0, false
}

func (p *problems) slice(s *discoveryv1.EndpointSlice, zones Zones) []topology.Endpoint {
	family, ok := p.family(s)
	if !ok {
		return nil
	}
	ports := p.slicePorts(s.Ports)
	reported := make(map[string]bool)
	cluster := clusterOf(s)
	var endpoints []topology.Endpoint
	for i := range s.Endpoints {
		field := index("endpoints", i)
		addr, ok := p.endpointAddr(field+".addresses", s.Endpoints[i].Addresses, family)
		if !ok {
			continue
		}
		e := p.endpoint(field, &s.Endpoints[i])
		e.Addr, e.Ports = addr, slices.Clone(ports)
		if cluster == "" {
			p.locate(field+".nodeName", &e, zones, reported)
		} else if !p.outside(field, &e, cluster) {
			continue
		}
		endpoints = append(endpoints, e)
	}
	if cluster != "" {
		p.placeless(cluster, endpoints)
	}
	return endpoints
}

// slicePorts converts the ports of a slice. A port without a number is left out, as in kube-proxy.
func (p *problems) slicePorts(list []discoveryv1.EndpointPort) []topology.EndpointPort {
	var ports []topology.EndpointPort
	for i := range list {
		sp := &list[i]
		field := index("ports", i)
		if sp.Port == nil {
			p.add(field+".port", "the port has no number: left out")
			continue
		}
		number, ok := p.portNumber(field+".port", *sp.Port)
		if !ok {
			continue
		}
		port := topology.EndpointPort{
			Name: deref(sp.Name, ""), Protocol: p.protocol(field, deref(sp.Protocol, corev1.ProtocolTCP)),
			AppProtocol: deref(sp.AppProtocol, ""), Port: number,
		}
		same := func(o topology.EndpointPort) bool { return o.Name == port.Name && o.Protocol == port.Protocol }
		if slices.ContainsFunc(ports, same) {
			p.add(field+".name", "a second port %q over %s: left out", port.Name, port.Protocol)
			continue
		}
		ports = append(ports, port)
	}
	return ports
}

func (p *problems) endpointAddr(field string, addresses []string, family topology.Family) (netip.Addr, bool) {
	if len(addresses) == 0 {
		p.add(field, "the endpoint has no address: left out")
		return netip.Addr{}, false
	}
	addr, ok := p.addr(index(field, 0), addresses[0])
	if ok && topology.FamilyOf(addr) != family {
		p.add(index(field, 0), "%s is not %s, the slice's address type: left out", addr, family)
		return netip.Addr{}, false
	}
	return addr, ok
}

func (p *problems) endpoint(field string, de *discoveryv1.Endpoint) topology.Endpoint {
	e := topology.Endpoint{
		Zone: p.zone(field+".zone", deref(de.Zone, "")),
		Node: deref(de.NodeName, ""),
		Conditions: topology.Conditions{
			Ready:       condition(de.Conditions.Ready),
			Serving:     condition(de.Conditions.Serving),
			Terminating: condition(de.Conditions.Terminating),
		},
	}
	if ref := de.TargetRef; ref != nil && ref.Kind == "Pod" {
		e.Pod = cmp.Or(ref.Namespace, p.object.Namespace) + "/" + ref.Name
	}
	if de.Hints == nil {
		return e
	}
	for i, hint := range de.Hints.ForZones {
		// kube-proxy would take a hint without a name for the nodes without a zone; weir never does.
		if z := p.zone(index(field+".hints.forZones", i)+".name", hint.Name); z != "" {
			e.Hints.Zones = append(e.Hints.Zones, z)
		}
	}
	for _, hint := range de.Hints.ForNodes {
		if hint.Name != "" {
			e.Hints.Nodes = append(e.Hints.Nodes, hint.Name)
		}
	}
	return e
}

func condition(b *bool) topology.Condition {
	switch {
	case b == nil:
		return topology.Unknown
	case *b:
		return topology.True
	default:
		return topology.False
	}
}

// locate gives e the zone of its node where it has none, and reports a node that is not known, once for each.
func (p *problems) locate(field string, e *topology.Endpoint, zones Zones, reported map[string]bool) {
	if e.Node == "" || len(zones) == 0 {
		return
	}
	z, ok := zones[e.Node]
	if !ok && !reported[e.Node] {
		reported[e.Node] = true
		p.add(field, "there is no node %q", e.Node)
	}
	if e.Zone == "" {
		e.Zone = z
	}
}

// merge leaves each address and port in one endpoint; see Slices for which.
func merge(all []topology.Endpoint) []topology.Endpoint {
	slices.SortStableFunc(all, func(a, b topology.Endpoint) int {
		return cmp.Or(cmp.Compare(min(len(a.Cluster), 1), min(len(b.Cluster), 1)), cmp.Compare(rank(&a), rank(&b)))
	})
	type socket struct {
		addr netip.Addr
		port topology.EndpointPort
	}
	taken := make(map[socket]bool)
	known := make(map[netip.Addr]bool)
	var merged []topology.Endpoint
	for _, e := range all {
		var ports []topology.EndpointPort
		for _, port := range e.Ports {
			key := socket{e.Addr, port}
			key.port.AppProtocol = ""
			if !taken[key] {
				taken[key] = true
				ports = append(ports, port)
			}
		}
		if known[e.Addr] && len(ports) == 0 {
			continue
		}
		known[e.Addr] = true
		e.Ports = ports
		merged = append(merged, e)
	}
	return merged
}

// rank orders endpoints with the same address by how much use they are, best first.
func rank(e *topology.Endpoint) int {
	switch {
	case e.IsTerminating():
		return 2
	case !e.IsReady():
		return 1
	default:
		return 0
	}
}
