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
	reasons := []reason.Reason{reason.New(reason.EndpointsServeOwnZone)}
	if lost := p.withoutZone(); len(lost) > 0 {
		reasons = append(reasons, reason.New(reason.EndpointsWithoutZone, lost...))
	}
	return allotment{hints: hints, reasons: reasons}
}

// preferSameNode hints each ready endpoint to its own node, and to its zone for clients on nodes that have none.
//
// Source: KEP-4444, PreferSameNode.
func preferSameNode(p *prepared) allotment {
	a := preferSameZone(p)
	a.reasons[0] = reason.New(reason.EndpointsServeOwnNode)
	var lost []string
	for _, i := range p.ready {
		e := &p.endpoints[i]
		if e.Node == "" {
			lost = append(lost, nameOf(e))
			continue
		}
		a.hints[i].Nodes = []string{e.Node}
	}
	if len(lost) > 0 {
		a.reasons = append(a.reasons, reason.New(reason.EndpointsWithoutNode, lost...))
	}
	return a
}
