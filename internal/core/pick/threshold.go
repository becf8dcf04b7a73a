package pick

import (
	"math"

	"github.com/weir-lb/weir/internal/core/overflow"
)

// level is home, or all groups of a tier: what Envoy calls a priority.
type level struct {
	from, to      int // its groups: [from, to) of Pool.groups
	usable, total int // endpoints
	health        int // percent, 0 to 100
	share, room   float64
}

// usualFactor is what a level's fraction of usable endpoints is multiplied by, in percent, when no threshold says
// otherwise: below 71.4 % usable a level is not quite healthy. It is Envoy's.
const usualFactor = 140

// factor is the same for a threshold, a fraction: a level is healthy as long as that fraction of it is. It is rounded up to
// whole percent, so that the threshold itself is healthy.
func factor(threshold float64) int {
	if threshold <= 0 {
		return usualFactor
	}
	return int(min(math.Ceil(100/min(threshold, 1)-1e-9), largestFactor)) // 100/0.7 must not become 143.0000001
}

// largestFactor makes a level healthy if one of 10,000 endpoints is usable, more than a service has; times any number of
// endpoints it still fits an int.
const largestFactor = 1_000_000

// grade finds how healthy each level is, and whose health is not believed: where all levels together are not healthy,
// those with a smaller fraction of usable endpoints than Config.Panic. Nobody's is where the strategy says so.
//
// Source: Envoy's priority load and panic threshold. We count as usable who is ready, not drained and not sitting out.
func (p *Pool) grade() {
	p.levels = p.levels[:0]
	f := factor(p.prepared.config.Threshold)
	sum := 0
	for i, g := range p.groups {
		if i < 2 || g.Key.Tier != p.groups[i-1].Key.Tier {
			p.levels = append(p.levels, level{from: i, to: i})
		}
		l := &p.levels[len(p.levels)-1]
		l.to = i + 1
		l.usable += g.usable
		l.total += len(g.Members)
	}
	for i := range p.levels {
		l := &p.levels[i]
		l.health = min(100, f*l.usable/l.total)
		sum += l.health
	}
	for _, l := range p.levels {
		limit := p.prepared.config.Panic
		panics := limit != nil && sum < 100 && float64(l.usable) < *limit*float64(l.total)
		for _, g := range p.groups[l.from:l.to] {
			g.panics = panics || p.decision.Panic
		}
	}
}

// loads gives the most that each level may have, in percent: its health, or where all together are not healthy its part of
// their health, so that they sum to 100 or more; false without anybody healthy.
//
// Source: Envoy, whose integer arithmetic this is: what rounding leaves goes to the first level with any health.
func (p *Pool) loads() bool {
	sum := 0
	for _, l := range p.levels {
		sum += l.health
	}
	if sum == 0 {
		return false
	}
	left := 100
	for i := range p.levels {
		l := &p.levels[i]
		load := l.health
		if sum < 100 {
			load = l.health * 100 / sum
			left -= load
		}
		l.room = float64(load) / 100
	}
	for i := range p.levels {
		if l := &p.levels[i]; sum < 100 && l.health > 0 {
			l.room += float64(left) / 100
			break
		}
	}
	return true
}

// bound keeps the decision's shares within what the levels may have by Config.Threshold. What is too much for one goes on
// to the next that has room, home last, and there to the groups by their usable endpoints.
func (p *Pool) bound() {
	if p.prepared.config.Threshold <= 0 || len(p.levels) < 2 || !p.loads() {
		return
	}
	p.shares = resize(p.shares, len(p.groups))
	clear(p.shares)
	for _, r := range p.decision.Routes {
		if r.Group >= 0 && r.Group < len(p.groups) {
			p.shares[r.Group] += r.Share
		}
	}
	excess := 0.0
	for i := range p.levels {
		l := &p.levels[i]
		l.share = 0
		for _, s := range p.shares[l.from:l.to] {
			l.share += s
		}
		over := max(0, l.share-l.room)
		l.scale(p.shares, l.share-over)
		excess += over
	}
	if excess <= 0 {
		return
	}
	for i := range p.levels {
		l := &p.levels[(i+1)%len(p.levels)]
		more := min(excess, l.room-l.share)
		excess -= more
		l.raise(p.shares, p.groups, more)
	}
	p.reroute()
}

// scale brings a level's shares down to a sum.
func (l *level) scale(shares []float64, to float64) {
	for i := l.from; i < l.to && to < l.share; i++ {
		shares[i] *= to / l.share
	}
	l.share = to
}

// raise gives a level more.
func (l *level) raise(shares []float64, groups []*group, more float64) {
	for i := l.from; i < l.to && more > 0; i++ {
		shares[i] += more * float64(groups[i].usable) / float64(l.usable)
	}
}

// reroute makes the decision's shares those in p.shares.
func (p *Pool) reroute() {
	d := &p.decision
	before := make([]float64, len(p.groups))
	for _, r := range d.Routes {
		if r.Group >= 0 && r.Group < len(before) {
			before[r.Group] += r.Share
		}
	}
	var routes []overflow.Route
	for i, share := range p.shares {
		if share > 0 && before[i] == 0 {
			routes = append(routes, overflow.Route{Group: i, Share: share})
		}
		for _, r := range d.Routes {
			if r.Group == i && before[i] > 0 {
				r.Share *= share / before[i]
				routes = append(routes, r)
			}
		}
		if i < len(d.Groups) {
			d.Groups[i].Share = share
		}
	}
	d.Routes = routes
}
