package topology

import (
	"net/netip"
	"strings"
	"time"
)

// Protocol is a transport protocol, spelled as Kubernetes spells it.
type Protocol string

// The transport protocols.
const (
	TCP  Protocol = "TCP"
	UDP  Protocol = "UDP"
	SCTP Protocol = "SCTP"
)

// Port is one port of a service.
type Port struct {
	Name        string
	Protocol    Protocol
	AppProtocol string // as the Service has it; empty: detect
	Port        uint16
	NodePort    uint16 // 0: none
}

// TrafficPolicy restricts a service's traffic to endpoints of the client's node.
type TrafficPolicy string

// The traffic policies.
const (
	PolicyCluster TrafficPolicy = "Cluster"
	PolicyLocal   TrafficPolicy = "Local"
)

// ServiceName identifies a service.
type ServiceName struct{ Namespace, Name string }

// String gives namespace/name.
func (n ServiceName) String() string { return n.Namespace + "/" + n.Name }

// importedSuffix is what the name of an imported service ends with, so that it is not that of the cluster's own Service of the
// same name, which stays a service of its own. No Service has a dot in its name; in DNS the import is
// NAME.NAMESPACE.svc.clusterset.local.
const importedSuffix = ".clusterset"

// ImportedName gives the name that the ServiceImport of a name has as a service.
func ImportedName(of ServiceName) ServiceName {
	of.Name += importedSuffix
	return of
}

// ImportedFrom is the inverse of ImportedName; false if the name is not that of an import.
func ImportedFrom(name ServiceName) (ServiceName, bool) {
	of, ok := strings.CutSuffix(name.Name, importedSuffix)
	return ServiceName{Namespace: name.Namespace, Name: of}, ok
}

// ProxyWeir is weir's own name in Service.Proxy.
const ProxyWeir = "weir"

// DataPlane is what carries a service's traffic.
type DataPlane string

// The data planes.
const (
	DataPlaneProxy  DataPlane = ""       // weir's listeners, where a service is given to them; else the cluster's own proxy
	DataPlaneKernel DataPlane = "kernel" // the kernel places connections
)

// Service is a named set of endpoints.
type Service struct {
	ServiceName
	Mode                 Mode
	Ports                []Port       // sorted by port number and protocol
	ClusterIPs           []netip.Addr // as given: the first is the primary one; empty when headless
	InternalPolicy       TrafficPolicy
	ExternalPolicy       TrafficPolicy
	ExternallyAccessible bool // has a node port, a load-balancer address in VIP mode or an external IP
	Headless             bool
	Sticky               bool      // requests of a client's address stay with one endpoint (sessionAffinity: ClientIP)
	Proxy                string    // the proxy that this service was given to by its label, as ProxyWeir; empty: the cluster's own
	DataPlane            DataPlane // that the service asks for
	Overflow             OverflowSettings
	OverloadLimit        float64      // expected overload that plans may allow: 0.2 is 20 % above the fair part; 0: default
	Demand               []ZoneDemand // where the traffic starts, sorted by zone; empty: not told
	Endpoints            []Endpoint   // sorted by CompareEndpoints, both families, every condition
}

// Families lists those that the service has cluster IPs or endpoints in, in the order of Families.
func (s *Service) Families() []Family {
	var has [2]bool
	for _, ip := range s.ClusterIPs {
		has[FamilyOf(ip)] = true
	}
	for i := range s.Endpoints {
		has[s.Endpoints[i].Family()] = true
	}
	var list []Family
	for _, family := range Families() {
		if has[family] {
			list = append(list, family)
		}
	}
	return list
}

// ZoneDemand is how much of a service's traffic starts in a zone, as a fraction of the whole. The shares of a service
// need not sum to 1: callers scale them.
type ZoneDemand struct {
	Zone  Zone
	Share float64
}

// OverflowSettings are a service's own wishes for load-driven overflow; the zero value asks for the defaults.
type OverflowSettings struct {
	Strategy string  // one of overflow.Names; empty: the agent's default
	Prefer   string  // cost, balanced or latency; empty: balanced
	Shed     bool    // reject with 503 what no zone can take
	Drains   []Drain // sorted by zone
}

// Drain takes a zone out of use until a moment.
type Drain struct {
	Zone  Zone
	Until time.Time
}
