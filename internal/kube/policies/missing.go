package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// MissingRoute notes that the route which a rule is about, or the named rule of it, is not among routes; false: it is, or
// the rule is about no route.
func MissingRoute(routes []policy.Route, r *policy.Rule) (reason.Finding, bool) {
	t, n := &r.Target, r.Origin.Finding(fmt.Sprintf("targetRefs[%d]", r.Origin.Entry), reason.NotFound, "")
	if t.Kind != policy.TargetHTTPRoute && t.Kind != policy.TargetGRPCRoute {
		return n, false
	}
	var names, sections []string
	found := false
	for i := range routes {
		route := &routes[i]
		if route.Kind != t.Kind {
			continue
		}
		names = append(names, route.Namespace+"/"+route.Name)
		if route.Namespace != t.Namespace || route.Name != t.Name {
			continue
		}
		found = true
		for j := range route.Rules {
			if route.Rules[j].Name != "" {
				sections = append(sections, route.Rules[j].Name)
			}
		}
	}
	switch {
	case !found:
		n.Message = fmt.Sprintf("there is no %s %s/%s", t.Kind, t.Namespace, t.Name)
		n.Mend = near(t.Namespace+"/"+t.Name, names)
		return n, true
	case t.Section != "" && !slices.Contains(sections, t.Section):
		n.Field += ".sectionName"
		n.Message = fmt.Sprintf("%s %s/%s has no rule %q", t.Kind, t.Namespace, t.Name, t.Section)
		n.Mend = near(t.Section, sections)
		return n, true
	default:
		return n, false
	}
}

// near names what may have been meant.
func near(name string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "did you mean " + strings.Join(topology.Near(name, names), ", ") + "?"
}
