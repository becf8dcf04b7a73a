package plan

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// maxAdvice is how many pieces of advice a person is given: more would not be read.
const maxAdvice = 4

// noticeable is how much advice has to gain: a twentieth of the requests more in their zone, or as much less overload.
const noticeable = 0.05

// Advise tells what a person could change so that more requests stay in their zone, or that less overload is expected.
//
// Shape: at most four reasons, the one that gains most first; nil when nothing helps noticeably. Each was found by
// planning again with the change, after p. Values: inZone and overload after the change, inZoneNow and overloadNow of p.
// Under internal traffic policy Local there is none: neither hints nor zones have a say in what a node may use.
// in and p must belong together.
func Advise(in Input, p Plan) []reason.Reason {
	if in.Service.InternalPolicy == topology.PolicyLocal {
		return nil
	}
	if len(p.Zones) == 0 || !slices.ContainsFunc(p.Endpoints, func(e topology.Endpoint) bool { return e.IsReady() }) {
		return nil
	}
	in.Previous = &p
	in.Limits = in.Limits.orDefaults()
	a := &adviser{in: in, now: &p}
	a.aboutNodes()
	a.aboutMode()
	a.aboutEndpoints()
	slices.SortStableFunc(a.found, func(x, y advice) int { return cmp.Compare(y.gain, x.gain) })
	var reasons []reason.Reason
	for _, found := range a.found[:min(len(a.found), maxAdvice)] {
		reasons = append(reasons, found.reason)
	}
	return reasons
}

// adviser collects advice.
type adviser struct {
	in    Input
	now   *Plan
	found []advice
}

// advice is a change that helps, and how much: of requests and of overload together.
type advice struct {
	reason reason.Reason
	gain   float64
}

// weigh plans again with a change.
func (a *adviser) weigh(in Input, why reason.Reason) advice {
	then := Compute(in)
	now, later := highestOverload(a.now), highestOverload(&then)
	limit := a.in.Limits.Start
	return advice{
		reason: why.
			With("inZone", float64(then.InZone), reason.Ratio).
			With("inZoneNow", float64(a.now.InZone), reason.Ratio).
			With("overload", later, reason.Ratio).
			With("overloadNow", now, reason.Ratio),
		gain: float64(then.InZone-a.now.InZone) + max(now, limit) - max(later, limit),
	}
}

func highestOverload(p *Plan) float64 {
	most := 0.0
	for i := range p.Zones {
		most = max(most, p.Zones[i].Overload)
	}
	return most
}

// offer keeps advice that helps noticeably.
func (a *adviser) offer(found advice) {
	if found.gain >= noticeable {
		a.found = append(a.found, found)
	}
}

// aboutNodes looks at what nodes fail to tell. Where a node without a label is cannot be known here, so that the plan is
// made as if it were not there.
func (a *adviser) aboutNodes() {
	in := a.in
	if nodes := in.Survey.WithoutZone; len(nodes) > 0 {
		in.Survey.WithoutZone = nil
		a.offer(a.weigh(in, reason.New(reason.AdviseZoneLabel, nodes...)))
	}
	if nodes := in.Survey.WithoutCPU; len(nodes) > 0 && len(nodes) < in.Survey.Nodes {
		in.Survey.WithoutCPU = nil
		a.offer(a.weigh(in, reason.New(reason.AdviseCPU, append(slices.Clone(nodes), a.in.Survey.WithoutZone...)...)))
	}
}

// aboutMode looks at mode Balanced, or, where that is the mode already, at allowing as much overload at the start as
// later on.
func (a *adviser) aboutMode() {
	in := a.in
	if in.Service.Mode == topology.ModeBalanced {
		in.Limits.Start = in.Limits.Stop
		why := reason.New(reason.AdviseLimit).With("limit", in.Limits.Start, reason.Ratio)
		a.offer(a.weigh(in, why))
		return
	}
	service := *in.Service
	service.Mode = topology.ModeBalanced
	in.Service = &service
	a.offer(a.weigh(in, reason.New(reason.AdviseBalanced)))
}

// aboutEndpoints looks at one endpoint more, in each zone, and then at moving one to the zone where one more gains most.
func (a *adviser) aboutEndpoints() {
	var best advice
	var to topology.Zone
	for i := range a.now.Zones {
		zone := a.now.Zones[i].Zone
		if a.now.Zones[i].Demand == 0 {
			continue
		}
		found := a.weigh(a.with(a.newcomer(zone), a.in.Service.Endpoints), reason.New(reason.AdviseEndpoint, string(zone)))
		if best.gain < found.gain {
			best, to = found, zone
		}
	}
	a.offer(best)
	if best.gain < noticeable {
		return
	}
	best = advice{}
	for i := range a.now.Zones {
		from := &a.now.Zones[i]
		if from.Zone == to || from.Ready == 0 {
			continue
		}
		why := reason.New(reason.AdviseMove, string(from.Zone), string(to))
		if found := a.weigh(a.with(a.newcomer(to), a.without(from.Zone)), why); best.gain < found.gain {
			best = found
		}
	}
	a.offer(best)
}

// newcomer is a ready endpoint like the others, at an address that none of them has, on a node of its own.
func (a *adviser) newcomer(zone topology.Zone) topology.Endpoint {
	model := a.now.Endpoints[slices.IndexFunc(a.now.Endpoints, func(e topology.Endpoint) bool { return e.IsReady() })]
	var addr netip.Addr
	for i := range a.now.Endpoints { // the highest: the endpoints are sorted by address
		addr = a.now.Endpoints[i].Addr
	}
	if next := addr.Next(); next.IsValid() {
		addr = next
	}
	return topology.Endpoint{
		Addr: addr, Ports: model.Ports, Zone: zone, Node: "a node in " + string(zone), Conditions: model.Conditions,
	}
}

// with gives the input with one endpoint more.
func (a *adviser) with(e topology.Endpoint, others []topology.Endpoint) Input {
	in := a.in
	service := *in.Service
	service.Endpoints = append(slices.Clone(others), e)
	in.Service = &service
	return in
}

// without gives the service's endpoints but for the last ready one of a zone, of the family that is planned.
func (a *adviser) without(zone topology.Zone) []topology.Endpoint {
	endpoints := slices.Clone(a.in.Service.Endpoints)
	for i := len(endpoints) - 1; i >= 0; i-- {
		if e := &endpoints[i]; e.Zone == zone && e.IsReady() && e.Family() == a.in.Family {
			return slices.Delete(endpoints, i, i+1)
		}
	}
	return endpoints
}
