package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

func TestAgendaGivesEventsInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a := newAgenda(0)
	var want []event // the dumb twin: a list that is sorted stably
	now := time.Duration(0)
	for range 20_000 {
		if n := uint32(a.made); r.Float64() < 0.52 {
			at := now
			switch k := r.IntN(4); k {
			case 0, 1: // a line's events come 5 and 50 ns later
				at += time.Duration(5 * math.Pow10(k))
				a.append(k, at, event{order: uint64(evHear), about: n})
			default:
				at += time.Duration(r.IntN(100))
				a.add(at, evHear, n, 0)
			}
			want = append(want, event{at: at, about: n})
			continue
		}
		slices.SortStableFunc(want, func(a, b event) int { return int(a.at - b.at) })
		e, ok := a.next(now + 20)
		switch {
		case !ok && len(want) > 0 && want[0].at <= now+20:
			t.Fatalf("nothing until %d, want an event at %d", now+20, want[0].at)
		case ok && (e.at != want[0].at || e.about != want[0].about || e.kind() != evHear):
			t.Fatalf("event %d at %d, want %d at %d", e.about, e.at, want[0].about, want[0].at)
		case ok:
			now, want = e.at, want[1:]
		default:
			now += 20
		}
	}
}

func TestQuantilesAreRightWithinOnePercent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, mean := range []time.Duration{50 * time.Microsecond, 20 * time.Millisecond, 3 * time.Second} {
		h, all := new(histogram), []time.Duration{}
		for range 100_000 {
			d := time.Duration(float64(mean) * r.ExpFloat64())
			h.add(d)
			all = append(all, d)
		}
		slices.Sort(all)
		for _, q := range []float64{0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1} {
			want := all[max(0, int(q*float64(len(all)))-1)]
			if got := h.quantile(q); math.Abs(float64(got-want)) > 0.01*float64(want) {
				t.Errorf("mean %v: quantile %v is %v, want %v", mean, q, got, want)
			}
		}
	}
}

func TestEveryBucketHoldsItsBounds(t *testing.T) {
	for i := range buckets {
		from, to := bounds(i)
		if bucket(from) != i || bucket(to-1) != i || float64(to-from) > float64(max(from, 1<<(unitShift+subBits)))/64 {
			t.Fatalf("bucket %d counts from %v to %v, which belong to %d and %d", i, from, to, bucket(from), bucket(to-1))
		}
	}
	if last := bucket(time.Duration(math.MaxInt64)); last != buckets-1 {
		t.Errorf("the longest time belongs to bucket %d of %d", last, buckets)
	}
}

func TestDemandAddsUpToItsRate(t *testing.T) {
	sc := &scenario.Scenario{
		Length: 400 * time.Second,
		Steps: []scenario.Step{
			{At: 50 * time.Second, Verb: scenario.Rate, Factor: 3, Where: scenario.Where{Zone: "a"}},
			{At: 60 * time.Second, Verb: scenario.Rate, Factor: 9, Where: scenario.Where{Zone: "b"}},
			{At: 100 * time.Second, Verb: scenario.Rate, Factor: 0, Over: 50 * time.Second},
			{At: 200 * time.Second, Verb: scenario.Rate, Factor: 2, Over: 20 * time.Second},
			{At: 210 * time.Second, Verb: scenario.Rate, Factor: 1, Over: 10 * time.Second}, // before the other is done
		},
		Day: &scenario.Day{Period: 300 * time.Second, Low: 0.5, High: 2, Lag: map[topology.Zone]time.Duration{"a": 20 * time.Second}},
	}
	factor := func(s float64) float64 { // as a person reads the steps
		switch {
		case s < 50:
			return 1
		case s < 100:
			return 3
		case s < 150:
			return 3 * (150 - s) / 50
		case s < 200:
			return 0
		case s < 210:
			return 2 * (s - 200) / 20
		default:
			return 1 // of 1, halfway, to 1
		}
	}
	d := newDemand(sc, &scenario.Clients{Zone: "a", Rate: 100})
	cursor, area := 0, 0.0
	const grain = 0.001
	for s := 0.0; s < 400; s += grain {
		middle := s + grain/2
		area += grain * 100 * factor(middle) * (1.25 - 0.75*math.Cos(2*math.Pi*(middle-20)/300))
		if rest := math.Mod(s, 7); rest < grain && factor(s) > 0 {
			got := d.due(area, &cursor).Seconds()
			if rate := 100 * factor(s); math.Abs(got-s-grain)*rate > 0.002*area+1 {
				t.Fatalf("request %.1f is due at %.3f s, want %.3f", area, got, s+grain)
			}
		}
	}
	if at := d.due(area*1.01, &cursor); at != never {
		t.Errorf("a request is due at %v, after the end", at)
	}
}

func TestGeneratorsOfNeighboursAreNotAlike(t *testing.T) {
	seen := make(map[uint64]bool)
	for seed := range uint64(10) {
		for _, a := range []actor{ofArrivals, ofPool, ofPaths, ofDiscovery} {
			for i := range 50 {
				g := generator(seed, a, i)
				for range 3 {
					seen[g.Uint64()>>16] = true
				}
			}
		}
	}
	if want := 10 * 4 * 50 * 3; len(seen) != want {
		t.Errorf("%d numbers of %d differ", len(seen), want)
	}
}
