// Package aim decides which endpoints of a service port a client may send to, and what part each has: home, or a tier
// to spill to. It joins the consumer rules of package plan with the localities of package policy, and says why.
//
// Agent and simulator run this same code. It chooses nobody for a request and moves no load: that is for packages pick
// and overflow, to which it hands its targets.
package aim

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Client is who sends.
type Client struct {
	Node   string
	Zone   topology.Zone // empty: not known
	Policy policy.Client // who policies take it for; only the labels of its pod count here
}

// Options say by what to aim. The zero value is a cluster without policies, at the default costs, for a strategy that
// may leave home.
type Options struct {
	Costs    topology.Costs
	Regions  map[topology.Zone]string // by which costs differ; nil: not known
	Settings *policy.Settings         // what policies say of client and service; nil: nothing
	Policies *policy.Set              // the labels of nodes and pods; nil: there are none
	// KeepsHome: load never moves what hints have placed, so that home has to be all that they give.
	KeepsHome bool
	Mode      topology.Mode // the service's, with its default filled in
	// Identify fills in what is known of a target beside its place, as what it is hashed by. It is called once for each
	// endpoint that may be a target, in the order of the endpoints, before policies exclude some; nil: nothing is.
	Identify func(*pick.Target, *topology.Endpoint)
}

// Aim is who may be sent to.
type Aim struct {
	Targets []pick.Target    // those at home first, each part in the order of the endpoints; never nil
	Chosen  []netip.AddrPort // what the consumer rules give the client, sorted
	Choice  reason.Reason    // why that is so
	Home    reason.Reason    // why others than the chosen ones are home; zero: they are not
}

// Targets tells what a client may send to on one port of a service, of endpoints that are all of one family.
//
// Shape: targets are first the pool's home, then every other endpoint that may be spilled to. Under the policy Local
// there is nothing to spill to: the user asked that traffic stays on the node. Home is what the consumer rules give the
// client; where they lend it endpoints of other zones besides those of its own, a strategy that spills has only its own
// at home and uses the lent ones when it needs them (ADR 0002). Without hints home is the client's own zone for a
// strategy that spills, unless the service's mode is Disabled. Where a policy speaks of locality, it decides who is
// home, and whom nothing ever reaches.
//
//nolint:revive // The first four are plan.Choose's, in its order; Options say how to go on from there.
func Targets(svc *topology.Service, endpoints []topology.Endpoint, port topology.Port, c Client, o Options) Aim {
	choice := plan.Choose(svc, endpoints, port, plan.Client{Node: c.Node, Zone: c.Zone})
	chosen, why := choice.Inside(svc)
	t := &chooser{Options: o, client: c, service: svc, endpoints: endpoints, port: port}
	if t.Settings == nil {
		t.Settings = &policy.Settings{}
	}
	if t.Policies == nil {
		t.Policies = &policy.Set{}
	}
	t.Costs = costsFor(o.Costs, t.Settings)
	t.aim.Choice = why
	for _, i := range chosen {
		if p, ok := endpoints[i].Port(port); ok {
			t.aim.Chosen = append(t.aim.Chosen, netip.AddrPortFrom(endpoints[i].Addr, p.Port))
		}
	}
	slices.SortFunc(t.aim.Chosen, netip.AddrPort.Compare)
	t.home = t.homeOf(chosen)
	t.aim.Targets = make([]pick.Target, 0, len(endpoints))
	for i := range endpoints {
		if t.isCandidate(i, chosen) {
			t.add(i)
		}
	}
	slices.SortStableFunc(t.aim.Targets, func(a, b pick.Target) int { return homeFirst(a) - homeFirst(b) })
	return t.aim
}

func homeFirst(t pick.Target) int {
	if t.Home {
		return 0
	}
	return 1
}

// chooser carries what Targets looks up for each endpoint.
type chooser struct {
	Options
	client    Client
	service   *topology.Service
	endpoints []topology.Endpoint
	port      topology.Port
	home      []bool // by index of endpoints: what hints, or the lack of them, make home
	aim       Aim
}

// homeOf tells which endpoints are home before a policy is asked.
func (c *chooser) homeOf(chosen []int) []bool {
	home := chosen
	switch {
	case c.isLocal():
	case c.aim.Choice.Code == reason.HintedToZone && !c.KeepsHome:
		home = c.near(chosen)
	case c.aim.Choice.Code == reason.NoHints && c.Mode != topology.ModeDisabled && !c.KeepsHome:
		if home = c.near(chosen); len(home) < len(chosen) {
			c.aim.Home = reason.New(reason.HomeIsOwnZone, string(c.client.Zone))
		}
	}
	is := make([]bool, len(c.endpoints))
	for _, i := range home {
		is[i] = true
	}
	return is
}

// isLocal tells whether the user asked that traffic stays on the node.
func (c *chooser) isLocal() bool { return c.service.InternalPolicy == topology.PolicyLocal }

// near gives those of the chosen endpoints that are in the client's own zone; all of them if none is.
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
	return e.Zone == c.client.Zone && e.Zone != "" && e.Cluster == ""
}

// isCandidate tells whether an endpoint can be a target at all. Those that are not ready only count where somebody set
// a share of healthy endpoints that something depends on.
func (c *chooser) isCandidate(i int, chosen []int) bool {
	e := &c.endpoints[i]
	isChosen := slices.Contains(chosen, i) // also those that terminate, when nobody else is there
	switch {
	case c.isLocal():
		return isChosen
	case e.IsReady():
		return true
	default:
		return isChosen || c.counts(e)
	}
}

// counts tells whether an endpoint that is not ready has a part in the health of its group.
func (c *chooser) counts(e *topology.Endpoint) bool {
	s := c.Settings
	return (s.Locality.Threshold != nil || s.Panic != nil) && !e.IsReady() && !e.IsTerminating()
}

// add makes a target of an endpoint that answers the port and that policies do not keep away.
func (c *chooser) add(i int) {
	e := &c.endpoints[i]
	p, ok := e.Port(c.port)
	if !ok {
		return
	}
	from := topology.Place{Zone: c.client.Zone, Region: c.Regions[c.client.Zone]}
	to := topology.Place{Zone: e.Zone, Region: c.Regions[e.Zone], Cluster: e.Cluster}
	t := pick.Target{
		Addr:    netip.AddrPortFrom(e.Addr, p.Port),
		Zone:    e.Zone,
		Cluster: e.Cluster,
		Cost:    c.Costs.Between(from, to),
		Home:    c.home[i],
		Unready: c.counts(e),
	}
	if c.Identify != nil {
		c.Identify(&t, e)
	}
	if t.Unready && !t.Home {
		t.Home = c.isNear(e)
	}
	why := c.aim.Choice.Code
	if c.Settings.Locality.Explicit && why != reason.OnNode && why != reason.OnlyTerminatingOnNode {
		place := c.Settings.Place(c.spot(), c.spotOf(e, t.Home))
		if place.Excluded {
			return
		}
		c.aim.Home = reason.New(reason.HomeIsByPolicy)
		t.Home, t.Tier = place.Home, place.Tier
		t.Affinity, t.AffinityWeight = place.Affinity, place.AffinityWeight
	}
	c.aim.Targets = append(c.aim.Targets, t)
}

// spot says where the client is.
func (c *chooser) spot() policy.Spot {
	node := c.client.Node
	return policy.Spot{
		Zone: c.client.Zone, Pod: c.client.Policy.Pod, Node: c.Policies.Nodes[node], NodeName: node, Hinted: c.isHinted(),
	}
}

// spotOf says where an endpoint is.
func (c *chooser) spotOf(e *topology.Endpoint, isHome bool) policy.Spot {
	spot := policy.Spot{Zone: e.Zone, Cluster: e.Cluster, NodeName: e.Node, Hinted: c.isHinted() && isHome}
	if e.Cluster == "" {
		spot.Node = c.Policies.Nodes[e.Node]
	}
	if pod := c.Policies.PodOf(e); pod != nil {
		spot.Pod = pod.Labels
	}
	return spot
}

// isHinted tells whether hints decide what the client may use.
func (c *chooser) isHinted() bool {
	return c.aim.Choice.Code == reason.HintedToZone || c.aim.Choice.Code == reason.HintedToNode
}

// costsFor puts the costs that a policy names before those of the cluster.
func costsFor(costs topology.Costs, s *policy.Settings) topology.Costs {
	if len(s.Locality.Costs) == 0 {
		return costs
	}
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
