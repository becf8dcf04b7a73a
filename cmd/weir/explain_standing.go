package main

import (
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/explain"
	"github.com/weir-lb/weir/internal/kube/convert"
	kubefeed "github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/hints"
	"github.com/weir-lb/weir/internal/kube/plans"
)

// standing tells how the slices of a live service stand to its plan.
func (s *inputs) standing(r *kubefeed.Record, planned *plan.Plan) *explain.Standing {
	now := plan.Observe(plan.InputOf(&s.Snapshot, s.survey, r.Service, planned.Family))
	own := family(r.Slices, planned.Family)
	owner, pending := explain.OwnerNative, 0
	if r.Managed {
		owner, pending = explain.OwnerWeir, edited(own, r, planned)
	} else if !now.Hinted {
		pending = halfHinted(own)
	}
	standing := explain.NewStanding(owner, &now, len(own), pending)
	standing.AskedBy = string(r.Asked)
	for _, p := range r.Refused() {
		standing.Refused = append(standing.Refused, p.Text())
	}
	for _, c := range r.Object.Status.Conditions {
		if c.Type == api.ConditionAccepted || c.Type == api.ConditionProgrammed {
			standing.Conditions = append(standing.Conditions, explain.Condition{
				Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
				Blames: c.Type == api.ConditionProgrammed && c.Status != "True",
			})
		}
	}
	return standing
}

// edited counts the slices that the controller would patch to make them say a plan.
func edited(list []*discoveryv1.EndpointSlice, r *kubefeed.Record, planned *plan.Plan) int {
	with := *r
	svc := *r.Service
	svc.Mode = planned.Mode
	with.Managed, with.Service = true, &svc
	decision := &plans.Decision{Record: &with, Plans: []plan.Plan{*planned}}
	n := 0
	for _, s := range list {
		if len(hints.Edit(s, decision)) > 0 {
			n++
		}
	}
	return n
}

// halfHinted counts the slices with a ready endpoint that carries no hint, where another does: consumers then follow
// none of them.
func halfHinted(list []*discoveryv1.EndpointSlice) int {
	n, hinted := 0, false
	for _, s := range list {
		bare := false
		for _, e := range convert.Endpoints(s) {
			if e.IsReady() {
				bare = bare || e.Hints.IsZero()
				hinted = hinted || !e.Hints.IsZero()
			}
		}
		if bare {
			n++
		}
	}
	if !hinted {
		return 0
	}
	return n
}

// family picks the slices of one family.
func family(list []*discoveryv1.EndpointSlice, f topology.Family) []*discoveryv1.EndpointSlice {
	var of []*discoveryv1.EndpointSlice
	for _, s := range list {
		if strings.EqualFold(string(s.AddressType), f.String()) {
			of = append(of, s)
		}
	}
	return of
}
