package demo

import (
	"testing"
	"time"
)

func TestScriptTakesLessThanTwoMinutesAndEndsWell(t *testing.T) {
	script := Script(zoneNames(), Gone, 1)
	if d := duration(script); d > 80*time.Second {
		t.Errorf("the script takes %v", d)
	}
	if script[0].Event != Calm || script[len(script)-1].Event != Recovery {
		t.Errorf("it begins with %v and ends with %v", script[0], script[len(script)-1])
	}
	faults := map[Event]int{}
	for i, p := range script {
		if !p.Event.IsFault() {
			continue
		}
		faults[p.Event]++
		if script[i-1].Event.IsFault() {
			t.Errorf("no pause before %v", p)
		}
	}
	for _, e := range []Event{Surge, Slow, Failing, Gone} {
		if faults[e] != 1 {
			t.Errorf("%s happens %d times, want once", e, faults[e])
		}
	}
}

func TestSpeedShortensEveryPhase(t *testing.T) {
	slow, fast := Script(zoneNames(), Hanging, 1), Script(zoneNames(), Hanging, 4)
	for i := range slow {
		if slow[i].Lasts != 4*fast[i].Lasts {
			t.Errorf("%v lasts %v, and %v at speed 4", slow[i], slow[i].Lasts, fast[i].Lasts)
		}
	}
}

func TestASurgeOverloadsItsZoneAndNoFaultTheRest(t *testing.T) {
	one := endpointCapacity()
	zone := endpointsPerZone * float64(one.Concurrency) / one.Service.Mean.Seconds()
	if surge := surgeFactor * float64(DefaultRate); surge <= zone {
		t.Errorf("a surge of %v/s does not overload a zone that can do %v/s", surge, zone)
	}
	// The same bound as that of the outsiders: a zone at nine tenths of what it can is slow.
	if all := (surgeFactor + zoneCount - 1) * float64(DefaultRate); all >= 0.9*zoneCount*zone {
		t.Errorf("a surge of %v/s in all is too much for the whole", all)
	}
	if all := zoneCount * float64(DefaultRate); all >= 0.9*(zoneCount-1)*zone {
		t.Errorf("two zones cannot carry %v/s", all)
	}
}
