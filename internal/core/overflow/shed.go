package overflow

import "math"

// shedding moves the share of requests that are rejected (docs/overflow-law.md 7): what no zone takes, and only on evidence
// that answers are being lost, not merely slow. It rises within the shortest memory, and falls as slowly as a zone that is
// no longer needed is closed, so that it does not swing.
func (w *weir) shedding(m moment, over float64) {
	wanted, time := 0.0, m.k.CloseTime
	if w.config.Shed && w.drowning() {
		wanted = min(over, 1-m.k.FloorShareMax) // some requests always have to tell how things are
	}
	if wanted > w.shed {
		time = m.k.MemoryMin
	}
	w.shed += (wanted - w.shed) * (1 - math.Exp(-m.dt/time.Seconds()))
	w.shed = min(w.shed, over) // never reject what a zone would take
}

// drowning tells whether home is gone or in crisis, no other zone is welcome, and answers are being lost.
func (w *weir) drowning() bool {
	here := w.zones[0]
	if here.open && here.sensor.slowdown <= w.crisis {
		return false
	}
	ok, due := w.k.PriorArmed, w.k.PriorArmed
	for i, z := range w.zones {
		if i > 0 && z.open && !z.spill.dead() && !z.spill.hot {
			return false
		}
		ok += z.sensor.ok
		due += z.sensor.due
	}
	return ok < w.k.GoodShare*due
}
