package policyset

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/kube/policies"
)

// Objects are what a policy.Set is made from, in any order. None of them is changed.
type Objects struct {
	Policies   []*v1alpha1.LoadBalancingPolicy
	HTTPRoutes []*gatewayv1.HTTPRoute
	GRPCRoutes []*gatewayv1.GRPCRoute
	Pods       []*corev1.Pod
	Namespaces []*corev1.Namespace
	Nodes      []*corev1.Node
}

// Assemble makes a set of objects. A policy that is refused has no rules in it; a caller that knows earlier ones keeps them with
// policy.Set.Keep.
//
// Shape: the problems of each object, policies first, then routes, each by namespace and name.
func Assemble(o Objects) (*policy.Set, []reason.Finding) {
	var s sharer
	w := objects{namespaces: make(map[string]policy.Labels), nodes: make(map[string]policy.Labels)}
	for _, p := range o.Policies {
		w.documents = append(w.documents, policyDocument(p))
	}
	for _, r := range o.HTTPRoutes {
		w.documents = append(w.documents, httpRouteDocument(r))
	}
	for _, r := range o.GRPCRoutes {
		w.documents = append(w.documents, grpcRouteDocument(r))
	}
	slices.SortStableFunc(w.documents, compareDocuments)
	for _, p := range o.Pods {
		if pod, ok := s.pod(p); ok {
			w.pods = append(w.pods, pod)
		}
	}
	slices.SortStableFunc(w.pods, func(a, b policy.Pod) int { return comparePods(&a, &b) })
	for _, n := range o.Namespaces {
		w.namespaces[n.Name] = s.labels(n.Labels)
	}
	for _, n := range o.Nodes {
		w.nodes[n.Name] = s.labels(n.Labels)
	}
	set, problems := w.assemble()
	return policy.NewSet(set), problems
}

// kind is a kind of object that a cluster may not have.
type kind string

// The kinds, in the order in which their problems are told.
const (
	kindPolicy    kind = "LoadBalancingPolicy"
	kindHTTPRoute kind = kind(policy.TargetHTTPRoute)
	kindGRPCRoute kind = kind(policy.TargetGRPCRoute)
)

// documentKey identifies a document.
type documentKey struct {
	kind            kind
	namespace, name string
}

// document is what a policy or a route means. It is immutable.
type document struct {
	documentKey
	created  time.Time
	rules    []policy.Rule // of a policy
	route    *policy.Route // of a route
	problems []reason.Finding
}

func policyDocument(p *v1alpha1.LoadBalancingPolicy) *document {
	rules, problems := policies.Rules(p)
	return &document{
		documentKey: documentKey{kindPolicy, cmp.Or(p.Namespace, corev1.NamespaceDefault), p.Name}, created: p.CreationTimestamp.Time,
		rules: rules, problems: problems,
	}
}

func httpRouteDocument(r *gatewayv1.HTTPRoute) *document { return routeDocument(policies.HTTPRoute(r)) }

func grpcRouteDocument(r *gatewayv1.GRPCRoute) *document { return routeDocument(policies.GRPCRoute(r)) }

func routeDocument(route policy.Route, problems []reason.Finding) *document {
	return &document{
		documentKey: documentKey{kind(route.Kind), route.Namespace, route.Name}, created: route.Created, route: &route, problems: problems,
	}
}

func compareDocuments(a, b *document) int {
	order := []kind{kindPolicy, kindHTTPRoute, kindGRPCRoute}
	return cmp.Or(
		cmp.Compare(slices.Index(order, a.kind), slices.Index(order, b.kind)),
		strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name),
	)
}

// objects is all that a set is made of, converted.
type objects struct {
	documents  []*document  // sorted
	pods       []policy.Pod // sorted
	namespaces map[string]policy.Labels
	nodes      map[string]policy.Labels
	// unknown are kinds of which it is not known what there is: nothing is said to be missing among them.
	unknown map[kind]bool
}

// assemble puts the parts together, and reports policies for routes that are not there.
func (w *objects) assemble() (policy.Set, []reason.Finding) {
	set := policy.Set{Pods: w.pods, Namespaces: w.namespaces, Nodes: w.nodes}
	for _, d := range w.documents {
		set.Rules = append(set.Rules, d.rules...)
		if d.route != nil {
			set.Routes = append(set.Routes, *d.route)
		}
	}
	var problems []reason.Finding
	for _, d := range w.documents {
		problems = append(problems, d.problems...)
		for i := range d.rules {
			if p, ok := w.missing(set.Routes, &d.rules[i]); ok {
				problems = append(problems, p)
			}
		}
	}
	return set, problems
}

// missing reports a rule whose route, or rule of a route, is not there. The rule stays: the route may come.
func (w *objects) missing(routes []policy.Route, r *policy.Rule) (reason.Finding, bool) {
	if w.unknown[kind(r.Target.Kind)] {
		return reason.Finding{}, false
	}
	f, ok := policies.MissingRoute(routes, r)
	f.Field = "spec." + f.Field
	return f, ok
}
