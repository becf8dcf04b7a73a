package sim

import (
	"math/bits"
	"time"
)

// histogram counts latencies in buckets that are an equal part of their value wide, 1/64 at most: a quantile is right
// within 0.8 %.
type histogram struct {
	counts [buckets]uint32
	total  int64
	most   time.Duration
}

const (
	// unitShift: latencies count in units of 64 ns, exactly up to 128 of them: 8 µs, shorter than any network path.
	unitShift = 6
	subBits   = 6 // 64 buckets for each power of two
	// buckets reach up to 2^30 units, more than a minute; what took longer counts as that.
	longest = 30
	buckets = (longest - subBits + 1) << subBits
)

// bucket gives the place of a latency.
func bucket(d time.Duration) int {
	units := min(uint64(max(0, d))>>unitShift, 1<<longest-1) //nolint:gosec // not negative.
	shift := max(0, bits.Len64(units)-subBits-1)
	return shift<<subBits + int(units>>shift) //nolint:gosec // a small number.
}

// bounds gives the latencies from which to which a bucket counts.
func bounds(i int) (from, to time.Duration) {
	shift := max(0, i>>subBits-1)
	units := i - shift<<subBits
	return time.Duration(units) << (shift + unitShift), time.Duration(units+1) << (shift + unitShift)
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucket(d)]++
	h.total++
	h.most = max(h.most, d)
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
	h.most = max(h.most, o.most)
}

// quantile gives the latency that the fraction q of all did not exceed; 0 without any. Within a bucket they are taken to
// be spread evenly.
func (h *histogram) quantile(q float64) time.Duration {
	rank := q * float64(h.total)
	seen := 0.0
	for i, n := range h.counts {
		if n == 0 {
			continue
		}
		if seen+float64(n) >= rank {
			from, to := bounds(i)
			return min(h.most, from+time.Duration(float64(to-from)*(rank-seen)/float64(n)))
		}
		seen += float64(n)
	}
	return 0
}
