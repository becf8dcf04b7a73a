package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/weir-lb/weir/internal/sim/scenario"
)

// work draws service times.
type work struct {
	scenario.Distribution

	mean      float64 // ns
	mu, sigma float64 // Lognormal: of the logarithm
	low, high float64 // Bimodal
}

func newWork(d scenario.Distribution) work {
	w := work{Distribution: d, mean: float64(d.Mean)}
	variance := math.Log(1 + d.CV*d.CV)
	w.mu, w.sigma = math.Log(w.mean)-variance/2, math.Sqrt(variance)
	w.low = w.mean / (1 - d.Heavy + d.Heavy*d.Factor)
	w.high = w.low * d.Factor
	return w
}

// draw gives the time that a request takes a worker of usual speed.
func (w *work) draw(r *rand.Rand) time.Duration {
	switch w.Kind {
	case scenario.Exponential:
		return time.Duration(w.mean * r.ExpFloat64())
	case scenario.Lognormal:
		return time.Duration(math.Exp(w.mu + w.sigma*r.NormFloat64()))
	case scenario.Bimodal:
		if r.Float64() < w.Heavy {
			return time.Duration(w.high)
		}
		return time.Duration(w.low)
	default:
		return w.Mean
	}
}
