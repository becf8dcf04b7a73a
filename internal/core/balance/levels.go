package balance

import (
	"math"

	"github.com/weir-lb/weir/internal/core/overflow"
)

// level is home, or all groups of a tier: what Envoy calls a priority.
type level struct {
	from, to      int // its groups: [from, to) of Decision.Groups
	usable, total int // endpoints
	health        int // percent, 0 to 100
	share, room   float64
}

// defaultFactor is what a level's fraction of usable endpoints is multiplied by, in percent, when no threshold says
// otherwise: below 71.4 % usable a level is not quite healthy. It is Envoy's.
const defaultFactor = 140

// factor is the same for a threshold, a fraction: a level is healthy as long as that fraction of it is. It is rounded up to
// whole percent, so that the threshold itself is healthy.
func factor(threshold float64) int {
	if threshold <= 0 {
		return defaultFactor
	}
	return int(min(math.Ceil(100/min(threshold, 1)-1e-9), largestFactor)) // 100/0.7 must not become 143.0000001
}

// largestFactor makes a level healthy if one of 10,000 endpoints is usable, more than a service has; times any number of
// endpoints it still fits an int.
const largestFactor = 1_000_000

// grade computes how healthy each level is, and which of them panic, that is use all their endpoints: while all together
// are not healthy, those with a smaller fraction of usable endpoints than Config.Panic. The strategy may have all panic.
//
// Source: Envoy's priority load and panic threshold. An endpoint is usable if it is ready, not drained, and serves.
func (l *Loop) grade() {
	groups := l.decision.Groups
	l.levels = l.levels[:0]
	sum, f := 0, factor(l.config.Threshold)
	for i := range groups {
		if i < 2 || groups[i].Key.Tier != groups[i-1].Key.Tier {
			l.levels = append(l.levels, level{from: i})
		}
		v := &l.levels[len(l.levels)-1]
		v.to = i + 1
		v.usable += groups[i].Usable
		v.total += len(groups[i].Members)
	}
	for i := range l.levels {
		v := &l.levels[i]
		v.health = min(100, f*v.usable/v.total)
		sum += v.health
	}
	for _, v := range l.levels {
		limit := l.config.Panic
		panics := limit != nil && sum < 100 && float64(v.usable) < *limit*float64(v.total)
		for i := v.from; i < v.to; i++ {
			groups[i].Panics = panics || l.decision.Panic
		}
	}
}

// loads finds the most that each level may have: its health in percent, or where all together are not healthy its part of
// their health, so that they sum to 100 or more; false if none is healthy.
//
// Source: Envoy, whose integer arithmetic this is: what rounding leaves goes to the first level with any health.
func (l *Loop) loads() bool {
	sum := 0
	for _, v := range l.levels {
		sum += v.health
	}
	if sum == 0 {
		return false
	}
	left := 100
	for i := range l.levels {
		v := &l.levels[i]
		load := v.health
		if sum < 100 {
			load = v.health * 100 / sum
			left -= load
		}
		v.room = float64(load) / 100
	}
	for i := range l.levels {
		if v := &l.levels[i]; sum < 100 && v.health > 0 {
			v.room += float64(left) / 100
			break
		}
	}
	return true
}

// bound keeps the decision's shares within what the levels may have by Config.Threshold. What is too much for one goes on
// to the next that has room, home last, and there to the groups by their usable endpoints.
func (l *Loop) bound() {
	if l.config.Threshold <= 0 || len(l.levels) < 2 || !l.loads() {
		return
	}
	decided := l.decided()
	l.shares = append(l.shares[:0], decided...)
	excess := 0.0
	for i := range l.levels {
		v := &l.levels[i]
		v.share = 0
		for _, s := range l.shares[v.from:v.to] {
			v.share += s
		}
		over := max(0, v.share-v.room)
		v.scale(l.shares, v.share-over)
		excess += over
	}
	if excess <= 0 {
		return
	}
	for i := range l.levels {
		v := &l.levels[(i+1)%len(l.levels)]
		more := min(excess, v.room-v.share)
		excess -= more
		v.raise(l.shares, l.decision.Groups, more)
	}
	l.reroute(decided)
}

// decided gives the share of each group by the decision's routes.
func (l *Loop) decided() []float64 {
	shares := make([]float64, len(l.decision.Groups))
	for _, r := range l.decision.Routes {
		if r.Group >= 0 && r.Group < len(shares) {
			shares[r.Group] += r.Share
		}
	}
	return shares
}

// scale brings a level's shares down to a sum.
func (v *level) scale(shares []float64, to float64) {
	for i := v.from; i < v.to && to < v.share; i++ {
		shares[i] *= to / v.share
	}
	v.share = to
}

// raise gives a level more.
func (v *level) raise(shares []float64, groups []Group, more float64) {
	for i := v.from; i < v.to && more > 0; i++ {
		shares[i] += more * float64(groups[i].Usable) / float64(v.usable)
	}
}

// reroute makes the decision's shares those of l.shares.
func (l *Loop) reroute(decided []float64) {
	d := &l.decision.Decision
	var routes []overflow.Route
	for i, share := range l.shares {
		if share > 0 && decided[i] == 0 {
			routes = append(routes, overflow.Route{Group: i, Share: share})
		}
		for _, r := range d.Routes {
			if r.Group == i && decided[i] > 0 {
				r.Share *= share / decided[i]
				routes = append(routes, r)
			}
		}
		if i < len(d.Groups) {
			d.Groups[i].Share = share
		}
	}
	d.Routes = routes
}
