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
	withEndpoints, nodes := 0, 1 // without hints by node the zone is as good as one node
	if t.noded {
		groups := p.nodesOf(z)
		withEndpoints = len(groups)
		nodes = max(withEndpoints, p.nodesWithClients(zone), 1)
		for _, g := range groups {
			list, _ := t.cluster(Client{Node: g.node, Zone: zone})
			spread(row, list, 1/Share(nodes))
		}
	}
	if rest := nodes - withEndpoints; rest > 0 {
		list, _ := t.cluster(Client{Zone: zone})
		spread(row, list, Share(rest)/Share(nodes))
	}
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
	load := make([]Share, len(p.endpoints)) // of all requests
	for z := range o.zones {
		row := &o.zones[z]
		costs := p.costsFrom(row.Zone)
		row.Allotted = len(t.ready)
		if !t.bare {
			row.Allotted = len(t.forZone(row.Zone))
		}
		for i, share := range row.Endpoints {
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
	p.weigh(t, load, o)
}

// weigh compares the load of each usable endpoint with the fair part of everything, and keeps the highest of each zone.
// A zone where none lives has no overload.
func (p *prepared) weigh(t *table, load []Share, o *outcome) {
	usable := t.ready
	if len(usable) == 0 {
		usable = t.leaving
	} else if p.Service.Mode == topology.ModeBalanced {
		usable = p.fair(usable)
	}
	lives := make([]bool, len(o.zones))
	for _, i := range usable {
		z := p.home[i]
		if z < 0 {
			continue
		}
		overload := float64(load[i])*float64(len(usable)) - 1
		if row := &o.zones[z]; !lives[z] || overload > row.Overload {
			row.Overload = overload
		}
		lives[z] = true
	}
	for z := range o.zones {
		o.overload = max(o.overload, o.zones[z].Overload)
	}
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
