package overflow_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/overflow"
)

func TestHazlMovesOneEndpointASecondCheapestZoneFirst(t *testing.T) {
	s, err := overflow.New("Hazl", overflow.Config{Low: 1, High: 2})
	if err != nil {
		t.Fatal(err)
	}
	s.Reset(0, overflow.Scene{Endpoints: 5, Groups: []overflow.Group{
		{Zone: "a", Endpoints: []int{0}},
		{Zone: "far", Cost: 4, Endpoints: []int{1, 2}},
		{Zone: "near", Cost: 1, Endpoints: []int{3, 4}},
	}})
	step := func(now time.Duration, inFlight int64) []overflow.Route {
		c := &overflow.Counters{Groups: make([]overflow.GroupCounters, 3), Endpoints: make([]overflow.EndpointCounters, 5)}
		c.Endpoints[0].InFlight = inFlight
		return s.Step(now, c).Routes
	}
	var got [][]overflow.Route
	for i := range 6 {
		load := int64(1000)
		if i > 3 {
			load = -1 // nonsense counts as nothing
		}
		got = append(got, step(time.Duration(i)*time.Second, load))
		got = append(got, step(time.Duration(i)*time.Second+500*time.Millisecond, load))
	}
	home := func(share float64) overflow.Route { return overflow.Route{Group: 0, Share: share} }
	near := func(share float64, e ...int) overflow.Route {
		return overflow.Route{Group: 2, Share: share, Endpoints: e}
	}
	far := func(share float64, e ...int) overflow.Route {
		return overflow.Route{Group: 1, Share: share, Endpoints: e}
	}
	want := [][]overflow.Route{
		{home(1)},
		{home(1)},
		{home(.5), near(.5, 3)},
		{home(.5), near(.5, 3)},
		{home(1. / 3), near(2./3, 3, 4)},
		{home(1. / 3), near(2./3, 3, 4)},
		{home(.25), near(.5, 3, 4), far(.25, 1)},
		{home(.25), near(.5, 3, 4), far(.25, 1)},
		{home(.2), near(.4, 3, 4), far(.4, 1, 2)},
		{home(.2), near(.4, 3, 4), far(.4, 1, 2)},
		{home(.2), near(.4, 3, 4), far(.4, 1, 2)},
		{home(.2), near(.4, 3, 4), far(.4, 1, 2)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
}
