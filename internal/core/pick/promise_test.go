package pick_test

import (
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/topology"
)

// timeline plays a pool in virtual time, a tick each 100 ms and a request each 10 ms, and notes when each zone was sent one.
type timeline struct {
	pool  *pick.Pool
	now   time.Duration
	fails map[topology.Zone]bool
	sent  map[topology.Zone][]time.Duration
}

const (
	tickEvery    = 100 * time.Millisecond
	requestEvery = 10 * time.Millisecond
)

// newTimeline has those endpoints, with zone-a at home.
func newTimeline(s overflow.Strategy, list []pick.Target) *timeline {
	l := &timeline{
		pool:  pick.NewPool(pick.Options{Zone: "zone-a", Strategy: s}),
		fails: make(map[topology.Zone]bool), sent: make(map[topology.Zone][]time.Duration),
	}
	l.pool.Update(0, list)
	return l
}

func (l *timeline) run(until time.Duration) {
	for ; l.now < until; l.now += requestEvery {
		if l.now%tickEvery == 0 {
			l.pool.Tick(l.now)
		}
		ticket, v := l.pool.Pick(l.now, pick.Request{})
		if v != pick.Picked {
			continue
		}
		zone, answer := ticket.Zone(), pick.Success
		l.sent[zone] = append(l.sent[zone], l.now)
		if l.fails[zone] {
			answer = pick.LocalError
		}
		ticket.Answer(l.now+time.Millisecond, answer)
		ticket.Close(l.now+time.Millisecond, answer)
	}
}

// between counts the requests that a zone was sent from one time until before another.
func (l *timeline) between(zone topology.Zone, from, to time.Duration) int {
	n := 0
	for _, at := range l.sent[zone] {
		if at >= from && at < to {
			n++
		}
	}
	return n
}

// none fails the test if a zone was sent a request from one time until before another.
func (l *timeline) none(t *testing.T, zone topology.Zone, from, to time.Duration) {
	t.Helper()
	for _, at := range l.sent[zone] {
		if at >= from && at < to {
			t.Errorf("%s was sent a request at %v, want none from %v to %v", zone, at, from, to)
			return
		}
	}
}

// most fails the test unless a zone was sent nearly all requests from one time until before another.
func (l *timeline) most(t *testing.T, zone topology.Zone, from, to time.Duration) {
	t.Helper()
	all := int((to - from) / requestEvery)
	if n := l.between(zone, from, to); n < all*19/20 {
		t.Errorf("%s was sent %d of %d requests from %v to %v, want 19 of 20", zone, n, all, from, to)
	}
}

func TestADrainIsFollowedFromTheNextTickUntilItsEnd(t *testing.T) {
	l := newTimeline(fixed{shares: []float64{1}}, targets(9))
	l.run(seconds(2) + millis(50))
	l.pool.Drain("zone-a", seconds(10))
	l.run(seconds(30))
	l.most(t, "zone-a", 0, seconds(2)+tickEvery)
	l.none(t, "zone-a", seconds(2)+tickEvery, seconds(10))
	l.most(t, "zone-b", seconds(2)+tickEvery, seconds(10))
	l.most(t, "zone-a", seconds(10), seconds(30))
}

func TestTiersAreUsedInTheirOrder(t *testing.T) {
	law, err := overflow.New("Weir", overflow.Config{})
	if err != nil {
		t.Fatal(err)
	}
	list := targets(9)
	for i := range list {
		list[i].Tier = map[topology.Zone]int{"zone-b": 2, "zone-c": 1}[list[i].Zone] // against the order of names
	}
	l := newTimeline(law, list)
	l.run(seconds(5))
	l.fails["zone-a"] = true
	l.run(seconds(25))
	l.fails["zone-c"] = true
	l.run(seconds(45))
	l.fails = map[topology.Zone]bool{}
	l.run(seconds(120))
	l.most(t, "zone-a", 0, seconds(5))
	l.most(t, "zone-c", seconds(6), seconds(25))
	l.none(t, "zone-b", 0, seconds(25))
	l.most(t, "zone-b", seconds(27), seconds(45))
	l.most(t, "zone-a", seconds(100), seconds(120))
	l.none(t, "zone-b", seconds(100), seconds(120))
}

func TestAnEjectionEndsWithItsPauseAndATrial(t *testing.T) {
	w := newWorld(4, health.Config{})
	bad := home(4)[2].Addr
	w.answer = broken(bad)
	w.run(millis(500), millis(1))
	until := w.status(bad).Until
	w.answer = broken()
	w.run(until-w.now, millis(1))
	if n := w.counts[bad]; n > 0 {
		t.Errorf("it was sent %d requests before the end of its pause", n)
	}
	w.run(millis(200), millis(1)) // the tick that makes it due, the trial, the tick that takes it back
	if s := w.status(bad); s.Out || w.counts[bad] == 0 {
		t.Errorf("200 ms after its pause it was sent %d requests and is %+v, want it back", w.counts[bad], s)
	}
	w.run(seconds(10), millis(1))
	if s := w.status(bad); s.Out || s.Ejections != 1 {
		t.Errorf("it does not stay: %+v", s)
	}
}

func TestWhatIsAppliedHoldsForTheNextRequest(t *testing.T) {
	l := newTimeline(fixed{shares: []float64{1}}, targets(9))
	l.run(seconds(5) + millis(30)) // between two ticks
	moved := targets(9)
	for i := range moved {
		moved[i].Home = moved[i].Zone == "zone-b"
		moved[i].Cost = topology.Cost(1)
		if moved[i].Home {
			moved[i].Cost = 0
		}
	}
	applied := l.now
	l.pool.Apply(applied, pick.Prepare(pick.Config{Algorithm: pick.RoundRobin}, moved))
	l.run(seconds(10))
	l.most(t, "zone-a", 0, applied)
	l.most(t, "zone-b", applied, seconds(10))
	l.none(t, "zone-a", applied, seconds(10))
}

// Three percent are more than seven standard deviations where chance decides.
func TestFixedWeightsAreFollowedUnderTheLawWithinThreePercent(t *testing.T) {
	const requests = 5500
	for _, algorithm := range []pick.Algorithm{pick.RoundRobin, pick.LeastRequest, pick.Random} {
		law, err := overflow.New("Weir", overflow.Config{})
		if err != nil {
			t.Fatal(err)
		}
		list := targets(9)
		for i := range list {
			list[i].Home = list[i].Zone != "zone-a"
			list[i].Affinity = string(list[i].Zone)
			list[i].AffinityWeight = map[topology.Zone]uint32{"zone-b": 1, "zone-c": 10}[list[i].Zone]
		}
		l := newTimeline(law, list)
		l.pool.Configure(0, pick.Config{Algorithm: algorithm})
		l.run(requests * requestEvery)
		b, c := len(l.sent["zone-b"]), len(l.sent["zone-c"])
		if share := float64(c) / requests; share < 10.0/11-0.03 || share > 10.0/11+0.03 || b+c != requests {
			t.Errorf("%s: %d requests to zone-b and %d to zone-c of %d, want 1 of 11 and 10 of 11", algorithm, b, c, requests)
		}
	}
}
