package pick_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/topology"
)

// targets makes n endpoints in three zones, a third of them at home.
func targets(n int) []pick.Target {
	list := make([]pick.Target, n)
	for i := range list {
		zone := i % 3
		list[i] = pick.Target{
			Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(zone), byte(i >> 8), byte(i)}), 80),
			Zone: topology.Zone("zone-" + string(rune('a'+zone))),
			Cost: topology.Cost(min(zone, 1)),
			Home: zone == 0,
		}
	}
	return list
}

// home makes n endpoints of the client's own zone.
func home(n int) []pick.Target {
	list := targets(3 * n)
	var kept []pick.Target
	for _, t := range list {
		if t.Home {
			kept = append(kept, t)
		}
	}
	return kept
}

// benchmarkPool is a pool that spills three of ten requests, and has been ticked at a high rate, as it would be.
func benchmarkPool(n int, a pick.Algorithm) *pick.Pool {
	p := pick.NewPool(pick.Options{
		Zone: "zone-a", Random: rand.Uint64, Config: pick.Config{Algorithm: a}, Parallel: runtime.GOMAXPROCS(0),
		Strategy: fixed{shares: []float64{0.7, 0.3}, baseline: time.Millisecond},
	})
	p.Update(0, targets(n))
	shareOut(p, 20_000, plain)
	p.Tick(time.Second)
	return p
}

// BenchmarkPick is the choice alone; what it counts is taken back outside of what is timed only as far as the number in
// flight, which nobody reads to decide here, may grow.
func BenchmarkPick(b *testing.B) {
	for _, n := range []int{3, 30, 300} {
		b.Run(fmt.Sprintf("endpoints=%d", n), func(b *testing.B) {
			p := benchmarkPool(n, pick.PowerOfTwo)
			b.ReportAllocs()
			for b.Loop() {
				if _, v := p.Pick(time.Second, pick.Request{}); v != pick.Picked {
					b.Fatal(v)
				}
			}
		})
		b.Run(fmt.Sprintf("endpoints=%d/parallel", n), func(b *testing.B) {
			p := benchmarkPool(n, pick.PowerOfTwo)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					p.Pick(time.Second, pick.Request{})
				}
			})
		})
	}
}

// BenchmarkPickAndCompletion is a whole attempt, with the two clock reads that it needs.
func BenchmarkPickAndCompletion(b *testing.B) {
	origin := time.Now()
	attempt := func(p *pick.Pool) {
		t, _ := p.Pick(time.Since(origin), pick.Request{})
		now := time.Since(origin)
		t.Answer(now, pick.Success)
		t.Close(now, pick.Success)
	}
	for _, n := range []int{3, 30, 300} {
		b.Run(fmt.Sprintf("endpoints=%d", n), func(b *testing.B) {
			p := benchmarkPool(n, pick.PowerOfTwo)
			b.ReportAllocs()
			for b.Loop() {
				attempt(p)
			}
		})
		b.Run(fmt.Sprintf("endpoints=%d/parallel", n), func(b *testing.B) {
			p := benchmarkPool(n, pick.PowerOfTwo)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					attempt(p)
				}
			})
		})
	}
}

// BenchmarkAlgorithms is a whole attempt without clock reads, by algorithm.
func BenchmarkAlgorithms(b *testing.B) {
	for _, a := range pick.Algorithms() {
		b.Run(string(a), func(b *testing.B) {
			p := benchmarkPool(30, a)
			b.ReportAllocs()
			for b.Loop() {
				t, _ := p.Pick(time.Second, pick.Request{})
				t.Answer(time.Second, pick.Success)
				t.Close(time.Second, pick.Success)
			}
		})
	}
}

// BenchmarkNothingShared is what two processors can do at the same time here: work that touches nothing of each other.
func BenchmarkNothingShared(b *testing.B) {
	work := func(x uint64) uint64 {
		for range 30 {
			x = x*6364136223846793005 + 1442695040888963407
		}
		return x
	}
	b.Run("alone", func(b *testing.B) {
		x := uint64(1)
		for b.Loop() {
			x = work(x)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			x := uint64(1)
			for pb.Next() {
				x = work(x)
			}
			runtime.KeepAlive(x)
		})
	})
}

// BenchmarkClock is what one clock read costs here.
func BenchmarkClock(b *testing.B) {
	origin := time.Now()
	var sum time.Duration
	for b.Loop() {
		sum += time.Since(origin)
	}
	_ = sum
}

// BenchmarkTick is one step of the loop with nothing to do, as most are.
func BenchmarkTick(b *testing.B) {
	for _, n := range []int{3, 30, 300} {
		b.Run(fmt.Sprintf("endpoints=%d", n), func(b *testing.B) {
			p := benchmarkPool(n, pick.PowerOfTwo)
			now := time.Second
			b.ReportAllocs()
			for b.Loop() {
				now += 100 * time.Millisecond
				p.Tick(now)
			}
		})
	}
}

// BenchmarkBusyTick is the same when each endpoint has answered some requests since the last one: the median of all ticks, as
// whatever else the machine does lengthens some of them.
func BenchmarkBusyTick(b *testing.B) {
	for _, n := range []int{3, 30, 300} {
		b.Run(fmt.Sprintf("endpoints=%d", n), func(b *testing.B) {
			p := benchmarkPool(n, pick.PowerOfTwo)
			now := time.Second
			var took []time.Duration
			for b.Loop() {
				for range 3 * n {
					t, _ := p.Pick(now, pick.Request{})
					t.Answer(now+time.Millisecond, pick.Success)
					t.Close(now+time.Millisecond, pick.Success)
				}
				now += 100 * time.Millisecond
				start := time.Now()
				p.Tick(now)
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2]), "ns/tick")
		})
	}
}
