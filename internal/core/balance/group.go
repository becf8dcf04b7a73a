package balance

import (
	"slices"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/route"
)

const (
	deliveredTau   = 1.0 // seconds of memory, as the reference has for rates of some requests per second and more
	deliveredPrior = 2.0 // good answers that are taken to have been seen
	recentlyGood   = 0.5 // decayed good answers from which a group counts as answering: one 0.7 s ago
	// deliveredLow: below it a retry goes to another zone, as every fifth attempt here would fail again.
	deliveredLow = 0.8
)

// fails tells whether a retry had better go to another group.
func (g *Group) fails() bool {
	return (g.ok+deliveredPrior)/(g.ok+g.failed+deliveredPrior) < deliveredLow
}

// regroup forms the groups of the endpoints, with what is known of them, and gives for each the index that it had before.
func (l *Loop) regroup() []int {
	d := &l.decision
	endpoints := make([]route.Endpoint, len(d.Endpoints))
	for i := range d.Endpoints {
		endpoints[i] = d.Endpoints[i].Endpoint
	}
	formed := route.Groups(endpoints, l.options.Rotate)
	kept := inherit(formed, d.Groups)
	groups := make([]Group, len(formed))
	for i, g := range formed {
		if kept[i] >= 0 {
			groups[i] = d.Groups[kept[i]]
		} else {
			l.lastID++
			groups[i].id, groups[i].Limit = l.lastID, unknownLimit
		}
		groups[i].Group, groups[i].Home, groups[i].Zone = g, i == 0, g.Key.Zone
		if g.Key.Home {
			groups[i].Zone = l.options.Zone
		}
		for _, j := range g.Members {
			d.Endpoints[j].Group = i
		}
	}
	d.Groups = groups
	return kept
}

// inherit finds the group that each one continues, -1 where there is none: by key, and else by zone and cluster, as a
// change of policy may move a group to another tier.
func inherit(formed []route.Group, before []Group) []int {
	kept, taken := make([]int, len(formed)), make([]bool, len(before))
	for i := range kept {
		kept[i] = -1
	}
	equal := func(a, b route.GroupKey) bool { return a == b }
	moved := func(a, b route.GroupKey) bool {
		a.Tier = b.Tier
		return a == b
	}
	for _, same := range []func(a, b route.GroupKey) bool{equal, moved} {
		for i := range formed {
			for j := range before {
				if kept[i] < 0 && !taken[j] && same(before[j].Key, formed[i].Key) {
					kept[i], taken[j] = j, true
				}
			}
		}
	}
	return kept
}

// layout describes the groups to a strategy.
func (l *Loop) layout() overflow.Layout {
	s := overflow.Layout{Groups: make([]overflow.Group, len(l.decision.Groups)), Endpoints: len(l.decision.Endpoints)}
	for i := range s.Groups {
		g := &l.decision.Groups[i]
		s.Groups[i] = overflow.Group{
			ID: g.id, Zone: g.Zone, Cluster: g.Key.Cluster, Cost: g.Cost, Tier: g.Key.Tier, Endpoints: slices.Clone(g.Ready), Near: g.Near,
		}
	}
	return s
}
