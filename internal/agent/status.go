package agent

import (
	"net/netip"
	"slices"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/explain"
)

// Problem is something that the agent was asked to serve and cannot, or not as asked.
type Problem = route.Problem

// Status is what an agent serves, for people and programs. Its JSON names are promised (docs/json.md).
type Status struct {
	Node     string          `json:"node"`
	Zone     topology.Zone   `json:"zone"`
	Services []ServiceStatus `json:"services"` // sorted by name; those without a listener are missing
	Problems []Problem       `json:"problems"`
}

// ServiceStatus is one service that the agent serves.
type ServiceStatus struct {
	Service  string        `json:"service"` // namespace/name
	Mode     topology.Mode `json:"mode"`
	Strategy string        `json:"strategy"`
	Ports    []PortStatus  `json:"ports"` // by port and family
}

// PortStatus is one port of a service in one address family.
type PortStatus struct {
	Port      uint16          `json:"port"`
	Name      string          `json:"name,omitempty"`
	Protocol  string          `json:"protocol"`            // as the proxy understands it; in the kernel TCP or UDP
	DataPlane string          `json:"dataPlane,omitempty"` // kernel; empty: the proxy
	Family    string          `json:"family"`
	Addresses []AddressStatus `json:"addresses"`
	// Chosen are the endpoints that policies and hints give the node: those that a kube-proxy there would use. Sorted.
	Chosen    []netip.AddrPort `json:"chosen"`
	Home      int              `json:"home"`      // how many of them requests go to while these cope
	Endpoints int              `json:"endpoints"` // how many there are with those to spill to
	Reason    string           `json:"reason"`    // why these are chosen
	// HomeReason says why requests go to others than the chosen ones while these cope; empty: they do not.
	HomeReason string        `json:"homeReason,omitempty"`
	Policy     PortPolicy    `json:"policy"`
	Classes    []ClassStatus `json:"classes,omitempty"` // of clients for which other settings hold
}

// PortPolicy is what holds for a port's requests, and which policy says so.
type PortPolicy struct {
	Algorithm string          `json:"algorithm"`
	Overflow  string          `json:"overflow"`         // one of the strategies; Disabled: only failing health moves traffic
	Fields    []explain.Field `json:"fields,omitempty"` // that a policy has set
}

// ClassStatus is a class of clients on the node that have settings of their own.
type ClassStatus struct {
	Class     string       `json:"class"`
	Clients   []netip.Addr `json:"clients"` // sorted
	Home      int          `json:"home"`
	Endpoints int          `json:"endpoints"`
	Policy    PortPolicy   `json:"policy"`
}

// AddressStatus is one address of a port.
type AddressStatus struct {
	Address netip.AddrPort `json:"address"`
	Open    bool           `json:"open"`
}

// Status tells what the agent serves now; before Ready it names only the node.
func (a *Agent) Status() Status {
	if r := a.plane.Read(); r != nil {
		return r.status()
	}
	return Status{Node: a.config.Node, Zone: a.config.Zone}
}

// Preview tells what an agent would serve of a snapshot under some policies, without opening anything; nil: none.
func Preview(config Config, s *topology.Snapshot, policies *policy.Set) (Status, error) {
	if err := config.Validate(); err != nil {
		return Status{}, err
	}
	config = config.withDefaults()
	if err := knows(s, &config); err != nil {
		return Status{}, err
	}
	table := newPlanner(config).next(s, policies).table
	preview := reading{table: table, problems: slices.Clone(table.Problems)}
	for _, e := range table.Entries {
		if e.DataPlane == topology.DataPlaneKernel {
			continue
		}
		preview.problems = append(preview.problems, newSpec(e, &spec{}).problems(e)...)
	}
	return preview.status(), nil
}

func (r *reading) status() Status {
	status := Status{
		Node: r.table.Client.Node, Zone: r.table.Client.Zone, Problems: r.problems, Services: []ServiceStatus{},
	}
	if status.Problems == nil {
		status.Problems = []Problem{} // an empty list in JSON, not null
	}
	for _, e := range r.table.Entries { // a base comes before its classes
		name := e.Key.Service.String()
		if n := len(status.Services); n == 0 || status.Services[n-1].Service != name {
			status.Services = append(status.Services, ServiceStatus{Service: name, Mode: e.Mode, Strategy: e.Settings.Overflow.Strategy})
		}
		ports := &status.Services[len(status.Services)-1].Ports
		if e.Key.Class == "" {
			*ports = append(*ports, r.portStatus(e))
			continue
		}
		base := &(*ports)[len(*ports)-1]
		base.Classes = append(base.Classes, ClassStatus{
			Class: e.Key.Class, Clients: e.Clients, Home: e.HomeReady(), Endpoints: len(e.Endpoints), Policy: policyStatus(e),
		})
	}
	return status
}

// policyStatus shows what holds for an entry.
func policyStatus(e *route.Entry) PortPolicy {
	s := &e.Settings
	return PortPolicy{Algorithm: string(s.Algorithm), Overflow: s.Overflow.Strategy, Fields: explain.Fields(s.Policy)}
}

func (r *reading) portStatus(e *route.Entry) PortStatus {
	p := PortStatus{
		Port:      e.Port.Port,
		Name:      e.Port.Name,
		Protocol:  protocolOf(e).String(),
		DataPlane: string(e.DataPlane),
		Family:    e.Key.Family.String(),
		Chosen:    append([]netip.AddrPort{}, e.Chosen...), // an empty list in JSON, not null
		Home:      e.HomeReady(),
		Endpoints: len(e.Endpoints),
		Reason:    e.Choice.String(),
		Policy:    policyStatus(e),
	}
	if e.DataPlane == topology.DataPlaneKernel {
		p.Protocol = string(e.Key.Protocol)
	}
	if e.Home.Code != "" {
		p.HomeReason = e.Home.String()
	}
	for _, a := range e.Addresses {
		p.Addresses = append(p.Addresses, AddressStatus{Address: a, Open: r.open[a]})
	}
	return p
}
