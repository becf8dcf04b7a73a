package agent

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
)

// local is a client that is known by its address: a pod of the node, or an endpoint on it.
type local struct {
	addr netip.Addr
	policy.Client
}

// class is a group of clients on the node that have the same settings for a service port.
type class struct {
	id       string        // empty: the node itself and every client that no policy tells apart
	client   policy.Client // any of them
	addrs    []netip.Addr  // of all of them, sorted; nil for the class without an id
	settings policy.Settings
}

// self is the client that stands for all of the node's that no policy tells apart.
func (b *builder) self() policy.Client {
	return policy.Client{Node: b.client.Node, Zone: b.client.Zone}
}

// classes tells the clients of a service port apart, as far as policies do: by who they are, and by those of their own
// labels that nearness is measured with. The class without an id comes first, the others by id.
func (b *builder) classes(svc *topology.Service, port topology.Port) []class {
	to := policy.Destination{Service: svc.ServiceName, Port: port}
	first := class{client: b.self()}
	first.settings = b.policies.Resolve(first.client, to)
	if len(b.policies.Rules) == 0 {
		return []class{first}
	}
	isByClient := b.policies.TellsApart(to)
	if !isByClient && len(measures(&first.settings)) == 0 {
		return []class{first}
	}
	found := make(map[string]*class)
	for _, c := range b.clients() {
		id, settings := "", first.settings
		if isByClient {
			if id = b.policies.ClassOf(c.Client, to); id != "" {
				settings = b.policies.Resolve(c.Client, to)
			}
		}
		id = withLabels(id, measures(&settings), c.Pod)
		if id == "" {
			continue
		}
		if found[id] == nil {
			found[id] = &class{id: id, client: c.Client, settings: settings}
		}
		found[id].addrs = append(found[id].addrs, c.addr)
	}
	all := []class{first}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		all = append(all, *found[id])
	}
	return all
}

// measures lists the labels that endpoints are near by, but for the zone itself.
func measures(s *policy.Settings) []string {
	var keys []string
	if s.Locality.ZoneKey != "" && s.Locality.ZoneKey != labelZone {
		keys = append(keys, s.Locality.ZoneKey)
	}
	for _, a := range s.Locality.Affinity {
		keys = append(keys, a.Key)
	}
	return keys
}

// withLabels adds to a class what its members have themselves of these labels; most pods have none of them, as the node
// they are on has.
func withLabels(id string, keys []string, labels policy.Labels) string {
	parts := []string{id}
	for _, key := range keys {
		if value, ok := labels[key]; ok {
			parts = append(parts, key+"="+value)
		}
	}
	return strings.Join(parts, ";")
}

// clients lists the clients of the node whose addresses are known, by address. They are the same for all services.
func (b *builder) clients() []local {
	if b.locals != nil {
		return b.locals
	}
	known := make(map[netip.Addr]*local)
	for i := range b.policies.Pods {
		pod := &b.policies.Pods[i]
		if pod.Node != b.client.Node && pod.Node != "" {
			continue
		}
		for _, text := range pod.IPs {
			if addr, err := netip.ParseAddr(text); err == nil {
				c := b.self()
				c.Namespace, c.Pod = pod.Namespace, pod.Labels
				known[addr.Unmap()] = &local{addr.Unmap(), c}
			}
		}
	}
	for _, svc := range b.snapshot.Services {
		for i := range svc.Endpoints {
			b.serves(known, svc, &svc.Endpoints[i])
		}
	}
	b.locals = make([]local, 0, len(known))
	for _, addr := range slices.SortedFunc(maps.Keys(known), netip.Addr.Compare) {
		b.locals = append(b.locals, *known[addr])
	}
	return b.locals
}

// serves notes that a client is an endpoint of a service.
func (b *builder) serves(known map[netip.Addr]*local, svc *topology.Service, e *topology.Endpoint) {
	addr := e.Addr.Unmap()
	c := known[addr]
	if c == nil {
		if e.Cluster != "" || e.Node != b.client.Node {
			return
		}
		c = &local{addr, b.self()}
		c.Namespace, _, _ = strings.Cut(e.Pod, "/")
		known[addr] = c
	}
	if !slices.Contains(c.Serves, svc.ServiceName) {
		c.Serves = append(c.Serves, svc.ServiceName)
	}
}
