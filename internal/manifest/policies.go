package manifest

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/kube/convert"
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
		s.Pods = append(s.Pods, podOf(p))
	}
	s.Routes = r.routes()
	return policy.NewSet(s)
}

// routes converts the routes, and reports what is wrong with them.
func (r *reader) routes() []policy.Route {
	var routes []policy.Route
	add := func(route policy.Route, problems []convert.Problem) {
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

// podOf gives what policies know of a pod. One that is over is not a client, and one on the host's network has no
// address of its own.
func podOf(p *corev1.Pod) policy.Pod {
	pod := policy.Pod{
		Namespace: cmp.Or(p.Namespace, corev1.NamespaceDefault), Name: p.Name, Node: p.Spec.NodeName,
		Labels: p.Labels, Annotations: p.Annotations,
	}
	isOver := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if p.Spec.HostNetwork || isOver {
		return pod
	}
	for _, ip := range p.Status.PodIPs {
		pod.IPs = append(pod.IPs, ip.IP)
	}
	if len(pod.IPs) == 0 && p.Status.PodIP != "" {
		pod.IPs = []string{p.Status.PodIP}
	}
	return pod
}
