package route

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
)

// The labels that say where a node is: a node has them even if its labels are not known.
const (
	labelZone     = policy.DefaultZoneKey
	labelHostname = "kubernetes.io/hostname"
)

// class is a group of clients on a node that have the same settings for a service port.
type class struct {
	id       string        // empty: the base, for every client that no policy tells apart
	client   policy.Client // any of them
	addrs    []netip.Addr  // of all of them, sorted; nil for the base
	settings *policy.Settings
}

// isNode tells whether a client is a node, with clients on it that policies may tell apart.
func isNode(c *policy.Client) bool { return c.Node != "" && c.Namespace == "" && c.Pod == nil }

// classes tells the clients of a service port apart, as far as policies do: by what they are, and by those of their own
// labels that nearness is measured with. The base comes first, the others by id.
func (c *Compiler) classes(u *unit, port topology.Port) []class {
	to := policy.Destination{Service: u.service.ServiceName, Port: port}
	base := class{client: c.in.Client, settings: c.resolve(c.in.Client, to)}
	if len(c.in.Policies.Rules) == 0 || !isNode(&c.in.Client) {
		return []class{base}
	}
	isByClient := c.in.Policies.TellsApart(to)
	if !isByClient && len(nearnessKeys(base.settings)) == 0 {
		return []class{base}
	}
	u.hasClasses = true
	found := make(map[string]*class)
	for _, k := range c.known {
		id, settings := "", base.settings
		if isByClient {
			if id = c.in.Policies.ClassOf(k.Client, to); id != "" {
				settings = c.resolve(k.Client, to)
			}
		}
		id = withLabels(id, nearnessKeys(settings), k.Pod)
		if id == "" {
			continue
		}
		if found[id] == nil {
			found[id] = &class{id: id, client: k.Client, settings: settings}
		}
		found[id].addrs = append(found[id].addrs, k.addr)
	}
	all := []class{base}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		all = append(all, *found[id])
	}
	return all
}

// resolve gives what policies say. Without policies that is the same for all.
func (c *Compiler) resolve(client policy.Client, to policy.Destination) *policy.Settings {
	if len(c.in.Policies.Rules) == 0 && c.silent != nil {
		return c.silent
	}
	settings := c.in.Policies.Resolve(client, to)
	if len(c.in.Policies.Rules) == 0 {
		c.silent = &settings
	}
	return &settings
}

// nearnessKeys lists the labels that decide which endpoints are near, except the zone's own.
func nearnessKeys(s *policy.Settings) []string {
	var keys []string
	if key := s.Locality.ZoneKey; key != nil && *key != labelZone {
		keys = append(keys, *key)
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

// knownClient is a client that is known by its address: a pod of the node, or an endpoint on it.
type knownClient struct {
	addr netip.Addr
	policy.Client
}

// podClients lists the pods of the node whose addresses are known; nil if no policy can tell them apart.
func (c *Compiler) podClients() map[netip.Addr]*policy.Pod {
	if len(c.in.Policies.Rules) == 0 {
		return nil
	}
	pods := make(map[netip.Addr]*policy.Pod)
	for i := range c.in.Policies.Pods {
		pod := &c.in.Policies.Pods[i]
		if pod.Node != c.in.Client.Node && pod.Node != "" {
			continue
		}
		for _, text := range pod.IPs {
			if addr, err := netip.ParseAddr(text); err == nil {
				pods[addr.Unmap()] = pod
			}
		}
	}
	return pods
}

// servingClient is an endpoint that is a client, too.
type servingClient struct {
	addr      netip.Addr
	namespace string // of its pod, where it is named
}

// servingClients lists the clients of the node that are endpoints of a service, each once.
func (c *Compiler) servingClients(svc *topology.Service) []servingClient {
	var found []servingClient
	for i := range svc.Endpoints {
		e := &svc.Endpoints[i]
		addr := e.Addr.Unmap()
		if c.pods[addr] == nil && (e.Cluster != "" || e.Node != c.in.Client.Node) {
			continue
		}
		if !slices.ContainsFunc(found, func(s servingClient) bool { return s.addr == addr }) {
			namespace, _, _ := strings.Cut(e.Pod, "/")
			found = append(found, servingClient{addr, namespace})
		}
	}
	return found
}

// listClients lists the clients of the node whose addresses are known, the same for all services, and tells whether they
// are others than before.
func (c *Compiler) listClients() bool {
	before := c.known
	known := make(map[netip.Addr]*knownClient)
	for addr, pod := range c.pods {
		k := &knownClient{addr, c.in.Client}
		k.Namespace, k.Pod = pod.Namespace, pod.Labels
		known[addr] = k
	}
	for _, u := range c.units {
		for _, s := range u.serving {
			if known[s.addr] == nil {
				known[s.addr] = &knownClient{s.addr, c.in.Client}
				known[s.addr].Namespace = s.namespace
			}
			known[s.addr].Serves = append(known[s.addr].Serves, u.service.ServiceName)
		}
	}
	c.known = make([]knownClient, 0, len(known))
	for _, addr := range slices.SortedFunc(maps.Keys(known), netip.Addr.Compare) {
		c.known = append(c.known, *known[addr])
	}
	return !reflect.DeepEqual(before, c.known)
}
