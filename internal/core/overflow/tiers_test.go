package overflow_test

import (
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
)

// tiered gives a desk whose zones b and c are tiers 1 and 2, although c is the cheaper one.
func tiered(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t, overflow.Config{}, "a", "b", "c")
	d.tier()
	d.run(10 * time.Second)
	return d
}

func (d *desk) tier() {
	for i := range d.scene.Groups {
		d.scene.Groups[i].Tier = i
	}
	d.scene.Groups[1].Cost = 5
	d.law.Reset(d.now, d.scene)
}

func TestLowerTierIsFilledFirst(t *testing.T) {
	for _, home := range []struct {
		name  string
		ill   func(d *desk)
		least float64 // of the requests that b gets at some time: a zone that is merely slow comes to count as normal
	}{
		{"slow", func(d *desk) { d.slow["a"] = 1.8 }, 0.2},
		{"in crisis", func(d *desk) { d.slow["a"] = 6 }, 0.9},
		{"failing", func(d *desk) { d.fails["a"] = 1 }, 0.9},
	} {
		t.Run(home.name, func(t *testing.T) {
			d := tiered(t)
			home.ill(d)
			most := 0.0
			for range 300 {
				d.step()
				most = max(most, d.last.Groups[1].Share)
				if share := d.last.Groups[2].Share; share > 0 {
					t.Fatalf("at %v c gets %.3f while b, with %.3f, copes", d.now, share, d.last.Groups[1].Share)
				}
			}
			if most < home.least {
				t.Errorf("b gets %.3f at most, want %.2f", most, home.least)
			}
		})
	}
}

func TestNextTierTakesWhatTheLowerOneDoesNot(t *testing.T) {
	d := tiered(t)
	d.fails["a"], d.slow["b"] = 1, 12
	d.run(20 * time.Second)
	b, c := d.last.Groups[1].Share, d.last.Groups[2].Share
	if c < 0.8 {
		t.Errorf("b, which is far too slow, has %.3f and c %.3f: want nearly all on c", b, c)
	}
	d.slow["b"] = 1
	d.run(60 * time.Second) // longer than a ceiling is remembered
	if b, c = d.last.Groups[1].Share, d.last.Groups[2].Share; b < 0.8 || c > 0.05 {
		t.Errorf("b is well again and has %.3f, c %.3f: want nearly all back on b", b, c)
	}
}

// Home goes before anybody knows what is normal.
func TestNextTierTakesOverFromOneThatFailsWithoutABaseline(t *testing.T) {
	d := newDesk(t, overflow.Config{}, "a", "b", "c")
	d.tier()
	d.fails["a"], d.fails["b"] = 1, 1
	d.run(500 * time.Millisecond)
	d.gone["a"] = true
	d.run(20 * time.Second)
	if b, c := d.last.Groups[1].Share, d.last.Groups[2].Share; c < 0.8 {
		t.Errorf("b, where everything fails, has %.3f and c %.3f: want nearly all on c", b, c)
	}
}

func TestAnotherTierKeepsWhatIsKnownOfAZone(t *testing.T) {
	d := newDesk(t, overflow.Config{}, "a", "b", "c")
	d.run(10 * time.Second)
	d.slow["a"] = 6
	d.run(5 * time.Second)
	before := d.last
	d.tier() // a policy comes: b and c get tiers
	d.step()
	for i := range before.Groups {
		if got, want := d.last.Groups[i].Share, before.Groups[i].Share; got < want-0.1 || got > want+0.1 {
			t.Errorf("group %d has %.3f after the change of tiers, %.3f before", i, got, want)
		}
	}
}

func TestHazlAddsEndpointsByTier(t *testing.T) {
	law, err := overflow.New("Hazl", overflow.Config{})
	if err != nil {
		t.Fatal(err)
	}
	law.Reset(0, overflow.Scene{Endpoints: 3, Groups: []overflow.Group{
		{Zone: "a", Endpoints: []int{0}},
		{Zone: "b", Cost: 1, Tier: 2, Endpoints: []int{1}},
		{Zone: "c", Cost: 9, Tier: 1, Endpoints: []int{2}},
	}})
	busy := &overflow.Counters{
		Groups: make([]overflow.GroupCounters, 3), Endpoints: []overflow.EndpointCounters{{InFlight: 4}, {}, {}},
	}
	var d overflow.Decision
	for now := time.Duration(0); len(d.Routes) < 2 && now < time.Minute; now += 100 * time.Millisecond {
		d = law.Step(now, busy)
	}
	if len(d.Routes) != 2 || d.Routes[1].Group != 2 {
		t.Errorf("routes %+v: want home and the endpoint of tier 1", d.Routes)
	}
}

// landed is where the requests of zone 0's clients went under stress, as fractions, and how many of them were good.
type landed struct{ home, first, second, good float64 }

// tieredRun plays a scenario with the real pool. For zone 0's clients zone 1 is tier 1 and zone 2 tier 2, which is cheaper.
func tieredRun(t *testing.T, sc scenario, c pick.Config, ready func(*server) bool) landed {
	t.Helper()
	course := shortCourse()
	l := sc.layout
	l.make = func(w *world, client int) balancer {
		s, err := overflow.New("Weir", overflow.Config{Rotate: uint64(client)})
		if err != nil {
			t.Fatal(err)
		}
		p := newPooled(w, client, s)
		p.tiers = true
		p.Discover(0, func(*server) bool { return true })
		p.pool.Configure(0, c)
		return p
	}
	w := l.build()
	readiness := at{course.calm, func(w *world) {
		for _, c := range w.callers {
			c.balancer.(*pooled).unready = func(s *server) bool { return !ready(s) }
			c.Discover(w.now, func(*server) bool { return true })
		}
	}}
	w.shift = append([]at{readiness}, sc.events(course)...)
	var n, good float64
	var to [3]float64
	w.watch = func(r *request, took time.Duration) {
		if w.callers[r.caller].zone != 0 || r.sent < course.calm+2*time.Second || r.server < 0 {
			return
		}
		n++
		to[w.servers[r.server].zone]++
		if r.ok && took <= goodWithin {
			good++
		}
	}
	w.run(course.calm + course.stress)
	return landed{to[0] / n, to[1] / n, to[2] / n, good / n}
}

func everyone(*server) bool { return true }

func TestTiersHoldInTheModel(t *testing.T) {
	t.Run("the first tier has room", func(t *testing.T) {
		t.Parallel()
		got := tieredRun(t, named("skew 70 %"), pick.Config{}, everyone)
		t.Logf("%+v", got)
		if got.first < 0.15 || got.second > 0.02 || got.good < 0.95 {
			t.Errorf("%+v: want the excess on the first tier and nothing on the second", got)
		}
	})
	t.Run("the first tier has not room for all", func(t *testing.T) {
		t.Parallel()
		got := tieredRun(t, named("zone lost"), pick.Config{}, everyone)
		t.Logf("%+v", got)
		if got.first < 0.4 || got.second < 0.02 || got.good < 0.85 {
			t.Errorf("%+v: want most on the first tier, the rest on the second, and good answers", got)
		}
	})
}

func TestThresholdMovesAShareInTheModel(t *testing.T) {
	unready := 0
	ready := func(s *server) bool { // half of zone 0 for each client
		if s.zone != 0 {
			return true
		}
		unready++
		return unready%2 == 0
	}
	sc := calm("half is not ready", nil)
	sc.layout.rates = []float64{400, 400, 400} // the rest of home would cope
	sc.begin, sc.end = func(*world) {}, heal(sc.layout.rates)
	got := tieredRun(t, sc, pick.Config{Threshold: 0.7}, ready)
	t.Logf("%+v", got)
	// 3 of 6 by 1.43 are 71 %.
	if got.home < 0.67 || got.home > 0.72 || got.second > 0.02 || got.good < 0.95 {
		t.Errorf("%+v: want 71 %% at home and the rest on the first tier", got)
	}
}

// Home is gone, and then the zone that took all of its traffic fails outright.
func TestOutsiderThatFailsIsLeftWithinTwoSeconds(t *testing.T) {
	d := newDesk(t, overflow.Config{}, "a", "b", "c")
	d.run(10 * time.Second)
	d.gone["a"] = true
	d.run(10 * time.Second)
	if b := d.last.Groups[1].Share; b < 0.9 {
		t.Fatalf("b has %.3f after home went: want nearly all on the nearest zone", b)
	}
	d.fails["b"] = 1
	d.run(2 * time.Second)
	if b := d.last.Groups[1].Share; b > 0.05 {
		t.Errorf("b fails everything and has %.3f two seconds later, want 0.05 at most", b)
	}
}

// A zone that answers nothing is not even probed with the smallest share all the time.
func TestDeadOutsiderIsClosedForLongerEachTime(t *testing.T) {
	d := newDesk(t, overflow.Config{}, "a", "b")
	d.run(10 * time.Second)
	d.fails["a"], d.fails["b"] = 0.4, 1 // slowness alone would come to count as normal
	var openings []time.Duration
	used, before := 0, 0.0
	for range 1200 {
		d.step()
		share := d.last.Groups[1].Share
		if share > 0 {
			used++
		}
		if share > 0 && before == 0 {
			openings = append(openings, d.now)
		}
		before = share
	}
	if len(openings) < 4 || used > 240 {
		t.Fatalf("in two minutes b was opened %d times and used in %d of 1200 steps: want tries, and few of them", len(openings), used)
	}
	first, last := openings[1]-openings[0], openings[len(openings)-1]-openings[len(openings)-2]
	if last < 2*first {
		t.Errorf("pauses between tries grew from %v to %v only", first, last)
	}
	d.fails["b"] = 0
	d.run(60 * time.Second)
	if b := d.last.Groups[1].Share; b < 0.1 {
		t.Errorf("b is well again, a is not, and a minute later b has %.3f", b)
	}
}
