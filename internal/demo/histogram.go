package demo

import (
	"math"
	"time"
)

// The histogram's range: a loopback answer takes at least 100 µs, and no client waits longer than a few seconds. A step
// of 4 % is finer than two runs of the same second differ.
const (
	histogramFloor = 100 * time.Microsecond
	histogramStep  = 1.04
	histogramSize  = 300 // reaches 100 µs · 1.04^299 ≈ 12 s
)

// histogram counts latencies in buckets of equal ratio. The zero value is empty.
type histogram struct {
	counts [histogramSize]uint32
	total  uint64
}

// add counts one latency; what is out of range counts in the nearest bucket.
func (h *histogram) add(latency time.Duration) {
	h.counts[histogramIndex(latency)]++
	h.total++
}

// merge adds what o counted.
func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
}

// quantile gives the latency that a fraction q of the counted ones do not exceed, to a bucket's middle; 0 when empty.
func (h *histogram) quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	rank := max(uint64(math.Ceil(q*float64(h.total))), 1)
	var seen uint64
	for i, n := range h.counts {
		seen += uint64(n)
		if seen >= rank {
			return bucketMiddle(i)
		}
	}
	return bucketMiddle(histogramSize - 1)
}

func histogramIndex(latency time.Duration) int {
	if latency <= histogramFloor {
		return 0
	}
	i := int(math.Log(float64(latency)/float64(histogramFloor)) / math.Log(histogramStep))
	return min(i, histogramSize-1)
}

func bucketMiddle(i int) time.Duration {
	return time.Duration(float64(histogramFloor) * math.Pow(histogramStep, float64(i)+0.5))
}
