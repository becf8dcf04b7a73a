package manifest

import (
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/kube/policies"
)

// policySet is what all documents say about load balancing, and the labels that they are about.
func (r *reader) policySet() *policy.Set {
	s := policy.Set{Rules: r.rules, Namespaces: make(map[string]policy.Labels), Nodes: make(map[string]policy.Labels)}
	for _, n := range r.namespaces {
		s.Namespaces[n.Name] = n.Labels
	}
	for _, n := range r.objects.Nodes {
		s.Nodes[n.Name] = n.Labels
	}
	for _, p := range r.objects.Pods {
		s.Pods = append(s.Pods, policies.Pod(p))
	}
	s.Routes = r.routes()
	return policy.NewSet(s)
}

// routes converts the routes, and reports what is wrong with them.
func (r *reader) routes() []policy.Route {
	var routes []policy.Route
	add := func(route policy.Route, problems []reason.Finding) {
		routes = append(routes, route)
		for _, p := range problems {
			r.report(p)
		}
	}
	for _, route := range r.httpRoutes {
		add(policies.HTTPRoute(route))
	}
	for _, route := range r.grpcRoutes {
		add(policies.GRPCRoute(route))
	}
	return routes
}
