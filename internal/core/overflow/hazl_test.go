package overflow_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/overflow"
)

func TestHazlMovesOneEndpointASecondInOrder(t *testing.T) {
	s, err := overflow.New("Hazl", overflow.Config{Low: 1, High: 2})
	if err != nil {
		t.Fatal(err)
	}
	s.Reset(0, overflow.Layout{Endpoints: 5, Groups: []overflow.Group{
		{Zone: "a", Endpoints: []int{0}},
		{Zone: "near", Cost: 1, Endpoints: []int{3, 4}},
		{Zone: "far", Cost: 4, Endpoints: []int{1, 2}},
	}})
	step := func(now time.Duration, inFlight int64) [][]int {
		c := &overflow.Counters{Groups: make([]overflow.GroupCounters, 3), Endpoints: make([]overflow.EndpointCounters, 5)}
		c.Endpoints[0].InFlight = inFlight
		var used [][]int
		sum := 0.0
		for _, r := range s.Step(now, c).Routes {
			used = append(used, append([]int{r.Group}, r.Endpoints...))
			sum += r.Share
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("at %v the shares sum to %v", now, sum)
		}
		return used
	}
	var got [][][]int
	for i := range 6 {
		load := int64(1000)
		if i > 3 {
			load = -1 // nonsense counts as nothing
		}
		got = append(got, step(time.Duration(i)*time.Second, load))
		got = append(got, step(time.Duration(i)*time.Second+500*time.Millisecond, load))
	}
	home, near, far := []int{0}, 1, 2
	want := [][][]int{ // group and added endpoints of each route
		{home},
		{home},
		{home, {near, 3}},
		{home, {near, 3}},
		{home, {near, 3, 4}},
		{home, {near, 3, 4}},
		{home, {near, 3, 4}, {far, 1}},
		{home, {near, 3, 4}, {far, 1}},
		{home, {near, 3, 4}, {far, 1, 2}},
		{home, {near, 3, 4}, {far, 1, 2}},
		{home, {near, 3, 4}, {far, 1, 2}},
		{home, {near, 3, 4}, {far, 1, 2}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
}

// Three endpoints at home and one added: a quarter of the requests while all are alike, and nearly half, as was published,
// while home is slow.
func TestHazlGivesAnAddedEndpointWhatChoicesOfTwoWould(t *testing.T) {
	for _, c := range []struct{ slower, least, most float64 }{{1, 0.249, 0.251}, {1.5, 0.27, 0.33}, {10, 0.38, 0.4375}} {
		s, err := overflow.New("Hazl", overflow.Config{Low: 0.1, High: 1})
		if err != nil {
			t.Fatal(err)
		}
		s.Reset(0, overflow.Layout{Endpoints: 4, Groups: []overflow.Group{
			{Zone: "a", Endpoints: []int{0, 1, 2}}, {Zone: "b", Endpoints: []int{3}},
		}})
		counters := &overflow.Counters{Groups: make([]overflow.GroupCounters, 2), Endpoints: make([]overflow.EndpointCounters, 4)}
		for i := range counters.Endpoints {
			counters.Endpoints[i] = overflow.EndpointCounters{InFlight: 2, OK: 4, Latency: 4 * 40 * time.Millisecond}
			if i < 3 {
				counters.Endpoints[i].Latency = time.Duration(c.slower * float64(counters.Endpoints[i].Latency))
			}
		}
		var d overflow.Decision
		for now := time.Duration(0); now < 10*time.Second; now += 100 * time.Millisecond {
			d = s.Step(now, counters)
		}
		if len(d.Routes) != 2 || d.Routes[1].Share < c.least || d.Routes[1].Share > c.most {
			t.Errorf("home %v times slower: routes %+v, want %.3f to %.3f on the added endpoint", c.slower, d.Routes, c.least, c.most)
		}
	}
}
