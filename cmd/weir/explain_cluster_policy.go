package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/policyset"
)

// policyObjects are what was read.
type policyObjects struct {
	policyset.Objects
	isInstalled bool
	leftOut     []string // what the user may not read, which is left out
}

// showsPolicies tells whether the answer has a place for policies.
func (f *explainFlags) showsPolicies(args []string) bool {
	return f.preview == "" && (len(args) > 0 || f.client != "" || f.output == "json" || f.output == "yaml")
}

// readPolicies reads the policies of a cluster.
//
// Errors: the pod that is asked about cannot be read or does not exist, or policies cannot be read although they are asked about. If
// they are not asked about and the user may not read them, the answer says that they are left out.
func (r *clusterReader) readPolicies(ctx context.Context) (*policyObjects, error) {
	objects := new(policyObjects)
	list, err := readKind(ctx, r, v1alpha1.Resource+"."+v1alpha1.Group, func(l *v1alpha1.LoadBalancingPolicyList) []v1alpha1.LoadBalancingPolicy {
		return l.Items
	})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err) && !r.isServed(v1alpha1.GroupVersion(), v1alpha1.Resource):
		return objects, nil
	case apierrors.IsForbidden(err) && r.client == "":
		objects.leftOut = append(objects.leftOut, err.Error())
		return objects, nil
	case err != nil:
		return nil, err
	}
	objects.Policies, objects.isInstalled = list, true
	if err := r.routes(ctx, objects); err != nil {
		return nil, err
	}
	return objects, r.clientPod(ctx, objects)
}

// isServed tells whether the API server has a resource: it refuses a request by its roles before it looks for what was
// requested. Every user may ask; a server that gives no answer is taken to have it.
func (r *clusterReader) isServed(v schema.GroupVersion, name string) bool {
	list, err := r.kinds.ServerResourcesForGroupVersion(v.String())
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return slices.ContainsFunc(list.APIResources, func(a metav1.APIResource) bool { return a.Name == name })
}

// routes reads the routes of the kinds that policies are about.
func (r *clusterReader) routes(ctx context.Context, o *policyObjects) (err error) {
	if isAbout(o.Policies, policy.TargetHTTPRoute) {
		o.HTTPRoutes, err = readKind(ctx, r, "httproutes."+gatewayv1.GroupName, func(l *gatewayv1.HTTPRouteList) []gatewayv1.HTTPRoute { return l.Items })
		if err = r.optional("httproutes", o, err); err != nil {
			return err
		}
	}
	if isAbout(o.Policies, policy.TargetGRPCRoute) {
		o.GRPCRoutes, err = readKind(ctx, r, "grpcroutes."+gatewayv1.GroupName, func(l *gatewayv1.GRPCRouteList) []gatewayv1.GRPCRoute { return l.Items })
		return r.optional("grpcroutes", o, err)
	}
	return nil
}

// optional passes over that the cluster does not have a resource, and remembers that the user may not read it.
func (r *clusterReader) optional(resource string, o *policyObjects, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		if r.isServed(schema.GroupVersion(gatewayv1.GroupVersion), resource) {
			o.leftOut = append(o.leftOut, err.Error())
		}
		return nil
	default:
		return err
	}
}

// isAbout tells whether a policy has a target of a kind.
func isAbout(list []*v1alpha1.LoadBalancingPolicy, kind policy.TargetKind) bool {
	return slices.ContainsFunc(list, func(p *v1alpha1.LoadBalancingPolicy) bool {
		return slices.ContainsFunc(p.Spec.TargetRefs, func(t v1alpha1.TargetRef) bool { return t.Kind == string(kind) })
	})
}

// clientPod reads the pod that is asked about, and its namespace if a policy selects clients by theirs.
func (r *clusterReader) clientPod(ctx context.Context, o *policyObjects) error {
	if r.client == "" {
		return nil
	}
	name, err := clientName(r.client, r.namespace)
	if err != nil {
		return err
	}
	pod := new(corev1.Pod)
	err = r.policies.Get(ctx, client.ObjectKey{Namespace: name.Namespace, Name: name.Name}, pod)
	switch {
	case apierrors.IsNotFound(err):
		return r.unknownPod(ctx, name)
	case err != nil:
		return request{"get", "pods", name.Namespace}.wrap(err)
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return fmt.Errorf("pod %s is finished (%s): it sends no requests", name, pod.Status.Phase)
	}
	o.Pods = []*corev1.Pod{pod}
	selects := func(p *v1alpha1.LoadBalancingPolicy) bool {
		return p.Spec.Clients != nil && p.Spec.Clients.NamespaceSelector != nil
	}
	if !slices.ContainsFunc(o.Policies, selects) {
		return nil
	}
	namespace := new(corev1.Namespace)
	if err := r.policies.Get(ctx, client.ObjectKey{Name: name.Namespace}, namespace); err != nil {
		return request{"get", "namespaces", name.Namespace}.wrap(err)
	}
	o.Namespaces = []*corev1.Namespace{namespace}
	return nil
}

// unknownPod names the pods that were most likely meant, as far as the user may list them.
func (r *clusterReader) unknownPod(ctx context.Context, name topology.ServiceName) error {
	var list corev1.PodList
	err := r.policies.List(ctx, &list, client.InNamespace(name.Namespace), client.Limit(pageSize))
	if err != nil || len(list.Items) == 0 {
		return fmt.Errorf("no pod %s in the cluster", name)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Namespace+"/"+list.Items[i].Name)
	}
	return fmt.Errorf("no pod %s: did you mean %s?", name, strings.Join(topology.Near(name.String(), names), ", "))
}

// readKind reads all objects of a kind that a cluster may not have.
func readKind[L, T any, P interface {
	*L
	client.ObjectList
}](ctx context.Context, r *clusterReader, resource string, items func(*L) []T,
) ([]*T, error) {
	return readAll[L, T, P](ctx, r, query{from: r.policies, request: request{"list", resource, ""}}, items)
}

// addPolicies adds the policies that were read.
func (s *inputs) addPolicies(o *policyObjects, nodes []*corev1.Node, args []string) error {
	for _, problem := range o.leftOut {
		s.leftOut = append(s.leftOut, "left out of the answer: "+problem)
	}
	if !o.isInstalled {
		return nil
	}
	o.Nodes = nodes
	set, problems := policyset.Assemble(o.Objects)
	s.policies = set
	about := ""
	if len(args) > 0 {
		name, err := serviceName(args[0], s.namespace)
		if err != nil {
			return err
		}
		about = name.Namespace
	}
	for _, p := range problems {
		if p.IsRefused() && p.Instead == "" {
			p.Instead = "nothing of it is followed, unless an agent saw a valid form of it before"
		}
		if about == "" || concerns(o, &p, about) {
			s.problems = append(s.problems, p)
		}
	}
	return nil
}

// concerns tells whether a problem is one of a policy that may be about the services of a namespace. Routes may be anywhere.
func concerns(o *policyObjects, p *reason.Finding, namespace string) bool {
	if p.Object.Kind != v1alpha1.Kind || p.Object.Namespace == namespace {
		return true
	}
	return slices.ContainsFunc(o.Policies, func(one *v1alpha1.LoadBalancingPolicy) bool {
		return one.Namespace == p.Object.Namespace && one.Name == p.Object.Name &&
			slices.ContainsFunc(one.Spec.TargetRefs, func(t v1alpha1.TargetRef) bool {
				return t.Namespace != nil && *t.Namespace == namespace || !isNamespaced(t.Kind)
			})
	})
}

// isNamespaced tells whether a target is in a namespace, which is the policy's own if it does not say so.
func isNamespaced(kind string) bool {
	switch policy.TargetKind(kind) {
	case policy.TargetNamespace, policy.TargetService, policy.TargetServiceImport:
		return true
	case policy.TargetMesh, policy.TargetHTTPRoute, policy.TargetGRPCRoute: // the services of a route may be anywhere
		return false
	default: // of no kind that is known
		return true
	}
}

// clientName reads [NAMESPACE/]POD.
func clientName(text, namespace string) (topology.ServiceName, error) {
	name, err := serviceName(text, namespace)
	if err != nil {
		return name, fmt.Errorf("--client=%s: want NAMESPACE/POD", text)
	}
	return name, nil
}

// errNoPolicies says that the requests of a pod are treated like those of all other clients.
var errNoPolicies = errors.New("--client: no policies are known, so that all clients are alike")
