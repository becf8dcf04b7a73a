package pick

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/core/hash"
)

// ringOf is the ring of targets.
func ringOf(c Config, targets []Target) *hashRing {
	c.Algorithm = RingHash
	return newHashTable(&c, targets).(*hashRing)
}

// text shows a ring as port:hash, in order.
func text(r *hashRing, targets []Target) string {
	var b strings.Builder
	for i, h := range r.hashes {
		fmt.Fprintf(&b, "%d:%d ", targets[r.owners[i]].Addr.Port(), h)
	}
	return strings.TrimSpace(b.String())
}

// the rings that Envoy's own tests publish.
func TestPublishedRingsAreReproduced(t *testing.T) {
	named := ports(90, 95)
	for i := range named {
		named[i].HashKey = fmt.Sprint(named[i].Addr.Port())
	}
	for _, c := range []struct {
		name    string
		targets []Target
		config  Config
		want    string
	}{
		{"XXHash of addresses", ports(90, 95), Config{MinRingSize: 12}, "94:833437586790550860 92:928266305478181108 " +
			"90:1033482794131418490 95:3551244743356806947 93:3851675632748031481 91:5583722120771150861 91:6311230543546372928 " +
			"93:7700377290971790572 95:13144177310400110813 92:13444792449719432967 94:15516499411664133160 90:16117243373044804889"},
		{"MurmurHash2 of addresses", ports(80, 85), Config{MinRingSize: 12, HashFunction: MurmurHash2}, "85:1358027074129602068 " +
			"83:4361834613929391114 84:7224494972555149682 81:7701421856454313576 82:8649315368077433379 84:8739448859063030639 " +
			"81:9887544217113020895 82:10150910876324007731 83:15168472011420622455 80:15427156902705414897 85:16375050414328759093 " +
			"80:17613279263364193813"},
		{"XXHash of hash keys", named, Config{MinRingSize: 12}, "95:1975508444536362413 95:2376063919839173711 " +
			"93:2386806903309390596 94:6749904478991551885 93:6803900775736438537 92:7225015537174310577 90:8787465352164086522 " +
			"92:11282020843382717940 91:13723418369486627818 90:13776502110861797421 91:14338313586354474791 94:15364271037087512980"},
	} {
		if got := text(ringOf(c.config, c.targets), c.targets); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// a key belongs to the first entry at or above it, and to the first of all above the last.
func TestKeysBelongToTheNextEntry(t *testing.T) {
	endpoints := crowd(ports(90, 95))
	p := newPicker(&Config{Algorithm: RingHash, MinRingSize: 12}, endpoints, new(counter))
	for key, want := range map[uint64]uint16{
		0: 94, math.MaxUint64: 94, 3551244743356806947: 95, 3551244743356806948: 93, 16117243373044804880: 90,
	} {
		if got := p.pick(0, key).target.Addr.Port(); got != want {
			t.Errorf("key %d belongs to %d, want %d", key, got, want)
		}
	}
}

func TestRingsOfOurOwnVectors(t *testing.T) {
	named := threeHosts()
	for i := range named {
		named[i].HashKey = fmt.Sprintf("db-%d", i)
	}
	for _, c := range []struct {
		name    string
		targets []Target
		config  Config
		size    int
		lowest  uint64
		owner   uint32
		picks   []string
	}{
		{"XXHash", threeHosts(), Config{}, 1026, 28240643374849546, 1, []string{".3", ".3", ".2", ".1", ".1"}},
		{"XXHash as gRPC caps it", threeHosts(), Config{MaxRingSize: 4096}, 1026, 28240643374849546, 1, []string{".3", ".3", ".2", ".1", ".1"}},
		{
			"the specification's example", threeHosts(),
			Config{HashFunction: MurmurHash2, MinRingSize: 64, MaxRingSize: 1024},
			66, 459516967481238359, 1,
			[]string{".3", ".2", ".1", ".1", ".3"},
		},
		{"hash keys", named, Config{}, 1026, 11119799216444592, 2, []string{".1", ".1", ".3", ".1", ".2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ringOf(c.config, c.targets)
			if len(r.hashes) != c.size || r.hashes[0] != c.lowest || r.owners[0] != c.owner {
				t.Errorf("%d entries, the lowest %d of endpoint %d; want %d, %d of %d",
					len(r.hashes), r.hashes[0], r.owners[0], c.size, c.lowest, c.owner)
			}
			wantPicks(t, r.over(crowd(c.targets)), c.picks...)
		})
	}
}

//
func TestRingSizesFollowWeightsAndBounds(t *testing.T) {
	for _, c := range []struct {
		targets  string
		min, max uint64
		want     []int
	}{
		{"1.1.1.1:1*3 1.1.1.2:1*3 1.1.1.3:1*4", 10, 0, []int{3, 3, 4}},
		{"1.1.1.1:1*3 1.1.1.2:1*3 1.1.1.3:1*4", 7, 7, []int{3, 2, 2}},
		{"1.1.1.1:1*1 1.1.1.2:1*100", 1024, 0, []int{11, 1100}},
		{"1.1.1.1:1*1 1.1.1.2:1*5000", 1024, 4096, []int{1, 4095}},
		{"1.1.1.1:1@x:3 1.1.1.2:1@x:3 1.1.1.3:1@y:1", 8, 0, []int{3, 3, 2}},
		{"1.1.1.1:1", 0, 0, []int{1024}},
		{"1.1.1.1:1 1.1.1.2:1", 5000, 4096, []int{2048, 2048}}, // the maximum wins
		{"1.1.1.1:1 1.1.1.2:1 1.1.1.3:1", 1, 1, []int{1, 0, 0}},
	} {
		counts := make([]int, len(c.want))
		for _, owner := range ringOf(Config{MinRingSize: c.min, MaxRingSize: c.max}, row(c.targets)).owners {
			counts[owner]++
		}
		if !slices.Equal(counts, c.want) {
			t.Errorf("%s, %d to %d: entries %v, want %v", c.targets, c.min, c.max, counts, c.want)
		}
	}
}

func TestRingIsNeverLargerThanEightMi(t *testing.T) {
	targets := many(2)
	targets[0].Weight, targets[1].Weight = 1, math.MaxUint32
	counts, total := entries(&Config{MaxRingSize: math.MaxUint64}, weightedKeys(targets))
	if total != 8<<20 || counts[0] != 1 || counts[1] != 8<<20-1 {
		t.Errorf("%d entries, %v, want 8 Mi, 1 and the rest", total, counts)
	}
}

// dumbRing is the twin: a list that is sorted and searched from its beginning.
type dumbRing []dumbEntry

type dumbEntry struct {
	hash  uint64
	owner int
}

func newDumbRing(c Config, targets []Target) dumbRing {
	sum, order := 0.0, make([]int, len(targets))
	for i := range targets {
		sum += float64(max(1, targets[i].Weight))
		order[i] = i
	}
	key := func(i int) string {
		if targets[i].HashKey != "" {
			return targets[i].HashKey
		}
		return targets[i].Addr.String()
	}
	sort.Slice(order, func(a, b int) bool { return key(order[a]) < key(order[b]) })
	lightest := 1.0
	for i := range targets {
		lightest = math.Min(lightest, float64(max(1, targets[i].Weight))/sum)
	}
	scale := math.Min(math.Ceil(lightest*float64(c.MinRingSize))/lightest, float64(c.MaxRingSize))
	var ring dumbRing
	current, target := 0.0, 0.0
	for _, owner := range order {
		target += float64(scale * (float64(max(1, targets[owner].Weight)) / sum))
		for i := 0; current < target; i++ {
			h := hash.XXH64String(0, fmt.Sprintf("%s_%d", key(owner), i))
			if c.HashFunction == MurmurHash2 {
				h = hash.Murmur2String(fmt.Sprintf("%s_%d", key(owner), i))
			}
			ring = append(ring, dumbEntry{h, owner})
			current++
		}
	}
	sort.SliceStable(ring, func(a, b int) bool { return ring[a].hash < ring[b].hash })
	return ring
}

func (r dumbRing) pick(key uint64) int {
	for _, e := range r {
		if e.hash >= key {
			return e.owner
		}
	}
	return r[0].owner
}

func TestRingAgreesWithItsDumbTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	for range 300 {
		targets := many(1 + random.IntN(30))
		for i := range targets {
			if random.IntN(2) == 0 {
				targets[i].Weight = 1 + uint32(random.IntN(20))
			}
			if random.IntN(4) == 0 {
				targets[i].HashKey = fmt.Sprintf("pod-%d", i)
			}
		}
		c := Config{MinRingSize: 1 + random.Uint64N(200), HashFunction: []HashFunction{"", XXHash, MurmurHash2}[random.IntN(3)]}
		c.MaxRingSize = c.MinRingSize + random.Uint64N(300)
		r, twin := ringOf(c, targets), newDumbRing(c, targets)
		if len(r.hashes) != len(twin) {
			t.Fatalf("%+v of %v: %d entries, the twin has %d", c, targets, len(r.hashes), len(twin))
		}
		for i, e := range twin {
			if r.hashes[i] != e.hash || int(r.owners[i]) != e.owner {
				t.Fatalf("%+v of %v: entry %d is %d of %d, the twin has %d of %d", c, targets, i, r.hashes[i], r.owners[i], e.hash, e.owner)
			}
		}
		keys := []uint64{0, 1, math.MaxUint64, math.MaxUint64 - 1}
		for range 50 {
			at := twin[random.IntN(len(twin))].hash
			keys = append(keys, random.Uint64(), at, at-1, at+1)
		}
		for _, key := range keys {
			if got, want := int(r.owners[r.seek(key)]), twin.pick(key); got != want {
				t.Fatalf("%+v of %v: key %d belongs to %d, the twin says %d", c, targets, key, got, want)
			}
		}
	}
}

// Equal hash keys come from a label that several pods share; somebody may even mean it.
func TestEndpointsOfOneHashKeyDoNoHarm(t *testing.T) {
	targets := many(2000)
	for i := range targets {
		targets[i].HashKey = "all the same"
	}
	r := ringOf(Config{}, targets)
	if !slices.IsSorted(r.hashes) || len(r.hashes) != 2000 {
		t.Fatalf("%d entries, sorted %v", len(r.hashes), slices.IsSorted(r.hashes))
	}
	for _, key := range []uint64{0, r.hashes[0], r.hashes[0] + 1, math.MaxUint64} {
		if got := r.seek(key); got != 0 {
			t.Errorf("key %d is at entry %d, want 0", key, got)
		}
	}
	endpoints := crowd(targets)
	endpoints[0].standing.Store(out)
	if e := seek(t, r.over(endpoints), asks(5)); e != endpoints[1] {
		t.Errorf("the substitute is %v, want the next by address", e.target.Addr)
	}
}

func TestSubstituteIsTheNextOnTheRing(t *testing.T) {
	random := rand.New(rand.NewPCG(23, 24))
	targets := many(30, 1, 2)
	endpoints := crowd(targets)
	p := newPicker(&Config{Algorithm: RingHash, MinRingSize: 200}, endpoints, new(counter))
	rest := newDumbRing(Config{MinRingSize: 200, MaxRingSize: maxRing}, targets)
	for _, gone := range []int{3, 4, 17, 29} {
		endpoints[gone].standing.Store(out)
		rest = slices.DeleteFunc(rest, func(e dumbEntry) bool { return e.owner == gone })
		for range 3000 {
			key := random.Uint64()
			if got, want := seek(t, p, asks(key)), endpoints[rest.pick(key)]; got != want {
				t.Fatalf("key %d goes to %v, want %v", key, got.target.Addr, want.target.Addr)
			}
		}
	}
}

func TestLargeRingsFindTheNextEntry(t *testing.T) {
	random := rand.New(rand.NewPCG(29, 30))
	for _, size := range []uint64{1 << 16, 1<<16 + 1, 3 << 16} {
		r := ringOf(Config{MinRingSize: size, MaxRingSize: size}, many(10))
		if uint64(len(r.hashes)) != size {
			t.Fatalf("%d entries, want %d", len(r.hashes), size)
		}
		for i := range 20_000 {
			key := random.Uint64()
			if i%2 > 0 {
				key = r.hashes[random.IntN(len(r.hashes))] + random.Uint64N(3) - 1
			}
			want, _ := slices.BinarySearch(r.hashes, key)
			if got := r.seek(key); got != want%len(r.hashes) {
				t.Fatalf("ring of %d: key %d is at entry %d, want %d", size, key, got, want)
			}
		}
	}
}

func BenchmarkRingBuild(b *testing.B) {
	for _, size := range []uint64{1024, 65_536, 1 << 20} {
		b.Run(fmt.Sprintf("entries=%d", size), func(b *testing.B) {
			c, targets := &Config{Algorithm: RingHash, MinRingSize: size}, many(100)
			b.ReportAllocs()
			for b.Loop() {
				newHashTable(c, targets)
			}
		})
	}
}

func BenchmarkRingPick(b *testing.B) {
	for _, size := range []uint64{1024, 8192, 65_536, 1 << 20} {
		b.Run(fmt.Sprintf("entries=%d", size), func(b *testing.B) {
			p := newPicker(&Config{Algorithm: RingHash, MinRingSize: size}, crowd(many(100)), new(counter))
			b.ReportAllocs()
			key := uint64(0)
			for b.Loop() {
				key += golden
				p.pick(0, mix(key))
			}
		})
	}
}
