package explain

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Plan is one plan as it is shown. Its JSON names are promised (docs/json.md); ratios are fractions, costs are
// cost units.
type Plan struct {
	Service   string          `json:"service"` // namespace/name
	Family    string          `json:"family"`
	Mode      topology.Mode   `json:"mode"`
	Hinted    bool            `json:"hinted"`
	Ready     int             `json:"ready"`
	InZone    float64         `json:"inZone"`   // of all requests
	Overload  float64         `json:"overload"` // of the most loaded zone
	Cost      float64         `json:"cost"`     // of a mean request
	Zones     []Zone          `json:"zones"`    // by name
	Endpoints []Endpoint      `json:"endpoints"`
	Reasons   []reason.Reason `json:"reasons"`
	Advice    []reason.Reason `json:"advice,omitempty"`
	Traffic   *Traffic        `json:"traffic,omitempty"`
}

// Zone is a zone, as the home of clients and as the home of endpoints.
type Zone struct {
	Zone      topology.Zone `json:"zone"`
	CPU       float64       `json:"cpu"` // cores of nodes that count; 0: not known
	Nodes     int           `json:"nodes"`
	Endpoints int           `json:"endpoints"` // that live here, ready or not
	Ready     int           `json:"ready"`
	Hinted    int           `json:"hinted"`   // ready endpoints that this zone is to use
	Demand    float64       `json:"demand"`   // of all requests: what starts here
	Load      float64       `json:"load"`     // of all requests: what is answered here
	Overload  float64       `json:"overload"` // of the most loaded endpoint here; -1: idle
	InZone    float64       `json:"inZone"`   // of the requests that start here
	Cost      float64       `json:"cost"`     // of a mean request that starts here
	ServedBy  []Part        `json:"servedBy"` // where this zone's requests are answered, by zone
}

// Part is the share of a zone's requests that another zone answers.
type Part struct {
	Zone  topology.Zone `json:"zone"` // empty: endpoints without a zone
	Share float64       `json:"share"`
}

// Endpoint is an endpoint with what the plan expects of it.
type Endpoint struct {
	Address  string          `json:"address"`
	Pod      string          `json:"pod,omitempty"`
	Zone     topology.Zone   `json:"zone"`
	Node     string          `json:"node,omitempty"`
	Cluster  string          `json:"cluster,omitempty"`
	Ready    bool            `json:"ready"`
	ForZones []topology.Zone `json:"forZones,omitempty"`
	ForNodes []string        `json:"forNodes,omitempty"`
	Load     float64         `json:"load"` // of all requests
}

// View shows a plan. The survey is the one that it was made from. Lists without an element are empty in JSON, not null.
func View(p *plan.Plan, survey *plan.Survey) Plan {
	v := Plan{
		Service: p.Service.String(),
		Family:  p.Family.String(),
		Mode:    p.Mode,
		Hinted:  p.Hinted,
		InZone:  float64(p.InZone),
		Cost:    float64(p.Cost),
		Reasons: append([]reason.Reason{}, p.Reasons...),

		Zones:     make([]Zone, 0, len(p.Zones)),
		Endpoints: make([]Endpoint, 0, len(p.Endpoints)),
	}
	load := make([]float64, len(p.Endpoints))
	for _, z := range p.Zones {
		v.Overload = max(v.Overload, z.Overload)
		for i, share := range z.Endpoints {
			load[i] += float64(z.Demand * share)
		}
	}
	for i := range p.Endpoints {
		e := &p.Endpoints[i]
		if e.IsReady() {
			v.Ready++
		}
		v.Endpoints = append(v.Endpoints, Endpoint{
			Address: e.Addr.String(), Pod: e.Pod, Zone: e.Zone, Node: e.Node, Cluster: e.Cluster,
			Ready: e.IsReady(), ForZones: e.Hints.Zones, ForNodes: e.Hints.Nodes, Load: load[i],
		})
	}
	for i := range p.Zones {
		v.Zones = append(v.Zones, viewZone(p, i, load))
		for _, c := range survey.Zones {
			if c.Zone == p.Zones[i].Zone {
				v.Zones[i].CPU, v.Zones[i].Nodes = float64(c.CPU)/milli, c.Nodes
			}
		}
	}
	return v
}

const milli = 1000 // topology.MilliCPU in a core

// viewZone shows one zone of a plan. load has the part of all requests of each endpoint.
func viewZone(p *plan.Plan, row int, load []float64) Zone {
	z := &p.Zones[row]
	v := Zone{
		Zone: z.Zone, Ready: z.Ready, Hinted: z.Allotted, Demand: float64(z.Demand),
		Overload: z.Overload, InZone: float64(z.InZone), Cost: float64(z.Cost), ServedBy: []Part{},
	}
	servedBy := make(map[topology.Zone]float64)
	for i, share := range z.Endpoints {
		e := &p.Endpoints[i]
		servedBy[e.Zone] += float64(share)
		if e.Zone == z.Zone {
			v.Endpoints++
			v.Load += load[i]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(servedBy)) {
		if servedBy[name] > 0 {
			v.ServedBy = append(v.ServedBy, Part{Zone: name, Share: servedBy[name]})
		}
	}
	return v
}

// why gives the plan's reasons as one text.
func (p *Plan) why() string {
	texts := make([]string, 0, len(p.Reasons))
	for _, r := range p.Reasons {
		texts = append(texts, r.String())
	}
	return strings.Join(texts, "; ")
}
