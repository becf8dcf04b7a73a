package scenario

import (
	"math"
	"math/rand/v2"
	"time"
)

// Sampler draws service times of a Distribution. It is immutable, and safe for concurrent use with generators that are
// not shared. The zero value draws 0s.
type Sampler struct {
	kind      Kind
	constant  time.Duration // Constant
	mean      float64       // ns; Exponential
	mu, sigma float64       // Lognormal: of the logarithm of ns
	low, high time.Duration // Bimodal
	heavy     float64       // Bimodal
}

// NewSampler computes once what each draw needs.
func NewSampler(d Distribution) Sampler {
	mean := float64(d.Mean)
	variance := math.Log(1 + d.CV*d.CV)
	low := mean / (1 - d.Heavy + d.Heavy*d.Factor) // so that the mean is Mean
	return Sampler{
		kind: d.Kind, constant: d.Mean, mean: mean,
		mu: math.Log(mean) - variance/2, sigma: math.Sqrt(variance),
		low: time.Duration(low), high: time.Duration(low * d.Factor), heavy: d.Heavy,
	}
}

// Draw gives the time that one request takes a worker of usual speed.
func (s *Sampler) Draw(r *rand.Rand) time.Duration {
	switch s.kind {
	case Exponential:
		return time.Duration(s.mean * r.ExpFloat64())
	case Lognormal:
		return time.Duration(math.Exp(s.mu + s.sigma*r.NormFloat64()))
	case Bimodal:
		if r.Float64() < s.heavy {
			return s.high
		}
		return s.low
	default:
		return s.constant
	}
}
