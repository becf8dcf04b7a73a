package plan

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/topology"
)

// puzzle is what Balanced solves for a service, in numbers only. Its zones are those that a hint may name, its homes the
// zones and clusters where ready endpoints are. Endpoints of one home are interchangeable.
type puzzle struct {
	demand []float64   // of each zone: fraction of all requests; 0: the zone is only a home
	ready  []int       // of each home: ready endpoints, at least 1
	own    []int       // of each home: its zone, -1 when that is not known or no hint may name it
	cost   [][]float64 // of a request, by zone and home
	total  int         // ready endpoints
	limit  float64     // the most that one of them should get: fraction of all requests
	// Traffic of zones that no hint may name goes to all endpoints, whatever the hints say.
	unnamed, unnamedCost float64
}

// zoneSet is a set of a puzzle's zones: bit z is zone z.
type zoneSet uint64

// maxZones is how many zones a zoneSet can name. No cloud region has more than six, so this does for ten regions; what
// further zones send goes to all endpoints, as kube-proxy does with a zone that no hint names.
const maxZones = 64

// maxHints is how many zone hints the EndpointSlice API allows on one endpoint.
const maxHints = 8

func (s zoneSet) has(z int) bool        { return s>>z&1 == 1 }
func (s zoneSet) with(z int) zoneSet    { return s | 1<<z }
func (s zoneSet) without(z int) zoneSet { return s &^ (1 << z) }
func (s zoneSet) len() int              { return bits.OnesCount64(uint64(s)) }

// pop gives the lowest zone of a set that is not empty, and the others.
func (s zoneSet) pop() (int, zoneSet) { return bits.TrailingZeros64(uint64(s)), s & (s - 1) }

// translation is between a prepared input and its puzzle.
type translation struct {
	zones []int // of each zone of the puzzle its index in prepared.zones
	bit   []int // the inverse; -1: no hint may name the zone
	home  []int // of each of prepared.ready its home in the puzzle
}

// homeKey identifies a home.
type homeKey struct {
	zone    int // index in prepared.zones; -1: not known
	cluster string
}

func newPuzzle(p *prepared) (*puzzle, *translation) {
	t := &translation{zones: p.nameable(), bit: make([]int, len(p.zones)), home: make([]int, len(p.ready))}
	for i := range t.bit {
		t.bit[i] = -1
	}
	z := &puzzle{demand: make([]float64, len(t.zones)), total: len(p.ready)}
	for b, i := range t.zones {
		t.bit[i] = b
		z.demand[b] = float64(p.demand[i])
	}
	z.limit = (1 + p.Limits.Start) / float64(z.total)

	homes, first := p.homes(t)
	z.ready, z.own = make([]int, len(homes)), make([]int, len(homes))
	for _, h := range t.home {
		z.ready[h]++
	}
	for h, home := range homes {
		z.own[h] = -1
		if home.zone >= 0 {
			z.own[h] = t.bit[home.zone]
		}
	}
	costs := make([]float64, len(p.zones)*len(homes))
	z.cost = make([][]float64, len(t.zones))
	for i, zone := range p.zones {
		row := costs[i*len(homes) : (i+1)*len(homes)]
		for h := range homes {
			row[h] = max(0, float64(p.cost(zone, &p.endpoints[first[h]]))) // a negative cost would never be done saving
		}
		if b := t.bit[i]; b >= 0 {
			z.cost[b] = row
			continue
		}
		z.unnamed += float64(p.demand[i])
		z.unnamedCost += float64(p.demand[i]) * z.meanCost(row)
	}
	return z, t
}

// meanCost is what a request costs that may go to any endpoint, from a zone with this row of costs.
func (p *puzzle) meanCost(row []float64) float64 {
	sum := 0.0
	for h, ready := range p.ready {
		sum += row[h] * float64(ready)
	}
	return sum / float64(p.total)
}

// ideal is how much traffic would stay in its zone if shares could be exact: the cheapest flow from the zones to the
// endpoints of each home that takes no endpoint above the limit.
func (p *puzzle) ideal() float64 {
	t := transportation{supply: p.demand, room: make([]float64, len(p.ready)), cost: p.cost}
	for h, ready := range p.ready {
		t.room[h] = float64(ready) * p.room()
	}
	inZone := 0.0
	flow := t.solve()
	for h, own := range p.own {
		if own >= 0 {
			inZone += flow[own][h]
		}
	}
	return inZone
}

// nameable lists the zones that hints may name: all, or those with the most demand when there are too many.
func (p *prepared) nameable() []int {
	list := make([]int, len(p.zones))
	for i := range list {
		list[i] = i
	}
	if len(list) > maxZones {
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(p.demand[b], p.demand[a]) })
		list = list[:maxZones]
		slices.Sort(list)
	}
	return list
}

// homes finds the homes of the ready endpoints, sorted, with an endpoint of each, and fills in t.home.
func (p *prepared) homes(t *translation) (homes []homeKey, first []int) {
	of := func(i int) homeKey { return homeKey{zone: p.home[i], cluster: p.endpoints[i].Cluster} }
	for _, i := range p.ready {
		if home := of(i); !slices.Contains(homes, home) {
			homes = append(homes, home)
		}
	}
	slices.SortFunc(homes, func(a, b homeKey) int {
		return cmp.Or(cmp.Compare(a.zone, b.zone), strings.Compare(a.cluster, b.cluster))
	})
	first = make([]int, len(homes))
	for k := len(p.ready) - 1; k >= 0; k-- {
		t.home[k] = slices.Index(homes, of(p.ready[k]))
		first[t.home[k]] = p.ready[k]
	}
	return homes, first
}

// hints gives the names of a set, sorted as prepared.zones are.
func (t *translation) hints(p *prepared, set zoneSet) topology.Hints {
	names := make([]topology.Zone, 0, set.len())
	for set != 0 {
		var z int
		z, set = set.pop()
		names = append(names, p.zones[t.zones[z]])
	}
	return topology.Hints{Zones: names}
}

// set reads hints. It is empty when they name a zone that is not in the puzzle, or a node: no layout has such hints.
func (t *translation) set(p *prepared, h topology.Hints) zoneSet {
	if len(h.Nodes) > 0 {
		return 0
	}
	var set zoneSet
	for _, zone := range h.Zones {
		i, ok := slices.BinarySearch(p.zones, zone)
		if !ok || t.bit[i] < 0 {
			return 0
		}
		set = set.with(t.bit[i])
	}
	return set
}
