// Package health decides who sits out: an endpoint that keeps failing gets a pause, one trial when the pause is over,
// and a longer pause if the trial fails too.
//
// It is told outcomes, the time and a random number, and answers with pauses; it knows no clock, no goroutine and no
// request. It never lets more than a set share of a pool sit out, so that a fault which all endpoints share (their
// database, the network, the client itself) cannot empty the pool.
package health

import (
	"math"
	"time"
)

// Config says when an endpoint sits out and for how long. The zero value means the defaults; each field that is zero
// takes its own default.
type Config struct {
	// Failures in a row that end an endpoint's turn, and the fewest failures that the rate rule acts on.
	// Default 5: an endpoint that fails one request in ten by chance does so in 1 of 100,000 runs of five; negative:
	// endpoints never sit out.
	Failures int
	// Pause is how long the first pause lasts; each further one in a row lasts twice as long.
	// Default 1 s: the order of a process's restart or of a connection that is set up anew.
	Pause time.Duration
	// MaxPause bounds the pause.
	// Default 30 s: a trial each half minute costs nothing, and a repaired endpoint is back before a person looks.
	MaxPause time.Duration
	// Jitter is the largest relative deviation of a pause, 0 to 1.
	// Default 0.25: spreads the trials of many clients, which all noticed at once, over half of the pause.
	Jitter float64
	// MaxOut is the fraction of a pool that may sit out at once, 0 to 1, rounded down.
	// Default 0.5: one of two zones may go as a whole; the rest, at twice its load, is better than a pool of endpoints
	// that nobody believes in.
	MaxOut float64
	// Rate is the fraction of failed requests in memory above which an endpoint sits out, if it is also OddsOfRest
	// times that of all others together.
	// Default 0.3: an endpoint that fails half of its requests needs 62 of them on average before five in a row fail,
	// and with a balancer that already avoids it that takes minutes.
	Rate float64
	// Memory is the time constant of the rate rule.
	// Default 10 s: an endpoint that fails less than five requests in that time does little harm.
	Memory time.Duration
	// WhateverLoad: the rules hold for endpoints of a full group, too, as those of circuit breakers that know no groups do.
	WhateverLoad bool
	// Outliers are what a policy asks for beside the rules above; nil: nothing.
	Outliers *Outliers
}

// OddsOfRest is how many times worse than the others an endpoint must be for the rate rule: twice, so that a fault that
// all share does not look like one endpoint's own.
const OddsOfRest = 2

// WithDefaults gives c with its zero fields replaced.
func (c Config) WithDefaults() Config {
	if c.Failures == 0 {
		c.Failures = 5
	}
	if c.Pause <= 0 {
		c.Pause = time.Second
	}
	if c.MaxPause <= 0 {
		c.MaxPause = 30 * time.Second
	}
	if c.Jitter <= 0 {
		c.Jitter = 0.25
	}
	if c.MaxOut <= 0 {
		c.MaxOut = 0.5
	}
	if c.Rate <= 0 {
		c.Rate = 0.3
	}
	if c.Memory <= 0 {
		c.Memory = 10 * time.Second
	}
	c.MaxPause = max(c.MaxPause, c.Pause)
	c.Jitter, c.MaxOut = min(c.Jitter, 1), min(c.MaxOut, 1)
	c.Failures = min(c.Failures, MaxStreak)
	if c.Outliers != nil {
		c.Outliers = c.Outliers.withDefaults()
	}
	return c
}

// Trips tells by whose rules, if any, such a row of failures ends an endpoint's turn. A policy's word counts more, as its
// pauses are the longer ones as a rule.
func (c Config) Trips(s Streaks) Cause {
	switch {
	case c.Outliers != nil && c.Outliers.trips(s):
		return ByPolicy
	case c.Failures > 0 && int(s.Any) >= c.Failures:
		return ByRules
	default:
		return NotOut
	}
}

// Allowed gives how many of n endpoints may sit out at once.
func (c Config) Allowed(n int) int {
	if c.Outliers != nil && c.Outliers.MaxOut != nil {
		return c.Outliers.allowed(n)
	}
	if c.Failures < 0 && c.Outliers == nil {
		return 0
	}
	return part(c.MaxOut, n)
}

// part gives a share of n, rounded down. One such as 0.7 of 10 must not lose one to the binary fraction.
func part(share float64, n int) int { return int(math.Floor(share*float64(n) + 1e-9)) }

// pause gives the length of the nth pause in a row, from 1.
func (c Config) pause(n int, random uint64) time.Duration {
	length := c.MaxPause
	// Beyond 30 doublings any pause has met its bound, and the shift would overflow.
	if doublings := n - 1; doublings < 30 && c.Pause <= c.MaxPause>>doublings {
		length = c.Pause << doublings
	}
	spread := 2*float64(random>>11)/(1<<53) - 1 // [-1, 1): the 53 bits that a float64 holds
	return length + time.Duration(c.Jitter*spread*float64(length))
}

// MaxStreak is the longest row of failures that is counted; longer ones count as this.
const MaxStreak = 1<<16 - 1

// Streaks are failures in a row: of any kind, and counted by kind. One of a kind that a count is not about ends that
// row, as a good answer does.
type Streaks struct {
	Any     uint16
	Server  uint16 // 5xx, and what never was answered
	Gateway uint16 // 502, 503, 504, and what never was answered
	Local   uint16 // never answered: refused, reset or timed out
}

// Cause is whose rules make an endpoint sit out. They differ in how long the pause is.
type Cause uint8

// The causes.
const (
	NotOut   Cause = iota
	ByRules        // those that weir always has
	ByPolicy       // Outliers
)

// Tally counts good and failed requests; decayed, they need not be whole.
type Tally struct{ OK, Failed float64 }

// Add gives the sum of both.
func (t Tally) Add(o Tally) Tally { return Tally{t.OK + o.OK, t.Failed + o.Failed} }

// Without gives what is left when o is taken away.
func (t Tally) Without(o Tally) Tally { return Tally{max(0, t.OK-o.OK), max(0, t.Failed-o.Failed)} }

// rate is the fraction that failed; 0 when nothing was counted.
func (t Tally) rate() float64 {
	if t.OK+t.Failed == 0 {
		return 0
	}
	return t.Failed / (t.OK + t.Failed)
}

// Record is what is known of one endpoint's health. The zero value is an endpoint that never failed. One goroutine at a
// time.
//
// Pauses are forgiven when the endpoint has served for as long as the last one lasted. One good answer is not enough: an
// endpoint that fails half of its requests passes every second trial. Much more would be too much: when all are
// overloaded, everyone fails five in a row now and then, and long pauses take away what is missing already.
type Record struct {
	Out       bool          // sits out, or is on trial
	Until     time.Duration // when the pause ends; meaningful while Out
	Pauses    int           // in a row
	Ejections int64         // pauses ever
	Recent    Tally         // what it did lately

	paused time.Duration // length of the last pause
	back   time.Duration // when it last came back

	asked  int           // pauses by a policy that have not been forgiven
	served time.Duration // when one was last forgiven, or the endpoint came back
}

// Keep gives the part of what is remembered that is left when so much time has passed.
func (c Config) Keep(elapsed time.Duration) float64 {
	return math.Exp(-elapsed.Seconds() / c.Memory.Seconds())
}

// Observe folds what the endpoint did in the time that ends now, of which Keep says how much it leaves of what was there,
// and forgives old pauses when it has served for long enough.
func (r *Record) Observe(c *Config, now time.Duration, keep float64, did Tally) {
	r.Recent = Tally{r.Recent.OK * keep, r.Recent.Failed * keep}.Add(did)
	if !r.Out && r.Pauses > 0 && now-r.back >= r.paused {
		r.Pauses = 0
	}
	if c.Outliers != nil && !r.Out && r.asked > 0 && now-r.served >= c.Outliers.Interval {
		r.asked, r.served = r.asked-1, now
	}
}

// FailsOften is the rate rule: the endpoint fails much more often than the rest of its pool, and often enough to be
// sure. all is what the whole pool did, this endpoint included.
func (r *Record) FailsOften(c *Config, all Tally) bool {
	if c.Failures <= 0 || r.Recent.Failed < float64(c.Failures) {
		return false
	}
	own := r.Recent.rate()
	return own >= c.Rate && own >= OddsOfRest*all.Without(r.Recent).rate()
}

// Eject starts a pause at that time: the first, or a longer one after a failed trial.
func (r *Record) Eject(c *Config, by Cause, at time.Duration, random uint64) {
	r.Out = true
	r.Pauses++
	r.Ejections++
	r.paused = c.pause(r.Pauses, random)
	if by == ByPolicy && c.Outliers != nil {
		r.asked++
		r.paused = c.Outliers.pause(r.asked)
	}
	r.Until = at + r.paused
}

// Return brings the endpoint back with a clean slate, but for the pauses that it has already had.
func (r *Record) Return(now time.Duration) {
	r.Out, r.Until, r.back, r.served = false, 0, now, now
	r.Recent = Tally{}
}
