package overflow

import (
	"time"

	"github.com/weir-lb/weir/internal/core/reason"
)

// fixed is a strategy whose shares depend on the layout alone: Static and Random.
type fixed struct {
	why      reason.Code
	confined bool                   // see Decision
	shares   func(Layout) []float64 // one for each group, summing to 1
	since    time.Duration
	routes   []Route
	groups   []GroupStatus
}

// newStatic sends everything to the home group: hints and nothing else, as kube-proxy does, also while every endpoint at
// home fails.
func newStatic(Config) Strategy {
	return &fixed{why: reason.FollowsHints, confined: true, shares: func(s Layout) []float64 {
		shares := make([]float64, len(s.Groups))
		shares[0] = 1
		return shares
	}}
}

// newRandom is blind to zones: every endpoint of every group gets the same share.
func newRandom(Config) Strategy {
	return &fixed{why: reason.BlindToZones, shares: func(s Layout) []float64 {
		shares := make([]float64, len(s.Groups))
		var endpoints int
		for _, g := range s.Groups {
			endpoints += len(g.Endpoints)
		}
		for i, g := range s.Groups {
			shares[i] = 1 / float64(len(s.Groups))
			if endpoints > 0 {
				shares[i] = float64(len(g.Endpoints)) / float64(endpoints)
			}
		}
		return shares
	}}
}

// Reset implements Strategy.
func (f *fixed) Reset(now time.Duration, layout Layout) {
	f.since, f.routes, f.groups = now, nil, nil
	if len(layout.Groups) == 0 {
		return
	}
	f.groups = make([]GroupStatus, len(layout.Groups))
	for i, share := range f.shares(layout) {
		f.groups[i].Share = share
		if share > 0 {
			f.routes = append(f.routes, Route{Group: i, Share: share})
		}
	}
}

// Step implements Strategy.
func (f *fixed) Step(time.Duration, *Counters) Decision {
	return Decision{
		Routes: f.routes, Groups: f.groups, Confined: f.confined,
		Cap: DefaultConstants().Cap, State: Calm, Reason: reason.New(f.why), Since: f.since,
	}
}

// Unconfined gives s without Decision.Confined: requests go to the next group when nobody serves where it sends them,
// which Static does not let them.
func Unconfined(s Strategy) Strategy { return unconfined{s} }

type unconfined struct{ Strategy }

// Step implements Strategy.
func (u unconfined) Step(now time.Duration, c *Counters) Decision {
	d := u.Strategy.Step(now, c)
	d.Confined = false
	return d
}
