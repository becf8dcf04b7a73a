package route

import (
	"cmp"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Query asks what a client may send to on one port of a service. Only the first four fields are required: the others are
// by default those of a cluster without policies, at the default costs, for a strategy that may leave home.
type Query struct {
	Service   *topology.Service
	Endpoints []topology.Endpoint // all of one family, with the hints that count
	Port      topology.Port
	Client    policy.Client

	Costs    topology.Costs
	Regions  map[topology.Zone]string // by which costs differ; nil: not known
	Settings *policy.Settings         // what policies say of client and service; nil: nothing
	Policies *policy.Set              // the labels of nodes and pods; nil: there are none
	// KeepsHome: load never moves what hints have placed, so that home has to be all that they give.
	KeepsHome bool
	Mode      topology.Mode // the service's, with its default filled in
}

// Selection is what a client may send to.
type Selection struct {
	Endpoints []Endpoint       // those at home first, each part in the order of the service's endpoints; never nil
	Chosen    []netip.AddrPort // what the consumer rules give the client, sorted
	Choice    reason.Reason    // why that is so
	Home      reason.Reason    // why others than the chosen ones are home; zero: they are not
	Refused   []reason.Reason  // weights that pods ask for and cannot have
}

// HomeReady counts the endpoints at home that are ready: where requests go while these cope.
func (s *Selection) HomeReady() int {
	n := 0
	for i := range s.Endpoints {
		if s.Endpoints[i].Home && !s.Endpoints[i].Unready {
			n++
		}
	}
	return n
}

// Select tells what a client may send to on one port of a service.
//
// Shape: endpoints are first the client's home, then every other that may be spilled to. Under the policy Local there is
// nothing to spill to: the user asked that traffic stays on the node. Home is what the consumer rules give the client;
// where they lend it endpoints of other zones besides those of its own, a strategy that spills has only its own at home
// and uses the lent ones when it needs them (ADR 0002). Without hints home is the client's own zone for a strategy that
// spills, unless the service's mode is Disabled. Where a policy speaks of locality, it decides which endpoints are home,
// and which are never used.
func Select(q Query) Selection {
	choice := plan.Choose(q.Service, q.Endpoints, q.Port, plan.Client{Node: q.Client.Node, Zone: q.Client.Zone})
	chosen, why := choice.Inside(q.Service)
	if q.Settings == nil {
		q.Settings = &policy.Settings{}
	}
	if q.Policies == nil {
		q.Policies = &policy.Set{}
	}
	q.Costs = costsFor(q.Costs, q.Settings)
	s := selector{Query: q, chosen: marked(len(q.Endpoints), chosen)}
	s.found.Choice = why
	s.home = marked(len(q.Endpoints), s.homeOf(chosen))
	for _, i := range chosen {
		if p, ok := q.Endpoints[i].Port(q.Port); ok {
			s.found.Chosen = append(s.found.Chosen, netip.AddrPortFrom(q.Endpoints[i].Addr, p.Port))
		}
	}
	slices.SortFunc(s.found.Chosen, netip.AddrPort.Compare)
	s.found.Endpoints = make([]Endpoint, 0, len(q.Endpoints))
	for i := range q.Endpoints {
		if s.isCandidate(i) {
			s.add(i)
		}
	}
	slices.SortStableFunc(s.found.Endpoints, func(a, b Endpoint) int { return cmp.Compare(a.Key().rank(), b.Key().rank()) })
	return s.found
}

// marked gives n values of which those at the indexes are true.
func marked(n int, indexes []int) []bool {
	is := make([]bool, n)
	for _, i := range indexes {
		is[i] = true
	}
	return is
}

// selector carries what Select looks up for each endpoint.
type selector struct {
	Query
	chosen []bool // by index of Endpoints: what the consumer rules give the client
	home   []bool // the same: what hints, or the lack of them, make home
	found  Selection
}

// homeOf tells which endpoints are home before a policy is asked.
func (s *selector) homeOf(chosen []int) []int {
	switch {
	case s.isLocal() || s.KeepsHome:
	case s.found.Choice.Code == reason.HintedToZone && s.Mode == topology.ModeBalanced:
		return s.wholeZone(chosen)
	case s.found.Choice.Code == reason.HintedToZone:
		return s.near(chosen)
	case s.found.Choice.Code == reason.NoHints && s.Mode != topology.ModeDisabled:
		home := s.near(chosen)
		if len(home) < len(chosen) {
			s.found.Home = reason.New(reason.HomeIsOwnZone, string(s.Client.Zone))
		}
		return home
	}
	return chosen
}

// isLocal tells whether the user asked that traffic stays on the node.
func (s *selector) isLocal() bool { return s.Service.InternalPolicy == topology.PolicyLocal }

// near gives those of the chosen endpoints that are in the client's own zone; if none is, those in its own cluster; if none
// is, those in the clusters that are the cheapest to reach.
func (s *selector) near(chosen []int) []int {
	var own, inside, away []int
	for _, i := range chosen {
		switch e := &s.Endpoints[i]; {
		case s.isNear(e):
			own = append(own, i)
		case e.Cluster == "":
			inside = append(inside, i)
		default:
			away = append(away, i)
		}
	}
	switch {
	case len(own) > 0:
		return own
	case len(inside) > 0:
		return inside
	default:
		return s.cheapest(away)
	}
}

// cheapest gives the endpoints, all of other clusters, of the cluster that has the one at the least cost, or of all such.
func (s *selector) cheapest(away []int) []int {
	costs := make(map[string]topology.Cost)
	least := topology.Cost(math.Inf(1))
	for _, i := range away {
		name, cost := s.Endpoints[i].Cluster, s.cost(&s.Endpoints[i])
		if known, ok := costs[name]; !ok || cost < known {
			costs[name] = cost
		}
		least = min(least, cost)
	}
	return slices.DeleteFunc(away, func(i int) bool { return costs[s.Endpoints[i].Cluster] > least })
}

// cost gives the cost of a request of the client to an endpoint.
func (s *selector) cost(e *topology.Endpoint) topology.Cost {
	from := topology.Place{Zone: s.Client.Zone, Region: s.Regions[s.Client.Zone]}
	to := topology.Place{Zone: e.Zone, Region: topology.RegionOf(s.Regions, e.Zone, e.Cluster), Cluster: e.Cluster}
	return s.Costs.Between(from, to)
}

// wholeZone gives the ready endpoints of the client's own zone, those that hints lend to other zones included: hints follow the
// CPU of the zones, and a strategy that spills knows the load. Without any it gives the chosen endpoints.
func (s *selector) wholeZone(chosen []int) []int {
	var own []int
	for i := range s.Endpoints {
		if e := &s.Endpoints[i]; s.isNear(e) && (e.IsReady() || s.chosen[i]) {
			own = append(own, i)
		}
	}
	if len(own) == 0 {
		return chosen
	}
	return own
}

func (s *selector) isNear(e *topology.Endpoint) bool {
	return e.Zone == s.Client.Zone && e.Zone != "" && e.Cluster == ""
}

// isCandidate tells whether an endpoint can be used at all: one that is ready, or that the consumer rules give although it
// terminates. An endpoint that is not ready counts only where a policy sets failoverThreshold or panicThreshold.
func (s *selector) isCandidate(i int) bool {
	if s.chosen[i] || s.isLocal() {
		return s.chosen[i]
	}
	e := &s.Endpoints[i]
	return e.IsReady() || s.counts(e)
}

// counts tells whether an endpoint that is not ready has a part in the health of its group.
func (s *selector) counts(e *topology.Endpoint) bool {
	return (s.Settings.Locality.FailoverThreshold != nil || s.Settings.PanicThreshold != nil) && !e.IsReady() && !e.IsTerminating()
}

// add takes an endpoint that answers the port, unless policies exclude it.
func (s *selector) add(i int) {
	e := &s.Endpoints[i]
	p, ok := e.Port(s.Port)
	if !ok {
		return
	}
	t := Endpoint{
		Addr:    netip.AddrPortFrom(e.Addr, p.Port),
		Zone:    e.Zone,
		Cluster: e.Cluster,
		Cost:    s.cost(e),
		Home:    s.home[i],
		Unready: s.counts(e),
	}
	pod := s.Policies.PodOf(e)
	t.HashKey = s.hashKey(e, pod)
	t.Weight = s.weight(pod)
	if t.Unready && !t.Home {
		t.Home = s.isNear(e)
	}
	why := s.found.Choice.Code
	if s.Settings.HasLocality && why != reason.OnNode && why != reason.OnlyTerminatingOnNode {
		place := s.Settings.Place(s.clientSpot(), s.spotOf(e, pod, t.Home))
		if place.Excluded {
			return
		}
		s.found.Home = reason.New(reason.HomeIsByPolicy)
		t.Home, t.Tier = place.Home, place.Tier
		t.Affinity, t.AffinityWeight = place.Affinity, place.AffinityWeight
	}
	if why == reason.HintedToNode && !t.Home { // KEP-4444: the node, then its zone, then all
		t.Near = s.isNear(e)
		if !t.Near {
			t.Tier++
		}
	}
	s.found.Endpoints = append(s.found.Endpoints, t)
}

// maxHashKey bounds what an endpoint is hashed by, in bytes: a ring hashes it up to eight million times. Names and the values
// of labels are shorter; an annotation may have a quarter of a MiB.
const maxHashKey = 256

// hashKey gives what an endpoint is hashed by; empty: its address. The pod may be nil.
func (s *selector) hashKey(e *topology.Endpoint, pod *policy.Pod) string {
	key, of := "", s.Settings.EndpointHashKey
	if of == nil {
		return ""
	}
	switch {
	case of.Type == policy.HashKeyPodName && pod == nil:
		_, key, _ = strings.Cut(e.Pod, "/")
		return key
	case pod == nil:
	case of.Type == policy.HashKeyPodName:
		key = pod.Name
	case of.Type == policy.HashKeyLabel:
		key = pod.Labels[*of.Key]
	case of.Type == policy.HashKeyAnnotation:
		key = pod.Annotations[*of.Key]
	}
	if len(key) > maxHashKey {
		return ""
	}
	return key
}

// annotationWeight is the annotation of a pod that says how much it takes, relative to the others of its service:
// api.AnnotationWeight.
const annotationWeight = "weir.dev/weight"

// maxWeight bounds the weight of an endpoint: a ring or table has no room for larger differences.
const maxWeight = 1000

// weight gives the weight that a pod asks for; 0: none.
func (s *selector) weight(pod *policy.Pod) uint32 {
	if pod == nil {
		return 0
	}
	text, ok := pod.Annotations[annotationWeight]
	if !ok {
		return 0
	}
	weight, err := strconv.ParseUint(text, 10, 32)
	if err != nil || weight == 0 || weight > maxWeight {
		s.found.Refused = append(s.found.Refused, reason.New(reason.WeightRefused, pod.Namespace+"/"+pod.Name, text))
		return 0
	}
	return uint32(weight)
}

// clientSpot says where the client is.
func (s *selector) clientSpot() policy.Spot {
	node := s.Client.Node
	return policy.Spot{
		Zone: s.Client.Zone, Pod: s.Client.Pod, Node: s.Policies.Nodes[node], NodeName: node, Hinted: s.isHinted(),
	}
}

// spotOf says where an endpoint is.
func (s *selector) spotOf(e *topology.Endpoint, pod *policy.Pod, isHome bool) policy.Spot {
	spot := policy.Spot{Zone: e.Zone, Cluster: e.Cluster, NodeName: e.Node, Hinted: s.isHinted() && isHome}
	if e.Cluster == "" {
		spot.Node = s.Policies.Nodes[e.Node]
	}
	if pod != nil {
		spot.Pod = pod.Labels
	}
	return spot
}

// isHinted tells whether hints decide what the client may use.
func (s *selector) isHinted() bool {
	return s.found.Choice.Code == reason.HintedToZone || s.found.Choice.Code == reason.HintedToNode
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
		pairs[topology.ZonePair{From: topology.Zone(c.From), To: topology.Zone(c.To)}] = topology.Cost(c.Cost)
	}
	costs.Pairs = pairs
	return costs
}
