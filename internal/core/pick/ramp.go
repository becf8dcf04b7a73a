package pick

import (
	"math"
	"time"
)

// rampOne is a whole weight; it is written as 0, as nearly all endpoints have it nearly always.
const rampOne = 1 << 16

// warm tells who starts slowly how much of its weight counts now.
func (p *Pool) warm(now time.Duration) {
	if p.prepared.config.SlowStart == nil && !p.warming {
		return // all have their whole weight since some tick before
	}
	p.warming = false
	for _, m := range p.members {
		ramp := p.prepared.config.SlowStart.ramp(now - m.joined)
		if m.target.Unready {
			ramp = 0 // it starts when it is ready
		}
		p.warming = p.warming || ramp != 0
		if m.ramp.Load() != ramp {
			m.ramp.Store(ramp)
		}
	}
}

// ramp gives the part of its weight that an endpoint of that age has, in 1/rampOne; 0: all.
//
// Source: Envoy's slow start, with its least age of a millisecond.
func (s *SlowStart) ramp(age time.Duration) uint32 {
	if s == nil || s.Window <= 0 || age >= s.Window {
		return 0
	}
	aggression := s.Aggression
	if aggression <= 0 {
		aggression = 1
	}
	grown := math.Pow(max(age, time.Millisecond).Seconds()/s.Window.Seconds(), 1/aggression)
	if part := max(s.MinWeight, grown); part < 1 {
		return uint32(max(1, part*rampOne))
	}
	return 0
}
