package agent

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// choose fills in what a pool may send to, and why.
//
// Shape: targets are first the pool's home, then every other endpoint that may be spilled to. Under the policy Local there
// is nothing to spill to: the user asked that traffic stays on the node. Home is what the consumer rules give this node;
// where they lend it endpoints of other zones besides those of its own, a strategy that spills has only its own at home and
// uses the lent ones when it needs them (ADR 0002). Without hints home is the node's own zone for a strategy that spills,
// unless the service's mode is Disabled. Where a policy speaks of locality, it decides who is home, and whom nothing ever reaches.
func (b *builder) choose(svc *topology.Service, w *wantedPool, client policy.Client) {
	endpoints := b.endpoints(svc, w.key.family)
	choice := plan.Choose(svc, endpoints, w.port, b.client)
	chosen, why := choice.Inside(svc)
	w.choice = why
	for _, i := range chosen {
		if p, ok := endpoints[i].Port(w.port); ok {
			w.chosen = append(w.chosen, netip.AddrPortFrom(endpoints[i].Addr, p.Port))
		}
	}
	slices.SortFunc(w.chosen, netip.AddrPort.Compare)
	c := &chooser{builder: b, want: w, client: client, endpoints: endpoints, costs: b.costsFor(&w.policy)}
	c.home = c.homeOf(svc, chosen)
	w.targets = make([]pick.Target, 0, len(endpoints))
	for i := range endpoints {
		if c.isCandidate(svc, i, chosen) {
			c.add(i)
		}
	}
	slices.SortStableFunc(w.targets, func(a, b pick.Target) int { return homeFirst(a) - homeFirst(b) })
}

func homeFirst(t pick.Target) int {
	if t.Home {
		return 0
	}
	return 1
}

// chooser carries what choose looks up for each endpoint.
type chooser struct {
	*builder
	want      *wantedPool
	client    policy.Client
	endpoints []topology.Endpoint
	costs     topology.Costs
	home      []bool // by index of endpoints: what hints, or the lack of them, make home
}

// homeOf tells which endpoints are home before a policy is asked.
func (c *chooser) homeOf(svc *topology.Service, chosen []int) []bool {
	w := c.want
	home := chosen
	switch {
	case svc.InternalPolicy == topology.PolicyLocal:
	case w.choice.Code == reason.HintedToZone && !c.config.keepsHome(w.spilling):
		home = c.near(chosen)
	case w.choice.Code == reason.NoHints && w.mode != topology.ModeDisabled && !c.config.keepsHome(w.spilling):
		if home = c.near(chosen); len(home) < len(chosen) {
			w.home = reason.New(reason.HomeIsOwnZone, string(c.builder.client.Zone))
		}
	}
	is := make([]bool, len(c.endpoints))
	for _, i := range home {
		is[i] = true
	}
	return is
}

// near gives those of the chosen endpoints that are in the node's own zone; all of them if none is.
func (c *chooser) near(chosen []int) []int {
	var own []int
	for _, i := range chosen {
		if c.isNear(&c.endpoints[i]) {
			own = append(own, i)
		}
	}
	if len(own) == 0 {
		return chosen
	}
	return own
}

func (c *chooser) isNear(e *topology.Endpoint) bool {
	return e.Zone == c.builder.client.Zone && e.Zone != "" && e.Cluster == ""
}

// isCandidate tells whether an endpoint can be a target at all. Those that are not ready only count where somebody set a
// share of healthy endpoints that something depends on.
func (c *chooser) isCandidate(svc *topology.Service, i int, chosen []int) bool {
	e := &c.endpoints[i]
	isChosen := slices.Contains(chosen, i) // also those that terminate, when nobody else is there
	switch {
	case svc.InternalPolicy == topology.PolicyLocal:
		return isChosen
	case e.IsReady():
		return true
	default:
		return isChosen || c.counts(e)
	}
}

// counts tells whether an endpoint that is not ready has a part in the health of its group.
func (c *chooser) counts(e *topology.Endpoint) bool {
	s := &c.want.policy
	return (s.Locality.Threshold != nil || s.Panic != nil) && !e.IsReady() && !e.IsTerminating()
}

// add makes a target of an endpoint that answers the port and that policies do not keep away.
func (c *chooser) add(i int) {
	e, w := &c.endpoints[i], c.want
	p, ok := e.Port(w.port)
	if !ok {
		return
	}
	from := topology.Place{Zone: c.builder.client.Zone, Region: c.regions[c.builder.client.Zone]}
	to := topology.Place{Zone: e.Zone, Region: c.regions[e.Zone], Cluster: e.Cluster}
	t := pick.Target{
		Addr:    netip.AddrPortFrom(e.Addr, p.Port),
		Zone:    e.Zone,
		Cluster: e.Cluster,
		Cost:    c.costs.Between(from, to),
		Home:    c.home[i],
		Unready: c.counts(e),
	}
	c.identify(&t, e)
	if t.Unready && !t.Home {
		t.Home = c.isNear(e)
	}
	if w.policy.Locality.Explicit && w.choice.Code != reason.OnNode && w.choice.Code != reason.OnlyTerminatingOnNode {
		place := w.policy.Place(c.spot(), c.spotOf(e, t.Home))
		if place.Excluded {
			return
		}
		w.home = reason.New(reason.HomeIsByPolicy)
		t.Home, t.Tier = place.Home, place.Tier
		t.Affinity, t.AffinityWeight = place.Affinity, place.AffinityWeight
	}
	w.targets = append(w.targets, t)
}

// spot says where the client is.
func (c *chooser) spot() policy.Spot {
	return policy.Spot{
		Zone: c.builder.client.Zone, Pod: c.client.Pod, Node: c.policies.Nodes[c.client.Node], NodeName: c.client.Node,
		Hinted: c.isHinted(),
	}
}

// spotOf says where an endpoint is.
func (c *chooser) spotOf(e *topology.Endpoint, isHome bool) policy.Spot {
	spot := policy.Spot{Zone: e.Zone, Cluster: e.Cluster, NodeName: e.Node, Hinted: c.isHinted() && isHome}
	if e.Cluster == "" {
		spot.Node = c.policies.Nodes[e.Node]
	}
	if pod := c.pod(e); pod != nil {
		spot.Pod = pod.Labels
	}
	return spot
}

// isHinted tells whether hints decide what the node may use.
func (c *chooser) isHinted() bool {
	return c.want.choice.Code == reason.HintedToZone || c.want.choice.Code == reason.HintedToNode
}

// costsFor puts the costs that a policy names before those of the cluster.
func (b *builder) costsFor(s *policy.Settings) topology.Costs {
	if len(s.Locality.Costs) == 0 {
		return b.costs
	}
	costs := b.costs
	if costs.SameRegion == 0 && costs.OtherRegion == 0 && costs.OtherCluster == 0 && costs.Pairs == nil {
		costs = topology.DefaultCosts()
	}
	pairs := make(map[topology.ZonePair]topology.Cost, len(costs.Pairs)+len(s.Locality.Costs))
	maps.Copy(pairs, costs.Pairs)
	for _, c := range s.Locality.Costs {
		pairs[topology.ZonePair{From: c.From, To: c.To}] = topology.Cost(c.Cost)
	}
	costs.Pairs = pairs
	return costs
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
