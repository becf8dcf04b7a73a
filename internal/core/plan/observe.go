package plan

import "github.com/weir-lb/weir/internal/core/topology"

// Observe tells what the hints that a family's endpoints carry come to, by whichever writer. It decides nothing: the mode
// of the service plays no part.
//
// Shape: as Compute's; but for Endpoints, which keep the hints they have, and for Hinted, which tells whether consumers
// follow hints. The reasons say why they do not, and what Compute would warn of.
func Observe(in Input) Plan {
	p := prepare(in)
	own := make([]topology.Hints, len(p.endpoints))
	for i := range own {
		own[i] = p.endpoints[i].Hints
	}
	t := tabulate(hintedEndpoints{endpoints: p.endpoints}, p.ready)
	o := evaluate(p, own)
	seen := Plan{
		Service: p.Service.ServiceName, Family: p.Family, Mode: p.Service.Mode,
		Hinted:    len(p.ready) > 0 && (t.zoned || t.noded),
		Endpoints: p.endpoints, Zones: o.zones, InZone: o.inZone, Cost: o.cost,
	}
	switch {
	case len(p.ready) == 0:
		seen.Reasons = append(seen.Reasons, p.nothingReady())
	case !seen.Hinted:
		seen.Reasons = append(seen.Reasons, t.explain(t.whyAll(Client{}), Client{}))
	}
	seen.Reasons = append(seen.Reasons, p.warnings(o)...)
	return seen
}
