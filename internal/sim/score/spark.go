package score

import (
	"math"
	"strings"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim"
)

// Spark draws values from 0 to top as a line of blocks: at most width of them, each the mean of as many values. Values
// outside are drawn as the nearest that fits; the lowest block is nothing.
func Spark(values []float64, top float64, width int) string {
	blocks := []rune("▁▂▃▄▅▆▇█")
	n := min(width, len(values))
	var line strings.Builder
	for i := range n {
		part := values[i*len(values)/n : (i+1)*len(values)/n]
		sum := 0.0
		for _, v := range part {
			sum += v
		}
		level := 0.0
		if height := sum / float64(len(part)); top > 0 && height > 0 { // NaN is not
			level = math.Min(height/top, 1)
		}
		line.WriteRune(blocks[int(math.Round(level*float64(len(blocks)-1)))])
	}
	return line.String()
}

// spill averages the spill of each second over runs. A second in which no endpoint took anything repeats the one before.
func spill(runs []*sim.Result, affected []topology.Zone) []float64 {
	meant := make(map[topology.Zone]bool, len(affected))
	for _, z := range affected {
		meant[z] = true
	}
	var sums []float64
	var counts []int // runs may differ in length
	for _, r := range runs {
		last := 0.0
		for second := range r.Line {
			var answered, crossed int64
			for _, z := range r.Line[second].Zones {
				if len(meant) == 0 || meant[z.Zone] {
					answered += z.Answered
					crossed += z.Crossed
				}
			}
			if answered > 0 {
				last = float64(crossed) / float64(answered)
			}
			if second == len(sums) {
				sums, counts = append(sums, 0), append(counts, 0)
			}
			sums[second] += last
			counts[second]++
		}
	}
	for i := range sums {
		sums[i] = rounded(sums[i] / float64(counts[i]))
	}
	return sums
}
