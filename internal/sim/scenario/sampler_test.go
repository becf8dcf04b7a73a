package scenario_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/sim/scenario"
)

func TestServiceTimesHaveTheirMoments(t *testing.T) {
	const mean = 20 * time.Millisecond
	for _, c := range []struct {
		scenario.Distribution
		cv float64
	}{
		{scenario.Distribution{Kind: scenario.Constant, Mean: mean}, 0},
		{scenario.Distribution{Kind: scenario.Exponential, Mean: mean}, 1},
		{scenario.Distribution{Kind: scenario.Lognormal, Mean: mean, CV: 0.7}, 0.7},
		{scenario.Distribution{Kind: scenario.Bimodal, Mean: mean, Heavy: 0.05, Factor: 20}, 2.124},
	} {
		s, r := scenario.NewSampler(c.Distribution), rand.New(rand.NewPCG(3, 4))
		var sum, squares float64
		const n = 400_000
		for range n {
			x := float64(s.Draw(r)) / float64(mean)
			sum, squares = sum+x, squares+x*x
		}
		got := sum / n
		cv := math.Sqrt(max(0, squares/n-got*got)) / got
		if math.Abs(got-1) > 0.015 || math.Abs(cv-c.cv) > 0.03 {
			t.Errorf("%s: mean %v of 1, coefficient of variation %v, want %v", c.Kind, got, cv, c.cv)
		}
	}
}
