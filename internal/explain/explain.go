package explain

import (
	"cmp"
	"slices"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Options say what to explain besides the plan.
type Options struct {
	DefaultMode topology.Mode // of services that ask for none; empty: Balanced
	Mode        topology.Mode // a mode to show beside the service's own; empty: none
	Node        string        // a node whose choice to show; empty: none
	Traffic     GBPerMonth    // what the service's clients and endpoints exchange; 0: not known
	Price       float64       // of a GB per cost unit, in dollars
	Brief       bool          // leave the advice out: it takes several plans for each service

	Policies   *policy.Set   // nil: none
	Client     policy.Client // that the policies are asked about; zero: any client
	ClientName string        // of Client, for people
}

// Explanation is a service in one family.
type Explanation struct {
	Plan    Plan      `json:"plan"`
	Other   *Plan     `json:"other,omitempty"`   // in Options.Mode
	Node    *Node     `json:"node,omitempty"`    // Options.Node's choice under Plan
	Policy  *Policy   `json:"policy,omitempty"`  // what load-balancing policies say; nil: there are none
	Cluster *Standing `json:"cluster,omitempty"` // how far a live cluster says Plan; nil: it was made from manifests
	// Planned is what Plan shows, to compare it with a cluster.
	Planned plan.Plan `json:"-"`
}

// Node is what one node may use.
type Node struct {
	Node  string        `json:"node"`
	Zone  topology.Zone `json:"zone"`
	Ports []Port        `json:"ports"`
}

// Port is what one node may use for one port of a service.
type Port struct {
	Name     string        `json:"name,omitempty"`
	Port     uint16        `json:"port"`
	Protocol string        `json:"protocol"`
	MayUse   []string      `json:"mayUse"` // addresses
	Reason   reason.Reason `json:"reason"`
	zones    []topology.Zone
}

// Explain plans a service as the agent would on its first sight of the cluster, once for each of its families.
//
// Shape: one Explanation for each family that has endpoints; one of IPv4 when there are none at all.
func Explain(s *topology.Snapshot, survey *plan.Survey, svc *topology.Service, o Options) []Explanation {
	svc = withMode(svc, cmp.Or(svc.Mode, o.DefaultMode, topology.ModeBalanced))
	var all []Explanation
	for _, family := range families(svc) {
		in := plan.InputOf(s, *survey, svc, family)
		in.MaxSkew = o.Policies.MaxSkew(o.Client, svc)
		planned := plan.Compute(in)
		x := Explanation{Plan: o.view(in, &planned), Planned: planned, Policy: o.policy(svc)}
		if o.Mode != "" {
			in.Service = withMode(svc, o.Mode)
			other := plan.Compute(in)
			view := o.view(in, &other)
			x.Other = &view
		}
		if node := s.Node(o.Node); node != nil {
			x.Node = choice(svc, planned.Endpoints, node)
		}
		all = append(all, x)
	}
	return all
}

// families lists the families that a service has endpoints in; IPv4 when it has none at all.
func families(svc *topology.Service) []topology.Family {
	var has []topology.Family
	for _, family := range topology.Families() {
		if slices.ContainsFunc(svc.Endpoints, func(e topology.Endpoint) bool { return e.Family() == family }) {
			has = append(has, family)
		}
	}
	if len(has) == 0 {
		return []topology.Family{topology.IPv4}
	}
	return has
}

func withMode(svc *topology.Service, m topology.Mode) *topology.Service {
	with := *svc
	with.Mode = m
	return &with
}

// view shows a plan with advice and, when the traffic is known, money.
func (o *Options) view(in plan.Input, p *plan.Plan) Plan {
	v := View(p, &in.Survey)
	if !o.Brief {
		v.Advice = plan.Advise(in, *p)
	}
	if o.Traffic > 0 {
		in.Service = withMode(in.Service, topology.ModeDisabled)
		in.Previous = p
		blind := plan.Compute(in)
		v.Traffic = o.bill(p, &blind)
	}
	return v
}

// choice shows what a node may use.
func choice(svc *topology.Service, endpoints []topology.Endpoint, node *topology.Node) *Node {
	n := &Node{Node: node.Name, Zone: node.Zone}
	for _, port := range svc.Ports {
		c := plan.Choose(svc, endpoints, port, plan.Client{Node: node.Name, Zone: node.Zone})
		list, why := c.Inside(svc)
		p := Port{Name: port.Name, Port: port.Port, Protocol: string(port.Protocol), Reason: why, MayUse: []string{}}
		for _, i := range list {
			p.MayUse = append(p.MayUse, endpoints[i].Addr.String())
			p.zones = append(p.zones, endpoints[i].Zone)
		}
		n.Ports = append(n.Ports, p)
	}
	return n
}
