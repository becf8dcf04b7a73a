package plans

import (
	"net/netip"
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/feed"
)

// Decision is what was decided for one service. It is immutable.
type Decision struct {
	Record *feed.Record
	// Plans has one for each family that the service has endpoints or cluster IPs in, IPv4 first; none for a service that
	// is not managed.
	Plans []plan.Plan
	// Changed is when the change that led to this decision was seen.
	Changed time.Time

	maxSkew float64 // the cap by policies that the plans keep; 0: none
}

// Plan finds the plan of a family; nil when there is none.
func (d *Decision) Plan(family topology.Family) *plan.Plan {
	for i := range d.Plans {
		if d.Plans[i].Family == family {
			return &d.Plans[i]
		}
	}
	return nil
}

// Hints gives the hints that an endpoint of the service should carry: those of the plan; for one that the plan does not
// know, or knew as unready, those of its own zone, and in mode PreferSameNode of its node, until the next plan; none
// where the plan has no hints, and for an endpoint that is not ready.
func (d *Decision) Hints(e *topology.Endpoint) topology.Hints {
	p := d.Plan(e.Family())
	if p == nil || !p.Hinted || !e.IsReady() {
		return topology.Hints{}
	}
	if planned := find(p.Endpoints, e); planned != nil && planned.IsReady() {
		return planned.Hints
	}
	var own topology.Hints
	if e.Zone != "" {
		own.Zones = []topology.Zone{e.Zone}
	}
	if p.Mode == topology.ModePreferSameNode && e.Node != "" {
		own.Nodes = []string{e.Node}
	}
	return own
}

// find gives the planned endpoint with the address of e and one of its ports. An address that occurs once is enough.
func find(planned []topology.Endpoint, e *topology.Endpoint) *topology.Endpoint {
	first, _ := slices.BinarySearchFunc(planned, e.Addr, func(p topology.Endpoint, a netip.Addr) int {
		return p.Addr.Compare(a)
	})
	last := first
	for last < len(planned) && planned[last].Addr == e.Addr {
		if slices.ContainsFunc(planned[last].Ports, func(p topology.EndpointPort) bool { return slices.Contains(e.Ports, p) }) {
			return &planned[last]
		}
		last++
	}
	if last == first+1 {
		return &planned[first]
	}
	return nil
}
