package convert

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// KindServiceImport is the kind of a ServiceImport, and of the Service that AsService makes of one.
const KindServiceImport = "ServiceImport"

// ServiceImport is what weir reads of the ServiceImport of the Multi-Cluster Services API (KEP-1645), in v1beta1 and v1alpha1
// alike. The types of sigs.k8s.io/mcs-api are not used: they are two sets of the same fields.
type ServiceImport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec ServiceImportSpec `json:"spec"`
	// Status says which clusters export the Service, which EndpointSlices say themselves.
	Status map[string]any `json:"status,omitempty"`
}

// ServiceImportSpec says how an imported Service is reached.
type ServiceImportSpec struct {
	Ports                 []ServiceImportPort                  `json:"ports"`
	IPs                   []string                             `json:"ips,omitempty"`
	Type                  string                               `json:"type"` // ClusterSetIP or Headless
	SessionAffinity       corev1.ServiceAffinity               `json:"sessionAffinity,omitempty"`
	SessionAffinityConfig *corev1.SessionAffinityConfig        `json:"sessionAffinityConfig,omitempty"`
	IPFamilies            []corev1.IPFamily                    `json:"ipFamilies,omitempty"`
	InternalTrafficPolicy *corev1.ServiceInternalTrafficPolicy `json:"internalTrafficPolicy,omitempty"`
	TrafficDistribution   *string                              `json:"trafficDistribution,omitempty"`
}

// ServiceImportPort is a port of an imported Service.
type ServiceImportPort struct {
	Name        string          `json:"name,omitempty"`
	Protocol    corev1.Protocol `json:"protocol,omitempty"`
	AppProtocol *string         `json:"appProtocol,omitempty"`
	Port        int32           `json:"port"`
}

// AsService gives the Service that a ServiceImport stands for: its ports, its cluster-set IPs and its settings, under
// topology.ImportedName.
func (i *ServiceImport) AsService() *corev1.Service {
	s := &corev1.Service{ObjectMeta: *i.DeepCopy()}
	s.Kind = KindServiceImport
	s.Name = topology.ImportedName(topology.ServiceName{Name: s.Name}).Name
	spec := &s.Spec
	spec.Type, spec.ClusterIPs, spec.IPFamilies = corev1.ServiceTypeClusterIP, i.Spec.IPs, i.Spec.IPFamilies
	if i.Spec.Type == headless {
		spec.ClusterIP, spec.ClusterIPs = corev1.ClusterIPNone, []string{corev1.ClusterIPNone}
	}
	spec.SessionAffinity, spec.SessionAffinityConfig = i.Spec.SessionAffinity, i.Spec.SessionAffinityConfig
	spec.InternalTrafficPolicy, spec.TrafficDistribution = i.Spec.InternalTrafficPolicy, i.Spec.TrafficDistribution
	for _, p := range i.Spec.Ports {
		spec.Ports = append(spec.Ports, corev1.ServicePort{Name: p.Name, Protocol: p.Protocol, AppProtocol: p.AppProtocol, Port: p.Port})
	}
	return s
}

// headless is the type of a ServiceImport without an address of its own.
const headless = "Headless"

// IsGlobal tells whether a Service is to be joined with those of its name in other clusters.
func IsGlobal(s *corev1.Service) bool { return s != nil && s.Labels[api.LabelGlobal] == "true" }

// ImportOf names the ServiceImport that a slice belongs to, by its own name and not by topology.ImportedName; false if it belongs to
// none.
func ImportOf(s *discoveryv1.EndpointSlice) (topology.ServiceName, bool) {
	name := s.Labels[api.LabelImportedName]
	return topology.ServiceName{Namespace: namespace(s.Namespace), Name: name}, name != ""
}

// Imported gives the endpoints of a ServiceImport: those of its slices, of all clusters. own are the slices of the cluster's own
// Service of that name. An endpoint that these have, too, is this cluster's, and is as they say: they know first.
func Imported(imported, own []*discoveryv1.EndpointSlice, zones Zones) ([]topology.Endpoint, []reason.Finding) {
	endpoints, problems := Slices(imported, zones)
	mine, _ := Slices(own, zones)
	for i := range endpoints {
		at := slices.IndexFunc(mine, func(e topology.Endpoint) bool { return e.Addr == endpoints[i].Addr })
		if at >= 0 {
			endpoints[i] = mine[at]
		}
	}
	return merge(endpoints), problems
}

// Joined gives the endpoints of a global Service: its own, and those of other clusters that its slices and those of its
// ServiceImport do not have already.
func Joined(own, imported []topology.Endpoint) []topology.Endpoint {
	known := make(map[netip.Addr]bool, len(own))
	for i := range own {
		known[own[i].Addr] = true
	}
	all := slices.Clone(own)
	for i := range imported {
		if !known[imported[i].Addr] {
			all = append(all, imported[i])
		}
	}
	return all
}

// outside completes an endpoint of another cluster: hints there are for the clients there, and it is on none of the nodes here.
// An address that means another machine on each machine is refused: it would lead the requests of this cluster to whatever
// listens there.
func (p *problems) outside(field string, e *topology.Endpoint, cluster string) bool {
	e.Cluster, e.Hints = cluster, topology.Hints{}
	if e.Addr.IsLoopback() || e.Addr.IsLinkLocalUnicast() {
		p.add(field+".addresses[0]", "%s of cluster %s is an address of this machine or its link: left out", e.Addr, cluster)
		return false
	}
	return true
}

// placeless says that nothing is known of where the endpoints of a slice are.
func (p *problems) placeless(cluster string, endpoints []topology.Endpoint) {
	if len(endpoints) > 0 && !slices.ContainsFunc(endpoints, func(e topology.Endpoint) bool { return e.Zone != "" }) {
		p.add("endpoints", "no endpoint of cluster %s names its zone: they count as one place", cluster)
	}
}

// clusterOf names the cluster that the endpoints of a slice are in; empty: this one.
func clusterOf(s *discoveryv1.EndpointSlice) string {
	if cluster := s.Labels[api.LabelSourceCluster]; cluster != "" {
		return cluster
	}
	if s.Labels[api.LabelImportedName] != "" {
		return unnamedCluster
	}
	return ""
}

// unnamedCluster stands for the cluster of imported slices that do not name it.
const unnamedCluster = "unnamed"

// importRef names a ServiceImport by the Service that AsService made of it.
func importRef(s *corev1.Service) reason.Object {
	of, _ := topology.ImportedFrom(topology.ServiceName{Namespace: namespace(s.Namespace), Name: s.Name})
	return reason.Object{Kind: KindServiceImport, Namespace: of.Namespace, Name: of.Name}
}
