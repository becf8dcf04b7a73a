package plan

import (
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Compute decides for one family of a service.
//
// Shape: Plan.Endpoints has the family's endpoints in the service's order, and each row of Plan.Zones a share for each
// of them. A row sums to 1, or is all 0 where the zone's clients can reach nothing. The rows follow what a consumer does
// that splits evenly over its Choice; they give something to an unready endpoint only when none is ready and kube-proxy
// would use one that still serves while it terminates.
// Errors: none. What cannot be honoured yields a plan without hints and the reasons. Service must not be nil.
// Source: KEP-2433 and KEP-4444; departures from either and from Kubernetes are in ADR-0003 and ADR-0004.
func Compute(in Input) Plan {
	p := prepare(in)
	a := p.allot()
	out := evaluate(p, a.hints)
	plan := Plan{
		Service:   p.Service.ServiceName,
		Family:    p.Family,
		Mode:      p.Service.Mode,
		Endpoints: p.endpoints,
		Zones:     out.zones,
		InZone:    out.inZone,
		Cost:      out.cost,
		Reasons:   append(a.reasons, p.warnings(out)...),
	}
	for i := range plan.Endpoints {
		var hints topology.Hints
		if a.hints != nil {
			hints = a.hints[i]
		}
		plan.Endpoints[i].Hints = hints
		plan.Hinted = plan.Hinted || !hints.IsZero()
	}
	return plan
}

// allot asks the service's mode. A mode that is not set, or not known, counts as disabled.
func (p *prepared) allot() allotment {
	if len(p.ready) == 0 {
		return allotment{reasons: []reason.Reason{p.nothingReady()}}
	}
	switch p.Service.Mode {
	case topology.ModeAuto:
		return auto(p)
	case topology.ModePreferSameZone, topology.ModePreferClose:
		return preferSameZone(p)
	case topology.ModePreferSameNode:
		return preferSameNode(p)
	case topology.ModeBalanced:
		return balanced(p)
	default:
		return allotment{reasons: []reason.Reason{reason.New(reason.HintsDisabled)}}
	}
}

// nothingReady tells the two ways of having no ready endpoint apart.
func (p *prepared) nothingReady() reason.Reason {
	for i := range p.endpoints {
		if e := &p.endpoints[i]; e.IsServing() && e.IsTerminating() {
			return reason.New(reason.OnlyTerminating)
		}
	}
	return reason.New(reason.NoEndpoints)
}
