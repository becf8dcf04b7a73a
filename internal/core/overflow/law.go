package overflow

import (
	"math"
	"slices"
	"time"
)

// weir is the law of docs/overflow-law.md, one for each client and service. It treats every zone as a path
// with congestion control: the client learns what an answer takes when nothing is wrong, measures each zone as a
// slowdown against that, and moves a share of its requests to the cheapest zone that is better.
//
// Each part has its file: sensor and baseline measure, home decides what stays, spill where the excess goes, shed
// what is rejected, state what people are told.
type weir struct {
	k      Constants
	config Config
	crisis float64 // the slowdown at which home's crisis begins

	started  bool
	last     time.Duration
	zones    []*zone // one for each group, in the order in which they are offered the excess; the first is home
	demand   demand
	baseline baseline
	home     home
	shed     float64
	stayed   float64 // of the demand that is at home only because nobody else took it
	noBetter bool    // no other zone is better than home
	reach    int     // the tier that home's excess comes to
	full     float64 // seconds that the rest of the client's zone has had no room for the excess of its node
	story    story

	routes []Route // of the last decision, as the next line
	status []GroupStatus
}

// zone is a group and all that is known of it.
type zone struct {
	group     Group
	home      bool
	tier      int // of the local group: 0, before all others
	endpoints float64
	sensor    sensor
	window    window
	lost      int64 // failed answers in a row, since the last good one
	spill     spill
	share     float64 // of the demand, since the step before
	usable    float64 // endpoints
	drained   bool
	open      bool // requests may go here at all
}

func newWeir(c Config) Strategy {
	k := c.Constants
	return &weir{k: k, config: c, crisis: k.crisis(), baseline: newBaseline()}
}

// Reset implements Strategy.
func (w *weir) Reset(now time.Duration, layout Layout) {
	known := make(map[int]*zone, len(w.zones))
	for _, z := range w.zones {
		known[z.group.ID] = z
	}
	had := len(w.zones) > 0
	w.zones = make([]*zone, len(layout.Groups))
	for i, g := range layout.Groups {
		z := known[g.ID]
		if z == nil || z.home != (i == 0) { // what the local group was like says little about the rest of its zone
			z = &zone{sensor: newSensor(), home: i == 0}
		} else {
			delete(known, g.ID)
		}
		z.group, z.tier, z.endpoints = g, g.Tier, float64(len(g.Endpoints))
		if z.home {
			z.tier = 0
		}
		w.zones[i] = z
	}
	for _, z := range known {
		if z.home {
			w.home = home{} // another local group; what the last one allowed says nothing about it
		}
	}
	w.routes, w.status = make([]Route, 0, len(w.zones)), make([]GroupStatus, len(w.zones))
	if !had && len(w.zones) > 0 {
		w.zones[0].share = 1
	}
	w.story.begin(now)
}

// Step implements Strategy.
func (w *weir) Step(now time.Duration, c *Counters) Decision {
	if len(w.zones) == 0 || len(c.Groups) != len(w.zones) {
		return Decision{Cap: w.k.Cap, State: w.story.state, Reason: w.story.reason, Since: w.story.since}
	}
	m := w.moment(now, c)
	w.measure(m, c)
	m.baseline = w.baseline.value
	w.allow(m)
	w.share(m)
	w.story.tell(m, w)
	return w.decision(m)
}

// moment moves the clock and the demand.
func (w *weir) moment(now time.Duration, c *Counters) moment {
	pause := max(0, now-w.last)
	if !w.started || pause > w.k.Forget {
		pause = 100 * time.Millisecond // a usual step: what was counted is younger than the pause
		w.idle()
	}
	w.started, w.last = true, max(w.last, now)
	var sent float64
	for i := range c.Groups {
		sent += float64(c.Groups[i].Sent)
	}
	m := moment{k: &w.k, now: w.last, dt: seconds(pause, w.k.MemoryMin), baseline: w.baseline.value}
	w.demand.step(&w.k, sent/(1-w.shed), pause.Seconds())
	m.demand = max(w.demand.perSecond(), leastDemand)
	return m
}

// leastDemand keeps divisions by the demand finite; one request in a quarter of an hour is no demand.
const leastDemand = 1e-3

// idle forgets what was known of the zones, but not what normal is.
func (w *weir) idle() {
	for i, z := range w.zones {
		rtt := z.sensor.rtt
		z.sensor, z.spill, z.share = newSensor(), spill{}, 0
		z.sensor.rtt = rtt
		if i == 0 {
			z.share = 1
		}
	}
	w.home, w.demand, w.shed, w.stayed = home{}, demand{}, 0, 0
}

// measure reads the counters: sensors, and the baseline while home is calm.
func (w *weir) measure(m moment, c *Counters) {
	prior := w.k.PriorCalm
	if w.home.armed {
		prior = w.k.PriorArmed
	}
	r := &reading{
		now: m.now, dt: m.dt, baseline: m.baseline, homeRTT: w.zones[0].sensor.rtt, prior: prior, crisis: w.crisis,
		longest: fade(m.dt, w.k.MemoryMax.Seconds()), delivered: math.Exp(-m.dt / w.k.DeliveredMax.Seconds()),
	}
	for i, z := range w.zones {
		in := &c.Groups[i]
		z.usable, z.drained = float64(max(0, in.Usable)), in.Drained
		z.sensor.step(&w.k, r, in)
		z.count(in)
		w.baseline.see(&w.k, m.dt, &z.window, in)
	}
	if !w.home.armed {
		w.baseline.learn(&w.k, m.dt, &c.Groups[0])
	}
	w.openZones()
}

// count keeps the row of failed answers.
func (z *zone) count(in *GroupCounters) {
	z.lost += in.Failed
	if in.OK > 0 {
		z.lost, z.spill.pause = 0, 0
	}
}

// openZones finds the groups that may be used. Endpoints that sit out and drained zones may not; but if that leaves
// nothing, drains are ignored, and if that leaves nothing either, so is sitting out.
func (w *weir) openZones() {
	rules := []func(*zone) bool{
		func(z *zone) bool { return z.usable > 0 && !z.drained },
		func(z *zone) bool { return z.usable > 0 },
		func(z *zone) bool { return z.endpoints > 0 },
		func(*zone) bool { return true },
	}
	for _, allows := range rules {
		found := false
		for _, z := range w.zones {
			z.open = allows(z)
			found = found || z.open
		}
		if found {
			return
		}
	}
}

// allow decides how much may stay at home.
func (w *weir) allow(m moment) {
	here := w.zones[0]
	switch {
	case !here.open:
		w.home.close(m, here.share)
	case w.home.armed:
		w.home.step(m, &here.sensor, here.share, w.stayed)
	case here.sensor.slowdown > w.baseline.threshold(&w.k, here.sensor.weight):
		w.home.arm(m)
	}
	w.accept(m)
}

// accept lets the baseline follow when home has been slow for long and leaving does not help (docs/overflow-law.md 2).
func (w *weir) accept(m moment) {
	here := w.zones[0]
	s := &here.sensor
	limit := w.k.HomeSlowdown
	if w.baseline.slowFor >= w.k.EscapeAfter.Seconds() {
		limit *= math.Exp(-w.k.ReturnBelow) // go on until home can return, not only to the brink of it
	}
	left := here.share <= 0.5 && s.slowdown < w.k.EscapeBelow
	if w.home.armed && here.open && s.slowdown > limit && s.delivered > w.k.GoodShare && (w.noBetter || left) {
		w.baseline.escape(&w.k, m.dt)
		return
	}
	w.baseline.slowFor = 0
}

// share pours home's excess over the other zones in order, sheds, and gives the rest back to home.
func (w *weir) share(m moment) {
	here := w.zones[0]
	over := 0.0
	if w.home.armed {
		over = max(0, 1-w.home.allowed/m.demand)
	}
	if !here.open {
		over = 1
	}
	from := excess{
		delay: here.sensor.delay, delivered: here.sensor.delivered, endpoints: here.usable, rtt: here.sensor.rtt,
		gone: !here.open,
	}
	wanted, taken := over, 0.0
	w.noBetter = true
	first := true // of those that are open
	w.fill(m, over)
	for _, z := range w.zones[1:] {
		if !z.open {
			z.share = 0
			z.spill = spill{}
			continue
		}
		if first || z.tier != w.reach && (z.spill.open || over > unnoticed && !w.growing(w.reach)) {
			first, w.reach = false, z.tier
		}
		w.noBetter = w.noBetter && (z.spill.dead() || z.sensor.delay > target(m, &z.sensor, from))
		if z.tier > w.reach {
			z.share = 0
			continue
		}
		part := z.spill.pour(m, z, from, over)
		over = max(0, over-part)
		taken += part
		z.share = part
	}
	w.shedding(m, over)
	w.stayed = 0
	if over > unnoticed && wanted > 0 {
		w.stayed = over
	}
	rest := max(0, 1-taken-w.shed)
	if here.open {
		here.share = rest
		return
	}
	here.share = 0
	w.scatter(m, rest)
}

// fill finds out how long the rest of the client's zone has had no room, where home is the client's node. Home is one
// endpoint or a few then, so that single requests show little.
func (w *weir) fill(m moment, over float64) {
	for _, z := range w.zones {
		if z.group.Near && z.open && (over <= unnoticed || !z.spill.hot) {
			w.full = 0
			return
		}
	}
	w.full += m.dt
}

// fullAfter is how many seconds the rest of the client's zone must have had no room before its node's excess leaves the zone:
// longer than single slow answers make it look full, and short enough for a zone that is overloaded as a whole.
const fullAfter = 0.5

// growing tells whether some zone of a tier is about to take more of what is over: it is not too hot, and no ceiling of an
// incident holds it back. As long as that is so no zone of a further tier is opened; one that is open stays in use until
// it is not needed.
func (w *weir) growing(tier int) bool {
	for i, z := range w.zones {
		if i > 0 && z.open && z.tier == tier && (z.spill.grows() || z.group.Near && w.full < fullAfter) {
			return true
		}
	}
	return false
}

// unnoticed is a share that is nothing: rounding, or a request in a thousand.
const unnoticed = 1e-3

// scatter gives a share that has no zone to those that may be used, up to the tier that was reached, by size and inversely
// by the square of their delay. Those that are barred get something only where all are.
func (w *weir) scatter(m moment, share float64) {
	here := func(z *zone) bool { return z.open && z.tier <= w.reach && m.now >= z.spill.barred }
	if !slices.ContainsFunc(w.zones, here) {
		here = func(z *zone) bool { return z.open && z.tier <= w.reach }
	}
	weigh := func(z *zone) float64 {
		size := max(z.usable, 1)
		if d := z.sensor.delay; d > 0 && w.baseline.value > 0 {
			ratio := w.baseline.value / d
			return size * ratio * ratio
		}
		return size
	}
	var sum float64
	for _, z := range w.zones {
		if here(z) {
			sum += weigh(z)
		}
	}
	for _, z := range w.zones {
		if here(z) {
			z.share += share * weigh(z) / sum
		}
	}
}

// decision says what was decided.
func (w *weir) decision(m moment) Decision {
	d := Decision{
		Routes:   w.routes[:0],
		Groups:   w.status,
		Shed:     w.shed,
		Baseline: time.Duration(w.baseline.value * float64(time.Second)),
		Cap:      w.k.Cap,
		State:    w.story.state,
		Reason:   w.story.reason,
		Since:    w.story.since,
	}
	for i, z := range w.zones {
		status := GroupStatus{
			Share:     z.share,
			Delivered: z.sensor.delivered,
			Allowed:   z.spill.allowed,
			Demand:    z.share * m.demand,
		}
		if z.sensor.weight > unnoticed {
			status.Slowdown = z.sensor.slowdown
		}
		if i == 0 {
			status.Allowed, status.Demand = w.allowedHome(m), m.demand
		}
		d.Groups[i] = status
		if z.share > 0 {
			d.Routes = append(d.Routes, Route{Group: i, Share: z.share})
		}
	}
	w.routes = d.Routes
	return d
}

// allowedHome is what home is allowed: all of the demand while calm.
func (w *weir) allowedHome(m moment) float64 {
	if w.home.armed {
		return w.home.allowed
	}
	return m.demand
}
