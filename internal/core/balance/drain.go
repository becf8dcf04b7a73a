package balance

import (
	"maps"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Drain asks that nothing be sent to a zone until then; a time that has passed ends the drain. It takes effect with the
// next Step. A drain that would leave no endpoint is not followed.
func (l *Loop) Drain(zone topology.Zone, until time.Duration) { l.drains[zone] = until }

// mark finds the endpoints that are drained and those that are usable.
func (l *Loop) mark(now time.Duration) {
	maps.DeleteFunc(l.drains, func(_ topology.Zone, until time.Duration) bool { return until <= now })
	d := &l.decision
	if drains := len(l.drains) > 0; drains || l.draining {
		l.draining = drains
		l.drain()
	}
	for i := range d.Groups {
		g, c := &d.Groups[i], &l.counters.Groups[i]
		g.Usable, g.Drained = len(g.Ready), false
		if l.draining || l.out > 0 {
			l.inspect(g)
		}
		c.Usable, c.Drained = g.Usable, g.Drained
	}
}

// inspect counts a group's usable endpoints one by one.
func (l *Loop) inspect(g *Group) {
	g.Usable, g.Drained = 0, l.draining
	for _, j := range g.Members {
		e := &l.decision.Endpoints[j]
		g.Drained = g.Drained && e.Drained
		if !e.Drained && !e.Unready && (e.Standing == Serving || e.Standing == Due) {
			g.Usable++
		}
	}
}

// drain marks the endpoints that are drained: none, if that would leave none.
func (l *Loop) drain() {
	endpoints, left := l.decision.Endpoints, false
	for i := range endpoints {
		_, endpoints[i].Drained = l.drains[endpoints[i].Zone]
		left = left || !endpoints[i].Drained
	}
	for i := range endpoints {
		endpoints[i].Drained = endpoints[i].Drained && left
	}
}
