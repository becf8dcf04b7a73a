package plan

import (
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/topology"
)

// outcome is what a set of hints comes to.
type outcome struct {
	zones    []ZonePlan
	inZone   Share
	cost     topology.Cost
	overload float64 // the highest of zones
}

// evaluate tells what would really happen: clients follow the decision table of Choose with these hints (one for each of
// p.endpoints; nil: the endpoints carry none) and split evenly over what it gives them. The clients of a zone are taken
// to be spread evenly over its nodes.
//
// Ports are left aside: it holds for a port that all endpoints answer.
func evaluate(p *prepared, hints []topology.Hints) outcome {
	if hints == nil {
		hints = make([]topology.Hints, len(p.endpoints))
	}
	considered := make([]int, len(p.endpoints))
	for i := range considered {
		considered[i] = i
	}
	t := tabulate(hintedEndpoints{endpoints: p.endpoints, instead: hints}, considered)
	t.indexHints()
	n := len(p.endpoints)
	shares := make([]Share, len(p.zones)*n) // one piece of memory for all rows
	o := outcome{zones: make([]ZonePlan, len(p.zones))}
	for z := range p.zones {
		row := shares[z*n : (z+1)*n : (z+1)*n]
		o.zones[z] = ZonePlan{Zone: p.zones[z], Demand: p.demand[z], Ready: p.readyIn[z], Endpoints: row}
		p.split(t, z, row)
	}
	p.sumUp(t, &o)
	return o
}

// split fills a zone's row.
func (p *prepared) split(t *table, z int, row []Share) {
	zone := p.zones[z]
	if p.Service.InternalPolicy == topology.PolicyLocal {
		p.splitLocal(t, z, row)
		return
	}
	rest := Share(1)
	if t.noded {
		groups := p.nodesOf(z)
		each := 1 / Share(max(len(groups), p.nodesWithClients(zone)))
		for _, g := range groups {
			list, _ := t.cluster(Client{Node: g.node, Zone: zone})
			spread(row, list, each)
			rest -= each
		}
	}
	list, _ := t.cluster(Client{Zone: zone})
	spread(row, list, max(rest, 0))
}

// splitLocal is split under internal policy Local: what starts on a node without endpoints is dropped, so that the row
// speaks for the other nodes only.
func (p *prepared) splitLocal(t *table, z int, row []Share) {
	var lists [][]int
	for _, g := range p.nodesOf(z) {
		// Asking about the node's own endpoints gives what asking about all would.
		local := tabulate(t.hintedEndpoints, g.endpoints)
		if list, _ := local.local(Client{Node: g.node, Zone: p.zones[z]}); len(list) > 0 {
			lists = append(lists, list)
		}
	}
	for _, list := range lists {
		spread(row, list, 1/Share(len(lists)))
	}
}

func spread(row []Share, list []int, amount Share) {
	for _, i := range list {
		row[i] += amount / Share(len(list))
	}
}

// nodeGroup is a node with the endpoints that live on it.
type nodeGroup struct {
	node      string
	endpoints []int
}

// nodesOf lists the nodes of a zone that have endpoints, sorted by name.
func (p *prepared) nodesOf(z int) []nodeGroup {
	var here []int
	for i := range p.endpoints {
		if e := &p.endpoints[i]; p.home[i] == z && e.Node != "" && e.Cluster == "" {
			here = append(here, i)
		}
	}
	slices.SortStableFunc(here, func(i, j int) int { return strings.Compare(p.endpoints[i].Node, p.endpoints[j].Node) })
	var groups []nodeGroup
	for start, n := 0, 0; start < len(here); start = n {
		node := p.endpoints[here[start]].Node
		for n = start + 1; n < len(here) && p.endpoints[here[n]].Node == node; n++ {
			continue
		}
		groups = append(groups, nodeGroup{node: node, endpoints: here[start:n]})
	}
	return groups
}

// nodesWithClients counts the nodes of a zone.
func (p *prepared) nodesWithClients(zone topology.Zone) int {
	for _, z := range p.Survey.Zones {
		if z.Zone == zone {
			return z.Nodes
		}
	}
	return 0
}

// sumUp fills in what follows from the rows.
func (p *prepared) sumUp(t *table, o *outcome) {
	usable := t.ready
	if len(usable) == 0 {
		usable = t.leaving
	}
	load := make([]Share, len(p.endpoints)) // of all requests
	for z := range o.zones {
		row := &o.zones[z]
		costs := p.costsFrom(row.Zone)
		row.Allotted = len(t.ready)
		if !t.bare {
			row.Allotted = len(t.forZone(row.Zone))
		}
		for _, i := range usable {
			share := row.Endpoints[i]
			if share == 0 {
				continue
			}
			load[i] += row.Demand * share
			if p.home[i] == z {
				row.InZone += share
			}
			row.Cost += topology.Cost(share) * costs(i)
		}
		o.inZone += row.Demand * row.InZone
		o.cost += topology.Cost(row.Demand) * row.Cost
	}
	for z := range o.zones {
		o.zones[z].Overload = p.overload(z, usable, load)
		o.overload = max(o.overload, o.zones[z].Overload)
	}
}

// overload gives that of the most loaded usable endpoint in zone z: its load against the fair part of everything. Where
// none lives it is 0.
func (p *prepared) overload(z int, usable []int, load []Share) float64 {
	var most float64
	none := true
	for _, i := range usable {
		if p.home[i] == z {
			none = false
			most = max(most, float64(load[i]))
		}
	}
	if none {
		return 0
	}
	return most*float64(len(usable)) - 1
}

// costsFrom gives the costs of requests from a zone, asking the table once for each zone of this cluster.
func (p *prepared) costsFrom(from topology.Zone) func(endpoint int) topology.Cost {
	byZone := make([]topology.Cost, len(p.zones))
	for z := range byZone {
		byZone[z] = p.Costs.Between(p.zonePlace(from), p.zonePlace(p.zones[z]))
	}
	return func(i int) topology.Cost {
		e := &p.endpoints[i]
		if z := p.home[i]; z >= 0 && e.Cluster == "" {
			return byZone[z]
		}
		return p.cost(from, e)
	}
}
