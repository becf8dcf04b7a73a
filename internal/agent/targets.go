package agent

import (
	"cmp"
	"net/netip"
	"strconv"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// targets gives the pool of a service port on this node, and why its home is what it is. strategy is the one that the
// service asks for; empty for the agent's.
//
// Shape: first what the consumer rules give this node, as Home; then every other ready endpoint, to spill to. Under the
// policy Local there is nothing to spill to: the user asked that traffic stays on the node. Where the rules lend the node
// endpoints of other zones besides those of its own, a strategy that spills uses them when it needs them (ADR 0002).
func (b *builder) targets(
	svc *topology.Service, port topology.Port, f topology.Family, strategy string,
) ([]pick.Target, reason.Reason) {
	endpoints := b.endpoints(svc, f)
	choice := plan.Choose(svc, endpoints, port, b.client)
	home, why := choice.Inside(svc)
	if why.Code == reason.HintedToZone && !overflow.KeepsHome(cmp.Or(strategy, b.config.Strategy)) {
		home = b.near(endpoints, home)
	}
	isHome := make([]bool, len(endpoints))
	targets := make([]pick.Target, 0, len(endpoints))
	for _, i := range home {
		isHome[i] = true
		if t, ok := b.target(&endpoints[i], port); ok {
			t.Home = true
			targets = append(targets, t)
		}
	}
	if svc.InternalPolicy == topology.PolicyLocal {
		return targets, why
	}
	for i := range endpoints {
		if isHome[i] || !endpoints[i].IsReady() {
			continue
		}
		if t, ok := b.target(&endpoints[i], port); ok {
			targets = append(targets, t)
		}
	}
	return targets, why
}

// near gives those of the chosen endpoints that are in the node's own zone; all of them if none is.
func (b *builder) near(endpoints []topology.Endpoint, chosen []int) []int {
	var own []int
	for _, i := range chosen {
		if endpoints[i].Zone == b.client.Zone && endpoints[i].Cluster == "" {
			own = append(own, i)
		}
	}
	if len(own) == 0 {
		return chosen
	}
	return own
}

// endpoints gives a service's endpoints of one family with the hints that count.
func (b *builder) endpoints(svc *topology.Service, f topology.Family) []topology.Endpoint {
	if b.config.Hints == HintsFromPlan {
		if p, ok := b.planned[planKey{svc.ServiceName, f}]; ok {
			return p.Endpoints
		}
	}
	var own []topology.Endpoint
	for i := range svc.Endpoints {
		if svc.Endpoints[i].Family() == f {
			own = append(own, svc.Endpoints[i])
		}
	}
	return own
}

// target makes a target of an endpoint; false when it does not answer the port.
func (b *builder) target(e *topology.Endpoint, port topology.Port) (pick.Target, bool) {
	p, ok := e.Port(port)
	if !ok {
		return pick.Target{}, false
	}
	from := topology.Place{Zone: b.client.Zone, Region: b.regions[b.client.Zone]}
	to := topology.Place{Zone: e.Zone, Region: b.regions[e.Zone], Cluster: e.Cluster}
	return pick.Target{
		Addr:    netip.AddrPortFrom(e.Addr, p.Port),
		Zone:    e.Zone,
		Cluster: e.Cluster,
		Cost:    b.costs.Between(from, to),
	}, true
}

func portNumber(p topology.Port) string { return strconv.Itoa(int(p.Port)) + "/" + string(p.Protocol) }
