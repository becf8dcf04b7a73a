package agent

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/explain"
	"github.com/weir-lb/weir/internal/l7"
)

// note reports a problem once, however many ports, classes and endpoints have it.
func (b *builder) note(service topology.ServiceName, r reason.Reason) {
	p := Problem{Reason: r}
	if service != (topology.ServiceName{}) {
		p.Service = service.String()
	}
	if id := p.identity(); !b.notes[id] {
		b.notes[id] = true
		b.world.problems = append(b.world.problems, p)
	}
}

// checkSettings reports what policies say of a pool and what has no effect there. Of a policy for a namespace or the mesh it
// is reported once and of no service: it would be a line for each of thousands.
func (b *builder) checkSettings(w *wantedPool) {
	for _, n := range w.policy.Notes {
		service := w.key.service
		if b.wide[n.Origin] {
			service = topology.ServiceName{}
		}
		b.note(service, reason.New(reason.PolicyWithoutEffect, n.Origin.String(), n.Path, n.Message))
	}
	if protocolOf(w) != l7.TCP || !w.policy.Algorithm.IsHashing() {
		return
	}
	port := portName(w.key.service, w.port)
	for _, h := range w.policy.HashPolicies {
		if !l7.HashesConnections(h) {
			b.note(w.key.service, reason.New(reason.HashNeedsHTTP, string(h.Type)+" "+h.Name, port))
		}
	}
	if len(w.policy.Routes) > 0 {
		b.note(w.key.service, reason.New(reason.HashNeedsHTTP, "the routes' policies", port))
	}
}

// checkPolicies reports what the documents name and the cluster does not have. A node that knows itself alone cannot tell.
func (b *builder) checkPolicies() {
	for _, o := range b.policies.Refused {
		code := reason.PolicyRefused
		if b.policies.LastGood(o) {
			code = reason.PolicyLastGood
		}
		b.note(topology.ServiceName{}, reason.New(code, o.String()))
	}
	if len(b.policies.Rules) == 0 {
		return
	}
	for i := range b.policies.Rules {
		b.checkTarget(&b.policies.Rules[i])
	}
	if b.config.OneNode {
		return
	}
	for _, n := range b.policies.UnknownZones(b.snapshot.Zones()) {
		b.note(topology.ServiceName{}, reason.New(reason.PolicyNamesNoZone, n.Origin.String(), n.Path, n.Message))
	}
	labels := b.labels()
	for i := range b.policies.Rules {
		rule := &b.policies.Rules[i]
		for _, key := range labelsOf(rule) {
			if !labels[key] {
				b.note(targetOf(rule), reason.New(reason.PolicyNamesNoLabel, rule.Origin.String(), key))
			}
		}
	}
}

// checkTarget reports a policy for a service that does not exist, as far as the agent is told of all services.
func (b *builder) checkTarget(r *policy.Rule) {
	if b.config.Partial || r.Target.Kind != policy.TargetService && r.Target.Kind != policy.TargetServiceImport {
		return
	}
	isThere, hasPort := false, r.Target.Section == ""
	for _, svc := range b.snapshot.Services {
		if svc.Name != r.Target.Name || r.Target.Namespace != "" && svc.Namespace != r.Target.Namespace {
			continue
		}
		isThere = true
		hasPort = hasPort || slices.ContainsFunc(svc.Ports, func(p topology.Port) bool {
			return p.Name == r.Target.Section || strconv.Itoa(int(p.Port)) == r.Target.Section
		})
	}
	switch {
	case !isThere:
		b.note(targetOf(r), reason.New(reason.PolicyForNoService, r.Origin.String(), targetName(&r.Target)))
	case !hasPort:
		b.note(targetOf(r), reason.New(reason.PolicyForNoPort, r.Origin.String(), r.Target.Section))
	}
}

// wideRules gives the rules that are about all services of a namespace or of the mesh.
func wideRules(s *policy.Set) map[policy.Origin]bool {
	wide := make(map[policy.Origin]bool)
	for i := range s.Rules {
		if k := s.Rules[i].Target.Kind; k == policy.TargetMesh || k == policy.TargetNamespace {
			wide[s.Rules[i].Origin] = true
		}
	}
	return wide
}

// targetOf names the one service that a rule is about; the zero value for a rule about more, or about a route.
func targetOf(r *policy.Rule) topology.ServiceName {
	isService := r.Target.Kind == policy.TargetService || r.Target.Kind == policy.TargetServiceImport
	if !isService || r.Target.Namespace == "" {
		return topology.ServiceName{}
	}
	return topology.ServiceName{Namespace: r.Target.Namespace, Name: r.Target.Name}
}

// labelsOf lists the labels that a rule measures nearness by.
func labelsOf(r *policy.Rule) []string {
	var keys []string
	for _, a := range r.Conf.Locality.Affinity {
		keys = append(keys, a.Key)
	}
	for _, w := range r.Conf.Locality.Weights {
		keys = append(keys, w.Key)
	}
	if key := r.Conf.Locality.ZoneKey; key != nil {
		keys = append(keys, *key)
	}
	return keys
}

// labels is the set of labels that some node or pod has.
func (b *builder) labels() map[string]bool {
	known := map[string]bool{labelZone: true, labelHostname: true}
	add := func(labels policy.Labels) {
		for key := range labels {
			known[key] = true
		}
	}
	for _, labels := range b.policies.Nodes {
		add(labels)
	}
	for i := range b.policies.Pods {
		add(b.policies.Pods[i].Labels)
	}
	return known
}

// PolicyStatus is a policy document's word on one destination. Its JSON names are promised (docs/guide/agent.md).
type PolicyStatus struct {
	Policy  string   `json:"policy"`           // kind namespace/name, and which destination of the document
	Source  string   `json:"source,omitempty"` // file:line; empty: from the API server
	Target  string   `json:"target"`           // kind namespace/name, and the port or rule of a route
	Serving []string `json:"serving"`          // the served ports that it has a part in, sorted
}

// PoliciesStatus is what the page /policies shows.
type PoliciesStatus struct {
	Policies []PolicyStatus `json:"policies"` // by kind, namespace and name
	Problems []Problem      `json:"problems"` // that policies have
}

// policyPage shows all policies.
func (s *state) policyPage() PoliciesStatus {
	page := PoliciesStatus{Policies: []PolicyStatus{}, Problems: []Problem{}}
	for _, p := range s.problems {
		if isPolicyCode(p.Reason.Code) {
			page.Problems = append(page.Problems, p)
		}
	}
	serving := make(map[policy.Origin][]string)
	for i := range s.pools {
		w := &s.pools[i].wanted
		for _, f := range w.policy.Fields {
			serving[f.Origin] = append(serving[f.Origin], portName(w.key.service, w.port))
		}
	}
	for i := range s.world.policies.Rules {
		rule := &s.world.policies.Rules[i]
		ports := append([]string{}, serving[rule.Origin]...)
		slices.Sort(ports)
		page.Policies = append(page.Policies, PolicyStatus{
			Policy: explain.PolicyName(&rule.Origin), Source: rule.Origin.Source, Target: targetName(&rule.Target),
			Serving: slices.Compact(ports),
		})
	}
	slices.SortStableFunc(page.Policies, func(a, b PolicyStatus) int { return strings.Compare(a.Policy, b.Policy) })
	return page
}

func isPolicyCode(c reason.Code) bool {
	switch c {
	case reason.PolicyWithoutEffect, reason.HashNeedsHTTP, reason.HashRefused, reason.PolicyNamesNoZone, reason.PolicyNamesNoLabel,
		reason.PolicyForNoService, reason.PolicyForNoPort, reason.PolicyRefused, reason.PolicyLastGood, reason.WeightRefused:
		return true
	default:
		return false
	}
}

// targetName names a target for people.
func targetName(t *policy.Target) string {
	text := string(t.Kind)
	switch {
	case t.Namespace != "" && t.Name != "":
		text += " " + t.Namespace + "/" + t.Name
	case t.Namespace+t.Name != "":
		text += " " + t.Namespace + t.Name
	}
	if t.Section != "" {
		text += ":" + t.Section
	}
	return text
}
