package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/policies"
)

// unknownNames reports the zones, services and routes that policies name and that are not among the objects, where there are
// any of their kind. Such a policy counts all the same: what it names may come.
func (r *reader) unknownNames(s *topology.Snapshot, set *policy.Set) {
	n := noter{reader: r, seen: make(map[reason.Finding]bool)}
	for _, note := range set.UnknownZones(s.Zones()) {
		n.note(note)
	}
	for i := range set.Rules {
		if note, ok := policies.MissingRoute(set.Routes, &set.Rules[i]); ok && len(set.Routes) > 0 {
			n.note(note)
		}
	}
	if len(s.Services) == 0 {
		return
	}
	for i := range set.Rules {
		rule := &set.Rules[i]
		k, name := rule.Target.Kind, topology.ServiceName{Namespace: rule.Target.Namespace, Name: rule.Target.Name}
		isImport := k == policy.TargetServiceImport && s.Service(topology.ImportedName(name)) != nil
		if !isImport && (k == policy.TargetService || k == policy.TargetServiceImport) {
			n.service(s, rule, fmt.Sprintf("targetRefs[%d]", rule.Origin.Entry), name)
		}
		if name := rule.Clients.Service; name != nil {
			n.service(s, rule, "clients.service", *name)
		}
	}
}

// noter reports what is to be noted about rules, once where several rules share it.
type noter struct {
	*reader
	seen map[reason.Finding]bool
}

// service reports a service that is not there; one without a namespace is in any.
func (n *noter) service(s *topology.Snapshot, rule *policy.Rule, path string, name topology.ServiceName) {
	names := make([]string, 0, len(s.Services))
	for _, svc := range s.Services {
		names = append(names, svc.String())
	}
	there := slices.ContainsFunc(s.Services, func(svc *topology.Service) bool {
		return svc.Name == name.Name && (name.Namespace == "" || name.Namespace == svc.Namespace)
	})
	if there {
		return
	}
	wanted := name.String()
	if name.Namespace == "" {
		wanted = name.Name
	}
	f := rule.Origin.Finding(path, reason.NotFound, "there is no service "+wanted)
	near := topology.Near(name.String(), names)[0]
	if namespace, service, _ := strings.Cut(near, "/"); namespace == name.Namespace || service == name.Name {
		f.Mend = "did you mean " + near + "?"
	}
	n.note(f)
}

// note tells where in its document a finding is, whose field is in the model's spelling.
func (n *noter) note(f reason.Finding) {
	if d, ok := n.meshes[f.Object]; ok {
		f.Field = d.Path(f.Entry, f.Field)
	} else {
		f.Field = "spec." + f.Field
	}
	f.Position, f.Entry = reason.Position{}, 0
	if !n.seen[f] {
		n.seen[f] = true
		n.report(f)
	}
}
