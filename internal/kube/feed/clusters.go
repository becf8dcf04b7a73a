package feed

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
)

// Cluster is a further cluster that is followed, as it was last known. One value of it never changes.
type Cluster struct {
	topology.Cluster

	// Gateway are the addresses that stand for the endpoints; empty: the pods themselves are reached.
	Gateway []netip.Addr
	// Networks are those that endpoints are in; empty: any.
	Networks []netip.Prefix
	// Services are the global services there, with their endpoints.
	Services map[topology.ServiceName][]topology.Endpoint
}

// Others are what a record has besides its own Service and slices; the zero value for a service of this cluster alone.
type Others struct {
	Import   bool                         // the Service was made of a ServiceImport
	Global   bool                         // it is joined with those of other clusters
	Own      []*discoveryv1.EndpointSlice // of an import: those of this cluster's Service of that name
	Imported []*discoveryv1.EndpointSlice // of a global Service: those of its ServiceImport
}

func (o *Others) equal(p *Others) bool {
	return o.Import == p.Import && o.Global == p.Global && slices.Equal(o.Own, p.Own) && slices.Equal(o.Imported, p.Imported)
}

// hasAny tells whether endpoints of other clusters may be among those of the record.
func (o *Others) hasAny() bool { return o.Import || o.Global }

// SetImports replaces the ServiceImports, each as convert.ServiceImport.AsService gives it. An import that did not change has the
// resource version that it had.
func (f *Feed) SetImports(imports []*corev1.Service) {
	s := f.store
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.imports
	s.imports = make(map[topology.ServiceName]*corev1.Service, len(imports))
	for _, svc := range imports {
		name := topology.ServiceName{Namespace: svc.Namespace, Name: svc.Name}
		if old := before[name]; old != nil && old.UID == svc.UID && isRepeated(old.ResourceVersion, svc.ResourceVersion) {
			svc = old
		} else {
			s.touchLocked(name)
		}
		s.imports[name] = svc
		delete(before, name)
	}
	for name := range before {
		s.touchLocked(name)
	}
}

// SetClusters replaces the further clusters that are followed, sorted by name.
func (f *Feed) SetClusters(clusters []Cluster) {
	s := f.store
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.clusters
	s.clusters, s.dirtyClusters = clusters, true
	for _, pair := range [][2][]Cluster{{before, clusters}, {clusters, before}} {
		for i := range pair[0] {
			for name := range pair[0][i].Services {
				if !reflect.DeepEqual(part(before, pair[0][i].Name, name), part(clusters, pair[0][i].Name, name)) {
					s.touchLocked(name)
				}
			}
		}
	}
	s.signal()
}

// part gives all that a cluster adds to a service.
func part(clusters []Cluster, cluster string, name topology.ServiceName) *Cluster {
	for i := range clusters {
		if c := &clusters[i]; c.Name == cluster && len(c.Services[name]) > 0 {
			return &Cluster{Gateway: c.Gateway, Networks: c.Networks, Services: map[topology.ServiceName][]topology.Endpoint{name: c.Services[name]}}
		}
	}
	return nil
}

// touchImportLocked says that an import may be another one.
func (s *store) touchImportLocked(of topology.ServiceName) {
	if s.hasClusters {
		s.touchLocked(topology.ImportedName(of))
	}
}

// objectsLocked gives the objects of a service, be it a Service or a ServiceImport.
func (s *store) objectsLocked(name topology.ServiceName) objects {
	o := objects{name: name, service: s.services[name], slices: sortedSlices(s.owned[name])}
	if !s.hasClusters {
		return o
	}
	if of, ok := topology.ImportedFrom(name); ok {
		o.service = s.imports[name]
		o.others.Import = true
		if o.service != nil {
			o.slices, o.others.Own = sortedSlices(s.imported[of]), sortedSlices(s.owned[of])
		}
		return o
	}
	if convert.IsGlobal(o.service) {
		o.others = Others{Global: true, Imported: sortedSlices(s.imported[name])}
	}
	return o
}

// objects gives what a record was made from.
func (r *Record) objects() objects { return objects{r.Name, r.Object, r.Slices, r.Others} }

// joined lists the records that may have endpoints of other clusters.
func (b *builder) joined() []*Record {
	if !b.hasClusters {
		return nil
	}
	var list []*Record
	for _, r := range b.state.Records {
		if r.Others.hasAny() {
			list = append(list, r)
		}
	}
	return list
}

// joinedObjects gives the objects of the records that may have endpoints of other clusters.
func joinedObjects(records []*Record) []objects {
	var list []objects
	for _, r := range records {
		if r.Others.hasAny() {
			list = append(list, r.objects())
		}
	}
	return list
}

// gather notes the cluster IPs of all services.
func (b *builder) gather(records []*Record) {
	b.areMoved, b.addresses = false, make(map[netip.Addr]bool)
	for _, r := range records {
		for _, ip := range clusterIPs(r) {
			b.addresses[ip] = true
		}
	}
}

func clusterIPs(r *Record) []netip.Addr {
	if r.Service == nil {
		return nil
	}
	return r.Service.ClusterIPs
}

// known lists the clusters without what they serve.
func known(clusters []Cluster) []topology.Cluster {
	var list []topology.Cluster
	for i := range clusters {
		list = append(list, clusters[i].Cluster)
	}
	return list
}

// join gives the endpoints of a record with those of other clusters, given what its own slices say.
func (b *builder) join(r *Record, own []topology.Endpoint, problems []reason.Finding) ([]topology.Endpoint, []reason.Finding) {
	all, o := own, &r.Others
	switch {
	case o.Import:
		r.Managed = false
		all, problems = convert.Imported(r.Slices, o.Own, b.zones)
	case o.Global:
		imported, found := convert.Slices(o.Imported, b.zones)
		all, problems = convert.Joined(all, imported), append(problems, found...)
		for i := range b.clusters {
			all = convert.Joined(all, b.clusters[i].endpoints(r.Service))
		}
	}
	return slices.DeleteFunc(all, func(e topology.Endpoint) bool {
		if e.Cluster == "" {
			return false
		}
		why := b.refusal(&e)
		if why != "" {
			problems = append(problems, reason.Finding{
				Object: reason.Object{Kind: "Service", Namespace: r.Name.Namespace, Name: r.Name.Name}, Field: "endpoints",
				Reason: reason.Invalid, Message: e.Addr.String() + " of cluster " + e.Cluster + " is " + why + ": left out",
			})
		}
		return why != ""
	}), problems
}

// refusal says why an endpoint of another cluster is not used; empty: it is.
func (b *builder) refusal(e *topology.Endpoint) string {
	if b.addresses[e.Addr] {
		return "a cluster IP of this cluster"
	}
	i := slices.IndexFunc(b.clusters, func(c Cluster) bool { return c.Name == e.Cluster })
	if i < 0 || len(b.clusters[i].Networks) == 0 || slices.Contains(b.clusters[i].Gateway, e.Addr) {
		return ""
	}
	if !slices.ContainsFunc(b.clusters[i].Networks, func(p netip.Prefix) bool { return p.Contains(e.Addr) }) {
		return "in none of the networks that its Secret names"
	}
	return ""
}

// endpoints gives what a cluster adds to a service: its endpoints, or its gateway on the service's own ports while one of them is
// ready.
func (c *Cluster) endpoints(svc *topology.Service) []topology.Endpoint {
	list := c.Services[svc.ServiceName]
	if len(c.Gateway) == 0 {
		return slices.Clone(list)
	}
	if !slices.ContainsFunc(list, func(e topology.Endpoint) bool { return e.IsReady() }) {
		return nil
	}
	var ports []topology.EndpointPort
	for _, p := range svc.Ports {
		ports = append(ports, topology.EndpointPort{Name: p.Name, Protocol: p.Protocol, AppProtocol: p.AppProtocol, Port: p.Port})
	}
	slices.SortFunc(ports, func(a, b topology.EndpointPort) int { return strings.Compare(a.Name, b.Name) })
	var gateways []topology.Endpoint
	for _, addr := range c.Gateway {
		gateways = append(gateways, topology.Endpoint{
			Addr: addr, Ports: slices.Clone(ports), Cluster: c.Name,
			Conditions: topology.Conditions{Ready: topology.True, Serving: topology.True, Terminating: topology.False},
		})
	}
	return gateways
}
