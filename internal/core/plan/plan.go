// Package plan decides, for one service and address family, which endpoints each zone should use, in what share, which
// hints say so, and why.
//
// It promises the same Plan for the same Input, whatever the order of the input, and few changes from the plan before.
// It refuses to know load: what happens between two changes of the cluster is package overflow's business.
package plan

import (
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Share is a fraction of one zone's requests, or of all requests, from 0 to 1.
type Share float64

// Input is what Compute decides from.
type Input struct {
	Service *topology.Service
	Family  topology.Family
	Survey  Survey         // the nodes, summed up once for all services
	Costs   topology.Costs // zero: the defaults
	// Demand is where the traffic comes from, as told or measured, in any order. Nil: by CPU share.
	Demand []topology.ZoneDemand
	Limits Limits // zero: the defaults of the KEP
	// MaxSkew is the most that an endpoint may be expected to get, in times of its fair part: it lowers the Limits. 0: no cap.
	MaxSkew float64
	// Previous is the plan before, to keep churn low. Nil: the hints that the endpoints carry take its place.
	Previous *Plan
}

// Limits bound the expected overload of an endpoint: the ratio by which it gets more than its fair part.
type Limits struct {
	Start float64 // hints start below this; 0: 0.20 (KEP-2433, "Overload")
	Stop  float64 // hints stay while at most this; 0: 0.30 (KEP-2433, "Overload")
}

// Plan is the decision.
type Plan struct {
	Service topology.ServiceName
	Family  topology.Family
	Mode    topology.Mode // the mode that was asked for
	Hinted  bool          // whether the endpoints carry hints
	// Endpoints are the service's endpoints of this family in the service's order, their Hints as the plan wants them.
	// An unready endpoint carries none.
	Endpoints []topology.Endpoint
	// Zones has a row for each zone that has demand or a ready endpoint, sorted by name.
	Zones   []ZonePlan
	InZone  Share         // of all requests: how much stays in its zone
	Cost    topology.Cost // mean cost of a request
	Reasons []reason.Reason
}

// ZonePlan is what the plan means for one zone, as consumer of endpoints and as their home.
type ZonePlan struct {
	Zone      topology.Zone
	Demand    Share         // of all requests
	Ready     int           // ready endpoints in the zone
	Allotted  int           // ready endpoints hinted to the zone; without hints: all ready endpoints
	Overload  float64       // expected, of the most loaded endpoint that lives here; 0.2 is 20 % above its fair part, -1 idle
	InZone    Share         // of this zone's requests: how much stays
	Cost      topology.Cost // mean cost of this zone's requests
	Endpoints []Share       // one for each of Plan.Endpoints: a fraction of this zone's requests; sums to 1, or all 0
}

// DemandByZone is the part of all requests that each zone makes; nil without a plan.
func (p *Plan) DemandByZone() map[topology.Zone]float64 {
	if p == nil {
		return nil
	}
	demand := make(map[topology.Zone]float64, len(p.Zones))
	for i := range p.Zones {
		demand[p.Zones[i].Zone] = float64(p.Zones[i].Demand)
	}
	return demand
}

// Survey sums up the nodes for planning; see SurveyNodes.
type Survey struct {
	// Zones holds each zone with at least one node that counts (ready, not control plane), sorted by name.
	Zones       []ZoneCapacity
	WithoutZone []string // ready non-control-plane nodes without a zone label, sorted
	WithoutCPU  []string // ready non-control-plane nodes that report no CPU, sorted
	Nodes       int      // nodes that count, those without zone or CPU included
	Regions     map[topology.Zone]string
	Lost        []topology.Zone // zones that have nodes which could count, none of them ready; sorted
}

// ZoneCapacity is what the nodes of a zone can do.
type ZoneCapacity struct {
	Zone  topology.Zone
	CPU   topology.MilliCPU
	Nodes int
}
