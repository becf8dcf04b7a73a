package policies

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// maxTargets is how many targets a policy may have: the limit of the CustomResourceDefinition, which files do not go through.
// The other limits are the validator's.
const maxTargets = 16

// Rules gives what a policy says: a rule for each of its targets, in their order.
//
// A policy is taken whole or not at all: where a finding is Refused there are no rules, and a caller that knows an earlier form of the
// policy goes on with it. The other findings are warnings. All name the field, below spec. The policy may come from a file,
// so everything is checked that an API server checks.
func Rules(p *v1alpha1.LoadBalancingPolicy) ([]policy.Rule, []reason.Finding) {
	r := &reader{policy: p}
	clients := r.clients(p.Spec.Clients)
	switch n := len(p.Spec.TargetRefs); {
	case n == 0:
		r.refuse("targetRefs", "want at least one target")
	case n > maxTargets:
		r.refuse("targetRefs", "has %d entries: want at most %d", n, maxTargets)
	}
	var rules []policy.Rule
	for i := range p.Spec.TargetRefs {
		if i == maxTargets {
			break
		}
		rule := policy.Rule{Origin: origin(p, i), Clients: clients, Conf: p.Spec.Conf}
		rule.Target = r.target(fmt.Sprintf("targetRefs[%d]", i), &p.Spec.TargetRefs[i])
		if isConsumer(p, rule.Target) {
			rule.Clients.Namespace = p.Namespace
		}
		if slices.ContainsFunc(rules, func(o policy.Rule) bool { return o.Target == rule.Target }) {
			r.refuse(fmt.Sprintf("targetRefs[%d]", i), "is there twice")
		}
		rules = append(rules, rule)
	}
	if !reason.AnyRefused(r.findings) { // else it would tell of what is missing for having been left out
		for i := range rules {
			for _, f := range rules[i].Validate() {
				r.tell(f)
			}
		}
	}
	if reason.AnyRefused(r.findings) {
		return nil, r.findings
	}
	return rules, r.findings
}

// isConsumer tells whether a policy is about the requests of its own namespace's clients to another one's service. Those of
// the root namespace are the operators', and about the requests of all clients.
func isConsumer(p *v1alpha1.LoadBalancingPolicy, t policy.Target) bool {
	return isService(t.Kind) && t.Namespace != p.Namespace && p.Namespace != policy.RootNamespace
}

func isService(k policy.TargetKind) bool {
	return k == policy.TargetService || k == policy.TargetServiceImport
}

func origin(p *v1alpha1.LoadBalancingPolicy, entry int) policy.Origin {
	return policy.Origin{
		Dialect: policy.DialectCRD, Namespace: p.Namespace, Name: p.Name, Entry: entry, Created: p.CreationTimestamp.Time,
	}
}

// reader gathers what is wrong with one policy.
type reader struct {
	policy   *v1alpha1.LoadBalancingPolicy
	findings []reason.Finding
}

func (r *reader) refuse(field, format string, args ...any) {
	r.tell(reason.Finding{Field: field, Severity: reason.Refused, Reason: reason.Invalid, Message: fmt.Sprintf(format, args...)})
}

// tell adds a finding about a field below spec, once: rules of several targets share a Conf.
func (r *reader) tell(f reason.Finding) {
	f.Object, f.Field = origin(r.policy, 0).Object(), "spec."+f.Field
	if !slices.Contains(r.findings, f) {
		r.findings = append(r.findings, f)
	}
}

// The API groups of targets.
const (
	groupCore   = ""
	groupImport = "multicluster.x-k8s.io"
	groupRoutes = "gateway.networking.k8s.io"
	meshName    = "default"
)

// targetGroups says which group each kind of target is of.
func targetGroups() map[policy.TargetKind]string {
	return map[policy.TargetKind]string{
		policy.TargetService: groupCore, policy.TargetNamespace: groupCore, policy.TargetServiceImport: groupImport,
		policy.TargetMesh: v1alpha1.Group, policy.TargetHTTPRoute: groupRoutes, policy.TargetGRPCRoute: groupRoutes,
	}
}

// target reads a reference.
func (r *reader) target(field string, t *v1alpha1.TargetRef) policy.Target {
	kind := policy.TargetKind(t.Kind)
	switch group, ok := targetGroups()[kind]; {
	case !ok:
		r.refuse(field+".kind", "unknown kind %q, want Service, ServiceImport, Namespace, Mesh, HTTPRoute or GRPCRoute", t.Kind)
	case group != t.Group:
		r.refuse(field+".group", "a %s is of the group %q, not of %q", kind, group, t.Group)
	}
	target := policy.Target{Kind: kind, Namespace: r.policy.Namespace, Name: t.Name}
	if t.Name == "" {
		r.refuse(field+".name", "want a name")
	}
	switch {
	case t.Namespace == nil:
	case !isService(kind):
		r.refuse(field+".namespace", "only a Service or a ServiceImport may be in another namespace")
	case *t.Namespace == "":
		r.refuse(field+".namespace", "want a name, or nothing for the policy's own namespace")
	default:
		target.Namespace = *t.Namespace
	}
	if t.SectionName != nil {
		target.Section = *t.SectionName
		if target.Section == "" {
			r.refuse(field+".sectionName", "want a name, or nothing for all of the target")
		}
	}
	return r.scope(field, target)
}

// scope checks the targets that stand for many services, and gives them as rules have them.
func (r *reader) scope(field string, t policy.Target) policy.Target {
	isWide := t.Kind == policy.TargetMesh || t.Kind == policy.TargetNamespace
	if isWide && t.Section != "" {
		r.refuse(field+".sectionName", "a %s has no sections", t.Kind)
	}
	switch t.Kind {
	case policy.TargetMesh:
		if t.Name != meshName {
			r.refuse(field+".name", "the Mesh is called %s, not %q", meshName, t.Name)
		}
		if r.policy.Namespace != policy.RootNamespace {
			r.refuse(field, "the Mesh may be the target of policies in the namespace %s only", policy.RootNamespace)
		}
		return policy.Target{Kind: t.Kind}
	case policy.TargetNamespace:
		if t.Name != r.policy.Namespace {
			r.refuse(field+".name", "want the policy's own namespace, %s, not %q", r.policy.Namespace, t.Name)
		}
		return policy.Target{Kind: t.Kind, Namespace: r.policy.Namespace}
	default:
		return t
	}
}

func (r *reader) clients(c *v1alpha1.Clients) policy.Clients {
	if c == nil {
		return policy.Clients{}
	}
	clients := policy.Clients{
		Zones:      zones(c.Zones),
		Namespaces: r.selector("clients.namespaceSelector", c.NamespaceSelector),
		Pods:       r.selector("clients.podSelector", c.PodSelector),
	}
	if c.Zones != nil && len(c.Zones) == 0 {
		r.refuse("clients.zones", "want at least one zone, or nothing for any")
	}
	if s := c.Service; s != nil {
		clients.Service = &topology.ServiceName{Namespace: s.Namespace, Name: s.Name}
		if s.Namespace == "" || s.Name == "" {
			r.refuse("clients.service", "want a namespace and a name")
		}
	}
	return clients
}

// selector reads a label selector: the labels by key, then the expressions in their order.
func (r *reader) selector(field string, s *metav1.LabelSelector) policy.Selector {
	if s == nil {
		return nil
	}
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		r.refuse(field, "%s", err)
		return nil
	}
	var list policy.Selector
	for key, value := range s.MatchLabels {
		list = append(list, policy.Requirement{Key: key, Operator: policy.In, Values: []string{value}})
	}
	slices.SortFunc(list, func(a, b policy.Requirement) int { return strings.Compare(a.Key, b.Key) })
	for _, e := range s.MatchExpressions {
		list = append(list, policy.Requirement{Key: e.Key, Operator: policy.Operator(e.Operator), Values: slices.Clone(e.Values)})
	}
	return list
}

func zones(names []string) []topology.Zone {
	var list []topology.Zone
	for _, n := range names {
		list = append(list, topology.Zone(n))
	}
	return list
}
