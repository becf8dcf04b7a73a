package topology

import (
	"cmp"
	"slices"
	"strings"
)

// Snapshot is a cluster at one instant. It is immutable: any goroutine may read it, none may
// write to what it points at.
type Snapshot struct {
	Nodes    []Node     // sorted by name, names are unique
	Services []*Service // sorted by namespace and name, names are unique
	Costs    Costs
	Clusters []Cluster // further ones that are followed, sorted by name
}

// Cluster is a further cluster whose endpoints a Snapshot has.
type Cluster struct {
	Name   string
	Region string // empty: the regions are those that zones of the same names have here
	Stale  bool   // its API server does not answer: its endpoints are those of its last state
}

// NewSnapshot takes ownership of nodes and services, sorts them and everything in them that has no order of its own.
// Names are taken to be unique; what reads them from outside checks that.
func NewSnapshot(nodes []Node, services []*Service, costs Costs) Snapshot {
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(services, func(a, b *Service) int { return a.Compare(b.ServiceName) })
	for _, s := range services {
		s.sort()
	}
	return Snapshot{Nodes: nodes, Services: services, Costs: costs}
}

// Compare orders names by namespace, then name.
func (n ServiceName) Compare(o ServiceName) int {
	return cmp.Or(strings.Compare(n.Namespace, o.Namespace), strings.Compare(n.Name, o.Name))
}

func (s *Service) sort() {
	slices.SortFunc(s.Ports, func(a, b Port) int {
		return cmp.Or(
			cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.NodePort, b.NodePort), cmp.Compare(a.AppProtocol, b.AppProtocol),
		)
	})
	slices.SortFunc(s.Demand, func(a, b ZoneDemand) int { return cmp.Compare(a.Zone, b.Zone) })
	slices.SortFunc(s.Overflow.Drains, func(a, b Drain) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), a.Until.Compare(b.Until))
	})
	sortEndpoints(s.Endpoints)
}

// sortEndpoints sorts the endpoints and everything in them that has no order of its own.
func sortEndpoints(endpoints []Endpoint) {
	for i := range endpoints {
		e := &endpoints[i]
		slices.SortFunc(e.Ports, compareEndpointPorts)
		slices.Sort(e.Hints.Zones)
		e.Hints.Zones = slices.Compact(e.Hints.Zones)
		slices.Sort(e.Hints.Nodes)
		e.Hints.Nodes = slices.Compact(e.Hints.Nodes)
	}
	slices.SortFunc(endpoints, CompareEndpoints)
}

// Service finds a service by name; nil when there is none.
func (s *Snapshot) Service(name ServiceName) *Service {
	i, ok := slices.BinarySearchFunc(s.Services, name, func(v *Service, n ServiceName) int {
		return v.Compare(n)
	})
	if !ok {
		return nil
	}
	return s.Services[i]
}

// Node finds a node by name; nil when there is none.
func (s *Snapshot) Node(name string) *Node {
	i, ok := slices.BinarySearchFunc(s.Nodes, name, func(n Node, name string) int { return strings.Compare(n.Name, name) })
	if !ok {
		return nil
	}
	return &s.Nodes[i]
}

// NodesNear lists the names of nodes that were most likely meant by name, as Near does; empty when there are no nodes.
func (s *Snapshot) NodesNear(name string) []string {
	names := make([]string, 0, len(s.Nodes))
	for i := range s.Nodes {
		names = append(names, s.Nodes[i].Name)
	}
	return Near(name, names)
}

// Zones lists the zones that any node or endpoint names, sorted.
func (s *Snapshot) Zones() []Zone {
	var zones []Zone
	for i := range s.Nodes {
		zones = append(zones, s.Nodes[i].Zone)
	}
	for _, svc := range s.Services {
		for i := range svc.Endpoints {
			zones = append(zones, svc.Endpoints[i].Zone)
		}
	}
	slices.Sort(zones)
	zones = slices.Compact(zones)
	return slices.DeleteFunc(zones, func(z Zone) bool { return z == "" })
}

// Regions gives the region of each zone, as its nodes name it. Where nodes of one zone disagree the first node by name
// decides. RegionOf reads the result.
func (s *Snapshot) Regions() map[Zone]string {
	regions := make(map[Zone]string)
	for _, c := range s.Clusters {
		if c.Region != "" {
			regions[clusterMark+Zone(c.Name)] = c.Region
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if _, ok := regions[n.Zone]; !ok && n.Zone != "" && n.Region != "" {
			regions[n.Zone] = n.Region
		}
	}
	return regions
}

// clusterMark begins the entry of a whole cluster among the regions of zones. No zone has it in its name.
const clusterMark = "@"

// RegionOf gives the region of a zone of a cluster, empty for this one, from what Snapshot.Regions gives. Two clusters may
// have zones of the same name in different regions: what is said of a cluster comes before what is known of zones here.
func RegionOf(regions map[Zone]string, zone Zone, cluster string) string {
	if cluster != "" {
		if region, ok := regions[clusterMark+Zone(cluster)]; ok {
			return region
		}
	}
	return regions[zone]
}
