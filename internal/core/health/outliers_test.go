package health_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/health"
)

//
func TestOutliersPauseByThirtySecondsTimesTheirNumber(t *testing.T) {
	c := health.Config{Outliers: &health.Outliers{}}.WithDefaults()
	if c.Outliers.Interval != 10*time.Second {
		t.Errorf("interval %v, want 10 s", c.Outliers.Interval)
	}
	var r health.Record
	for n := 1; n <= 12; n++ {
		r.Eject(&c, health.ByPolicy, time.Hour, uint64(n)<<60)
		if got, want := r.Until-time.Hour, min(time.Duration(n)*30*time.Second, 300*time.Second); got != want {
			t.Errorf("pause %d lasts %v, want %v", n, got, want)
		}
	}
}

func TestOutliersAreForgivenOnePauseForEachInterval(t *testing.T) {
	c := health.Config{Outliers: &health.Outliers{}}.WithDefaults()
	var r health.Record
	for range 3 {
		r.Eject(&c, health.ByPolicy, 0, middle)
	}
	r.Return(100 * time.Second)
	for at := 101 * time.Second; at <= 120*time.Second; at += time.Second { // two intervals
		r.Observe(&c, at, c.Keep(time.Second), health.Tally{OK: 1})
	}
	r.Eject(&c, health.ByPolicy, 0, middle)
	if r.Until != 60*time.Second {
		t.Errorf("after three pauses and two intervals in service the next lasts %v, want 60 s", r.Until)
	}
}

func TestFailuresInARowCountByKind(t *testing.T) {
	tests := []struct {
		name     string
		outliers health.Outliers
		row      health.Streaks
		want     health.Cause
	}{
		{"server errors", health.Outliers{ServerErrors: 3}, health.Streaks{Any: 3, Server: 3}, health.ByPolicy},
		{"one too few", health.Outliers{ServerErrors: 3}, health.Streaks{Any: 4, Server: 2}, health.NotOut},
		{"others are not server errors", health.Outliers{ServerErrors: 3}, health.Streaks{Any: 4}, health.NotOut},
		{"gateway errors", health.Outliers{GatewayErrors: 2}, health.Streaks{Any: 4, Server: 4, Gateway: 2}, health.ByPolicy},
		{"local errors", health.Outliers{LocalErrors: 2}, health.Streaks{Any: 4, Server: 4, Gateway: 4, Local: 1}, health.NotOut},
		{"the rules go on beside them", health.Outliers{LocalErrors: 9}, health.Streaks{Any: 5, Server: 5}, health.ByRules},
		{"nothing asked for", health.Outliers{}, health.Streaks{Any: 4, Server: 4, Gateway: 4, Local: 4}, health.NotOut},
		{
			"more than can be counted",
			health.Outliers{ServerErrors: 1 << 20},
			health.Streaks{Any: 4, Server: health.MaxStreak},
			health.ByPolicy,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := health.Config{Outliers: &tt.outliers}.WithDefaults()
			if got := c.Trips(tt.row); got != tt.want {
				t.Errorf("cause %v, want %v", got, tt.want)
			}
		})
	}
	c := health.Config{Failures: -1, Outliers: &health.Outliers{ServerErrors: 2}}.WithDefaults()
	if got := c.Trips(health.Streaks{Any: 9, Server: 2}); got != health.ByPolicy || c.Allowed(4) != 2 {
		t.Errorf("with the rules off: %v and %d of 4, want the policy's and 2", got, c.Allowed(4))
	}
}

func TestOutliersHaveTheirOwnBound(t *testing.T) {
	tests := []struct {
		share   *float64
		n, want int
	}{
		{nil, 10, 5},
		{new(0.1), 10, 1},
		{new(0.1), 39, 3},
		{new(0.1), 3, 1},
		{new(0.1), 0, 0},
		{new(0.0), 10, 0},
		{new(1.0), 10, 10},
		{new(7.0), 10, 10},
	}
	for _, tt := range tests {
		c := health.Config{Outliers: &health.Outliers{MaxOut: tt.share}}.WithDefaults()
		if got := c.Allowed(tt.n); got != tt.want {
			t.Errorf("share %v of %d: %d, want %d", tt.share, tt.n, got, tt.want)
		}
	}
}

// rates makes intervals of 100 requests with these success rates in percent.
func rates(percent ...float64) []health.Tally {
	tallies := make([]health.Tally, len(percent))
	for i, p := range percent {
		tallies[i] = health.Tally{OK: p, Failed: 100 - p}
	}
	return tallies
}

func TestSuccessRateComparesWithTheOthers(t *testing.T) {
	five := health.SuccessRate{Deviations: 1.9, Hosts: 5, Volume: 100}
	tests := []struct {
		name string
		rule health.SuccessRate
		in   []health.Tally
		want []int
	}{
		// Mean 91, deviations 4, 4, 4, 4, -16 and 0: the standard deviation is sqrt(320/6) = 7.30, the floor 77.12.
		{"by hand", five, rates(95, 95, 95, 95, 75, 91), []int{4}},
		// Mean 90, deviations 5, 5, 5, 0, -5 and -10: the standard deviation is sqrt(200/6) = 5.77, the floor 79.03.
		{"just above the floor", five, rates(95, 95, 95, 90, 85, 80), nil},
		{"all alike", five, rates(33.3, 33.3, 33.3, 33.3, 33.3, 33.3, 33.3), nil},
		{"too few endpoints", five, rates(100, 100, 100, 0), nil},
		{
			"who had few requests neither counts nor is judged",
			five,
			append(rates(100, 100, 100, 100, 100), health.Tally{Failed: 99}),
			nil,
		},
		{"off", health.SuccessRate{}, rates(100, 100, 100, 100, 100, 0), nil},
		{"nobody was asked", health.SuccessRate{Deviations: 1, Hosts: 1}, make([]health.Tally, 9), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := health.Outliers{SuccessRate: tt.rule}
			if diff := cmp.Diff(tt.want, o.Outlying(tt.in)); diff != "" {
				t.Error("outliers (-want +got):\n" + diff)
			}
		})
	}
}

func TestFailureRateHasAThreshold(t *testing.T) {
	five := health.FailureRate{Threshold: 0.85, Hosts: 5, Volume: 50}
	tests := []struct {
		name string
		rule health.FailureRate
		in   []health.Tally
		want []int
	}{
		{"85 in 100 fail", five, rates(100, 15, 16, 0, 50), []int{1, 3}},
		{"all fail", five, rates(0, 0, 0, 0, 0), []int{0, 1, 2, 3, 4}},
		{"too few endpoints", five, rates(0, 0, 0, 0), nil},
		{"too few requests", five, append(rates(0, 0, 0, 0), health.Tally{Failed: 49}), nil},
		{"off", health.FailureRate{Threshold: 0.1}, rates(0, 0, 0, 0, 0), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := health.Outliers{FailureRate: tt.rule}
			if diff := cmp.Diff(tt.want, o.Outlying(tt.in)); diff != "" {
				t.Error("outliers (-want +got):\n" + diff)
			}
		})
	}
}

// twin is Outlying in percent and step by step, as Envoy's documentation has it.
func twin(o health.Outliers, in []health.Tally) []int {
	percent := func(t health.Tally) float64 { return 100 * t.OK / (t.OK + t.Failed) }
	enough := func(volume int) []float64 {
		var valid []float64
		for _, t := range in {
			if n := t.OK + t.Failed; n > 0 && n >= float64(volume) {
				valid = append(valid, percent(t))
			}
		}
		return valid
	}
	var out []int
	for i, t := range in {
		n, low := t.OK+t.Failed, false
		if valid := enough(o.SuccessRate.Volume); o.SuccessRate.Hosts > 0 && len(valid) >= o.SuccessRate.Hosts {
			mean, variance := 0.0, 0.0
			for _, v := range valid {
				mean += v / float64(len(valid))
			}
			for _, v := range valid {
				variance += (v - mean) * (v - mean) / float64(len(valid))
			}
			low = n > 0 && n >= float64(o.SuccessRate.Volume) && percent(t) < mean-o.SuccessRate.Deviations*math.Sqrt(variance)-1e-6
		}
		if valid := enough(o.FailureRate.Volume); o.FailureRate.Hosts > 0 && len(valid) >= o.FailureRate.Hosts {
			low = low || n > 0 && n >= float64(o.FailureRate.Volume) && 100-percent(t) >= 100*o.FailureRate.Threshold
		}
		if low {
			out = append(out, i)
		}
	}
	return out
}

func TestOutlyingAgreesWithItsTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	found := 0
	for range 5000 {
		o := health.Outliers{
			SuccessRate: health.SuccessRate{Deviations: 2 * random.Float64(), Hosts: random.IntN(6), Volume: random.IntN(60)},
			FailureRate: health.FailureRate{Threshold: 0.33 + 0.5*random.Float64(), Hosts: random.IntN(6), Volume: random.IntN(60)},
		}
		in := make([]health.Tally, random.IntN(9))
		for i := range in {
			in[i] = health.Tally{OK: float64(random.IntN(80)), Failed: float64(random.IntN(40))}
		}
		want := twin(o, in)
		found += len(want)
		if diff := cmp.Diff(want, o.Outlying(in)); diff != "" {
			t.Fatalf("%+v of %+v (-want +got):\n%s", o, in, diff)
		}
	}
	if found == 0 {
		t.Error("no outlier in any case: this shows nothing")
	}
}
