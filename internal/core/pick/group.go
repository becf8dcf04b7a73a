package pick

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
)

// group is a set of endpoints that the overflow strategy treats as one.
type group struct {
	// Requests read these; the loop writes limit when the baseline moves, new connections write rtt.
	limit atomic.Int64 // the longest latency that counts, in ns: Cap baselines and the longer way
	rtt   atomic.Int64 // in ns; 0: not known

	// The loop's.
	route.Group // indexes into Pool.members

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

func newGroup() *group {
	g := &group{turn: new(turn)}
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

// regroup forms groups of the members and gives each member its group. What is known of a group is taken over: by key, and
// else by zone and cluster, as a change of policy may move a group to another tier.
func regroup(members []*member, before []*group, rotate uint64) []*group {
	targets := make([]Target, len(members))
	for i, m := range members {
		targets[i] = m.target
	}
	formed := route.Groups(targets, rotate)
	groups := inherit(formed, before)
	for i, g := range groups {
		g.Group = formed[i]
		for _, m := range g.Members {
			members[m].group = i
		}
	}
	return groups
}

// inherit gives a group for each of those that were formed, with what is known of it.
func inherit(formed []route.Group, before []*group) []*group {
	known := make(map[route.GroupKey]*group, len(before))
	for _, g := range before {
		known[g.Key] = g
	}
	groups := make([]*group, len(formed))
	for i := range formed {
		groups[i] = known[formed[i].Key]
		delete(known, formed[i].Key)
	}
	for i := range formed {
		for _, g := range before {
			moved := g.Key
			moved.Tier = formed[i].Key.Tier
			if groups[i] == nil && known[g.Key] == g && moved == formed[i].Key {
				groups[i] = g
				delete(known, g.Key)
			}
		}
		if groups[i] == nil {
			groups[i] = newGroup()
		}
	}
	return groups
}

// scene describes the groups to a strategy.
func scene(groups []*group, client topology.Zone, endpoints int) overflow.Scene {
	s := overflow.Scene{Groups: make([]overflow.Group, len(groups)), Endpoints: endpoints}
	for i, g := range groups {
		zone := g.Key.Zone
		if g.Key.Home {
			zone = client
		}
		s.Groups[i] = overflow.Group{
			Zone: zone, Cluster: g.Key.Cluster, Cost: g.Cost, Tier: g.Key.Tier, Endpoints: slices.Clone(g.Ready),
		}
	}
	return s
}
