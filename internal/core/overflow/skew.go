package overflow

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Skew caps how far the load that an endpoint of a group is expected to get may exceed the mean of all endpoints.
//
// A client knows its own requests alone, so the loads are those that a plan expects: a zone makes its Demand of all requests,
// and all of its clients decide alike. The zero value caps nothing.
type Skew struct {
	Max    float64                   // at least 1; 0: no cap
	Demand map[topology.Zone]float64 // of all requests, by zone; a zone that is missing has what its endpoints are of all
}

// Capped follows a strategy and caps the share of home by Skew, which may change between two steps. What home loses goes to
// the groups below the cap, in proportion to how far they are below it.
//
// With f the part that a group's usable endpoints are of all, home may get Max × f of all requests: of this client's, Max × f /
// Demand. Others can take Max × f - Demand of all, which together is never less than what is over, as Max is at least 1: if
// all clients keep the cap, no group is above it. A group that is drained, has no usable endpoint or is slower than home by
// more than slower gets nothing. Lower tiers are filled first, and what finds no room stays at home.
type Capped struct {
	Strategy
	Skew Skew

	layout Layout
	room   []float64
	routes []Route
	groups []GroupStatus
}

// slower is how much slower than home a group may be and still relieve it: the law itself would not go there for less
// (PreferLatency acts at 1.2, PreferCost at 1.8).
const slower = 1.5

// Reset implements Strategy.
func (l *Capped) Reset(now time.Duration, layout Layout) {
	l.layout = layout
	l.Strategy.Reset(now, layout)
}

// Step implements Strategy.
func (l *Capped) Step(now time.Duration, c *Counters) Decision {
	d := l.Strategy.Step(now, c)
	if l.Skew.Max < 1 || len(l.layout.Groups) < 2 || len(c.Groups) != len(l.layout.Groups) {
		return d
	}
	total := 0
	for i := range c.Groups {
		total += usable(&c.Groups[i])
	}
	home := usable(&c.Groups[0])
	if home == 0 {
		return d
	}
	limit := l.Skew.Max * fraction(home, total) / l.Skew.demand(l.layout.Groups[0].Zone, home, total) * (1 - d.Shed)
	if share := shareOf(d.Routes, 0); share > limit {
		l.move(&d, c, total, share-limit)
	}
	return d
}

func usable(g *GroupCounters) int {
	if g.Drained {
		return 0
	}
	return g.Usable
}

func fraction(n, total int) float64 { return float64(n) / float64(total) }

// demand is the part of all requests that a zone makes.
func (s *Skew) demand(zone topology.Zone, endpoints, total int) float64 {
	if d, ok := s.Demand[zone]; ok {
		return d
	}
	return fraction(endpoints, total)
}

func shareOf(routes []Route, group int) float64 {
	var share float64
	for i := range routes {
		if routes[i].Group == group {
			share += routes[i].Share
		}
	}
	return share
}

// move takes a part of the client's requests from home: to the lowest tier as far as there is room, then to the next one.
func (l *Capped) move(d *Decision, c *Counters, total int, excess float64) {
	groups, demand := l.layout.Groups, l.Skew.demand(l.layout.Groups[0].Zone, usable(&c.Groups[0]), total)
	l.room = append(l.room[:0], make([]float64, len(groups))...)
	rooms := make(map[int]float64) // by tier
	for i := 1; i < len(groups); i++ {
		n := usable(&c.Groups[i])
		isSlow := i < len(d.Groups) && d.Groups[i].Slowdown > slower*max(1, d.Groups[0].Slowdown)
		if n == 0 || isSlow || groups[i].Zone == groups[0].Zone {
			continue
		}
		l.room[i] = max(0, l.Skew.Max*fraction(n, total)-l.Skew.demand(groups[i].Zone, n, total)) / demand
		rooms[groups[i].Tier] += l.room[i]
	}
	l.routes, l.groups = append(l.routes[:0], d.Routes...), append(l.groups[:0], d.Groups...)
	d.Routes, d.Groups = l.routes, l.groups
	share, left := shareOf(d.Routes, 0), excess
	for _, tier := range slices.Sorted(maps.Keys(rooms)) {
		part := min(left, rooms[tier])
		left -= part
		for i, room := range l.room {
			if room > 0 && part > 0 && groups[i].Tier == tier {
				l.add(d, i, part*room/rooms[tier])
			}
		}
	}
	moved := excess - left
	for i := range d.Routes {
		if d.Routes[i].Group == 0 {
			d.Routes[i].Share *= (share - moved) / share
		}
	}
	d.Groups[0].Share -= moved
}

// add gives a group more of the requests.
func (l *Capped) add(d *Decision, group int, share float64) {
	d.Groups[group].Share += share
	for i := range l.routes {
		if l.routes[i].Group == group && l.routes[i].Endpoints == nil {
			l.routes[i].Share += share
			d.Routes = l.routes
			return
		}
	}
	l.routes = append(l.routes, Route{Group: group, Share: share})
	d.Routes = l.routes
}
