package convert

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Service converts a Service without its endpoints; nil for type ExternalName, which has none. What the API server
// would have defaulted is defaulted here too, so that a manifest written by hand means the same before and after it was
// applied.
func Service(s *corev1.Service, o Options) (*topology.Service, []reason.Finding) {
	p := problems{object: serviceRef(s)}
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		p.add("spec.type", "ExternalName is a DNS alias without endpoints: left out")
		return nil, p.list
	}
	mode, _ := p.mode(s, o)
	svc := &topology.Service{
		ServiceName:          topology.ServiceName{Namespace: namespace(s.Namespace), Name: s.Name},
		Mode:                 mode,
		Ports:                p.ports(s.Spec.Ports),
		InternalPolicy:       p.policy("spec.internalTrafficPolicy", string(deref(s.Spec.InternalTrafficPolicy, ""))),
		ExternalPolicy:       p.policy("spec.externalTrafficPolicy", string(s.Spec.ExternalTrafficPolicy)),
		ExternallyAccessible: isExternallyAccessible(s),
		Headless:             s.Spec.ClusterIP == corev1.ClusterIPNone,
		Sticky:               s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP,
		Proxy:                s.Labels[api.LabelServiceProxyName],
	}
	if !svc.Headless {
		svc.ClusterIPs = p.clusterIPs(s)
	}
	if value, ok := s.Labels[api.LabelDataPlane]; ok {
		svc.DataPlane = topology.DataPlane(p.oneOf(at("metadata.labels", api.LabelDataPlane), value, api.DataPlaneKernel))
	}
	p.settings(svc, s.Annotations, o)
	p.unknownKeys("metadata.labels", s.Labels, []string{api.LabelDistribution, api.LabelGlobal, api.LabelDataPlane})
	return svc, p.list
}

func serviceRef(s *corev1.Service) reason.Object {
	if s.Kind == KindServiceImport {
		return importRef(s)
	}
	return reason.Object{Kind: "Service", Namespace: namespace(s.Namespace), Name: s.Name}
}

// namespace gives the namespace that kubectl would put an object into when its manifest names none.
func namespace(s string) string {
	if s == "" {
		return corev1.NamespaceDefault
	}
	return s
}

// isExternallyAccessible follows kube-proxy: a node port, a load balancer address that nodes see as a destination, or
// an external IP.
func isExternallyAccessible(s *corev1.Service) bool {
	return len(s.Spec.ExternalIPs) > 0 ||
		slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort > 0 }) ||
		slices.ContainsFunc(s.Status.LoadBalancer.Ingress, func(i corev1.LoadBalancerIngress) bool {
			return i.IP != "" && deref(i.IPMode, corev1.LoadBalancerIPModeVIP) == corev1.LoadBalancerIPModeVIP
		})
}

func (p *problems) ports(list []corev1.ServicePort) []topology.Port {
	type key struct {
		name     string
		protocol topology.Protocol
	}
	seen := make(map[key]bool)
	var ports []topology.Port
	for i := range list {
		sp := &list[i]
		field := index("spec.ports", i)
		number, ok := p.portNumber(field+".port", sp.Port)
		if !ok {
			continue
		}
		port := topology.Port{
			Name: sp.Name, Protocol: p.protocol(field, sp.Protocol),
			AppProtocol: deref(sp.AppProtocol, ""), Port: number,
		}
		if k := (key{port.Name, port.Protocol}); seen[k] {
			p.add(field+".name", "a second port %q over %s: left out", port.Name, port.Protocol)
			continue
		}
		seen[key{port.Name, port.Protocol}] = true
		if sp.NodePort != 0 {
			port.NodePort, _ = p.portNumber(field+".nodePort", sp.NodePort)
		}
		ports = append(ports, port)
	}
	return ports
}

// portNumber takes n as the number of a port; it reports one that cannot be.
func (p *problems) portNumber(field string, n int32) (uint16, bool) {
	if n < 1 || n > 65535 {
		p.add(field, "%d is no port number from 1 to 65535: left out", n)
		return 0, false
	}
	return uint16(n), true
}

func (p *problems) protocol(field string, protocol corev1.Protocol) topology.Protocol {
	switch protocol {
	case corev1.ProtocolUDP:
		return topology.UDP
	case corev1.ProtocolSCTP:
		return topology.SCTP
	case corev1.ProtocolTCP, "":
		return topology.TCP
	default:
		p.add(field+".protocol", "unknown protocol %q: taken as TCP", protocol)
		return topology.TCP
	}
}

func (p *problems) policy(field, policy string) topology.TrafficPolicy {
	switch topology.TrafficPolicy(policy) {
	case topology.PolicyLocal:
		return topology.PolicyLocal
	case topology.PolicyCluster, "":
		return topology.PolicyCluster
	default:
		p.add(field, "unknown policy %q: taken as Cluster", policy)
		return topology.PolicyCluster
	}
}

func (p *problems) clusterIPs(s *corev1.Service) []netip.Addr {
	field, texts := "spec.clusterIPs", s.Spec.ClusterIPs
	if len(texts) == 0 && s.Spec.ClusterIP != "" {
		field, texts = "spec.clusterIP", []string{s.Spec.ClusterIP}
	}
	var addrs []netip.Addr
	for _, text := range texts {
		if addr, ok := p.addr(field, text); ok {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// addr reads an address of one machine. As a place to listen on, the unspecified address would be every interface of the
// node; as an endpoint it would be the node itself.
func (p *problems) addr(field, text string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		p.add(field, "%q is no IP address: left out", text)
		return netip.Addr{}, false
	}
	addr = addr.Unmap()
	if addr.IsUnspecified() || addr.IsMulticast() {
		p.add(field, "%s is no address of one machine: left out", addr)
		return netip.Addr{}, false
	}
	return addr, true
}
