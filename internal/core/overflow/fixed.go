package overflow

import (
	"time"

	"github.com/weir-lb/weir/internal/core/reason"
)

// fixed is a strategy whose shares depend on the scene alone: Static and Random.
type fixed struct {
	why      reason.Code
	confined bool                  // see Decision
	shares   func(Scene) []float64 // one for each group, summing to 1
	scene    Scene
	since    time.Duration
}

// newStatic sends everything to the home group: hints and nothing else, as kube-proxy does, also while every endpoint at
// home fails.
func newStatic(Config) Strategy {
	return &fixed{why: reason.FollowsHints, confined: true, shares: func(s Scene) []float64 {
		shares := make([]float64, len(s.Groups))
		shares[0] = 1
		return shares
	}}
}

// newRandom is blind to zones: every endpoint of every group gets the same share.
func newRandom(Config) Strategy {
	return &fixed{why: reason.BlindToZones, shares: func(s Scene) []float64 {
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
func (f *fixed) Reset(now time.Duration, scene Scene) { f.scene, f.since = scene, now }

// Step implements Strategy.
func (f *fixed) Step(time.Duration, *Counters) Decision {
	d := Decision{Cap: DefaultConstants().Cap, State: Calm, Reason: reason.New(f.why), Since: f.since, Confined: f.confined}
	if len(f.scene.Groups) == 0 {
		return d
	}
	d.Groups = make([]GroupStatus, len(f.scene.Groups))
	for i, share := range f.shares(f.scene) {
		d.Groups[i].Share = share
		if share > 0 {
			d.Routes = append(d.Routes, Route{Group: i, Share: share})
		}
	}
	return d
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
