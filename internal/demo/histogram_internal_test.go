package demo

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestQuantilesAreWithinABucketOfTheSortedTruth(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var h histogram
		latencies := make([]time.Duration, 1+random.IntN(500))
		for i := range latencies {
			latencies[i] = time.Duration(math.Exp(random.Float64()*10) * float64(200*time.Microsecond))
			h.add(latencies[i])
		}
		slices.Sort(latencies)
		for _, q := range []float64{0, 0.01, 0.5, 0.99, 1} {
			rank := max(int(math.Ceil(q*float64(len(latencies)))), 1)
			want, got := latencies[rank-1], h.quantile(q)
			if ratio := float64(got) / float64(want); ratio < 1/histogramStep || ratio > histogramStep {
				t.Fatalf("quantile %v of %d latencies: got %v, want about %v", q, len(latencies), got, want)
			}
		}
	}
}

func TestHistogramKeepsWhatIsOutOfRange(t *testing.T) {
	var h histogram
	h.add(0)
	h.add(time.Hour)
	if got := h.quantile(0.5); got > 2*histogramFloor {
		t.Errorf("the shortest latency reads as %v", got)
	}
	if got := h.quantile(1); got < 10*time.Second {
		t.Errorf("the longest latency reads as %v", got)
	}
}

func TestMergedHistogramsAreOneHistogram(t *testing.T) {
	var a, b, both histogram
	for i := range 50 {
		a.add(time.Duration(i) * time.Millisecond)
		b.add(time.Duration(i) * time.Second)
		both.add(time.Duration(i) * time.Millisecond)
		both.add(time.Duration(i) * time.Second)
	}
	a.merge(&b)
	if a != both {
		t.Error("merging differs from counting together")
	}
	var empty histogram
	if got := empty.quantile(0.99); got != 0 {
		t.Errorf("an empty histogram has a quantile of %v", got)
	}
}
