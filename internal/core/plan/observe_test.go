package plan_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

func TestWhatAPlanSaysIsSeenOnceItsHintsAreThere(t *testing.T) {
	for _, mode := range topology.Modes() {
		in := inputOf(mode, cores(4, 4, 4), endpointsIn(3, 2, 4))
		planned := plan.Compute(in)
		with := *in.Service
		with.Endpoints, with.Mode = planned.Endpoints, topology.ModeDisabled
		in.Service = &with
		seen := plan.Observe(in)
		if seen.Hinted != planned.Hinted || seen.Cost != planned.Cost || seen.InZone != planned.InZone {
			t.Errorf("%s: planned %v %v %v, seen %v %v %v", mode,
				planned.Hinted, planned.InZone, planned.Cost, seen.Hinted, seen.InZone, seen.Cost)
		}
		if diff := cmp.Diff(planned.Zones, seen.Zones); diff != "" {
			t.Errorf("%s: planned, seen:\n%s", mode, diff)
		}
	}
}

func TestHintsThatNobodyFollowsAreNoHints(t *testing.T) {
	hinted := func(n int) []topology.Endpoint {
		endpoints := endpointsIn(1, 1, 1)
		for i := range n {
			endpoints[i].Hints.Zones = []topology.Zone{endpoints[i].Zone}
		}
		return endpoints
	}
	gone := hinted(3)
	for i := range gone {
		gone[i].Conditions = topology.Conditions{Ready: topology.False, Serving: topology.False, Terminating: topology.True}
	}
	for name, c := range map[string]struct {
		endpoints []topology.Endpoint
		hinted    bool
		inZone    float64
		reason    reason.Code
	}{
		"all endpoints are hinted": {hinted(3), true, 1, ""},
		"one endpoint is not":      {hinted(2), false, 1. / 3, reason.HintMissing},
		"no endpoint is":           {hinted(0), false, 1. / 3, reason.NoHints},
		"none is ready":            {gone, false, 0, reason.NoEndpoints},
	} {
		t.Run(name, func(t *testing.T) {
			seen := plan.Observe(inputOf(topology.ModePreferSameZone, cores(4, 4, 4), c.endpoints))
			if seen.Hinted != c.hinted || math.Abs(float64(seen.InZone)-c.inZone) > 1e-9 {
				t.Errorf("want hinted %v and %v in zone, got %v and %v", c.hinted, c.inZone, seen.Hinted, seen.InZone)
			}
			var first reason.Code
			if len(seen.Reasons) > 0 {
				first = seen.Reasons[0].Code
			}
			if first != c.reason {
				t.Errorf("want reason %q, got %v", c.reason, seen.Reasons)
			}
		})
	}
}
