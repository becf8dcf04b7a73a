package demo

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/weir-lb/weir/internal/sim/scenario"
)

// draw gives one service time of the distribution.
func draw(d scenario.Distribution, random *rand.Rand) time.Duration {
	factor := 1.0
	switch d.Kind {
	case scenario.Exponential:
		factor = random.ExpFloat64()
	case scenario.Lognormal:
		variance := math.Log(1 + d.CV*d.CV)
		factor = math.Exp(random.NormFloat64()*math.Sqrt(variance) - variance/2)
	case scenario.Bimodal:
		factor = 1 / (1 + d.Heavy*(d.Factor-1)) // what most take, so that the mean is Mean
		if random.Float64() < d.Heavy {
			factor *= d.Factor
		}
	case scenario.Constant:
	}
	return time.Duration(factor * float64(d.Mean))
}
