package plan_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/weir-lb/weir/internal/core/topology"
)

// The fixed cases: what weir says, and how upstream differs.
func TestFixedVectors(t *testing.T) {
	want := map[string]string{
		"no nodes":                                                                 "none: Nodes only ready in one zone; upstream: one zone told apart",
		"nodes in one zone only":                                                   "none: Nodes only ready in one zone; upstream: one zone told apart",
		"2 endpoints 3 zones 30/40/30":                                             "none: Insufficient number of endpoints",
		"2 endpoints 2 zones 45/55":                                                "zone-a 1, zone-b 1, 0 away",
		"unready endpoint is neither counted nor hinted":                           "zone-a 1, zone-b 1, 0 away",
		"10 endpoints 35/35/30 in 5/2/3":                                           "zone-a 4, zone-b 3, zone-c 3, 1 away",
		"3 endpoints all in one of 3 equal zones":                                  "zone-a 1, zone-b 1, zone-c 1, 2 away",
		"4 endpoints 3 equal zones":                                                "none: Unable to allocate minimum required endpoints to each zone without exceeding overload threshold",
		"9 endpoints 4/3/2":                                                        "zone-a 3, zone-b 3, zone-c 3, 1 away",
		"11 endpoints 4/4/3":                                                       "none: Unable to allocate minimum required endpoints to each zone without exceeding overload threshold",
		"4 endpoints all in one of 2 zones":                                        "zone-a 2, zone-b 2, 2 away",
		"KEP example 20/16/14 with 50 endpoints in one zone":                       "zone-a 20, zone-b 16, zone-c 14, 30 away",
		"one endpoint without a zone":                                              "none: One or more endpoints do not have a zone specified",
		"unready endpoint without a zone is harmless":                              "zone-a 3, zone-b 3, zone-c 3, 0 away",
		"one ready node without a zone label":                                      "none: Insufficient Node information: allocatable CPU or zone not specified on one or more nodes",
		"one ready node without CPU":                                               "none: Insufficient Node information: allocatable CPU or zone not specified on one or more nodes",
		"unready node without a zone label is harmless":                            "zone-a 3, zone-b 3, zone-c 3, 0 away",
		"control-plane node without a zone label is harmless":                      "zone-a 3, zone-b 3, zone-c 3, 0 away",
		"a zone with only unready nodes has no share":                              "zone-a 3, zone-b 3, 0 away",
		"endpoints in a control-plane-only zone keep their own hint":               "zone-a 4, zone-b 4, 2 away; upstream: strangers serve",
		"a zone gets nothing when every giver has under half an endpoint":          "zone-a 9, zone-b 9, zone-c 10, zone-d 2, 2 away; upstream: below 20 %, not at",
		"tie: 20 endpoints in one of 3 equal zones":                                "zone-a 7, zone-b 7, zone-c 6, 13 away",
		"unchanged slice within maxima is kept though a zone is below its minimum": "zone-a 4, zone-b 2, zone-c 3, 1 away; upstream: overload ended",
		"same but the slice changed anyway":                                        "zone-a 4, zone-b 2, zone-c 3, 1 away",
		"unchanged slice with all hints away from home is kept":                    "zone-a 3, zone-b 3, zone-c 3, 9 away",
		"unchanged slice over a zone maximum is rewritten":                         "zone-a 3, zone-b 3, zone-c 3, 2 away",
		"unchanged slice naming a zone without capacity is rewritten":              "zone-a 3, zone-b 3, zone-c 3, 0 away",
		"unchanged slice loses hints when infeasible":                              "none: Unable to allocate minimum required endpoints to each zone without exceeding overload threshold",
		"traffic distribution PreferClose":                                         "zone-a 2, zone-b 1, 1 away",
		"traffic distribution PreferSameZone":                                      "zone-a 2, zone-b 1, 1 away",
		"traffic distribution PreferSameNode":                                      "zone-a 2, zone-b 1, 1 away",
		"traffic distribution None":                                                "none: ",
		"traffic distribution corrects a wrong hint in an unchanged slice":         "zone-a 1, zone-b 1, 0 away",
		"traffic distribution leaves an unready endpoint alone":                    "none: Insufficient number of endpoints; upstream: nothing ready comes first",
		"hints are removed without a mode":                                         "none: ",
	}
	for _, v := range readVectors(t) {
		t.Run(v.ID, func(t *testing.T) {
			got := weirAnswer(v).String()
			if p := computeVector(v); p.Hinted {
				got += fmt.Sprintf(", %d away", away(&p))
			}
			for _, d := range compare(v) {
				if d != anotherOfATie { // upstream's choice among equals is not the same twice
					got += "; upstream: " + string(d)
				}
			}
			if got != want[v.ID] {
				t.Errorf("\nwant %q\ngot  %q", want[v.ID], got)
			}
		})
	}
}

// The preferences agree with upstream but for unknown readiness.
func TestPreferencesAgreeWithUpstream(t *testing.T) {
	random := newRandom(t)
	for _, mode := range []topology.Mode{topology.ModePreferClose, topology.ModePreferSameZone} {
		for n := range 1000 {
			v := anyVector(random, n)
			v.Mode = string(mode)
			for i := range v.Endpoints {
				if v.Endpoints[i].Ready == nil {
					v.Endpoints[i].Ready = new(bool)
				}
			}
			ours, theirs := weirAnswer(v), upstreamAnswer(v)
			if ours.hinted != theirs.hinted || !maps.Equal(ours.counts, theirs.counts) {
				t.Fatalf("%s: weir says %s and upstream %s:\n%s", mode, ours, theirs, describe(v))
			}
		}
	}
}
