package route

import (
	"slices"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// check reports what pods and policies ask of an entry and what has no effect there. Of a policy for a namespace or the
// mesh it is reported of no service: it would be a line for each of thousands.
func (c *Compiler) check(u *unit, e *Entry) {
	for _, r := range e.Refused {
		u.problem(r)
	}
	for _, n := range e.Settings.Policy.Notes {
		p := Problem{Reason: reason.New(reason.PolicyWithoutEffect, n.Author(), n.Field, n.Message)}
		if !c.wide[author{n.Object, n.Entry}] {
			p.Service = u.service.String()
		}
		u.problems = append(u.problems, p)
	}
	if c.options.Check != nil {
		for _, r := range c.options.Check(e) {
			u.problem(r)
		}
	}
}

// author is a rule, by its document and which of the document's destinations it is about.
type author struct {
	document reason.Object
	entry    int
}

// wideRules gives the rules that are about all services of a namespace or of the mesh.
func wideRules(s *policy.Set) map[author]bool {
	wide := make(map[author]bool)
	for i := range s.Rules {
		if k := s.Rules[i].Target.Kind; k == policy.TargetMesh || k == policy.TargetNamespace {
			wide[author{s.Rules[i].Origin.Object(), s.Rules[i].Origin.Entry}] = true
		}
	}
	return wide
}

// checkPolicies reports documents that were refused, and what the others name and the cluster does not have.
func (c *Compiler) checkPolicies() []Problem {
	var found []Problem
	policies := c.in.Policies
	for _, o := range policies.Refused {
		code := reason.PolicyRefused
		if policies.LastGood(o) {
			code = reason.PolicyLastGood
		}
		found = append(found, Problem{Reason: reason.New(code, o.String())})
	}
	for i := range policies.Rules {
		found = append(found, c.checkTarget(&policies.Rules[i])...)
	}
	if c.options.OneNode || len(policies.Rules) == 0 {
		return found
	}
	var zones []topology.Zone
	for zone := range c.zones {
		zones = append(zones, zone)
	}
	for _, u := range c.units {
		zones = append(zones, u.zones...)
	}
	for _, n := range policies.UnknownZones(zones) {
		found = append(found, Problem{Reason: reason.New(reason.PolicyNamesNoZone, n.Author(), n.Field, n.Message)})
	}
	labels := knownLabels(policies)
	for i := range policies.Rules {
		rule := &policies.Rules[i]
		for _, key := range labelsOf(rule) {
			if !labels[key] {
				found = append(found, problemOf(rule, reason.New(reason.PolicyNamesNoLabel, rule.Origin.String(), key)))
			}
		}
	}
	return found
}

// checkTarget reports a policy for a service that does not exist, as far as all services are known.
func (c *Compiler) checkTarget(r *policy.Rule) []Problem {
	t := &r.Target
	if c.options.Partial || !isService(t) {
		return nil
	}
	isThere, hasPort := false, t.Section == ""
	look := func(svc *topology.Service) {
		isThere = true
		hasPort = hasPort || slices.ContainsFunc(svc.Ports, func(p topology.Port) bool {
			return p.Name == t.Section || number(p.Port) == t.Section
		})
	}
	names := []topology.ServiceName{{Namespace: t.Namespace, Name: t.Name}}
	if t.Kind == policy.TargetServiceImport {
		names = append(names, topology.ImportedName(names[0]))
	}
	for _, name := range names {
		if t.Namespace != "" {
			if svc := c.in.Snapshot.Service(name); svc != nil {
				look(svc)
			}
			continue
		}
		for _, svc := range c.in.Snapshot.Services {
			if svc.Name == name.Name {
				look(svc)
			}
		}
	}
	switch {
	case !isThere:
		return []Problem{problemOf(r, reason.New(reason.PolicyForNoService, r.Origin.String(), TargetName(t)))}
	case !hasPort:
		return []Problem{problemOf(r, reason.New(reason.PolicyForNoPort, r.Origin.String(), t.Section))}
	default:
		return nil
	}
}

func isService(t *policy.Target) bool {
	return t.Kind == policy.TargetService || t.Kind == policy.TargetServiceImport
}

// problemOf is a problem of the one service that a rule is about; of none, if it is about more, or about a route.
func problemOf(r *policy.Rule, why reason.Reason) Problem {
	if !isService(&r.Target) || r.Target.Namespace == "" {
		return Problem{Reason: why}
	}
	return Problem{r.Target.Namespace + "/" + r.Target.Name, why}
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

// knownLabels is the set of labels that some node or pod has.
func knownLabels(s *policy.Set) map[string]bool {
	known := map[string]bool{labelZone: true, labelHostname: true}
	add := func(labels policy.Labels) {
		for key := range labels {
			known[key] = true
		}
	}
	for _, labels := range s.Nodes {
		add(labels)
	}
	for i := range s.Pods {
		add(s.Pods[i].Labels)
	}
	return known
}

// TargetName names a policy's target for people: kind, namespace/name, and the port or rule of a route.
func TargetName(t *policy.Target) string {
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
