package contender

import (
	"math"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
)

func TestPartOfTheRequestsMayBeRoutedByZonesOnly(t *testing.T) {
	z := newZoneAware(Seat{Clients: []ZoneCount{{"a", 1}, {"b", 1}}})
	z.enabled = 0.25
	z.Reset(0, overflow.Layout{Endpoints: 8, Groups: []overflow.Group{
		{Zone: "a", Endpoints: []int{0, 1, 2, 3}}, {Zone: "b", Endpoints: []int{4, 5, 6, 7}},
	}})
	d := z.Step(time.Second, &overflow.Counters{Groups: []overflow.GroupCounters{{Usable: 4}, {Usable: 4}}})
	// A quarter stays, three quarters are spread over two equal zones.
	if got := d.Groups[0].Share; math.Abs(got-0.625) > 1e-12 {
		t.Errorf("the own zone keeps %v, want 0.625", got)
	}
}
