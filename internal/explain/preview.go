package explain

import (
	"slices"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Preview is what another mode would change for a service in one family. Its JSON names are promised
// (docs/json.md).
type Preview struct {
	Service string        `json:"service"` // namespace/name
	Family  string        `json:"family"`
	From    topology.Mode `json:"from"` // the mode now
	To      topology.Mode `json:"to"`
	Now     Summary       `json:"now"`  // what the hints that are there come to
	Then    Summary       `json:"then"` // what the plan of To comes to
	Ready   int           `json:"ready"`
	Zones   []ZoneChange  `json:"zones"` // by name
	// Endpoints are the ready ones whose hints change; the hints of others have no effect.
	Endpoints []Change `json:"endpoints"`
	Slices    int      `json:"slices"` // EndpointSlices of the family; 0: the service has none, only pods
	Writes    int      `json:"writes"` // of them: that are patched
	// Planned is the plan of To, to compare it with EndpointSlices.
	Planned plan.Plan `json:"-"`
}

// ZoneChange is what a zone's clients have now and would have.
type ZoneChange struct {
	Zone topology.Zone `json:"zone"`
	Now  ZoneSummary   `json:"now"`
	Then ZoneSummary   `json:"then"`
}

// ZoneSummary is what hints come to for one zone.
type ZoneSummary struct {
	Endpoints int     `json:"endpoints"` // that the zone's clients use
	InZone    float64 `json:"inZone"`    // of the requests that start here
	Overload  float64 `json:"overload"`  // of the most loaded endpoint that lives here; -1: idle
}

// Change is an endpoint whose hints change.
type Change struct {
	Address string        `json:"address"`
	Pod     string        `json:"pod,omitempty"`
	Zone    topology.Zone `json:"zone"`
	Node    string        `json:"node,omitempty"`
	Now     Hints         `json:"now"`
	Then    Hints         `json:"then"`
}

// Hints are the hints of an endpoint.
type Hints struct {
	ForZones []topology.Zone `json:"forZones,omitempty"`
	ForNodes []string        `json:"forNodes,omitempty"`
}

// Total sums previews up.
type Total struct {
	Services  int `json:"services"`
	Changed   int `json:"changed"`   // services that have an endpoint whose hints change
	Endpoints int `json:"endpoints"` // whose hints change
	Writes    int `json:"writes"`
}

// Previews compares what the hints of a service come to with what another mode would plan, once for each family as
// Explain does. Slices and Writes are for a caller that knows the EndpointSlices.
func Previews(s *topology.Snapshot, survey *plan.Survey, svc *topology.Service, to topology.Mode) []Preview {
	var all []Preview
	for _, family := range families(svc) {
		in := plan.InputOf(s, *survey, svc, family)
		now := plan.Observe(in)
		in.Service = withMode(svc, to)
		all = append(all, compare(&now, plan.Compute(in)))
	}
	return all
}

// compare tells two plans for the same nodes and endpoints apart: their rows are the same.
func compare(now *plan.Plan, then plan.Plan) Preview {
	p := Preview{
		Service: now.Service.String(), Family: now.Family.String(), From: now.Mode, To: then.Mode,
		Now: Summarise(now), Then: Summarise(&then), Planned: then,
		Zones: make([]ZoneChange, 0, len(now.Zones)), Endpoints: []Change{},
	}
	for i := range now.Zones {
		p.Zones = append(p.Zones, ZoneChange{now.Zones[i].Zone, zoneSummary(&now.Zones[i]), zoneSummary(&then.Zones[i])})
	}
	for i := range now.Endpoints {
		e, hints := &now.Endpoints[i], then.Endpoints[i].Hints
		if !e.IsReady() {
			continue
		}
		p.Ready++
		if !e.Hints.Equal(hints) {
			p.Endpoints = append(p.Endpoints, Change{
				Address: e.Addr.String(), Pod: e.Pod, Zone: e.Zone, Node: e.Node,
				Now: Hints{e.Hints.Zones, e.Hints.Nodes}, Then: Hints{hints.Zones, hints.Nodes},
			})
		}
	}
	return p
}

func zoneSummary(z *plan.ZonePlan) ZoneSummary {
	f := ZoneSummary{InZone: float64(z.InZone), Overload: z.Overload}
	for _, share := range z.Endpoints {
		if share > 0 {
			f.Endpoints++
		}
	}
	return f
}

// Sum adds previews up; a service of two families counts once.
func Sum(all []Preview) Total {
	var t Total
	var seen, changed []string
	for i := range all {
		p := &all[i]
		seen = append(seen, p.Service)
		if len(p.Endpoints) > 0 {
			changed = append(changed, p.Service)
		}
		t.Endpoints += len(p.Endpoints)
		t.Writes += p.Writes
	}
	t.Services, t.Changed = distinct(seen), distinct(changed)
	return t
}

func distinct(names []string) int {
	slices.Sort(names)
	return len(slices.Compact(names))
}
