package health

import (
	"math"
	"time"
)

// Outliers is outlier detection as policies ask for it: pauses in proportion to how often an endpoint had one, and
// detectors that work on failures in a row by kind, or compare what the endpoints did in an interval. What a 429 or another
// failure that is no server error counts: in the two rates, and not in the rows by kind.
//
// Source: Envoy's outlier detection. We differ in that a pause ends with one request as a trial, and not with all of them.
type Outliers struct {
	// Interval is how often the rates are looked at. A pause is forgiven for each interval in service. Default 10 s.
	Interval time.Duration
	// Pause is how long the first pause lasts; the nth lasts n times as long. Default 30 s.
	Pause time.Duration
	// MaxPause bounds the pause. Default 300 s.
	MaxPause time.Duration
	// MaxOut is the fraction of a pool that may sit out at once, whatever for, 0 to 1; unless it is 0, one always may.
	// Nil: Config.MaxOut.
	MaxOut *float64

	// Failures in a row that end an endpoint's turn; 0: no number does.
	ServerErrors, GatewayErrors, LocalErrors int

	SuccessRate SuccessRate
	FailureRate FailureRate
}

// SuccessRate ends the turn of who answers well less often than the others: below the mean of those that count, by
// Deviations times their standard deviation.
type SuccessRate struct {
	Deviations float64
	Hosts      int // endpoints that have to count, or the detector does nothing; 0: this detector is off
	Volume     int // requests in the interval that make an endpoint count
}

// FailureRate ends the turn of who fails a fraction of its requests, whatever the others do.
type FailureRate struct {
	Threshold float64 // 0 to 1, reached or passed
	Hosts     int     // endpoints that have to count, or the detector does nothing; 0: this detector is off
	Volume    int     // requests in the interval that make an endpoint count
}

// withDefaults gives a copy with its zero times replaced by Envoy's.
func (o *Outliers) withDefaults() *Outliers {
	full := *o
	if full.Interval <= 0 {
		full.Interval = 10 * time.Second
	}
	if full.Pause <= 0 {
		full.Pause = 30 * time.Second
	}
	if full.MaxPause <= 0 {
		full.MaxPause = 300 * time.Second
	}
	full.MaxPause = max(full.MaxPause, full.Pause)
	full.ServerErrors = min(full.ServerErrors, MaxStreak)
	full.GatewayErrors = min(full.GatewayErrors, MaxStreak)
	full.LocalErrors = min(full.LocalErrors, MaxStreak)
	return &full
}

func (o *Outliers) trips(s Streaks) bool {
	reached := func(row uint16, limit int) bool { return limit > 0 && int(row) >= limit }
	return reached(s.Server, o.ServerErrors) || reached(s.Gateway, o.GatewayErrors) || reached(s.Local, o.LocalErrors)
}

func (o *Outliers) allowed(n int) int {
	if *o.MaxOut <= 0 || n == 0 {
		return 0
	}
	return max(1, part(min(*o.MaxOut, 1), n))
}

// pause gives the length of the nth pause, from 1.
func (o *Outliers) pause(n int) time.Duration {
	if n > int(o.MaxPause/o.Pause) {
		return o.MaxPause
	}
	return time.Duration(n) * o.Pause
}

// Outlying gives the indexes of those whose interval ends their turn, in order.
func (o *Outliers) Outlying(interval []Tally) []int {
	floor := o.SuccessRate.floor(interval)
	counted := 0
	for _, t := range interval {
		if o.FailureRate.counts(t) {
			counted++
		}
	}
	compared := o.FailureRate.Hosts > 0 && counted >= o.FailureRate.Hosts
	var out []int
	for i, t := range interval {
		low := o.SuccessRate.counts(t) && 1-t.rate() < floor
		if low || compared && o.FailureRate.counts(t) && t.rate() >= o.FailureRate.Threshold {
			out = append(out, i)
		}
	}
	return out
}

// floor is the success rate below which an endpoint's turn ends; minus infinity if too few count.
func (s *SuccessRate) floor(interval []Tally) float64 {
	var n, sum, squares float64
	for _, t := range interval {
		if s.counts(t) {
			n++
			sum += 1 - t.rate()
		}
	}
	if s.Hosts <= 0 || n < float64(s.Hosts) {
		return math.Inf(-1)
	}
	mean := sum / n
	for _, t := range interval {
		if s.counts(t) {
			squares += (1 - t.rate() - mean) * (1 - t.rate() - mean)
		}
	}
	// Equal rates must not be outliers for the last bit of their mean.
	const rounding = 1e-9
	return mean - s.Deviations*math.Sqrt(squares/n) - rounding
}

func (s *SuccessRate) counts(t Tally) bool { return t.volume() > 0 && t.volume() >= float64(s.Volume) }

func (f *FailureRate) counts(t Tally) bool { return t.volume() > 0 && t.volume() >= float64(f.Volume) }

func (t Tally) volume() float64 { return t.OK + t.Failed }
