package overflow

import "math"

// shedding moves the share of requests that are rejected (docs/overflow-law.md 7): what nobody can take, and only on
// evidence that answers are being lost, not merely slow. A share of 0.3 of the gap is added every 100 ms, and taken
// back more slowly than that, so that what is rejected does not swing.
func (w *weir) shedding(m moment, over float64) {
	k := m.k
	wanted := 0.0
	if w.config.Shed && w.drowning() {
		wanted = min(over, k.ShedMax)
	}
	if wanted > w.shed {
		const step = 0.1 // seconds, for which ShedUp is given
		w.shed += (wanted - w.shed) * (1 - math.Pow(1-k.ShedUp, m.dt/step))
		return
	}
	w.shed = max(wanted, w.shed-k.ShedDown*m.dt)
	if w.shed > over {
		w.shed = over // never reject what a zone would take
	}
}

// drowning tells whether home is gone or far too slow, no other zone is well, and answers are being lost.
func (w *weir) drowning() bool {
	here := w.zones[0]
	if here.open && here.sensor.slowdown <= w.k.ShedHome {
		return false
	}
	ok, due := w.k.DeliveredPrior, w.k.DeliveredPrior
	for i, z := range w.zones {
		if i > 0 && z.open && !z.spill.dead() && z.sensor.slowdown <= w.k.ShedOthers {
			return false
		}
		ok += z.sensor.ok
		due += z.sensor.due
	}
	return ok < w.k.ShedDelivered*due
}
