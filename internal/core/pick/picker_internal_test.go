package pick

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/weir-lb/weir/internal/core/balance"
)

// newPicker makes the picker of any algorithm, as a pool does for one group.
func newPicker(c *Config, endpoints []*endpoint, counter *counter) picker {
	targets := make([]Target, len(endpoints))
	for i, e := range endpoints {
		targets[i] = e.target
	}
	switch {
	case c.Algorithm.hashes():
		return newHashTable(c, targets).over(endpoints)
	case slices.ContainsFunc(targets, func(t Target) bool { return t.AffinityWeight > 0 }):
		return newAffinity(c, endpoints, counter)
	default:
		return newPlain(c, endpoints, counter)
	}
}

func TestPickersMayBeUsedWhileEndpointsChange(t *testing.T) {
	for _, a := range Algorithms() {
		for _, weights := range [][]uint32{{1}, {1, 2, 3}} {
			targets := many(20, weights...)
			for i := range targets {
				if len(weights) > 1 { // parts for the one, none for the other
					targets[i].AffinityWeight, targets[i].Affinity = 1, string(rune('a'+i%2))
				}
			}
			endpoints := crowd(targets)
			p := newPicker(&Config{Algorithm: a, Config: balance.Config{SlowStart: &SlowStart{}}}, endpoints, new(counter))
			var all sync.WaitGroup
			for k := range uint64(3) {
				all.Go(func() {
					random := rand.New(rand.NewPCG(61, k))
					for range 2000 {
						key := random.Uint64()
						e := p.pick(key, key)
						if w, ok := p.(interface{ next(q query) *endpoint }); ok && e.standing.Load() != serving {
							e = w.next(asks(key))
						}
						if e != nil {
							e.flow.Add(startOne)
						}
					}
				})
			}
			all.Go(func() {
				random := rand.New(rand.NewPCG(62, 63))
				for range 2000 {
					e := endpoints[random.IntN(len(endpoints))]
					e.standing.Store(random.Uint32N(2))
					e.ramp.Store(random.Uint32N(rampFull))
				}
			})
			all.Wait()
			started := uint64(0)
			for _, e := range endpoints {
				started += e.flow.Load() >> 32
			}
			if started == 0 {
				t.Errorf("%s, weights %v: nobody was picked", a, weights)
			}
		}
	}
}

// What is not validated must do no harm here: no panic, no endless loop, and somebody of those given.
func FuzzPickersTakeAnyConfig(f *testing.F) {
	f.Add(uint8(0), uint64(0), uint64(0), int64(2), 1.0, []byte{1, 2, 3})
	f.Add(uint8(4), uint64(7), uint64(3), int64(-1), math.Inf(1), []byte{0})
	f.Add(uint8(5), uint64(100), uint64(1), int64(math.MaxInt64), math.NaN(), []byte{255, 0, 7, 7, 7, 7})
	f.Add(uint8(3), uint64(1), uint64(1), int64(9), -800.0, []byte{1, 200})
	f.Fuzz(func(t *testing.T, algorithm uint8, size, most uint64, choices int64, bias float64, weights []byte) {
		if len(weights) == 0 || len(weights) > 200 {
			return
		}
		targets := many(len(weights))
		for i, w := range weights {
			targets[i].Weight = uint32(w) * uint32(w) * uint32(w%16*w%16*100)
			if w%16 == 3 {
				targets[i].AffinityWeight = uint32(w)
				targets[i].Affinity = string(rune('a' + w%3))
			}
		}
		c := &Config{
			Algorithm: Algorithms()[int(algorithm)%len(Algorithms())], Choices: int(choices), Bias: &bias,
			// Small enough for a fuzzer; the largest have their own tests.
			MinRingSize: size % 5000, MaxRingSize: most%5000 + 1, TableSize: size % 5000,
		}
		endpoints := crowd(targets)
		p := newPicker(c, endpoints, new(counter))
		for i := range uint64(50) {
			number := mix(size + i*golden)
			if e := p.pick(number, number); !slices.Contains(endpoints, e) {
				t.Fatalf("picked %v", e)
			}
			if w, ok := p.(interface{ next(q query) *endpoint }); ok && w.next(asks(number)) == nil {
				t.Fatal("nobody is found though all serve")
			}
		}
	})
}
