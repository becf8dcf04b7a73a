package pick_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/topology"
)

// shareOut makes n requests and counts them by zone; shed ones under "".
func shareOut(p *pick.Pool, n int, request func() pick.Request) map[topology.Zone]int {
	counts := make(map[topology.Zone]int)
	for range n {
		ticket, v := p.Pick(time.Second, request())
		if v != pick.Picked {
			counts[""]++
			continue
		}
		counts[ticket.Zone()]++
		ticket.Answer(time.Second, pick.Success)
		ticket.Close(time.Second, pick.Success)
	}
	return counts
}

func plain() pick.Request { return pick.Request{} }

func TestFewRequestsKeepToTheSharesExactly(t *testing.T) {
	shares := []float64{0.6, 0.3, 0.1}
	p := pick.NewPool(pick.Options{Zone: "zone-a", Random: rand.New(rand.NewPCG(1, 1)).Uint64, Strategy: fixed{shares: shares}})
	p.Update(0, targets(9))
	for _, n := range []int{10, 30, 100, 1000} {
		counts := shareOut(p, n, plain)
		for i, zone := range []topology.Zone{"zone-a", "zone-b", "zone-c"} {
			// Steps of the golden ratio never miss a share by more than a few requests, however many there are.
			if off := math.Abs(float64(counts[zone]) - shares[i]*float64(n)); off > 2 {
				t.Errorf("%d requests: %d went to %s, want %.0f ± 2", n, counts[zone], zone, shares[i]*float64(n))
			}
		}
	}
}

func TestManyRequestsKeepToTheSharesByChance(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	p := pick.NewPool(pick.Options{Zone: "zone-a", Random: random.Uint64, Strategy: fixed{shares: []float64{0.6, 0.3, 0.1}}})
	p.Update(0, targets(9))
	shareOut(p, 5000, plain)
	p.Tick(millis(100)) // 50,000 in a second: from now on the sequence is not used
	counts := shareOut(p, 100_000, plain)
	for zone, want := range map[topology.Zone]float64{"zone-a": 0.6, "zone-b": 0.3, "zone-c": 0.1} {
		if got := float64(counts[zone]) / 100_000; math.Abs(got-want) > 0.006 { // four standard errors
			t.Errorf("%s got %.4f of the requests, want %.1f", zone, got, want)
		}
	}
}

func TestEndpointsOfAZoneGetTheirPartWhateverTheZoneChoice(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	p := pick.NewPool(pick.Options{
		Zone: "zone-a", Random: random.Uint64, Config: pick.Config{Algorithm: pick.Random}, Strategy: fixed{shares: []float64{0.5, 0.5}},
	})
	p.Update(0, targets(18))
	shareOut(p, 5000, plain)
	p.Tick(millis(100)) // zone and endpoint now come from one random number
	counts := make(map[string]int)
	for range 120_000 {
		ticket, _ := p.Pick(time.Second, pick.Request{})
		ticket.Close(time.Second, pick.Success)
		counts[ticket.Addr().String()]++
	}
	if len(counts) != 12 {
		t.Fatalf("%d endpoints used, want the 12 of two zones", len(counts))
	}
	for addr, n := range counts {
		if math.Abs(float64(n)-10_000) > 400 { // four standard errors
			t.Errorf("%s got %d requests, want 10000 ± 400", addr, n)
		}
	}
}

func TestKeysMoveInsteadOfRequests(t *testing.T) {
	shares := []float64{0.8, 0.2}
	strategy := &fixed{shares: shares}
	random := rand.New(rand.NewPCG(7, 8))
	p := pick.NewPool(pick.Options{Zone: "zone-a", Random: random.Uint64, Strategy: strategy})
	p.Update(0, targets(9))

	zoneOf := func(key uint64) topology.Zone {
		ticket, _ := p.Pick(time.Second, pick.Request{Key: key, HasKey: true})
		ticket.Close(time.Second, pick.Success)
		return ticket.Zone()
	}
	before := make([]topology.Zone, 10_000)
	abroad := 0
	for key := range before {
		before[key] = zoneOf(uint64(key)) // not even hashed: the pool must scatter them
		if before[key] != zoneOf(uint64(key)) {
			t.Fatalf("key %d changes its zone between two requests", key)
		}
		if before[key] != "zone-a" {
			abroad++
		}
	}
	if abroad < 1850 || abroad > 2150 {
		t.Errorf("%d of 10000 keys are abroad, want about 2000", abroad)
	}

	strategy.shares = []float64{0.7, 0.3}
	p.Tick(seconds(1))
	moved := 0
	for key, zone := range before {
		now := zoneOf(uint64(key))
		if now != zone {
			moved++
			if zone != "zone-a" {
				t.Fatalf("key %d came back although the home share fell", key)
			}
		}
	}
	if moved < 850 || moved > 1150 {
		t.Errorf("%d of 10000 keys moved for a tenth of the share, want about 1000", moved)
	}
}

func TestShedRequestsAreTheAskedForFraction(t *testing.T) {
	p := pick.NewPool(pick.Options{Zone: "zone-a", Strategy: fixed{shares: []float64{0.5, 0.2}, shed: 0.3}})
	p.Update(0, targets(9))
	counts := shareOut(p, 1000, plain)
	if counts[""] < 298 || counts[""] > 302 {
		t.Errorf("%d of 1000 shed, want 300: %v", counts[""], counts)
	}
}

func TestEmptyPoolHasNoEndpoint(t *testing.T) {
	p := pick.NewPool(pick.Options{})
	if _, v := p.Pick(0, pick.Request{}); v != pick.NoEndpoint {
		t.Errorf("new pool: verdict %v, want NoEndpoint", v)
	}
	p.Update(0, targets(3))
	p.Update(0, nil)
	ticket, v := p.Pick(0, pick.Request{})
	if v != pick.NoEndpoint {
		t.Errorf("emptied pool: verdict %v, want NoEndpoint", v)
	}
	ticket.Answer(0, pick.Success)
	ticket.Close(0, pick.Success)
	p.Tick(seconds(1))
}
