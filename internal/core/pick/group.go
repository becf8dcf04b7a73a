package pick

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
)

// groupKey is a group's identity: what is known of it lasts as long as some endpoint has this key.
type groupKey struct {
	home    bool // the plan's pool, whatever zones it has; then the rest is empty
	tier    int
	cluster string
	zone    topology.Zone
}

// keyOf tells which group a target belongs to.
func keyOf(t *Target) groupKey {
	if t.Home {
		return groupKey{home: true}
	}
	return groupKey{tier: t.Tier, cluster: t.Cluster, zone: t.Zone}
}

// group is a set of endpoints that the overflow strategy treats as one.
type group struct {
	// Requests read these; the loop writes limit when the baseline moves, new connections write rtt.
	limit atomic.Int64 // the longest latency that counts, in ns: Cap baselines and the longer way
	rtt   atomic.Int64 // in ns; 0: not known

	// The loop's.
	key     groupKey
	cost    topology.Cost
	members []int // indexes into Pool.members
	ready   []int // those of them that are ready
	parted  bool  // some have a part's weight; see Target.Affinity
	past    history
	turn    *turn
	lead    time.Duration // how much longer the way is than the way home
	ok      float64       // decayed number of good answers
	failed  float64       // and of failures
	drained bool
	usable  int
	panics  bool // its endpoints' health is not believed
	shown   looks
}

// looks are what a view shows of a group beside its endpoints.
type looks struct {
	ring            *ring
	failing, panics bool
}

func newGroup(key groupKey) *group {
	g := &group{key: key, turn: new(turn)}
	g.limit.Store(int64(unknownLimit))
	return g
}

const (
	// unknownLimit is the longest latency that counts, and half of the age at which a request is overdue, while there is
	// no baseline: longer than what a service's answer usually takes, short enough for the sums to hold.
	unknownLimit = time.Minute
	// rttUp is the fraction of a longer connect time that the way's length follows: queues make connecting slow for a
	// while, a new way makes it slow for good.
	rttUp = 16
)

// connected follows shorter times at once and longer ones slowly.
func (g *group) connected(took time.Duration) {
	for took > 0 {
		old := g.rtt.Load()
		next := int64(took)
		if old > 0 && next > old {
			next = old + (next-old)/rttUp
		}
		if g.rtt.CompareAndSwap(old, next) {
			return
		}
	}
}

// horizon is the age at which an unanswered request is overdue: twice the longest latency that counts.
func horizon(limit time.Duration) time.Duration { return 2 * limit }

const (
	deliveredTau   = 1.0 // seconds of memory, as the reference has for rates of some requests per second and more
	deliveredPrior = 2.0 // good answers that are taken to have been seen
	heardOf        = 0.5 // decayed good answers that show that a group was there lately: one 0.7 s ago
	// deliveredLow: below it a retry goes to another zone, as every fifth attempt here would fail again.
	deliveredLow = 0.8
)

// failing tells whether a retry had better go elsewhere.
func (g *group) failing() bool {
	return (g.ok+deliveredPrior)/(g.ok+g.failed+deliveredPrior) < deliveredLow
}

// regroup forms groups of the members and gives each member its group. Groups that were there before are taken over: by
// key, and else by zone and cluster, as a change of policy may move them to another tier. The first is home; the others
// come by tier, in each the cheapest first, those of equal cost by zone and cluster, rotated, so that not all clients
// prefer the same one. Without a home target the first group is home.
func regroup(members []*member, before []*group, rotate uint64) []*group {
	in := make(map[groupKey][]int)
	for i, m := range members {
		key := keyOf(&m.target)
		in[key] = append(in[key], i)
	}
	groups := inherit(slices.SortedFunc(maps.Keys(in), groupKey.compare), before)
	for _, g := range groups {
		g.members, g.ready, g.cost, g.parted = in[g.key], nil, 0, false
		for _, i := range g.members {
			g.cost += members[i].target.Cost
			g.parted = g.parted || members[i].target.AffinityWeight > 0
			if !members[i].target.Unready {
				g.ready = append(g.ready, i)
			}
		}
		g.cost /= topology.Cost(len(g.members))
	}
	arrange(groups, rotate)
	for i, g := range groups {
		for _, m := range g.members {
			members[m].group = i
		}
	}
	return groups
}

// inherit gives a group for each key, with what is known of it.
func inherit(keys []groupKey, before []*group) []*group {
	known := make(map[groupKey]*group, len(before))
	for _, g := range before {
		known[g.key] = g
	}
	groups := make([]*group, len(keys))
	for i, key := range keys {
		groups[i] = known[key]
		delete(known, key)
	}
	for i, key := range keys {
		for _, g := range before {
			moved := g.key
			moved.tier = key.tier
			if groups[i] == nil && known[g.key] == g && moved == key {
				groups[i] = g
				delete(known, g.key)
				g.key = key
			}
		}
		if groups[i] == nil {
			groups[i] = newGroup(key)
		}
	}
	return groups
}

// compare orders keys by home, tier, zone and cluster.
func (k groupKey) compare(o groupKey) int {
	rank := func(k groupKey) int {
		if k.home {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(k), rank(o)), cmp.Compare(k.tier, o.tier),
		strings.Compare(string(k.zone), string(o.zone)), strings.Compare(k.cluster, o.cluster))
}

// arrange puts groups into waterfall order.
func arrange(groups []*group, rotate uint64) {
	slices.SortFunc(groups, func(a, b *group) int {
		if a.key.home == b.key.home && a.key.tier == b.key.tier && a.cost != b.cost {
			return cmp.Compare(a.cost, b.cost)
		}
		return a.key.compare(b.key)
	})
	alike := func(a, b *group) bool {
		return a.key.home == b.key.home && a.key.tier == b.key.tier && a.cost == b.cost
	}
	for from := 0; from < len(groups); {
		to := from + 1
		for to < len(groups) && alike(groups[from], groups[to]) {
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

// scene describes the groups to a strategy.
func scene(groups []*group, client topology.Zone, endpoints int) overflow.Scene {
	s := overflow.Scene{Groups: make([]overflow.Group, len(groups)), Endpoints: endpoints}
	for i, g := range groups {
		zone := g.key.zone
		if g.key.home {
			zone = client
		}
		s.Groups[i] = overflow.Group{
			Zone: zone, Cluster: g.key.cluster, Cost: g.cost, Tier: g.key.tier, Endpoints: slices.Clone(g.ready),
		}
	}
	return s
}
