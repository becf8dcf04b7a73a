package route

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/topology"
)

// GroupKey is a group's identity: what is known of a group lasts as long as an endpoint has its key.
type GroupKey struct {
	Home    bool // the group that the plan gives to the client, whatever zones it spans; the other fields are empty
	Tier    int
	Cluster string
	Zone    topology.Zone
}

// Group is a set of endpoints that share a place in the order and are given a share of the requests as one.
type Group struct {
	Key     GroupKey
	Cost    topology.Cost // the mean of its endpoints
	Members []int         // indexes into the endpoints, rising; at least one
	Ready   []int         // those of Members that are ready
	Near    bool          // see Endpoint.Near
	Parted  bool          // some members have the weight of a part; see Endpoint.Affinity
}

// Groups forms the groups of a client's endpoints.
//
// Shape: home comes first, the others by tier, within a tier the cheapest first. Groups of equal tier and cost are in the
// order of zone and cluster, rotated by rotate, a number that differs between clients, so that not all clients prefer the
// same one. Without a home endpoint the first group serves as home. Each endpoint is in exactly one group.
func Groups(endpoints []Endpoint, rotate uint64) []Group {
	members := make(map[GroupKey][]int)
	for i := range endpoints {
		key := endpoints[i].Key()
		members[key] = append(members[key], i)
	}
	groups := make([]Group, 0, len(members))
	for _, key := range slices.SortedFunc(maps.Keys(members), GroupKey.compare) {
		groups = append(groups, newGroup(key, members[key], endpoints))
	}
	arrange(groups, rotate)
	return groups
}

func newGroup(key GroupKey, members []int, endpoints []Endpoint) Group {
	g := Group{Key: key, Members: members, Near: endpoints[members[0]].Near}
	for _, i := range members {
		g.Cost += endpoints[i].Cost
		g.Parted = g.Parted || endpoints[i].AffinityWeight > 0
		if !endpoints[i].Unready {
			g.Ready = append(g.Ready, i)
		}
	}
	g.Cost /= topology.Cost(len(members))
	return g
}

// compare orders keys by home, tier, zone and cluster.
func (k GroupKey) compare(o GroupKey) int {
	return cmp.Or(cmp.Compare(k.rank(), o.rank()), cmp.Compare(k.Tier, o.Tier),
		strings.Compare(string(k.Zone), string(o.Zone)), strings.Compare(k.Cluster, o.Cluster))
}

// rank puts home before all others.
func (k GroupKey) rank() int {
	if k.Home {
		return 0
	}
	return 1
}

// arrange puts groups in order.
func arrange(groups []Group, rotate uint64) {
	slices.SortFunc(groups, func(a, b Group) int {
		if a.isLevelWith(&b) {
			return cmp.Or(cmp.Compare(a.Cost, b.Cost), a.Key.compare(b.Key))
		}
		return a.Key.compare(b.Key)
	})
	for from := 0; from < len(groups); {
		to := from + 1
		for to < len(groups) && groups[from].isLevelWith(&groups[to]) && groups[from].Cost == groups[to].Cost {
			to++
		}
		equal := groups[from:to]
		shift := int(rotate % uint64(len(equal))) //nolint:gosec // below the number of groups.
		slices.Reverse(equal[:shift])
		slices.Reverse(equal[shift:])
		slices.Reverse(equal)
		from = to
	}
}

// isLevelWith tells whether only cost and name order two groups.
func (g *Group) isLevelWith(o *Group) bool {
	return g.Key.Home == o.Key.Home && g.Key.Tier == o.Key.Tier
}
