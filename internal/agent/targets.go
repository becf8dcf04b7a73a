package agent

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// choose fills in what a pool may send to, and why.
//
// Shape: targets are first the pool's home, then every other ready endpoint, to spill to. Under the policy Local there is
// nothing to spill to: the user asked that traffic stays on the node. Home is what the consumer rules give this node; where
// they lend it endpoints of other zones besides those of its own, a strategy that spills has only its own at home and uses
// the lent ones when it needs them (ADR 0002).
func (b *builder) choose(svc *topology.Service, w *wantedPool) {
	endpoints := b.endpoints(svc, w.key.family)
	choice := plan.Choose(svc, endpoints, w.port, b.client)
	chosen, why := choice.Inside(svc)
	w.choice = why
	for _, i := range chosen {
		if t, ok := b.target(&endpoints[i], w.port); ok {
			w.chosen = append(w.chosen, t.Addr)
		}
	}
	slices.SortFunc(w.chosen, netip.AddrPort.Compare)
	home := chosen
	if why.Code == reason.HintedToZone && !overflow.KeepsHome(cmp.Or(w.settings.Strategy, b.config.Strategy)) {
		home = b.near(endpoints, chosen)
	}
	isHome := make([]bool, len(endpoints))
	w.targets = make([]pick.Target, 0, len(endpoints))
	for _, i := range home {
		isHome[i] = true
		if t, ok := b.target(&endpoints[i], w.port); ok {
			t.Home = true
			w.targets = append(w.targets, t)
		}
	}
	if svc.InternalPolicy == topology.PolicyLocal {
		return
	}
	for i := range endpoints {
		if isHome[i] || !endpoints[i].IsReady() {
			continue
		}
		if t, ok := b.target(&endpoints[i], w.port); ok {
			w.targets = append(w.targets, t)
		}
	}
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
