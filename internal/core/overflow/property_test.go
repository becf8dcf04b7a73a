package overflow_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Whatever the counters say – nonsense, silence, pauses of minutes, endpoints that come and go – shares are shares,
// nothing is undefined, and with the law nothing goes where nobody answers while somebody else would.
func TestSharesAreSharesWhateverTheCountersSay(t *testing.T) {
	for _, name := range overflow.Names() {
		t.Run(name, func(t *testing.T) { nonsense(t, name) })
	}
}

func nonsense(t *testing.T, name string) {
	t.Helper()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		config := overflow.Config{
			Prefer: []overflow.Prefer{"", overflow.PreferCost, overflow.PreferLatency}[random.IntN(3)],
			Shed:   random.IntN(2) == 0,
		}
		law, err := overflow.New(name, config)
		if err != nil {
			t.Fatal(err)
		}
		var now time.Duration
		layout := randomLayout(random)
		law.Reset(now, layout)
		for step := range 400 {
			if random.IntN(40) == 0 {
				layout = randomLayout(random)
				law.Reset(now, layout)
			}
			now += randomPause(random)
			c := randomCounters(random, layout)
			d := law.Step(now, c)
			err := violates(layout, &d)
			if err == nil && name == "Weir" {
				err = misplaced(c, &d)
			}
			if err != nil {
				t.Fatalf("seed %d step %d at %v: %v\ncounters %+v\ndecision %+v", seed, step, now, err, c.Groups, d)
			}
		}
	}
}

func randomLayout(random *rand.Rand) overflow.Layout {
	var layout overflow.Layout
	for _, z := range random.Perm(5)[:1+random.IntN(5)] {
		g := overflow.Group{ID: z, Zone: topology.Zone(rune('a' + z)), Cost: topology.Cost(random.IntN(3)), Tier: random.IntN(3)}
		for range random.IntN(4) {
			g.Endpoints = append(g.Endpoints, layout.Endpoints)
			layout.Endpoints++
		}
		layout.Groups = append(layout.Groups, g)
	}
	return layout
}

func randomPause(random *rand.Rand) time.Duration {
	switch random.IntN(20) {
	case 0:
		return 0
	case 1:
		return -time.Second // a clock that jumps back
	case 2:
		return time.Duration(random.Int64N(int64(time.Hour)))
	default:
		return 100 * time.Millisecond
	}
}

func randomCounters(random *rand.Rand, layout overflow.Layout) *overflow.Counters {
	c := &overflow.Counters{
		Groups:    make([]overflow.GroupCounters, len(layout.Groups)),
		Endpoints: make([]overflow.EndpointCounters, layout.Endpoints),
	}
	scale := []int64{1, 3, 100, 1_000_000}[random.IntN(4)]
	for g := range c.Groups {
		in := &c.Groups[g]
		in.Usable = random.IntN(len(layout.Groups[g].Endpoints) + 1)
		in.Drained = random.IntN(10) == 0
		if random.IntN(4) == 0 {
			continue
		}
		in.Sent, in.OK, in.Failed = random.Int64N(scale), random.Int64N(scale), random.Int64N(scale)
		in.Waiting, in.Aged = random.Int64N(scale), random.Float64()*float64(8*scale)
		in.Latency = time.Duration(random.Int64N(int64(2*time.Second))) * time.Duration(min(in.OK, 1000))
		in.RTT = time.Duration(random.Int64N(int64(500 * time.Millisecond)))
	}
	return c
}

// violates tells what is wrong with a decision.
func violates(layout overflow.Layout, d *overflow.Decision) error {
	var total float64
	for _, r := range d.Routes {
		if !(r.Share > 0 && r.Share <= 1+1e-9) {
			return fmt.Errorf("route %+v has no share", r)
		}
		total += r.Share
	}
	if !(d.Shed >= 0 && d.Shed < 1) || math.Abs(total+d.Shed-1) > 1e-6 {
		return fmt.Errorf("shares sum to %v with %v shed", total, d.Shed)
	}
	if d.Baseline < 0 || !(d.Cap > 0) || len(d.Groups) != len(layout.Groups) {
		return fmt.Errorf("baseline %v, cap %v, %d groups", d.Baseline, d.Cap, len(d.Groups))
	}
	for _, g := range d.Groups {
		for _, v := range []float64{g.Share, g.Slowdown, g.Delivered, g.Allowed, g.Demand} {
			if !(v >= 0) || math.IsInf(v, 1) {
				return fmt.Errorf("status %+v", g)
			}
		}
		if g.Delivered > 1 || g.Slowdown > d.Cap+1e-9 {
			return fmt.Errorf("status %+v", g)
		}
	}
	return nil
}

// misplaced tells whether something goes to a group that is not to be used although another one is.
func misplaced(c *overflow.Counters, d *overflow.Decision) error {
	usable, open := false, false
	for _, in := range c.Groups {
		usable = usable || in.Usable > 0
		open = open || in.Usable > 0 && !in.Drained
	}
	for _, r := range d.Routes {
		in := c.Groups[r.Group]
		if usable && in.Usable == 0 {
			return fmt.Errorf("group %d has no usable endpoint and gets %v", r.Group, r.Share)
		}
		if open && in.Drained {
			return fmt.Errorf("group %d is drained and gets %v", r.Group, r.Share)
		}
	}
	return nil
}
