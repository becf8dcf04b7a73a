package sim_test

import (
	"testing"

	"github.com/weir-lb/weir/internal/sim/contender"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/test/scenarios"
)

func BenchmarkLow(b *testing.B) {
	text, _ := scenarios.Read("low-rate")
	sc, _ := scenario.Parse("low-rate", text)
	sc.Length /= 10
	for _, n := range []string{"weir", "random"} {
		b.Run(n, func(b *testing.B) {
			c, _ := contender.Named(n)
			for b.Loop() {
				r := run(b, sc, &c, 1)
				b.ReportMetric(float64(r.Requests), "requests")
			}
		})
	}
}
