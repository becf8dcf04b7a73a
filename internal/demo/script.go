package demo

import (
	"fmt"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Event is what a phase of the script does to the world.
type Event string

// The events.
const (
	Calm     Event = "calm"     // every client at its rate, every endpoint well
	Surge    Event = "surge"    // the clients of one zone send surgeFactor times as much
	Slow     Event = "slow"     // the endpoints of one zone take slowFactor times as long
	Failing  Event = "failing"  // half of one zone's endpoints, rounded up, answer 500 at once
	Gone     Event = "gone"     // the endpoints of one zone refuse connections and reset those they had
	Hanging  Event = "hanging"  // the endpoints of one zone take requests and never answer
	Recovery Event = "recovery" // everything well again, after a fault
)

// The sizes of the faults, as the issue tracker and the reference evaluation have them.
const (
	surgeFactor = 3
	slowFactor  = 10
)

// IsFault tells whether the event is something that a zone's clients have to be saved from.
func (e Event) IsFault() bool { return e != Calm && e != Recovery }

// Phase is a stretch of the script.
type Phase struct {
	Event Event
	Zone  topology.Zone // the zone that the event hits; empty: none
	Lasts time.Duration
}

// String gives the phase's title.
func (p Phase) String() string {
	switch p.Event {
	case Surge:
		return fmt.Sprintf("×%d in %s", surgeFactor, p.Zone)
	case Slow:
		return fmt.Sprintf("%s %d× slower", p.Zone, slowFactor)
	case Failing:
		return fmt.Sprintf("half of %s fails", p.Zone)
	case Gone:
		return fmt.Sprintf("%s gone", p.Zone)
	case Hanging:
		return fmt.Sprintf("%s hangs", p.Zone)
	default:
		return string(p.Event)
	}
}

// Script gives the phases in order: each kind of fault once, in a zone that the fault before did not hit, with a pause in
// between, so that the return from one fault is not the beginning of the next.
//
// Shape: the first phase is Calm, the last Recovery; the durations sum to 76 s divided by speed. A calm phase of 10 s
// lets the agents learn what normal is; a fault of 10 s is long enough to see reaction and steady state; the pauses are
// longer after faults that empty a zone, because a zone is tried carefully before it is trusted again.
func Script(zones [3]topology.Zone, lost Event, speed float64) []Phase {
	phases := []Phase{
		{Calm, "", 10 * time.Second},
		{Surge, zones[0], 10 * time.Second},
		{Recovery, "", 4 * time.Second},
		{Slow, zones[1], 10 * time.Second},
		{Recovery, "", 6 * time.Second},
		{Failing, zones[2], 10 * time.Second},
		{Recovery, "", 4 * time.Second},
		{lost, zones[0], 10 * time.Second},
		{Recovery, "", 12 * time.Second},
	}
	for i := range phases {
		phases[i].Lasts = time.Duration(float64(phases[i].Lasts) / speed)
	}
	return phases
}

func duration(phases []Phase) time.Duration {
	var sum time.Duration
	for _, p := range phases {
		sum += p.Lasts
	}
	return sum
}
