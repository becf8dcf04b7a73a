package overflow_test

import (
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
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
	for i := range d.layout.Groups {
		d.layout.Groups[i].Tier = i
	}
	d.layout.Groups[1].Cost = 5
	d.law.Reset(d.now, d.layout)
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
