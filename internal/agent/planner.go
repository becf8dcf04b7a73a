package agent

import (
	"reflect"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// planKey identifies a plan.
type planKey struct {
	service topology.ServiceName
	family  topology.Family
}

func keyOf(p *plannedService) planKey { return planKey{p.plan.Service, p.plan.Family} }

// planner turns snapshots into worlds. It keeps the plans before, so that a service whose inputs are the same is not
// planned again, and one whose inputs changed keeps as many of its hints as it can. One goroutine at a time.
type planner struct {
	config Config
	zone   topology.Zone // the node's, as last seen

	survey  plan.Survey
	costs   topology.Costs
	planned map[planKey]plannedService
	stock   stock
}

// next gives the world that a snapshot asks for under some policies; nil: none. A change of policies plans nothing again.
func (p *planner) next(s *topology.Snapshot, policies *policy.Set) *world {
	if policies == nil {
		policies = policy.NewSet(policy.Set{})
	}
	client, problems := p.locate(s)
	survey := plan.SurveyNodes(s.Nodes)
	isSame := p.planned != nil && reflect.DeepEqual(survey, p.survey) && reflect.DeepEqual(s.Costs, p.costs)
	p.survey, p.costs = survey, s.Costs
	earlier := p.planned
	p.planned = make(map[planKey]plannedService, len(earlier))
	all := make([]plannedService, 0, len(earlier))
	for _, svc := range s.Services {
		svc = p.withMode(svc)
		for _, family := range svc.Families() {
			key := planKey{svc.ServiceName, family}
			before, ok := earlier[key]
			now := before
			if !ok || !isSame || !sameService(before.service, svc) {
				now = plannedService{service: svc, plan: p.plan(plan.InputOf(s, survey, svc, family), before)}
			}
			p.planned[key] = now
			all = append(all, now)
		}
	}
	w := p.config.build(s, policies, client, all)
	p.stock.supply(w)
	w.survey = survey
	w.problems = append(problems, w.problems...)
	return w
}

// plan plans one service in one family. Where nodes are missing it tells the hints that there are, without shares.
func (p *planner) plan(in plan.Input, before plannedService) plan.Plan {
	if !p.config.OneNode {
		if before.service != nil {
			in.Previous = &before.plan
		}
		return plan.Compute(in)
	}
	found := plan.Plan{Service: in.Service.ServiceName, Family: in.Family, Mode: in.Service.Mode}
	for i := range in.Service.Endpoints {
		if e := &in.Service.Endpoints[i]; e.Family() == in.Family {
			found.Endpoints = append(found.Endpoints, *e)
			found.Hinted = found.Hinted || !e.Hints.IsZero()
		}
	}
	return found
}

// locate finds out where the client is. A node that the cluster no longer has keeps its last zone.
func (p *planner) locate(s *topology.Snapshot) (plan.Client, []Problem) {
	client := plan.Client{Node: p.config.Node, Zone: p.config.Zone}
	if client.Zone != "" {
		return client, nil
	}
	node := s.Node(client.Node)
	if node == nil {
		client.Zone = p.zone
		return client, []Problem{{Reason: reason.New(reason.NodeGone, client.Node)}}
	}
	p.zone = node.Zone
	client.Zone = node.Zone
	if node.Zone == "" {
		return client, []Problem{{Reason: reason.New(reason.NodeWithoutZone, client.Node)}}
	}
	return client, nil
}

// withMode gives a service that asks for no mode the default one.
func (p *planner) withMode(svc *topology.Service) *topology.Service {
	if svc.Mode != topology.ModeUnset {
		return svc
	}
	filled := *svc
	filled.Mode = p.config.Mode
	return &filled
}

// sameService tells whether planning would see no difference. Snapshots are immutable, so one pointer is one value.
func sameService(a, b *topology.Service) bool { return a == b || reflect.DeepEqual(a, b) }
