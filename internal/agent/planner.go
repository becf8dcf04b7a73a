package agent

import (
	"reflect"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
)

// desired is what a node should serve, as a value: nothing in it changes once it is made.
type desired struct {
	table    *route.Table
	survey   plan.Survey
	services []planned // sorted by name
	policies *policy.Set
}

// rules lists the rules of all policies.
func (d *desired) rules() []policy.Rule {
	if d.policies == nil {
		return nil
	}
	return d.policies.Rules
}

// plans lists the plans by service and family.
func (d *desired) plans() []*plan.Plan {
	all := make([]*plan.Plan, 0, len(d.services))
	for i := range d.services {
		for _, p := range d.services[i].plans {
			if p != nil {
				all = append(all, p)
			}
		}
	}
	return all
}

// planned is a service with its plans.
type planned struct {
	given   *topology.Service // as the snapshot has it
	service *topology.Service // with its mode filled in
	plans   route.Plans
	maxSkew float64 // that policies allow
}

// planner turns snapshots into what a node should serve. It keeps the plans before, so that a service whose inputs are the
// same is not planned again, and one whose inputs changed keeps as many of its hints as it can. One goroutine at a time.
type planner struct {
	config   Config
	compiler *route.Compiler
	zone     topology.Zone // the node's, as last seen

	survey   plan.Survey
	costs    topology.Costs
	services []planned // nil: there was no snapshot yet
	policies *policy.Set
	client   policy.Client // a node
}

func newPlanner(c Config) *planner {
	return &planner{config: c, compiler: route.NewCompiler(route.Options{
		Defaults: route.Defaults{Mode: c.Mode, Algorithm: policy.Algorithm(c.Algorithm), Strategy: c.Strategy},
		Mappings: c.Map, OneNode: c.OneNode, Partial: c.Partial, NativeHints: c.Hints == HintsNative,
		Check: c.checkEntry,
	})}
}

// next gives what a snapshot asks for under some policies; nil: none. A change of policies plans again only
// where they cap the skew otherwise.
func (p *planner) next(s *topology.Snapshot, policies *policy.Set) *desired {
	client, problems := p.locate(s)
	hasSamePolicies := policies == p.policies && client.Node == p.client.Node && client.Zone == p.client.Zone
	p.policies, p.client = policies, client
	p.planAll(s, func(old *planned, svc *topology.Service) float64 {
		if hasSamePolicies && old.given == svc {
			return old.maxSkew
		}
		return policies.MaxSkew(client, svc)
	})
	in := route.Input{Snapshot: new(*s), Policies: policies, Client: client}
	in.Snapshot.Services = make([]*topology.Service, len(p.services))
	for i := range p.services {
		in.Snapshot.Services[i] = p.services[i].service
	}
	in.Plans = make([]route.Plans, len(p.services))
	for i := range p.services {
		in.Plans[i] = p.services[i].plans
	}
	table := p.compiler.Compile(in)
	if len(problems) > 0 {
		table = new(*table)
		table.Problems = append(problems, table.Problems...)
	}
	return &desired{table: table, survey: p.survey, services: p.services, policies: policies}
}

// planAll plans the services of a snapshot, where something changed.
func (p *planner) planAll(s *topology.Snapshot, maxSkew func(*planned, *topology.Service) float64) {
	survey, before := plan.SurveyNodes(s.Nodes), p.services
	isSame := before != nil && reflect.DeepEqual(survey, p.survey) && reflect.DeepEqual(s.Costs, p.costs)
	p.survey, p.costs, p.services = survey, s.Costs, make([]planned, len(s.Services))
	for i, svc := range s.Services {
		for len(before) > 0 && before[0].given != svc && before[0].given.Compare(svc.ServiceName) < 0 {
			before = before[1:]
		}
		var old planned
		if len(before) > 0 && before[0].given.ServiceName == svc.ServiceName {
			old = before[0]
		}
		now := planned{given: svc, service: svc, maxSkew: maxSkew(&old, svc)}
		switch {
		case old.given != nil && (old.given == svc || reflect.DeepEqual(old.given, svc)):
			now.service = old.service
		case svc.Mode == topology.ModeUnset:
			now.service = new(*svc)
			now.service.Mode = p.config.Mode
		}
		if isSame && now.service == old.service && now.maxSkew == old.maxSkew {
			now.plans = old.plans
		} else {
			for _, family := range svc.Families() {
				in := plan.InputOf(s, survey, now.service, family)
				in.MaxSkew = now.maxSkew
				now.plans[family] = p.plan(in, old.plans[family])
			}
		}
		p.services[i] = now
	}
}

// plan plans one service in one family, given the plan before. Where nodes are missing it tells the hints that there are,
// without shares.
func (p *planner) plan(in plan.Input, before *plan.Plan) *plan.Plan {
	if !p.config.OneNode {
		in.Previous = before
		return new(plan.Compute(in))
	}
	found := &plan.Plan{Service: in.Service.ServiceName, Family: in.Family, Mode: in.Service.Mode}
	for i := range in.Service.Endpoints {
		if e := &in.Service.Endpoints[i]; e.Family() == in.Family {
			found.Endpoints = append(found.Endpoints, *e)
			found.Hinted = found.Hinted || !e.Hints.IsZero()
		}
	}
	return found
}

// locate finds out where the client is. A node that the cluster no longer has keeps its last zone.
func (p *planner) locate(s *topology.Snapshot) (policy.Client, []Problem) {
	client := policy.Client{Node: p.config.Node, Zone: p.config.Zone}
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
