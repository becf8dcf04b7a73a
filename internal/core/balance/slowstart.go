package balance

import (
	"math"
	"time"
)

// SlowStart gives a new endpoint less for a while: weight × max(MinWeight, (age/Window)^(1/Aggression)).
type SlowStart struct {
	Window     time.Duration
	MinWeight  float64 // fraction
	Aggression float64 // 0: 1
}

// warm says how much of their weight counts for endpoints that start slowly.
func (l *Loop) warm(now time.Duration) {
	if l.config.SlowStart == nil && !l.warming {
		return // all have their whole weight since some step before
	}
	l.warming = false
	for i := range l.decision.Endpoints {
		e := &l.decision.Endpoints[i]
		e.Ramp = 1
		if !e.Unready { // it starts when it is ready
			e.Ramp = l.config.SlowStart.ramp(now - e.joined)
		}
		l.warming = l.warming || e.Ramp < 1
	}
}

// ramp gives the part of its weight that an endpoint of that age has.
//
// Source: Envoy's slow start, with its least age of a millisecond.
func (s *SlowStart) ramp(age time.Duration) float64 {
	if s == nil || s.Window <= 0 || age >= s.Window {
		return 1
	}
	aggression := s.Aggression
	if aggression <= 0 {
		aggression = 1
	}
	grown := math.Pow(max(age, time.Millisecond).Seconds()/s.Window.Seconds(), 1/aggression)
	return min(1, max(s.MinWeight, grown))
}
