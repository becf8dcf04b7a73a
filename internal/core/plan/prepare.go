package plan

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// nowhere stands for a zone that an endpoint does not have.
const nowhere = -1

// prepared is an Input with everything looked up once that the modes need. Its Limits and Costs are filled in. A mode
// reads it and writes to none of it.
type prepared struct {
	Input

	// endpoints are copies of the family's endpoints, in the service's order; their hints are those before planning.
	endpoints []topology.Endpoint
	ready     []int            // the ready ones, as ascending indexes into endpoints
	home      []int            // for each endpoint its own zone, as an index into zones; nowhere: in none of them
	before    []topology.Hints // for each endpoint the hints of the plan before, or those it carries; zero: it is new
	hinted    bool             // whether the service was hinted before

	zones   []topology.Zone // each zone that has demand or a ready endpoint, sorted
	demand  []Share         // for each zone; sums to 1, or is all 0 when there is no zone
	guessed bool            // the demand is not given and no node tells it: it follows the ready endpoints
	readyIn []int           // for each zone the ready endpoints that live in it
}

// allotment is what a mode decides: the hints of each of prepared.endpoints (nil: no hints at all), and why. A mode
// leaves the hints of unready endpoints zero.
type allotment struct {
	hints   []topology.Hints
	reasons []reason.Reason
}

// prepare looks everything up. It is where the order of the input stops to matter.
func prepare(in Input) *prepared {
	p := &prepared{Input: in}
	p.Limits = in.Limits.orDefaults().within(in.MaxSkew)
	p.gather()
	p.recall()
	p.measure()
	return p
}

// The limits of KEP-2433, "Overload".
const (
	defaultStart = 0.20
	defaultStop  = 0.30
)

// orDefaults replaces what is not a positive number by the default, and keeps Stop from being below Start: hints that
// may start would have to go at once.
func (l Limits) orDefaults() Limits {
	if !(l.Start > 0) { // also when it is not a number
		l.Start = defaultStart
	}
	if !(l.Stop > 0) {
		l.Stop = defaultStop
	}
	l.Stop = max(l.Stop, l.Start)
	return l
}

// within lowers the limits to what a cap on the skew allows.
func (l Limits) within(maxSkew float64) Limits {
	if maxSkew < 1 {
		return l
	}
	return Limits{Start: min(l.Start, maxSkew-1), Stop: min(l.Stop, maxSkew-1)}
}

// gather copies the family's endpoints, sorted, and finds the ready ones.
func (p *prepared) gather() {
	all := p.Service.Endpoints
	p.endpoints = make([]topology.Endpoint, 0, len(all))
	for i := range all {
		if all[i].Family() == p.Family {
			p.endpoints = append(p.endpoints, all[i])
		}
	}
	if !sorted(p.endpoints) {
		slices.SortFunc(p.endpoints, compareWhole)
	}
	p.ready = make([]int, 0, len(p.endpoints))
	for i := range p.endpoints {
		if p.endpoints[i].IsReady() {
			p.ready = append(p.ready, i)
		}
	}
}

// sorted looks at the addresses first, which nearly always decide: an endpoint is too large to be passed around.
func sorted(endpoints []topology.Endpoint) bool {
	for i := 1; i < len(endpoints); i++ {
		a, b := &endpoints[i-1], &endpoints[i]
		if a.Addr.Compare(b.Addr) >= 0 && compareWhole(*a, *b) > 0 {
			return false
		}
	}
	return true
}

// compareWhole orders endpoints as a Service does, and then by everything that planning looks at, so that two owners of
// one address cannot make the plan depend on which was read first.
func compareWhole(a, b topology.Endpoint) int {
	if c := topology.CompareEndpoints(a, b); c != 0 {
		return c
	}
	return cmp.Or(
		cmp.Compare(a.Zone, b.Zone),
		strings.Compare(a.Node, b.Node),
		strings.Compare(a.Pod, b.Pod),
		cmp.Compare(a.Ready, b.Ready),
		cmp.Compare(a.Serving, b.Serving),
		cmp.Compare(a.Terminating, b.Terminating),
		slices.Compare(a.Hints.Zones, b.Hints.Zones),
		slices.Compare(a.Hints.Nodes, b.Hints.Nodes),
	)
}

// recall finds each endpoint's earlier hints. Both lists are in the service's order, so one pass over both does.
func (p *prepared) recall() {
	p.before = make([]topology.Hints, len(p.endpoints))
	if p.Previous == nil {
		for _, i := range p.ready {
			p.before[i] = p.endpoints[i].Hints
			p.hinted = p.hinted || !p.before[i].IsZero()
		}
		return
	}
	p.hinted = p.Previous.Hinted
	earlier := p.Previous.Endpoints
	for i, j := 0, 0; i < len(p.endpoints) && j < len(earlier); {
		c := p.endpoints[i].Addr.Compare(earlier[j].Addr)
		if c == 0 {
			c = topology.CompareEndpoints(p.endpoints[i], earlier[j])
		}
		switch {
		case c < 0:
			i++
		case c > 0:
			j++
		default:
			p.before[i] = earlier[j].Hints
			i, j = i+1, j+1
		}
	}
}

// measure finds the zones, where the demand comes from, and where the endpoints are.
func (p *prepared) measure() {
	told := p.told()
	rows := make(map[topology.Zone]int, len(told)+1)
	for _, d := range told {
		rows[d.Zone] = 0
	}
	for _, i := range p.ready {
		if z := p.endpoints[i].Zone; z != "" {
			rows[z] = 0
		}
	}
	p.zones = slices.Sorted(maps.Keys(rows))
	for row, z := range p.zones {
		rows[z] = row
	}

	p.home = make([]int, len(p.endpoints))
	p.readyIn = make([]int, len(p.zones))
	for i := range p.endpoints {
		row, ok := rows[p.endpoints[i].Zone]
		if !ok {
			row = nowhere
		} else if p.endpoints[i].IsReady() {
			p.readyIn[row]++
		}
		p.home[i] = row
	}
	p.demand = make([]Share, len(p.zones))
	for _, d := range told {
		p.demand[rows[d.Zone]] = Share(d.Share)
	}
	if len(told) == 0 {
		p.guess()
	}
}

// guess takes the endpoints' own places for those of the clients: there is no other evidence.
func (p *prepared) guess() {
	p.guessed = true
	placed := 0
	for _, n := range p.readyIn {
		placed += n
	}
	for z, n := range p.readyIn {
		p.demand[z] = Share(n) / Share(placed)
	}
}

// told gives the zones with demand and its shares, which sum to 1: as given, else by CPU, else (no node reports any) by
// nodes. It is empty when nothing is known.
func (p *prepared) told() []topology.ZoneDemand {
	if given := normal(p.Demand); len(given) > 0 {
		return given
	}
	byCPU := make([]topology.ZoneDemand, 0, len(p.Survey.Zones))
	byNodes := make([]topology.ZoneDemand, 0, len(p.Survey.Zones))
	for _, z := range p.Survey.Zones {
		byCPU = append(byCPU, topology.ZoneDemand{Zone: z.Zone, Share: float64(z.CPU)})
		byNodes = append(byNodes, topology.ZoneDemand{Zone: z.Zone, Share: float64(z.Nodes)})
	}
	if shares := normal(byCPU); len(shares) > 0 {
		return shares
	}
	return normal(byNodes)
}

// normal merges what is said of one zone, drops what cannot be a share, sorts by zone and scales to a sum of 1.
func normal(demand []topology.ZoneDemand) []topology.ZoneDemand {
	merged := make([]topology.ZoneDemand, 0, len(demand))
	for _, d := range demand {
		if d.Zone != "" && d.Share > 0 && !math.IsInf(d.Share, 0) {
			merged = append(merged, d)
		}
	}
	slices.SortFunc(merged, func(a, b topology.ZoneDemand) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Share, b.Share))
	})
	var sum float64
	last := -1
	for _, d := range merged {
		sum += d.Share
		if last >= 0 && merged[last].Zone == d.Zone {
			merged[last].Share += d.Share
			continue
		}
		last++
		merged[last] = d
	}
	merged = merged[:last+1]
	for i := range merged {
		merged[i].Share /= sum
	}
	return merged
}

// place says where an endpoint is, as far as the bill is concerned.
func (p *prepared) place(e *topology.Endpoint) topology.Place {
	return topology.Place{Zone: e.Zone, Region: p.Survey.Regions[e.Zone], Cluster: e.Cluster}
}

// zonePlace is where the clients of a zone are: in this cluster.
func (p *prepared) zonePlace(z topology.Zone) topology.Place {
	return topology.Place{Zone: z, Region: p.Survey.Regions[z]}
}

// cost gives the cost of a request from a zone to an endpoint.
func (p *prepared) cost(from topology.Zone, e *topology.Endpoint) topology.Cost {
	return p.Costs.Between(p.zonePlace(from), p.place(e))
}
