package overflow

import (
	"math"
	"time"
)

// moment is what the parts of one step share.
type moment struct {
	k        *Constants
	now      time.Duration
	dt       float64 // seconds since the step before, at most MemoryMin
	demand   float64 // requests per second that want an answer
	baseline float64 // seconds; 0: not known
}

// home decides how much of the demand its own zone is allowed (docs/overflow-law.md 4). What is kept is a rate and
// not a share: when demand jumps, the excess is elsewhere in the next step.
type home struct {
	armed     bool
	allowed   float64 // requests per second; counts while armed
	wall      float64 // requests per second that were delivered when home went over, 0: it has not (ssth)
	easyFor   float64 // seconds that home has been clearly below its limit
	disarming float64 // seconds that home has been allowed clearly more than is asked for

	cuts       cuts
	evacuated  bool // nothing but probes goes home
	shut       bool // and that not for what the sensor said
	recovering bool
	streak     float64 // good answers in a row while evacuated
	needed     float64 // of them
}

// cuts is a series of cuts of one crisis.
type cuts struct {
	active   bool
	number   int
	at       time.Duration
	slowdown float64 // when the last one was made
	share    float64 // that home really had then
	heard    float64 // answers since then
	due, ok  float64 // requests since then: more answered well than sent a delay earlier is a queue that gets shorter
}

// arm begins to limit home.
func (h *home) arm(m moment) {
	*h = home{armed: true, allowed: (1 - m.k.FloorShare) * m.demand, needed: m.k.Probes}
}

// step moves what home is allowed. share is what home really got since the step before, stayed how much of that was
// there only because nobody else took it.
func (h *home) step(m moment, s *sensor, share, stayed float64) {
	h.probe(s)
	excess := math.Log(s.slowdown / m.k.HomeSlowdown)
	if excess > m.k.CrisisAbove {
		h.cut(m, s, share, stayed)
	} else {
		h.steer(m, s, excess)
	}
	h.limit(m, share, stayed)
	h.disarm(m)
}

// steer is the fine control: a step in proportion to the excess delay, small against the time in which its effect can
// be seen.
func (h *home) steer(m moment, s *sensor, excess float64) {
	h.cuts.active = h.cuts.active && excess > 0
	if !h.cuts.active {
		h.cuts.number = 0
	}
	gain := m.k.LoopGain / (s.memory + s.delay)
	h.easyFor += m.dt
	if excess >= -m.k.ReturnBelow {
		h.easyFor = 0
	}
	gain *= 1 + h.easyFor/(m.k.ReturnAfter*m.k.shortMemory(m.baseline))
	growth := -gain * excess * m.dt
	if excess < -m.k.ReturnBelow && h.allowed < m.k.RecoverUntil*h.wall {
		growth = max(growth, m.k.RecoverGrowth*m.dt/feedback(m, s.delay))
	}
	if h.evacuated {
		growth = min(growth, 0)
	}
	h.allowed *= math.Exp(growth)
}

// nearCap is the part of Cap from which a slowdown does not tell how long answers take: what was sent before a cut and is
// answered long after it would look like a queue that gets shorter.
const nearCap = 0.75

// cut follows a crisis: at most one cut in a feedback interval, each relative to what home really delivers. A zone that
// is overloaded is cut to its capacity at once, one that fails to nothing. While home answers what it was sent before the cut
// it is as slow as its queue was long, which says nothing against what it is allowed now.
func (h *home) cut(m moment, s *sensor, share, stayed float64) {
	h.easyFor = 0
	c := &h.cuts
	interval := time.Duration(feedback(m, s.delay) * float64(time.Second))
	if (m.now - c.at).Seconds() > s.delay+m.dt { // what was sent before the cut has been answered, or waits in a queue
		c.due, c.ok = c.due+s.lastDue, c.ok+s.lastOK
	}
	c.heard += s.samples
	switch {
	case !c.active:
		*c = cuts{active: true, at: m.now, slowdown: s.slowdown, share: share}
		if !h.evacuated && !h.recovering {
			h.wall = s.delivered * share * m.demand
		}
		if h.recovering {
			h.needed = min(2*h.needed, m.k.Cap*m.k.Probes)
			h.recovering = false
		}
	case m.now-c.at < interval, c.heard+s.waiting < m.k.PriorArmed:
	case s.slowdown < m.k.Falling*c.slowdown, s.slowdown < nearCap*m.k.Cap && c.due < m.k.Falling*c.ok:
		c.at, c.slowdown, c.heard, c.due, c.ok = m.now, s.slowdown, 0, 0, 0
	default:
		if stayed == 0 && c.number < len(m.k.CutFactors)-1 {
			c.number++
		}
		c.at, c.slowdown, c.share, c.heard, c.due, c.ok = m.now, s.slowdown, share, 0, 0, 0
	}
	h.allowed = min(h.allowed, m.k.CutFactors[c.number]*s.delivered*c.share*m.demand)
}

// probe counts the good answers of an evacuated home. Enough of them in a row, and it is given another chance.
func (h *home) probe(s *sensor) {
	if !h.evacuated {
		return
	}
	switch {
	case s.good > 0:
		h.streak += float64(s.good)
	case s.heard:
		h.streak = 0
	}
	if h.streak >= h.needed {
		s.forget()
		h.evacuated, h.recovering, h.streak, h.cuts = false, true, 0, cuts{}
	}
}

// limit keeps the allowance between its floor and its ceiling.
func (h *home) limit(m moment, share, stayed float64) {
	if stayed > 0 {
		h.allowed = max(h.allowed, m.k.KeepStayed*share*m.demand)
	}
	floor := m.k.floor(m.demand)
	h.allowed = min(max(h.allowed, floor), (2*m.k.DisarmAt-1)*m.demand) // credit for a quiet time must not delay the next cut
	low := h.allowed < max(m.k.EvacuatedAt*h.wall, 1.05*floor)
	switch {
	case low && h.cuts.active && !h.recovering:
		h.shut = h.shut && h.evacuated
		h.evacuated = true
	case !low && h.evacuated: // nobody took what it was to give away
		h.evacuated, h.streak = false, 0
	case h.recovering && h.allowed >= m.k.RecoverUntil*h.wall:
		h.recovering = false
	}
}

// disarm ends it, when home is allowed clearly more than is asked for.
func (h *home) disarm(m moment) {
	h.disarming += m.dt
	if h.allowed < m.k.DisarmAt*m.demand {
		h.disarming = 0
	}
	if h.disarming >= m.k.DisarmAfter.Seconds() {
		*h = home{}
	}
}

// close takes home out of use at once: no endpoint is usable, or an operator wants nothing sent there. It comes back
// like an evacuated one.
func (h *home) close(m moment, share float64) {
	if !h.armed {
		h.arm(m)
		h.wall = share * m.demand
	}
	h.allowed = m.k.floor(m.demand)
	h.evacuated, h.shut, h.recovering, h.streak, h.cuts = true, true, false, 0, cuts{}
}

// floor is the rate that always goes home, so that its recovery is seen.
func (k *Constants) floor(demand float64) float64 {
	return max(k.FloorShare*demand, min(k.FloorRate, k.FloorShareMax*demand))
}

// feedback is the time after which the effect of a change can be seen: a memory, and the delay of what was sent before.
func feedback(m moment, delay float64) float64 {
	return m.k.shortMemory(m.baseline) + min(delay, max(m.k.FeedbackMin.Seconds(), 4*m.baseline))
}
