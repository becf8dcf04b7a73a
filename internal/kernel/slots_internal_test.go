package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/route"
)

// decision makes one with home of two endpoints and another group of one.
func decision(homeShare float64) *balance.Decision {
	d := &balance.Decision{Endpoints: []balance.Endpoint{
		{Endpoint: route.Endpoint{Weight: 1}, Standing: balance.Serving, Ramp: 1},
		{Endpoint: route.Endpoint{Weight: 3}, Standing: balance.Serving, Ramp: 1},
		{Standing: balance.Serving, Ramp: 1},
	}}
	d.Groups = []balance.Group{{Group: route.Group{Members: []int{0, 1}}}, {Group: route.Group{Members: []int{2}}}}
	d.Routes = []overflow.Route{{Group: 0, Share: homeShare}}
	if homeShare < 1 {
		d.Routes = append(d.Routes, overflow.Route{Group: 1, Share: 1 - homeShare})
	}
	return d
}

func TestWeightsFollowTheDecision(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*balance.Decision)
		want   []float64
	}{
		{"shares and weights", func(*balance.Decision) {}, []float64{0.2, 0.6, 0.2}},
		{"an ejected endpoint", func(d *balance.Decision) { d.Endpoints[1].Standing = balance.Out }, []float64{0.8, 0, 0.2}},
		{"panic", func(d *balance.Decision) {
			d.Endpoints[1].Standing, d.Groups[0].Panics = balance.Out, true
		}, []float64{0.2, 0.6, 0.2}},
		{"a trial", func(d *balance.Decision) { d.Endpoints[0].Standing = balance.Due }, []float64{0.8 / 13, 0.8 * 12 / 13, 0.2}},
		{"slow start", func(d *balance.Decision) { d.Endpoints[1].Ramp = 1. / 3 }, []float64{0.4, 0.4, 0.2}},
		{"home is drained", func(d *balance.Decision) {
			d.Endpoints[0].Drained, d.Endpoints[1].Unready = true, true
		}, []float64{0, 0, 1}},
		{"nothing is usable", func(d *balance.Decision) {
			for i := range d.Endpoints {
				d.Endpoints[i].Unready = true
			}
		}, []float64{0, 0, 0}},
		{"parts", func(d *balance.Decision) {
			d.Groups[0].Parted = true
			d.Endpoints[0].Affinity, d.Endpoints[0].AffinityWeight = "near", 3
			d.Endpoints[1].AffinityWeight = 1
		}, []float64{0.6, 0.2, 0.2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := decision(0.8)
			c.change(d)
			got := weights(d)
			for i := range got {
				got[i] = math.Round(got[i]*1e9) / 1e9
				c.want[i] = math.Round(c.want[i]*1e9) / 1e9
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSlotsAreApportionedByWeight(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		all := make([]float64, 1+random.IntN(40))
		sum := 0.0
		for i := range all {
			if random.IntN(3) > 0 {
				all[i] = random.ExpFloat64()
				sum += all[i]
			}
		}
		n := int(slotsFor(len(all)))
		counts, total := apportion(all, n), 0
		for i, count := range counts {
			total += count
			if exact := all[i] / max(sum, 1e-9) * float64(n); (count > 0) != (all[i] > 0) || math.Abs(float64(count)-exact) > 2 {
				t.Fatalf("%v gives %v: %d slots of %d instead of %.2f", all, counts, count, n, exact)
			}
		}
		if sum > 0 && total != n {
			t.Fatalf("%v gives %d slots, want %d", all, total, n)
		}
	}
}

func TestARoomGivesOutNothingTwice(t *testing.T) {
	r, taken := newRoom(1000), make(map[uint32]bool)
	random := rand.New(rand.NewPCG(1, 2))
	type piece struct{ at, length uint32 }
	var held []piece
	full := false
	for range 5000 {
		if length := uint32(1) << random.IntN(5); random.IntN(3) > 0 || len(held) == 0 {
			at, err := r.take(length)
			if full = full || err != nil; err != nil {
				continue
			}
			for i := at; i < at+length; i++ {
				if i >= 1000 || taken[i] {
					t.Fatalf("element %d was given out twice, or does not exist", i)
				}
				taken[i] = true
			}
			held = append(held, piece{at, length})
			continue
		}
		last := held[len(held)-1]
		held = held[:len(held)-1]
		for i := last.at; i < last.at+last.length; i++ {
			delete(taken, i)
		}
		r.give(last.at, last.length)
	}
	if !full {
		t.Error("the room was never full")
	}
}
