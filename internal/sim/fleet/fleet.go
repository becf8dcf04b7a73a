// Package fleet plays the part of Kubernetes in a simulation: which pods there are, when they become ready and go, and
// what the API says of them.
//
// It is told the time and how busy pods are, and answers with changes; it knows no request. Deployment, scheduler,
// autoscalers and the node controller are modelled as their documentation describes them, for one Deployment of the own
// cluster; what is simplified is said where it is. Pods of other clusters never change, but can be lost.
package fleet

import (
	"math"
	"net/netip"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// Phase is where a pod is in its life.
type Phase uint8

// The phases.
const (
	Pending     Phase = iota // no node has room for it, or it is starting, or the scenario has it as not ready
	Ready                    // serves, and the API says so; both unless Fleet.Lost
	Terminating              // serves what it has and what still comes, and the API says that it goes
	Gone                     // refuses
)

// Pod is one pod of the service. Its ID is its index in Fleet.Pods, for ever.
type Pod struct {
	ID      int
	Addr    netip.Addr
	Zone    topology.Zone // empty while no node has room for it and any zone would do
	Cluster string
	Node    string
	Place   int // its number in its zone, from 1: what scenario.Where counts by; a pod that replaces another takes its place
	Phase   Phase
	Since   time.Duration // when the phase began
	ReadyAt time.Duration // when it became ready; meaningful from then on. Pods of the scenario are ready, and warm, from the start
	Cold    bool          // it started during the run: it is slow at first
}

// never is when nothing happens.
const never = time.Duration(math.MaxInt64)

// none stands for the id of a pod that does not exist.
const none = -1

// Fleet is all pods and nodes of a run. One goroutine at a time.
type Fleet struct {
	sc      *scenario.Scenario
	service *topology.Service

	now    time.Duration
	next   time.Duration // when something happens by itself
	pods   []Pod
	hidden []state // of pods, by id
	zones  []zone  // those that pods may be in, sorted
	nodes  []node  // the scenario's in its order, then in order of request

	waiting  []int // pods that no node has room for, oldest first
	rollouts []rollout
	scaler   scaler
	addrs    addresses

	changes  int // of pods and of what the API says; grows
	snapshot topology.Snapshot
	isStale  bool // the API says something else than snapshot
}

// state is what a Pod does not tell.
type state struct {
	endpoint  topology.Endpoint // as the API has it at first; address, zone, node and conditions are set anew with each snapshot
	isInitial bool              // nothing has happened to it: the conditions are the scenario's

	isScheduled bool          // it has a node, or needs none
	isPinned    bool          // only its zone will do
	start       time.Duration // when it becomes ready
	end         time.Duration // when it is gone
	replaces    int           // the pod that goes when this one and the rest of its batch are ready
	replacement int           // the inverse
	loss        loss
	usage       usage
}

// New makes the fleet of sc's cluster at time zero. Nothing about it is random.
func New(sc *scenario.Scenario) *Fleet {
	f := &Fleet{sc: sc, service: sc.Snapshot.Services[0], isStale: true}
	f.addrs = newAddresses(f.service.Endpoints)
	f.zones = zonesOf(&sc.Snapshot)
	f.nodes = nodesOf(&sc.Snapshot)
	for i := range f.service.Endpoints {
		f.adopt(&f.service.Endpoints[i])
	}
	f.placeInitial()
	f.scaler = newScaler(sc.Autoscale)
	f.next = f.due()
	return f
}

// Pods lists all pods that there ever were, by id. It is shared: read only, and only until the next Step or Command.
func (f *Fleet) Pods() []Pod { return f.pods }

// Lost tells whether the pod's node is gone: whatever is sent to it is swallowed, whatever its phase. The API learns of
// it later.
func (f *Fleet) Lost(id int) bool { return f.hidden[id].loss.isLost }

// Next is when Step has to be called next; a very large value: never. Commands move it.
func (f *Fleet) Next() time.Duration { return f.next }

// Step lets everything happen that is due at now or before, in order. It may be called at any time that is not before the
// last one. The mean utilisation of a ready pod since the Step before, 0 to 1, is asked of busy, when there is an
// autoscaler; otherwise busy may be nil. It tells whether pods, or what the API says of them, changed.
func (f *Fleet) Step(now time.Duration, busy func(id int) float64) bool {
	before := f.changes
	f.observe(now, busy)
	for f.next <= now {
		f.happen(f.next)
	}
	f.now = now
	return f.changes != before
}

// happen does what is due at now. What it does may be due for more at once: Step comes back.
func (f *Fleet) happen(now time.Duration) {
	f.now = now
	f.discover()
	f.boot()
	f.age()
	f.roll()
	f.autoscale()
	f.schedule()
	f.retire()
	f.next = f.due()
}

// Command does what the step says to pods and nodes at once; steps with other verbs are not for the fleet, and do
// nothing. Next has to be asked again.
func (f *Fleet) Command(now time.Duration, st scenario.Step) {
	f.now = now
	switch st.Verb {
	case scenario.Rollout:
		f.rollouts = append(f.rollouts, rollout{where: st.Where, count: max(st.Count, 1)})
		f.roll()
	case scenario.Scale:
		f.scale(st.Where, st.Count)
	case scenario.Lose:
		f.lose(st.Where)
	case scenario.Return:
		f.giveBack(st.Where)
	default:
		return
	}
	f.schedule()
	f.next = f.due()
}

// due finds when something happens next: now, if something was held up that is long due.
func (f *Fleet) due() time.Duration {
	next := min(f.scaler.sync, f.nextLoss(), f.nextNode())
	for id := range f.pods {
		s := &f.hidden[id]
		switch {
		case f.pods[id].Phase == Pending && s.isScheduled && !s.loss.isLost:
			next = min(next, s.start)
		case f.pods[id].Phase == Terminating:
			next = min(next, s.end)
		}
	}
	return max(next, f.now)
}

// changed notes that a pod is not what it was; the API does not say so.
func (f *Fleet) changed() { f.changes++ }

// told notes that the API says something new.
func (f *Fleet) told() {
	f.changes++
	f.isStale = true
}
