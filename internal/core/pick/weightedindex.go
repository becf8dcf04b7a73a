package pick

import "math/bits"

// weightedIndex gives each of some indexes its part of the numbers below whole, in order, and finds the index of a number in a
// few steps however many there are: a guide tells where to begin.
type weightedIndex struct {
	ends  []uint64 // of the parts; the last one is whole
	guide []uint32 // by number >> shift: the part of the first number that comes to this
	shift uint
	whole uint64
}

// newWeightedIndex makes parts of the lengths, of which at least one is not 0. Their sum fits in 63 bits.
func newWeightedIndex(lengths []uint64) weightedIndex {
	o := weightedIndex{ends: make([]uint64, len(lengths))}
	for i, length := range lengths {
		o.whole += length
		o.ends[i] = o.whole
	}
	// As many cells as parts, or up to twice that: two comparisons for each number then, on average.
	o.shift = uint(max(0, bits.Len64(o.whole/uint64(len(lengths)))-1)) //nolint:gosec // not negative.
	o.guide = make([]uint32, (o.whole-1)>>o.shift+1)
	part := uint32(0)
	for cell := range o.guide {
		for o.ends[part] <= uint64(cell)<<o.shift {
			part++
		}
		o.guide[cell] = part
	}
	return o
}

// sharedIndex makes parts of the 32-bit numbers in proportion to the shares, of which at least one is above 0.
func sharedIndex(shares []float64) weightedIndex {
	total := 0.0
	for _, share := range shares {
		total += share
	}
	lengths := make([]uint64, len(shares))
	sum, end := 0.0, uint64(0)
	for i, share := range shares {
		sum += share
		next := position(sum / total) // whole at the last one that has a share: the sums are the same
		lengths[i], end = next-end, next
	}
	return newWeightedIndex(lengths)
}

// at gives the part that the number, which is below whole, falls into.
func (o *weightedIndex) at(number uint64) uint32 {
	part := o.guide[number>>o.shift]
	for o.ends[part] <= number {
		part++
	}
	return part
}
