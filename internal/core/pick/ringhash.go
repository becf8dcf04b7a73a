package pick

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/weir-lb/weir/internal/core/hash"
)

// The bounds of a ring, Envoy's.
const (
	defaultMinRing = 1024
	maxRing        = 8 << 20
)

// hashRing has entries of the endpoints, in proportion to their weights, at the hashes of key_0, key_1 and so on. A key
// belongs to the first entry at or above it. An entry takes 12 bytes, and the guide two to four, or one to two of a large ring.
//
// Source: Envoy's ring hash, entry for entry; gRPC's is the same. Of endpoints with equal hashes, which only equal keys
// have, the one with the lower address is first.
type hashRing struct {
	hashes []uint64 // ascending
	owners []uint32 // of the entries
	guide  []uint32 // by hash >> shift: the first entry that comes to this; one more, for the end
	shift  uint
}

func newHashRing(c *Config, spokes []spoke) *hashRing {
	counts, total := entries(c, spokes)
	sum := func(key []byte) uint64 { return hash.XXH64(0, key) }
	if c.HashFunction == MurmurHash2 {
		sum = hash.Murmur2
	}
	r := &hashRing{hashes: make([]uint64, total), owners: make([]uint32, total)}
	// A power of two of cells, one to two entries for each, or two to four.
	perCell := uint64(2)
	if total > smallRing {
		perCell = 4
	}
	cells := bits.Len(uint(total / perCell))
	r.shift = uint(64 - cells) //nolint:gosec // positive.
	r.guide = make([]uint32, 1<<cells+1)
	// Hashing twice is cheaper than the memory to remember what it said: entries go where they belong at once.
	visit := func(entry func(at uint64, owner uint32)) {
		var key []byte
		for k, s := range spokes {
			key = append(append(key[:0], s.key...), '_')
			stem := len(key)
			for i := range counts[k] {
				key = strconv.AppendUint(key[:stem], i, 10)
				entry(sum(key), s.index)
			}
		}
	}
	visit(func(at uint64, _ uint32) { r.guide[at>>r.shift+1]++ })
	for cell := range r.guide[1:] {
		r.guide[cell+1] += r.guide[cell]
	}
	filled := slices.Clone(r.guide)
	visit(func(at uint64, owner uint32) {
		entry := &filled[at>>r.shift]
		r.hashes[*entry], r.owners[*entry] = at, owner
		*entry++
	})
	for cell := range r.guide[1:] {
		r.order(int(r.guide[cell]), int(r.guide[cell+1]))
	}
	return r
}

// entries gives each spoke's number of entries, and the sum: so many that the lightest has a whole number, at least the
// minimum together, and at most the maximum. The maximum wins over the minimum.
func entries(c *Config, spokes []spoke) (counts []uint64, total uint64) {
	least, most := c.MinRingSize, c.MaxRingSize
	if least == 0 {
		least = defaultMinRing
	}
	if most == 0 || most > maxRing {
		most = maxRing
	}
	least = min(least, most)
	lightest := 1.0
	for _, s := range spokes {
		lightest = min(lightest, s.weight)
	}
	scale := min(math.Ceil(lightest*float64(least))/lightest, float64(most))
	counts, target := make([]uint64, len(spokes)), 0.0
	for i, s := range spokes {
		target += float64(scale * s.weight) // rounded before it is added, as the others do
		if upTo := uint64(math.Ceil(target)); upTo > total {
			counts[i], total = upTo-total, upTo
		}
	}
	return counts, total
}

// order sorts the entries of a cell by hash, equal ones as they are. There are a few, unless somebody made keys to that end.
func (r *hashRing) order(from, to int) {
	const many = 32
	if to-from > many {
		r.orderMany(from, to)
		return
	}
	for i := from + 1; i < to; i++ {
		h, owner := r.hashes[i], r.owners[i]
		j := i
		for ; j > from && r.hashes[j-1] > h; j-- {
			r.hashes[j], r.owners[j] = r.hashes[j-1], r.owners[j-1]
		}
		r.hashes[j], r.owners[j] = h, owner
	}
}

func (r *hashRing) orderMany(from, to int) {
	type entry struct {
		hash  uint64
		owner uint32
	}
	cell := make([]entry, to-from)
	for i := range cell {
		cell[i] = entry{r.hashes[from+i], r.owners[from+i]}
	}
	slices.SortStableFunc(cell, func(a, b entry) int { return cmp.Compare(a.hash, b.hash) })
	for i, e := range cell {
		r.hashes[from+i], r.owners[from+i] = e.hash, e.owner
	}
}

// smallRing is the largest number of entries that lie in a near cache, at 16 bytes each. There a wrong guess of the processor
// costs the most; beyond, waiting for memory does, and guesses have it fetched earlier.
const smallRing = 1 << 16

// seek gives the entry that a key belongs to.
func (r *hashRing) seek(key uint64) int {
	cell := key >> r.shift
	from := int(r.guide[cell])
	// Nearly always the key belongs to one of the first entries of the cell, or the one after. Counting the lower ones leaves
	// nothing to guess.
	if window := r.hashes[from:]; len(r.hashes) <= smallRing && len(window) >= 4 {
		lower := 0
		for _, h := range (*[4]uint64)(window) {
			_, isLower := bits.Sub64(h, key, 0)
			lower += int(isLower) //nolint:gosec // 0 or 1.
		}
		if from += lower; lower < 4 {
			return from
		}
	}
	return r.search(key, from, int(r.guide[cell+1]))
}

// search does the same among the entries from one to another, of which there may be many if somebody made keys to that end.
func (r *hashRing) search(key uint64, from, to int) int {
	for to-from > 8 {
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
// hardly anybody does, and going through the endpoints is shorter.
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
