package agent

import (
	"strconv"

	"github.com/weir-lb/weir/internal/core/aim"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
)

// choose fills in what a pool may send to, and why.
func (b *builder) choose(svc *topology.Service, w *wantedPool, client policy.Client) {
	found := aim.Targets(svc, b.endpoints(svc, w.key.family), w.port,
		aim.Client{Node: b.client.Node, Zone: b.client.Zone, Policy: client},
		aim.Options{
			Costs:     b.costs,
			Regions:   b.regions,
			Settings:  &w.policy,
			Policies:  b.policies,
			KeepsHome: b.config.keepsHome(w.spilling),
			Mode:      w.mode,
			Identify:  func(t *pick.Target, e *topology.Endpoint) { b.identify(w, t, e) },
		})
	w.targets, w.chosen, w.choice, w.home = found.Targets, found.Chosen, found.Choice, found.Home
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

func portNumber(p topology.Port) string { return strconv.Itoa(int(p.Port)) + "/" + string(p.Protocol) }
