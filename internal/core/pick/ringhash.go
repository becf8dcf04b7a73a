package pick

import (
	"math"
	"math/bits"
	"slices"
	"sort"
	"strconv"

	"github.com/weir-lb/weir/internal/core/hash"
)

// The bounds of a ring, Envoy's.
const (
	defaultMinRing = 1024
	maxRing        = 8 << 20
)

// hashRing has entries of the endpoints, in proportion to their weights, at the hashes of key_0, key_1 and so on. A key
// belongs to the first entry at or above it. An entry takes 12 bytes, and the guide two to four.
//
// Source: Envoy's ring hash, entry for entry; gRPC's is the same. Of endpoints with equal hashes, which only equal keys
// have, the one with the lower address is first.
type hashRing struct {
	hashes []uint64 // ascending
	owners []uint32 // of the entries
	guide  []uint32 // by hash >> shift: the first entry that comes to this; one more, for the end
	shift  uint
}

func newHashRing(c *Config, weightedKeys []weightedKey) *hashRing {
	counts, total := entries(c, weightedKeys)
	sum := func(key []byte) uint64 { return hash.XXH64(0, key) }
	if c.HashFunction == MurmurHash2 {
		sum = hash.Murmur2
	}
	r := &hashRing{hashes: make([]uint64, total), owners: make([]uint32, total)}
	cells := bits.Len(uint(total / 2)) // a power of two of cells, one to two entries for each
	r.shift = uint(64 - cells)         //nolint:gosec // positive.
	r.guide = make([]uint32, 1<<cells+1)
	// Hashing twice is cheaper than the memory to remember what it said: entries go where they belong at once.
	visit := func(entry func(at uint64, owner uint32)) {
		var key []byte
		for k, s := range weightedKeys {
			key = append(append(key[:0], s.key...), '_')
			stem := len(key)
			for i := range counts[k] {
				key = strconv.AppendUint(key[:stem], i, 10)
				entry(sum(key), s.index)
			}
		}
	}
	visit(func(at uint64, _ uint32) { r.guide[at>>r.shift+1]++ })
	for at := range r.guide[1:] {
		r.guide[at+1] += r.guide[at]
	}
	filled := slices.Clone(r.guide)
	visit(func(at uint64, owner uint32) {
		entry := &filled[at>>r.shift]
		r.hashes[*entry], r.owners[*entry] = at, owner
		*entry++
	})
	var unsorted cell
	for at := range r.guide[1:] {
		if from, to := r.guide[at], r.guide[at+1]; to > from+1 {
			unsorted = cell{r.hashes[from:to], r.owners[from:to]}
			sort.Stable(&unsorted)
		}
	}
	return r
}

// entries gives each key's number of entries, and the sum: so many that the lightest has a whole number, at least the
// minimum together, and at most the maximum. The maximum wins over the minimum.
func entries(c *Config, weightedKeys []weightedKey) (counts []uint64, total uint64) {
	least, most := c.MinRingSize, c.MaxRingSize
	if least == 0 {
		least = defaultMinRing
	}
	if most == 0 || most > maxRing {
		most = maxRing
	}
	least = min(least, most)
	lightest := 1.0
	for _, s := range weightedKeys {
		lightest = min(lightest, s.weight)
	}
	scale := min(math.Ceil(lightest*float64(least))/lightest, float64(most))
	counts, target := make([]uint64, len(weightedKeys)), 0.0
	for i, s := range weightedKeys {
		target += float64(scale * s.weight) // rounded before it is added, as the others do
		if upTo := uint64(math.Ceil(target)); upTo > total {
			counts[i], total = upTo-total, upTo
		}
	}
	return counts, total
}

// cell is the entries of one cell of the guide, to be sorted by hash, equal ones as they are. There are a few, unless keys were
// made to that end.
type cell struct {
	hashes []uint64
	owners []uint32
}

func (c *cell) Len() int           { return len(c.hashes) }
func (c *cell) Less(i, j int) bool { return c.hashes[i] < c.hashes[j] }
func (c *cell) Swap(i, j int) {
	c.hashes[i], c.hashes[j] = c.hashes[j], c.hashes[i]
	c.owners[i], c.owners[j] = c.owners[j], c.owners[i]
}

// seek gives the entry that a key belongs to.
func (r *hashRing) seek(key uint64) int {
	at := key >> r.shift
	from, to := int(r.guide[at]), int(r.guide[at+1])
	for to-from > 8 { // keys were made to that end
		if middle := int(uint(from+to) / 2); r.hashes[middle] < key { //nolint:gosec // indexes.
			from = middle + 1
		} else {
			to = middle
		}
	}
	for from < to && r.hashes[from] < key {
		from++
	}
	if from == len(r.hashes) {
		return 0
	}
	return from
}

func (r *hashRing) over(endpoints []*endpoint) picker {
	return &ringHash{ring: r, endpoints: endpoints}
}

// ringHash takes the endpoint whose entry on the ring comes next after the request's key.
type ringHash struct {
	ring      *hashRing
	endpoints []*endpoint
}

func (p *ringHash) pick(_, key uint64) *endpoint {
	return p.endpoints[p.ring.owners[p.ring.seek(key)]]
}

// maxWalk bounds how many entries are looked at for a substitute. If so many in a row are of endpoints that do not serve,
// hardly any does, and going through the endpoints is shorter.
const maxWalk = 1024

// next gives the first endpoint that the query accepts, beginning with the one that its key belongs to; nil if it accepts
// none. It walks along the ring, as Envoy and gRPC do, so that an endpoint's keys are shared out among all others.
func (p *ringHash) next(q query) *endpoint {
	at, n := p.ring.seek(q.key), len(p.ring.owners)
	var asked *endpoint
	for range min(n, maxWalk) {
		if e := p.endpoints[p.ring.owners[at]]; e != asked {
			if q.accepts(e) {
				return e
			}
			asked = e
		}
		if at++; at == n {
			at = 0
		}
	}
	return around(p.endpoints, &q)
}
