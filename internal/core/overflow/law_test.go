package overflow_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
)

// desk is a law and a clock, with zones that answer as they are told.
type desk struct {
	law    overflow.Strategy
	now    time.Duration
	layout overflow.Layout
	last   overflow.Decision
	slow   map[topology.Zone]float64 // factor on the latency; 0: 1
	fails  map[topology.Zone]float64 // fraction
	gone   map[topology.Zone]bool    // nobody there is usable
	usual  time.Duration             // latency

	owed, lost map[topology.Zone]float64 // fractions of a request, to be sent and to fail later
}

func newDesk(t *testing.T, c overflow.Config, zones ...topology.Zone) *desk {
	t.Helper()
	law, err := overflow.New("Weir", c)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{
		law: law, slow: map[topology.Zone]float64{}, fails: map[topology.Zone]float64{}, gone: map[topology.Zone]bool{}, usual: 10 * time.Millisecond,
		owed: map[topology.Zone]float64{}, lost: map[topology.Zone]float64{},
	}
	d.reset(zones...)
	return d
}

// reset gives the law these zones: the first is home, every other costs 1.
func (d *desk) reset(zones ...topology.Zone) {
	d.layout = overflow.Layout{}
	for i, z := range zones {
		g := overflow.Group{ID: int(z[0]), Zone: z, Cost: topology.Cost(min(i, 1))}
		g.Endpoints = []int{d.layout.Endpoints, d.layout.Endpoints + 1}
		d.layout.Endpoints += 2
		d.layout.Groups = append(d.layout.Groups, g)
	}
	d.law.Reset(d.now, d.layout)
	d.step()
}

func (d *desk) step() {
	d.now += 100 * time.Millisecond
	c := overflow.Counters{Groups: make([]overflow.GroupCounters, len(d.layout.Groups))}
	for i, g := range d.layout.Groups {
		share := 0.0
		if i < len(d.last.Groups) {
			share = d.last.Groups[i].Share
		}
		d.owed[g.Zone] += share * 20
		n := int64(d.owed[g.Zone])
		d.owed[g.Zone] -= float64(n)
		d.lost[g.Zone] += float64(n) * d.fails[g.Zone]
		failed := int64(d.lost[g.Zone])
		d.lost[g.Zone] -= float64(failed)
		slow := cmp.Or(d.slow[g.Zone], 1)
		c.Groups[i] = overflow.GroupCounters{
			Sent: n, OK: n - failed, Failed: failed, Latency: time.Duration(float64(n-failed) * slow * float64(d.usual)),
			Usable: 2,
		}
		if d.gone[g.Zone] {
			c.Groups[i].Usable = 0
		}
	}
	d.last = d.law.Step(d.now, &c)
}

func (d *desk) run(t time.Duration) {
	for end := d.now + t; d.now < end; {
		d.step()
	}
}

func TestBaselineAndStateOutliveAChangeOfEndpoints(t *testing.T) {
	d := newDesk(t, overflow.Config{}, "a", "b", "c")
	d.run(10 * time.Second)
	d.slow["a"] = 6
	d.run(2 * time.Second)
	before := d.last
	if before.State != overflow.Evacuated && before.State != overflow.Crisis {
		t.Fatalf("state %v: want a crisis before the change", before.State)
	}
	d.reset("a", "b") // zone c is gone
	if after := d.last; after.Baseline != before.Baseline || after.Groups[0].Share > 0.5 || after.State == overflow.Calm {
		t.Errorf("after the change %v %v share %.2f: want what was before, %v %v share %.2f", after.State, after.Baseline,
			after.Groups[0].Share, before.State, before.Baseline, before.Groups[0].Share)
	}
}

func TestAnotherHomeStartsCalmAndKnowsWhatIsNormal(t *testing.T) {
	d := newDesk(t, overflow.Config{}, "a", "b")
	d.run(10 * time.Second)
	d.slow["a"] = 6
	d.run(2 * time.Second)
	baseline := d.last.Baseline
	d.reset("b", "a")
	if d.last.State != overflow.Calm || d.last.Groups[0].Share != 1 || d.last.Baseline != baseline {
		t.Errorf("state %v share %v baseline %v: want calm, 1, %v",
			d.last.State, d.last.Groups[0].Share, d.last.Baseline, baseline)
	}
}

func TestTheFirstOfTheGroupsGivenTakesTheExcess(t *testing.T) {
	for _, zones := range [][]topology.Zone{{"a", "b", "c"}, {"a", "c", "b"}} {
		d := newDesk(t, overflow.Config{}, zones...)
		d.run(10 * time.Second)
		d.slow["a"] = 1.8
		for d.last.State == overflow.Calm {
			d.step()
		}
		if d.last.Groups[1].Share == 0 || d.last.Groups[2].Share > 0 {
			t.Errorf("of %v the shares are %v: want the second zone to take the excess", zones, d.last.Groups)
		}
	}
}

func TestEachPreferenceHasItsLimit(t *testing.T) {
	for _, c := range []struct {
		prefer   overflow.Prefer
		slowdown float64
		want     overflow.State
	}{
		{overflow.PreferLatency, 1.15, overflow.Calm},
		{overflow.PreferLatency, 1.3, overflow.Overflow},
		{overflow.PreferBalanced, 1.3, overflow.Calm},
		{overflow.PreferBalanced, 1.6, overflow.Overflow},
		{overflow.PreferCost, 1.6, overflow.Calm},
		{overflow.PreferCost, 2.1, overflow.Overflow},
	} {
		d := newDesk(t, overflow.Config{Prefer: c.prefer}, "a", "b")
		d.run(10 * time.Second)
		d.slow["a"] = c.slowdown
		d.run(1500 * time.Millisecond)
		if d.last.State != c.want {
			t.Errorf("%s with home %v times slower is %v: want %v", c.prefer, c.slowdown, d.last.State, c.want)
		}
	}
}

func TestSlowAloneIsNotShed(t *testing.T) {
	d := newDesk(t, overflow.Config{Shed: true}, "a", "b")
	d.run(10 * time.Second)
	d.slow["a"], d.slow["b"] = 7, 7
	for range 50 {
		d.step()
		if d.last.Shed > 0 {
			t.Fatalf("%v of the requests are rejected although all are answered", d.last.Shed)
		}
	}
}

func TestWhatNoZoneDeliversIsShedIfWanted(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		d := newDesk(t, overflow.Config{Shed: wanted}, "a", "b")
		d.run(10 * time.Second)
		for _, zone := range []topology.Zone{"a", "b"} {
			d.slow[zone], d.fails[zone] = 4, .2
		}
		d.run(5 * time.Second)
		if shed := d.last.Shed; wanted != (shed > 0.1) || !wanted && shed != 0 || shed > 1-overflow.DefaultConstants().FloorShareMax {
			t.Errorf("with shedding %v, %v of the requests are rejected while both zones drown", wanted, shed)
		}
		clear(d.slow)
		clear(d.fails)
		d.run(10 * time.Second)
		if d.last.Shed != 0 {
			t.Errorf("%v of the requests are rejected though all is well again", d.last.Shed)
		}
	}
}

func TestSlowDriftIsNotLearntAsNormal(t *testing.T) {
	// 5 % every ten minutes: within an hour less than the limit, over two hours more.
	d := newDesk(t, overflow.Config{}, "a", "b")
	for range 12 {
		for range 10 * 60 * 10 {
			if d.step(); d.last.State != overflow.Calm {
				return
			}
		}
		d.usual = d.usual * 105 / 100
		d.slow["b"] = float64(10*time.Millisecond) / float64(d.usual) // as fast as ever
	}
	t.Errorf("after two hours %v is normal: want the first hour remembered", d.last.Baseline)
}

func TestLessThanAMillisecondIsNotWorthACrossing(t *testing.T) {
	d := newDesk(t, overflow.Config{}, "a", "b")
	d.usual = 100 * time.Microsecond
	d.run(10 * time.Second)
	d.slow["a"] = 5
	d.run(10 * time.Second)
	if d.last.State != overflow.Calm || d.last.Groups[0].Share != 1 {
		t.Errorf("%v with %v at home: want calm and all", d.last.State, d.last.Groups[0].Share)
	}
}

func TestFailuresEverywhereAreNotAcceptedAsNormal(t *testing.T) {
	d := newDesk(t, overflow.Config{}, "a", "b")
	d.run(10 * time.Second)
	d.fails["a"], d.fails["b"] = .5, .5
	d.run(time.Second) // until it is armed the baseline may learn
	before := d.last.Baseline
	d.run(2 * time.Minute)
	if d.last.State == overflow.Calm || d.last.Baseline != before {
		t.Errorf("%v with baseline %v: want no calm, and the baseline of %v", d.last.State, d.last.Baseline, before)
	}
}

func TestServiceThatFailsFromTheFirstRequestOnIsLeft(t *testing.T) {
	d := newDesk(t, overflow.Config{}, "a", "b")
	d.fails["a"] = 1
	d.run(5 * time.Second)
	if d.last.Groups[0].Share > 0.1 {
		t.Errorf("home, which never answered, has a share of %v: want probes only", d.last.Groups[0].Share)
	}
}

func TestManyFailuresFromTheStartDoNotInflateTheBaseline(t *testing.T) {
	// Three in ten fail everywhere, forever: nothing can be done, and what the good answers take is still known.
	d := newDesk(t, overflow.Config{}, "a", "b")
	d.fails["a"], d.fails["b"] = .3, .3
	d.run(2 * time.Minute)
	if limit := d.usual * 8; d.last.Baseline > limit {
		t.Errorf("baseline %v: want at most %v, as if all had failed", d.last.Baseline, limit)
	}
}

func TestDemandBeforeAPauseDoesNotDistortWhatFollows(t *testing.T) {
	for _, pause := range []time.Duration{20 * time.Second, 5 * time.Minute} {
		d := newDesk(t, overflow.Config{}, "a", "b")
		d.run(10 * time.Second)
		d.now += pause
		d.run(3 * time.Second)
		if got := d.last.Groups[0].Demand; got < 150 || got > 250 {
			t.Errorf("demand %v a few seconds after %v of silence: want about 200 a second", got, pause)
		}
	}
}

// Of many requests that are sent at once the quick ones are answered first: they do not tell what is normal.
func TestManyRequestsInTheFirstStepsAreNoReasonToLeave(t *testing.T) {
	d := newDesk(t, overflow.Config{}, "a", "b")
	for i := range 100 {
		d.now += 100 * time.Millisecond
		latency := d.usual
		if i == 0 {
			latency /= 4
		}
		c := overflow.Counters{Groups: make([]overflow.GroupCounters, 2)}
		c.Groups[0] = overflow.GroupCounters{Sent: 100, OK: 100, Latency: 100 * latency, Usable: 2}
		c.Groups[1].Usable = 2
		if d.last = d.law.Step(d.now, &c); d.last.State != overflow.Calm {
			t.Fatalf("at %v %v with a baseline of %v: want calm", d.now, d.last.State, d.last.Baseline)
		}
	}
	if d.last.Baseline < d.usual*9/10 {
		t.Errorf("the baseline is %v, want about %v", d.last.Baseline, d.usual)
	}
}

// A client that has all of a zone's traffic sees the queue of before its cut for a while. To cut again for that would leave the
// zone half empty and flood the others.
func TestZoneWhoseQueueGetsShorterIsNotCutAgain(t *testing.T) {
	const capacity = 120.0 // of home, requests in a step
	d := newDesk(t, overflow.Config{}, "a", "b", "c")
	queue, least := 0.0, capacity
	for d.now < 30*time.Second {
		d.now += 100 * time.Millisecond
		rate := 80.0
		if d.now > 20*time.Second {
			rate = 150
		}
		c := overflow.Counters{Groups: make([]overflow.GroupCounters, 3)}
		for i := range c.Groups {
			sent := rate
			if len(d.last.Groups) > 0 {
				sent *= d.last.Groups[i].Share
			}
			answered, wait := sent, 0.0
			if i == 0 {
				wait = queue / capacity * 0.1
				answered = min(queue+sent, capacity)
				queue += sent - answered
				least = min(least, sent)
			}
			c.Groups[i] = overflow.GroupCounters{
				Sent: int64(sent), OK: int64(answered), Usable: 2,
				Latency: time.Duration(answered * min(8, 1+wait/d.usual.Seconds()) * float64(d.usual)),
			}
		}
		d.last = d.law.Step(d.now, &c)
	}
	if least < 0.6*capacity {
		t.Errorf("home, which can serve %.0f requests in a step, was cut to %.0f: want %.0f at least", capacity, least, 0.6*capacity)
	}
}
