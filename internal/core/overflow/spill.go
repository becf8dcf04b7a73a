package overflow

import (
	"math"
	"time"
)

// spill is what another zone is allowed to take of home's excess (docs/overflow-law.md 5).
type spill struct {
	open    bool
	allowed float64 // requests per second
	hot     bool    // it was not welcome when it was last offered something

	checked time.Duration // when it was last looked at for a cut
	delay   float64       // then, in seconds
	cutAt   time.Duration
	ceiling float64       // requests per second at which it was too hot; 0: not known
	heardAt time.Duration // of the last evidence

	barred time.Duration // it is not opened before
	pause  time.Duration // how long it was barred; 0: it has answered well since
}

// excess is what home gives away, and what the waterfall compares other zones with.
type excess struct {
	delay     float64 // of home, seconds
	delivered float64 // of home
	endpoints float64 // usable ones of home
	rtt       float64 // of home, seconds
	gone      bool    // home is not to be used at all
}

// pour offers a zone what is left over, a fraction of the demand, and gives the fraction it takes. share is what it got
// since the step before.
func (s *spill) pour(m moment, z *zone, from excess, over float64) float64 {
	if !s.open && over <= 0 { // as in all the time in which nothing is wrong
		return 0
	}
	hot := math.Log(z.sensor.delay / target(m, &z.sensor, from))
	switch {
	case m.baseline == 0: // nothing is known of any zone but who fails
		hot = failing(m, &z.sensor, from)
	case math.IsNaN(hot): // the way there is shorter than the way home by more than a baseline
		hot = math.Inf(-1)
	}
	s.hot = hot > 0
	if s.open && float64(z.lost) >= m.k.OutsiderLost {
		s.bar(m, z)
	}
	if over > 0 && !s.open && hot <= 0 && m.now >= s.barred {
		s.start(m, z, from)
	}
	if !s.open {
		return 0
	}
	wanted := over * m.demand
	switch {
	case over == 0:
	case hot > 0:
		s.retreat(m, z, hot)
	case wanted > s.allowed && z.sensor.heard:
		s.grow(m, z)
	}
	if z.sensor.heard {
		s.heardAt = m.now
	}
	s.fade(m, wanted)
	return min(s.allowed/m.demand, over)
}

// grows tells whether the zone is on its way to take more than it is allowed now, if more is offered.
func (s *spill) grows() bool { return s.open && !s.hot && s.ceiling == 0 }

// dead tells whether the zone was closed for answering nothing, and has not answered since.
func (s *spill) dead() bool { return s.pause > 0 }

// target is the delay up to which a zone is welcome: outsiders tolerate less than residents, unless home is much worse. The
// longer way there is forgiven, but only as long as home is slower than the whole by as much as an outsider may be slower
// than normal: spill only if it helps. In a crisis home's queue grows with each request that stays, and slowdowns are compared,
// unless the longer way alone would explain home's delay: then the network may be slow for all.
func target(m moment, s *sensor, from excess) float64 {
	yielding := m.k.OutsiderSlowdown * (m.baseline + s.extraRTT(from.rtt))
	if !from.gone {
		yielding = min(yielding, max(from.delay/m.k.OutsiderSlowdown, m.k.OutsiderSlowdown*m.baseline))
	}
	extra := s.extraRTT(from.rtt)
	worth, normal := m.k.HomeComparison*from.delay, m.baseline+extra
	if m.baseline > 0 && from.delay > m.k.crisis()*m.baseline && extra < m.k.HomeComparison*(from.delay-m.baseline) {
		worth *= max(1, normal/m.baseline)
	}
	if !from.gone {
		worth = min(worth, m.k.OutsiderFull*normal/max(from.delivered, 1/m.k.Cap))
	}
	return max(yielding, worth)
}

// failing is how hot a zone is by its failures alone, each good answer taken to cost as much as the tries that it needs; 0
// for who is welcome.
func failing(m moment, s *sensor, from excess) float64 {
	tries := func(delivered float64) float64 { return 1 / max(delivered, unnoticed) }
	limit := m.k.OutsiderSlowdown
	if !from.gone {
		limit = max(limit, m.k.HomeComparison*tries(from.delivered))
	}
	return max(0, math.Log(tries(s.delivered)/limit))
}

// start opens a zone with a share that shows how it copes, by its size. One that was too hot not long ago, or that has not
// answered since it was closed, has to begin with the smallest share: where all zones drown, none is to be flooded again
// and again.
func (s *spill) start(m moment, z *zone, from excess) {
	size := 1.0
	if from.endpoints > 0 {
		size = min(1, z.usable/from.endpoints)
	}
	share := (m.k.FirstShare + m.k.FirstShareFailed*(1-from.delivered)) * size
	if s.dead() || s.ceiling > 0 && m.now-s.cutAt < m.k.Forget {
		share = min(share, m.k.OpenFloor)
	}
	s.open, s.allowed, s.heardAt = true, share*m.demand, m.now
	s.checked, s.delay = m.now, z.sensor.delay
}

// bar closes a zone that answers nothing well, for longer each time: even the smallest share of a dead zone is an error
// in a hundred requests.
func (s *spill) bar(m moment, z *zone) {
	interval := time.Duration(m.interval(z) * float64(time.Second))
	s.pause = min(max(2*s.pause, interval), m.k.Forget)
	s.barred = m.now + s.pause
	s.open, s.allowed, z.lost = false, 0, 0
}

// retreat cuts a zone that is too hot, once in a feedback interval and not while it is cooling by itself: gently, but to
// no more than what it really delivers, so that one that fails outright is left as fast as home would be. What it was sent
// becomes a ceiling: without one, clients run into the same wall every few seconds and all zones drown in turn.
func (s *spill) retreat(m moment, z *zone, hot float64) {
	interval := time.Duration(m.interval(z) * float64(time.Second))
	if m.now-s.checked < interval {
		return
	}
	falling := z.sensor.delay < m.k.Falling*s.delay
	s.checked, s.delay = m.now, z.sensor.delay
	if falling {
		return
	}
	sent := z.share * m.demand
	if hot > m.k.OutsiderHot {
		repeats := s.ceiling > 0 && float64(m.now-s.cutAt) <= m.k.CeilingRepeats*float64(interval)
		if !repeats {
			s.ceiling = sent
		}
		s.cutAt = m.now
	}
	s.allowed = sent * min(max(math.Exp(-hot), m.k.OutsiderCut), z.sensor.delivered)
}

// grow lets in more, as fast as evidence comes that the zone copes, and not past the ceiling of the last incident.
func (s *spill) grow(m moment, z *zone) {
	interval := m.interval(z)
	since := min((m.now - s.heardAt).Seconds(), interval)
	grown := s.allowed * math.Pow(m.k.Growth, since/interval)
	if m.now-s.cutAt > m.k.Forget {
		s.ceiling = 0
	}
	if s.ceiling > 0 {
		// CUBIC: steep far from the ceiling, flat near it.
		t := (m.now-s.cutAt).Seconds()/(m.k.CeilingTime*interval) - 1
		grown = min(grown, s.ceiling*(1+m.k.CeilingDip*t*t*t))
	}
	s.allowed = max(s.allowed, grown)
}

// fade takes back what is allowed beyond what is wanted, and closes a zone that is not needed.
func (s *spill) fade(m moment, wanted float64) {
	least := 0.0
	if wanted > 0 {
		least = m.k.OpenFloor * m.demand
	}
	if s.allowed > wanted {
		s.allowed = max(wanted, s.allowed*math.Exp(-m.dt/m.k.CloseTime.Seconds()))
	}
	s.allowed = max(s.allowed, least)
	if s.allowed < m.k.OpenFloor*m.demand {
		s.open, s.allowed = false, 0
	}
}

// interval is the time after which a change of a zone's share can be seen. A step longer than that sees it at once.
func (m moment) interval(z *zone) float64 {
	return m.k.shortMemory(m.baseline) + z.sensor.delay
}
