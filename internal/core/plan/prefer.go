package plan

import (
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// preferSameZone hints each ready endpoint to its own zone, wherever the others are.
//
// Source: KEP-4444, PreferClose, under the name that KEP-3015 gave it.
func preferSameZone(p *prepared) allotment {
	hints := make([]topology.Hints, len(p.endpoints))
	for _, i := range p.ready {
		if z := p.endpoints[i].Zone; z != "" {
			hints[i].Zones = []topology.Zone{z}
		}
	}
	return allotment{hints: hints, reasons: []reason.Reason{reason.New(reason.EndpointsServeOwnZone)}}
}

// preferSameNode hints each ready endpoint to its own node, and to its zone for clients on nodes that have none.
//
// Source: KEP-4444, PreferSameNode.
func preferSameNode(p *prepared) allotment {
	a := preferSameZone(p)
	for _, i := range p.ready {
		if e := &p.endpoints[i]; e.Node != "" {
			a.hints[i].Nodes = []string{e.Node}
		}
	}
	a.reasons = []reason.Reason{reason.New(reason.EndpointsServeOwnNode)}
	return a
}
