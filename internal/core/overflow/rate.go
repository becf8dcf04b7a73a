package overflow

import (
	"math"
	"time"
)

// rate is a decayed mean of events per second. It is right from the first step on, because the time is decayed as the
// events are.
type rate struct{ events, seconds float64 }

// fading is how much of the past and of the present is left at the end of a step.
type fading struct {
	dt     float64 // seconds
	keep   float64 // of what was there before
	recent float64 // of the step's own time: a long step must not outweigh those after it
}

// fade tells what a memory of so many seconds leaves in dt seconds.
func fade(dt, memory float64) fading {
	f := fading{dt: dt, keep: math.Exp(-dt / memory), recent: 1}
	if dt > 0 {
		f.recent = memory * (1 - f.keep) / dt
	}
	return f
}

// step takes what happened in the last step and gives the new mean.
func (r *rate) step(n float64, f fading) float64 {
	r.events = r.events*f.keep + n*f.recent
	r.seconds = r.seconds*f.keep + f.dt*f.recent
	return r.perSecond()
}

func (r *rate) perSecond() float64 {
	if r.seconds <= 0 {
		return 0
	}
	return r.events / r.seconds
}

// demand is how many requests per second want an answer. It follows a rise at once and a fall slowly: what is allowed
// is divided by it, so an estimate that is too low keeps too much at home.
type demand struct{ fast, slow rate }

// slowDemand is how much longer the slow mean remembers than the fast one; ours, the study names no number.
const slowDemand = 4

func (d *demand) step(k *Constants, n, dt float64) {
	memory := samplesIn(k.MemorySamples, d.fast.perSecond(), k.DemandMin.Seconds(), k.DemandMax.Seconds())
	d.fast.step(n, fade(dt, memory))
	d.slow.step(n, fade(dt, slowDemand*memory))
}

func (d *demand) perSecond() float64 { return max(d.fast.perSecond(), d.slow.perSecond()) }

// samplesIn gives the seconds in which n events come at this rate, within bounds.
func samplesIn(n, perSecond, least, most float64) float64 {
	if perSecond*most <= n {
		return max(least, most)
	}
	return max(least, n/perSecond)
}

// seconds limits a pause to what may count at once.
func seconds(d, most time.Duration) float64 { return min(d, most).Seconds() }
