package pick

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-lb/weir/internal/core/hash"
)

// tableOf is the table of targets, as the ports or the last numbers of their addresses.
func tableOf(size uint64, targets []Target) []int {
	slots := newHashTable(&Config{Algorithm: Maglev, TableSize: size}, targets).(*maglevTable).slots
	table := make([]int, len(slots))
	for i, owner := range slots {
		table[i] = int(owner)
	}
	return table
}

// plus adds to each number.
func plus(table []int, n int) []int {
	sum := slices.Clone(table)
	for i := range sum {
		sum[i] += n
	}
	return sum
}

func counts(table []int, n int) []int {
	c := make([]int, n)
	for _, owner := range table {
		c[owner]++
	}
	return c
}

// Envoy's own tables, and ours.
func TestPublishedTablesAreReproduced(t *testing.T) {
	named := ports(90, 95)
	for i := range named {
		named[i].HashKey = fmt.Sprint(named[i].Addr.Port())
	}
	for _, c := range []struct {
		name    string
		size    uint64
		targets []Target
		first   int
		want    []int
	}{
		{"six addresses in 7", 7, ports(90, 95), 90, []int{92, 94, 90, 91, 95, 90, 93}},
		{"six keys in 7", 7, named, 90, []int{92, 95, 90, 93, 94, 91, 90}},
		{"six addresses in 17", 17, ports(90, 95), 90, []int{91, 90, 90, 95, 92, 95, 91, 94, 94, 91, 93, 93, 92, 90, 93, 92, 94}},
		{"three in 17", 17, threeHosts(), 1, []int{1, 1, 2, 3, 3, 2, 3, 1, 2, 1, 1, 3, 2, 3, 1, 2, 2}},
		{
			"1:2:3 in 17", 17, row("10.0.0.1:8080*1 10.0.0.2:8080*2 10.0.0.3:8080*3"), 1,
			[]int{1, 1, 2, 3, 3, 2, 3, 3, 2, 1, 2, 3, 2, 3, 3, 2, 3},
		},
	} {
		if got := plus(tableOf(c.size, c.targets), c.first); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %v\nwant %v", c.name, got, c.want)
		}
	}
}

//
func TestOrdersOfSlotsAreReproduced(t *testing.T) {
	want := []order{{2, 4}, {3, 6}, {0, 2}, {3, 3}, {1, 3}, {1, 5}}
	got := newFiller(7, weightedKeys(ports(90, 95))).orders
	if !slices.Equal(got, want) {
		t.Errorf("offsets and skips %v, want %v", got, want)
	}
}

func TestTablesOfTheUsualSize(t *testing.T) {
	c := &Config{Algorithm: Maglev}
	if got, want := counts(tableOf(0, threeHosts()), 3), []int{21846, 21846, 21845}; !slices.Equal(got, want) {
		t.Errorf("three hosts have %v, want %v", got, want)
	}
	if got, want := counts(tableOf(0, row("10.0.0.1:8080*1 10.0.0.2:8080*2")), 2), []int{21846, 43691}; !slices.Equal(got, want) {
		t.Errorf("weights 1:2 have %v, want %v", got, want)
	}
	wantPicks(t, newPicker(c, crowd(threeHosts()), new(counter)), ".2", ".3", ".3", ".1", ".3")
}

// sizes that are no primes do not reach here; if one did, the table would be filled all the same.
func TestTableSizeIsAPrime(t *testing.T) {
	for size, want := range map[uint64]int{0: 65_537, 1: 2, 2: 2, 7: 7, 100: 101, 65_536: 65_537, 1 << 40: 5_000_011} {
		if size > 1_000_000 {
			if got := tableSize(&Config{TableSize: size}); got != uint64(want) {
				t.Errorf("size %d becomes %d, want %d", size, got, want)
			}
			continue
		}
		if got := len(tableOf(size, threeHosts())); got != want {
			t.Errorf("size %d: %d slots, want %d", size, got, want)
		}
	}
	if !prime(maxTable) {
		t.Errorf("%d is not a prime", maxTable)
	}
}

// the slots that are tried when the endpoint of the first one does not serve.
func TestSubstituteIsAtTheNextProbe(t *testing.T) {
	random := rand.New(rand.NewPCG(25, 26))
	targets := many(10)
	endpoints := crowd(targets)
	p := newPicker(&Config{Algorithm: Maglev}, endpoints, new(counter)).(*maglev)
	for i := range 5 {
		endpoints[i].standing.Store(out)
	}
	for range 5000 {
		key := random.Uint64()
		want, attempt := (*endpoint)(nil), uint64(0)
		for ; want == nil && attempt < maxProbes; attempt++ {
			h := key
			if attempt > 0 {
				h ^= ^uint64(0) - attempt + 1
			}
			if e := p.endpoints[p.table.slots[h%65_537]]; e.standing.Load() == serving {
				want = e
			}
		}
		if got := seek(t, p, asks(key)); want != nil && got != want {
			t.Fatalf("key %d goes to %v, want %v at attempt %d", key, got.target.Addr, want.target.Addr, attempt-1)
		}
	}
}

// dumbTable is the twin: everybody's whole order is written out, and every round is tried.
func dumbTable(size int, keys []string, weights []float64) []int {
	var sum, heaviest float64
	for _, w := range weights {
		sum += w
	}
	orders, next, targets := make([][]int, len(keys)), make([]int, len(keys)), make([]float64, len(keys))
	for i, key := range keys {
		offset, skip := hash.XXH64String(0, key)%uint64(size), hash.XXH64String(1, key)%uint64(size-1)+1
		for n := range size {
			orders[i] = append(orders[i], int((offset+skip*uint64(n))%uint64(size)))
		}
		heaviest = max(heaviest, weights[i]/sum)
	}
	table, filled := slices.Repeat([]int{-1}, size), 0
	for round := 1; ; round++ {
		for i := range keys {
			if float64(round)*(weights[i]/sum) < targets[i] {
				continue
			}
			targets[i] += heaviest
			for table[orders[i][next[i]]] >= 0 {
				next[i]++
			}
			table[orders[i][next[i]]] = i
			if filled++; filled == size {
				return table
			}
		}
	}
}

func TestTableAgreesWithItsDumbTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(27, 28))
	primes := []int{2, 3, 7, 101, 251, 1009}
	for range 300 {
		targets := many(1 + random.IntN(30))
		heavy := []uint64{1, 3, 1000}[random.IntN(3)]
		if heavy == 1000 && random.IntN(2) == 0 {
			targets = many(100 + random.IntN(100))
		}
		keys, weights := make([]string, len(targets)), make([]float64, len(targets))
		for i := range targets {
			targets[i].HashKey = fmt.Sprintf("key-%03d", i)
			targets[i].Weight = uint32(1 + random.Uint64N(heavy))
			if len(targets) >= 100 && i != len(targets)/2 {
				targets[i].Weight = uint32(1 + random.Uint64N(3)) // one is heavy among many
			}
			keys[i], weights[i] = targets[i].HashKey, float64(targets[i].Weight)
		}
		size := primes[random.IntN(len(primes))]
		if got, want := tableOf(uint64(size), targets), dumbTable(size, keys, weights); !slices.Equal(got, want) {
			t.Fatalf("size %d, weights %v:\n got %v\nwant %v", size, weights, got, want)
		}
	}
}

func TestTableOfMoreEndpointsThanSlots(t *testing.T) {
	table := tableOf(7, many(20))
	if slices.Sort(table); len(slices.Compact(table)) != 7 {
		t.Errorf("7 slots of 20 endpoints: %v, want 7 of them", table)
	}
}

func BenchmarkMaglevBuild(b *testing.B) {
	for _, c := range []struct {
		size uint64
		n    int
		w    []uint32
	}{{65_537, 100, nil}, {65_537, 100, []uint32{1, 2, 3}}, {65_537, 1000, nil}, {65_537, 3, nil}, {655_373, 1000, nil}, {5_000_011, 1000, nil}} {
		b.Run(fmt.Sprintf("slots=%d/endpoints=%d/weights=%d", c.size, c.n, len(c.w)), func(b *testing.B) {
			config, targets := &Config{Algorithm: Maglev, TableSize: c.size}, many(c.n, c.w...)
			b.ReportAllocs()
			for b.Loop() {
				newHashTable(config, targets)
			}
		})
	}
}

func BenchmarkMaglevPick(b *testing.B) {
	for _, size := range []uint64{65_537, 655_373, 5_000_011} {
		b.Run(fmt.Sprintf("slots=%d", size), func(b *testing.B) {
			p := newPicker(&Config{Algorithm: Maglev, TableSize: size}, crowd(many(100)), new(counter))
			b.ReportAllocs()
			key := uint64(0)
			for b.Loop() {
				key += golden
				p.pick(0, mix(key))
			}
		})
	}
}
