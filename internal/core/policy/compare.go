package policy

import (
	"cmp"
	"strings"
	"time"
)

// Compare orders rules from the weakest to the strongest; what a stronger rule says replaces what a weaker one does.
//
// Asked in this order: whose clients are picked more closely (nobody's < by namespace or zone < by pod or service); whose
// role is nearer to the client (system < producer < consumer); whose target is smaller (mesh < Namespace < Service < its
// port < route < its rule); which document is older; which comes first in the alphabet; which entry of one document is
// later. Documents without a time of creation count as younger than those with one, and as equally old among themselves.
func Compare(a, b *Rule) int {
	if c := precedenceOf(a).compare(precedenceOf(b)); c != 0 {
		return c
	}
	return cmp.Or(
		-compareAge(a.Origin.Created, b.Origin.Created),
		strings.Compare(b.Origin.Namespace, a.Origin.Namespace),
		strings.Compare(b.Origin.Name, a.Origin.Name),
		strings.Compare(string(b.Origin.Dialect), string(a.Origin.Dialect)),
		cmp.Compare(a.Origin.Entry, b.Origin.Entry),
		strings.Compare(b.Origin.Source.String(), a.Origin.Source.String()),
	)
}

// compareAge orders times of creation from the oldest to the youngest; a time that is not known is the youngest.
func compareAge(a, b time.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b)
}

// precedence is what decides between rules before age and name do; each number is higher for the stronger one.
type precedence struct{ clients, role, target uint8 }

func (p precedence) compare(o precedence) int {
	return cmp.Or(cmp.Compare(p.clients, o.clients), cmp.Compare(p.role, o.role), cmp.Compare(p.target, o.target))
}

func precedenceOf(r *Rule) precedence {
	return precedence{rankOfClients(&r.Clients), rankOfRole(r), rankOfTarget(r.Target)}
}

func rankOfClients(c *Clients) uint8 {
	switch {
	case len(c.Pods) > 0 || c.Service != nil:
		return 2
	case len(c.Namespaces) > 0 || len(c.Zones) > 0:
		return 1
	default:
		return 0
	}
}

func rankOfRole(r *Rule) uint8 {
	switch {
	case r.Clients.Namespace != "":
		return 2 // a consumer's
	case r.Origin.Namespace != "" && r.Origin.Namespace != RootNamespace:
		return 1 // a producer's
	default:
		return 0 // the mesh operator's
	}
}

func rankOfTarget(t Target) uint8 {
	var section uint8
	if t.Section != "" {
		section = 1
	}
	switch t.Kind {
	case TargetNamespace:
		return 1
	case TargetService, TargetServiceImport:
		return 2 + section
	case TargetHTTPRoute, TargetGRPCRoute:
		return 4 + section
	case TargetMesh:
		return 0
	default:
		return 0
	}
}
