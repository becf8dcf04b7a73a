package overflow_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
)

// capped makes a strategy that keeps a cap.
func capped(t *testing.T, name string, skew overflow.Skew) *overflow.Capped {
	t.Helper()
	s, err := overflow.New(name, overflow.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return &overflow.Capped{Strategy: s, Skew: skew}
}

// zones makes the scene of a client in zone at, with so many usable endpoints in each zone.
func zones(at int, endpoints []int) (overflow.Layout, *overflow.Counters) {
	var scene overflow.Layout
	c := new(overflow.Counters)
	for i := range endpoints {
		z := (at + i) % len(endpoints)
		g := overflow.Group{Zone: topology.Zone(rune('a' + z)), Cost: topology.Cost(i)}
		for range endpoints[z] {
			g.Endpoints = append(g.Endpoints, scene.Endpoints)
			scene.Endpoints++
		}
		scene.Groups = append(scene.Groups, g)
		c.Groups = append(c.Groups, overflow.GroupCounters{Usable: endpoints[z]})
	}
	c.Endpoints = make([]overflow.EndpointCounters, scene.Endpoints)
	return scene, c
}

// Static would send each zone's requests home. With the cap no zone gets more than Max times the mean, and as much as that
// where its own demand is more.
func TestNoZoneIsExpectedToGetMoreThanTheCap(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 3))
		n := 2 + random.IntN(4)
		endpoints, demand, total := make([]int, n), make([]float64, n), 0
		skew := overflow.Skew{Max: 1 + random.Float64(), Demand: make(map[topology.Zone]float64)}
		sum := 0.0
		for z := range n {
			endpoints[z], demand[z] = 1+random.IntN(6), random.Float64()
			total += endpoints[z]
			sum += demand[z]
		}
		load := make([]float64, n)
		for z := range n {
			demand[z] /= sum
			skew.Demand[topology.Zone(rune('a'+z))] = demand[z]
		}
		for z := range n {
			s := capped(t, "Static", skew)
			scene, c := zones(z, endpoints)
			s.Reset(0, scene)
			for range 3 { // the decisions do not add up
				d := s.Step(time.Second, c)
				if err := violates(scene, &d); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			for _, r := range s.Step(time.Second, c).Routes {
				load[int(scene.Groups[r.Group].Zone[0]-'a')] += demand[z] * r.Share
			}
		}
		for z := range n {
			most := skew.Max * float64(endpoints[z]) / float64(total)
			if load[z] > most+1e-9 || demand[z] > most && load[z] < most-1e-9 || demand[z] <= most && load[z] < demand[z]-1e-9 {
				t.Fatalf("seed %d: zone %d has a demand of %.3f and gets %.3f, the cap is %.3f", seed, z, demand[z], load[z], most)
			}
		}
	}
}

func TestTheCapGivesNothingToWhoCannotTakeIt(t *testing.T) {
	skew := overflow.Skew{Max: 1.2, Demand: map[topology.Zone]float64{"a": 0.8, "b": 0.1, "c": 0.1}}
	for name, c := range map[string]struct {
		change func(*overflow.Counters)
		want   [3]float64
	}{
		"all":              {func(*overflow.Counters) {}, [3]float64{0.5, 0.25, 0.25}},
		"a drained zone":   {func(c *overflow.Counters) { c.Groups[1].Drained = true }, [3]float64{0.75, 0, 0.25}},
		"one without":      {func(c *overflow.Counters) { c.Groups[2].Usable = 0 }, [3]float64{0.75, 0.25, 0}},
		"none that can":    {func(c *overflow.Counters) { c.Groups[1].Usable, c.Groups[2].Drained = 0, true }, [3]float64{1, 0, 0}},
		"home without any": {func(c *overflow.Counters) { c.Groups[0].Usable = 0 }, [3]float64{1, 0, 0}},
	} {
		s := capped(t, "Static", skew)
		scene, counters := zones(0, []int{4, 4, 4})
		c.change(counters)
		s.Reset(0, scene)
		var got [3]float64
		for _, r := range s.Step(time.Second, counters).Routes {
			got[r.Group] += r.Share
		}
		for i := range got {
			if diff := got[i] - c.want[i]; diff > 1e-9 || diff < -1e-9 {
				t.Errorf("%s: want %v, got %v", name, c.want, got)
				break
			}
		}
	}
}

// Of 0.5 that are over, the first tier has room for 0.3 of all requests, 0.375 of those of zone a.
func TestTheCapFillsTheLowerTierFirst(t *testing.T) {
	skew := overflow.Skew{Max: 1.2, Demand: map[topology.Zone]float64{"a": 0.8, "b": 0.1, "c": 0.1}}
	s := capped(t, "Static", skew)
	scene, c := zones(0, []int{4, 4, 4})
	scene.Groups[1].Tier, scene.Groups[2].Tier = 2, 1
	s.Reset(0, scene)
	d := s.Step(time.Second, c)
	for i, want := range []float64{0.5, 0.125, 0.375} {
		if got := d.Groups[i].Share; got < want-1e-9 || got > want+1e-9 {
			t.Errorf("group %d: want %v, got %v", i, want, got)
		}
	}
}

func TestACapLeavesDecisionsSound(t *testing.T) {
	for _, name := range overflow.Names() {
		for seed := range uint64(100) {
			random := rand.New(rand.NewPCG(seed, 5))
			s := capped(t, name, overflow.Skew{Max: 1 + random.Float64(), Demand: map[topology.Zone]float64{"a": 0.6, "b": 0.3}})
			scene := randomLayout(random)
			var now time.Duration
			s.Reset(now, scene)
			for step := range 200 {
				now += randomPause(random)
				c := randomCounters(random, scene)
				d := s.Step(now, c)
				if err := violates(scene, &d); err != nil {
					t.Fatalf("%s seed %d step %d: %v", name, seed, step, err)
				}
			}
		}
	}
}
