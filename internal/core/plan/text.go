package plan

import (
	"fmt"
	"strings"

	"github.com/weir-lb/weir/internal/core/topology"
)

// String gives the plan as text, one line for the whole, each zone, each endpoint and each reason, in that order. It is
// for people, goldens and comparisons; equal plans give equal text.
func (p *Plan) String() string {
	var b strings.Builder
	state := "no hints"
	if p.Hinted {
		state = "hinted"
	}
	fmt.Fprintf(&b, "%s %s %s: %s, %s in zone, cost %.3f\n", p.Service, p.Family, p.Mode, state, percent(float64(p.InZone)),
		p.Cost)
	for i := range p.Zones {
		z := &p.Zones[i]
		fmt.Fprintf(&b, "  %s: demand %s, %d ready, %d allotted, overload %s, %s in zone, cost %.3f\n", z.Zone,
			percent(float64(z.Demand)), z.Ready, z.Allotted, percent(z.Overload), percent(float64(z.InZone)), z.Cost)
	}
	for i := range p.Endpoints {
		e := &p.Endpoints[i]
		fmt.Fprintf(&b, "  %s in %s%s\n", nameOf(e), orUnknown(e.Zone), hintText(e))
	}
	for _, r := range p.Reasons {
		fmt.Fprintf(&b, "  because %s\n", r)
	}
	return b.String()
}

func percent(ratio float64) string { return fmt.Sprintf("%.1f %%", ratio*100) }

func orUnknown(z topology.Zone) topology.Zone {
	if z == "" {
		return "an unknown zone"
	}
	return z
}

func hintText(e *topology.Endpoint) string {
	var b strings.Builder
	if !e.IsReady() {
		b.WriteString(", not ready")
	}
	for _, z := range e.Hints.Zones {
		fmt.Fprintf(&b, " → %s", z)
	}
	for _, n := range e.Hints.Nodes {
		fmt.Fprintf(&b, " → node %s", n)
	}
	return b.String()
}
