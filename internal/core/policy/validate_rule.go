package policy

import (
	"strconv"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Validate finds what is wrong with the rule: its target, its clients and what it says.
func (r *Rule) Validate() []reason.Finding {
	v := &validator{dialect: r.Origin.Dialect}
	v.target(r)
	v.clients(r)
	return append(v.findings, Validate(&r.Conf, Context{Target: r.Target, Dialect: r.Origin.Dialect})...)
}

func (v *validator) target(r *Rule) {
	t, path := &r.Target, pathAt("targetRefs", r.Origin.Entry)
	named := false
	switch t.Kind {
	case TargetMesh, TargetNamespace:
		if t.Section != "" {
			v.refuse(path+".sectionName", "has no meaning for kind %s", t.Kind)
		}
	case TargetService, TargetServiceImport, TargetHTTPRoute, TargetGRPCRoute:
		named = true
		v.name(path+".name", t.Name, 253)
	case "":
		v.refuse(path+".kind", "must not be empty")
	default:
		v.refuse(path+".kind", "%.80q is not known", t.Kind)
	}
	if v.dialect.IsMesh() {
		return
	}
	own := r.Origin.Namespace
	switch {
	case t.Kind == TargetMesh && own != RootNamespace:
		v.refuse(path, "is the mesh: only policies in namespace %s may be about it", RootNamespace)
	case t.Kind == TargetNamespace && (t.Namespace != own || t.Name != "" && t.Name != own):
		v.refuse(path+".name", "is another namespace: a policy may be about its own, %s", strconv.Quote(own))
	case named && t.Namespace == "":
		v.refuse(path+".namespace", "must not be empty")
	case t.isRoute() && t.Namespace != own:
		v.refuse(path+".namespace", "is another namespace: a policy may be about routes of its own")
	case named && t.Namespace != own && own != RootNamespace && r.Clients.Namespace != own:
		v.refuse("clients", "must be those of namespace %s: a policy about another namespace's service is for its own clients",
			strconv.Quote(own))
	}
}

func (v *validator) clients(r *Rule) {
	v.zones("clients.zones", zoneNames(r.Clients.Zones))
	v.selector("clients.podSelector", r.Clients.Pods)
	v.selector("clients.namespaceSelector", r.Clients.Namespaces)
	if s := r.Clients.Service; s != nil {
		v.name("clients.service", s.Name, 253)
	}
}

func zoneNames(zones []topology.Zone) []string {
	names := make([]string, len(zones))
	for i := range zones {
		names[i] = string(zones[i])
	}
	return names
}

func (v *validator) selector(path string, s Selector) {
	for i := range v.entries(path, len(s), MaxRequirements) {
		v.requirement(path, &s[i])
	}
}

// requirement checks one condition. The path is the selector's: whoever wrote matchLabels knows no numbers of expressions.
func (v *validator) requirement(path string, q *Requirement) {
	v.key(path, q.Key)
	n := v.entries(path, len(q.Values), MaxValues)
	switch q.Operator {
	case In, NotIn:
		if n == 0 {
			v.refuse(path, "%.80q has no values: want one or more for %s", q.Key, q.Operator)
		}
	case Exists, DoesNotExist:
		if n > 0 {
			v.refuse(path, "%.80q has values: want none for %s", q.Key, q.Operator)
		}
	default:
		v.refuse(path, "%.80q has the operator %.80q: want In, NotIn, Exists or DoesNotExist", q.Key, q.Operator)
	}
	for _, value := range q.Values[:n] {
		if !v.dialect.IsMesh() && !isLabelValue(value) {
			v.refuse(path, "%.80q is no value of a label", value)
		}
	}
}
