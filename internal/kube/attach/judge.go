package attach

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/policies"
)

// Input is what policies are judged by, at one instant.
type Input struct {
	Policies []*v1alpha1.LoadBalancingPolicy
	// Service finds a Service; nil: there is none.
	Service func(topology.ServiceName) *corev1.Service
	// Route finds the names of the rules of an HTTPRoute or a GRPCRoute, and whether it is there.
	Route func(kind policy.TargetKind, name topology.ServiceName) (rules []string, found bool)
}

// Verdict is what there is to say.
type Verdict struct {
	// Policies are in the order of Input's: the entry of each target, without times and generations.
	Policies [][]v1alpha1.PolicyAncestorStatus
	// Services lists for each Service that accepted policies are attached to their names, as namespace/name, sorted.
	Services map[topology.ServiceName][]string
}

// Judge says of each policy at each target whether it is taken and how much of it is in force. It is pure and total.
func Judge(w Input) Verdict {
	j := &judge{input: w, docs: make([]document, len(w.Policies))}
	for i, p := range w.Policies {
		d := document{policy: p}
		d.rules, d.problems = policies.Rules(p)
		j.docs[i] = d
		for k := range d.rules {
			j.rules = append(j.rules, newRuling(&d.rules[k]))
		}
	}
	slices.SortStableFunc(j.rules, func(a, b *ruling) int { return policy.Compare(a.rule, b.rule) })
	v := Verdict{Services: make(map[topology.ServiceName][]string)}
	for i := range j.docs {
		v.Policies = append(v.Policies, j.document(&j.docs[i], v.Services))
	}
	for name, list := range v.Services {
		slices.Sort(list)
		v.Services[name] = slices.Compact(list)
	}
	return v
}

// document is a policy and what it says.
type document struct {
	policy   *v1alpha1.LoadBalancingPolicy
	rules    []policy.Rule // one for each target; none where something is refused
	problems []reason.Finding
}

// judge holds all policies, to compare each with the others.
type judge struct {
	input Input
	docs  []document
	rules []*ruling // of all valid policies, weakest first
}

func (j *judge) document(d *document, services map[topology.ServiceName][]string) []v1alpha1.PolicyAncestorStatus {
	var entries []v1alpha1.PolicyAncestorStatus
	for i := range d.policy.Spec.TargetRefs {
		ref := &d.policy.Spec.TargetRefs[i]
		one := v1alpha1.PolicyAncestorStatus{AncestorRef: ancestor(d.policy, ref), ControllerName: controllerName}
		if len(d.rules) == 0 {
			one.Conditions = invalid(d.problems)
		} else {
			one.Conditions = j.target(d, &d.rules[i])
			if name, ok := attached(&d.rules[i], one.Conditions); ok {
				services[name] = append(services[name], d.policy.Namespace+"/"+d.policy.Name)
			}
		}
		entries = append(entries, one)
	}
	return entries
}

// attached gives the Service that a policy is attached to by a rule.
func attached(r *policy.Rule, conditions []metav1.Condition) (topology.ServiceName, bool) {
	direct := r.Target.Kind == policy.TargetService || r.Target.Kind == policy.TargetServiceImport
	return serviceName(r.Target), direct && conditions[0].Status == metav1.ConditionTrue
}

func serviceName(t policy.Target) topology.ServiceName {
	return topology.ServiceName{Namespace: t.Namespace, Name: t.Name}
}

// target judges a valid policy at one target.
func (j *judge) target(d *document, r *policy.Rule) []metav1.Condition {
	if missing := j.missing(r.Target); missing != "" {
		return conditions(
			condition(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonTargetNotFound, missing),
			condition(v1alpha1.ConditionProgrammed, metav1.ConditionFalse, v1alpha1.ReasonReconciling, "waits for its target"),
		)
	}
	accepted := condition(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted, "the policy is valid and its target is there")
	c := j.compare(r)
	lost := c.lost
	if len(lost) > 0 && len(lost) == len(c.own.said) {
		if !slices.ContainsFunc(lost, func(l loss) bool { return !l.byEqual }) {
			accepted = condition(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonConflicted,
				"policies with the same target and clients, which are older or come first in the alphabet, say all of it otherwise: "+list(lost))
		}
		return conditions(accepted,
			condition(v1alpha1.ConditionProgrammed, metav1.ConditionFalse, v1alpha1.ReasonOverridden, "nothing of it is in force: "+list(lost)))
	}
	notes := c.notes(d.problems)
	if len(lost) > 0 {
		return conditions(accepted, condition(v1alpha1.ConditionProgrammed, metav1.ConditionTrue, v1alpha1.ReasonOverridden,
			strings.Join(append([]string{list(lost)}, notes...), "; ")))
	}
	if len(notes) > 0 {
		return conditions(accepted, condition(v1alpha1.ConditionProgrammed, metav1.ConditionTrue, v1alpha1.ReasonPartiallyProgrammed,
			strings.Join(notes, "; ")))
	}
	return conditions(accepted, condition(v1alpha1.ConditionProgrammed, metav1.ConditionTrue, v1alpha1.ReasonProgrammed,
		"data planes that follow the API server use it"))
}

// missing says what is not there of a target; empty: it is.
func (j *judge) missing(t policy.Target) string {
	switch t.Kind {
	case policy.TargetService, policy.TargetServiceImport:
		s := j.input.Service(serviceName(t))
		switch {
		case s == nil && t.Kind == policy.TargetServiceImport:
			return fmt.Sprintf("there is no Service %s/%s that the ServiceImport is reached by", t.Namespace, t.Name)
		case s == nil:
			return fmt.Sprintf("there is no Service %s/%s", t.Namespace, t.Name)
		case t.Section != "" && !hasPort(s, t.Section):
			return fmt.Sprintf("the Service %s/%s has no port %s", t.Namespace, t.Name, t.Section)
		}
	case policy.TargetHTTPRoute, policy.TargetGRPCRoute:
		rules, found := j.input.Route(t.Kind, serviceName(t))
		switch {
		case !found:
			return fmt.Sprintf("there is no %s %s/%s", t.Kind, t.Namespace, t.Name)
		case t.Section != "" && !slices.Contains(rules, t.Section):
			return fmt.Sprintf("the %s %s/%s has no rule %s", t.Kind, t.Namespace, t.Name, t.Section)
		}
	case policy.TargetMesh, policy.TargetNamespace: // the namespace is the policy's own
	}
	return ""
}

// hasPort tells whether a Service has a port of that name or number.
func hasPort(s *corev1.Service, section string) bool {
	return slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Name == section || strconv.Itoa(int(p.Port)) == section
	})
}

// invalid says what is refused, by field.
func invalid(problems []reason.Finding) []metav1.Condition {
	var fields []string
	for _, p := range problems {
		if p.IsRefused() {
			fields = append(fields, p.Text())
		}
	}
	return conditions(
		condition(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid, strings.Join(fields, "; ")),
		condition(v1alpha1.ConditionProgrammed, metav1.ConditionFalse, v1alpha1.ReasonReconciling,
			"data planes go on with the last valid form of the policy that they saw, if any"),
	)
}

// notes are the problems of a policy that is taken all the same, and what else has no effect.
func (c *comparison) notes(problems []reason.Finding) []string {
	var list []string
	told := make(map[string]bool)
	for _, p := range problems {
		if !p.IsRefused() {
			list = append(list, p.Text())
			told[p.Field] = true
		}
	}
	for _, n := range c.idle() {
		if !told[n.Field] {
			list = append(list, n.Text())
		}
	}
	return list
}

// list tells what is lost, by field.
func list(lost []loss) string {
	var fields []string
	for _, l := range lost {
		fields = append(fields, "spec."+l.path+": "+l.why)
	}
	return strings.Join(fields, "; ")
}

func conditions(list ...metav1.Condition) []metav1.Condition { return list }

// maxMessage is what the API takes as the message of a condition, in bytes.
const maxMessage = 32768

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: cut(message, maxMessage)}
}

// cut shortens a text to so many bytes, without cutting a letter.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// ancestor names a target.
func ancestor(p *v1alpha1.LoadBalancingPolicy, t *v1alpha1.TargetRef) v1alpha1.AncestorRef {
	ref := v1alpha1.AncestorRef{Group: new(t.Group), Kind: new(t.Kind), Name: t.Name}
	if t.SectionName != nil {
		ref.SectionName = new(*t.SectionName)
	}
	if t.Kind != string(policy.TargetMesh) && t.Kind != string(policy.TargetNamespace) {
		ref.Namespace = new(cmp.Or(deref(t.Namespace), p.Namespace))
	}
	return ref
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
