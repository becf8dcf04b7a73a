package fleet

import (
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// loss is whether something is gone and whether the API knows. What is lost is not deleted.
//
// Source: Kubernetes, Nodes, "Node controller": a node that does not renew its lease is not ready after a grace period, and
// with it its pods. Five minutes later they are evicted, which is not modelled.
type loss struct {
	isLost, isKnown bool
	known           time.Duration // when the API learns of it
}

func (l *loss) begin(known time.Duration) {
	if !l.isLost {
		*l = loss{isLost: true, known: known}
	}
}

func (l *loss) due() time.Duration {
	if l.isLost && !l.isKnown {
		return l.known
	}
	return never
}

// zone is a zone that pods may be in; when it is lost then all its nodes are.
type zone struct {
	name topology.Zone
	loss loss
}

// zoneNamed finds a zone; nil when no pod of the own cluster may be there.
func (f *Fleet) zoneNamed(name topology.Zone) *zone {
	for i := range f.zones {
		if f.zones[i].name == name {
			return &f.zones[i]
		}
	}
	return nil
}

// isKnownLost tells whether the API says that the zone's nodes are not ready.
func (f *Fleet) isKnownLost(name topology.Zone) bool {
	z := f.zoneNamed(name)
	return z != nil && z.loss.isKnown
}

// isMeant tells whether where names all nodes of the zone, and not some endpoints.
func (z *zone) isMeant(where scenario.Where) bool {
	return where.IsWhole() && where.Cluster == "" && (where.Zone == "" || where.Zone == z.name)
}

// lose cuts off the pods that are meant; with a whole zone, its nodes too.
func (f *Fleet) lose(where scenario.Where) {
	known := f.now + f.sc.Discovery.Lost
	for id := range f.pods {
		if f.pods[id].Phase != Gone && f.hidden[id].isScheduled && f.isMeant(id, where) {
			f.hidden[id].loss.begin(known)
			f.changed()
		}
	}
	for i := range f.zones {
		if z := &f.zones[i]; z.isMeant(where) {
			z.loss.begin(known)
		}
	}
}

// giveBack ends the loss: pods that were ready are so at once, and the API says it.
func (f *Fleet) giveBack(where scenario.Where) {
	for id := range f.pods {
		if s := &f.hidden[id]; s.loss.isLost && f.isMeant(id, where) {
			s.loss = loss{}
			f.told()
		}
	}
	for i := range f.zones {
		if z := &f.zones[i]; z.loss.isLost && z.isMeant(where) {
			z.loss = loss{}
			f.told()
		}
	}
}

// discover tells the API of losses whose time has come.
func (f *Fleet) discover() {
	for id := range f.pods {
		f.learn(&f.hidden[id].loss)
	}
	for i := range f.zones {
		f.learn(&f.zones[i].loss)
	}
}

func (f *Fleet) learn(l *loss) {
	if l.due() <= f.now {
		l.isKnown = true
		f.told()
	}
}

func (f *Fleet) nextLoss() time.Duration {
	next := never
	for id := range f.pods {
		next = min(next, f.hidden[id].loss.due())
	}
	for i := range f.zones {
		next = min(next, f.zones[i].loss.due())
	}
	return next
}
