package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/sim/fleet"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// autoscaled is a cluster with an autoscaler that looks every 15 s at the last 15 s, and scales down at once.
func autoscaled(t *testing.T, cluster string) *scenario.Scenario {
	t.Helper()
	sc := story(t, cluster)
	sc.Autoscale = &scenario.Autoscale{Min: 1, Max: 1000, Target: 0.5, Every: 15 * s, Tolerance: 0.1, Window: 15 * s}
	return sc
}

// active counts the pods that do not go.
func active(f *fleet.Fleet) int {
	count := 0
	for _, p := range f.Pods() {
		if p.Phase == fleet.Pending || p.Phase == fleet.Ready {
			count++
		}
	}
	return count
}

func always(utilisation float64) func(int) float64 { return func(int) float64 { return utilisation } }

// TestTheNumberOfPodsFollowsTheFormula has the examples of Kubernetes' documentation: 200m where 100m are wanted doubles
// the pods, 50m halves them (Horizontal Pod Autoscaling, "Algorithm details"), and 50 pods at 90 % where 75 % are wanted
// become 60 (its announcement of the tolerance field).
func TestTheNumberOfPodsFollowsTheFormula(t *testing.T) {
	for _, c := range []struct {
		pods           int
		target, actual float64
		want           int
	}{
		{10, 0.25, 0.5, 20},
		{10, 0.5, 0.25, 5},
		{50, 0.75, 0.9, 60},
		{7, 0.5, 0.4, 6},    // 5.6
		{3, 0.5, 0.56, 4},   // 3.36
		{10, 0.5, 0.55, 10}, // just tolerated
		{10, 0.5, 0.45, 10}, // likewise
		{100, 0.5, 0.551, 111},
		{1, 0.1, 1, 5},  // 10, but no more than 4 pods in 15 s
		{4, 0.1, 1, 8},  // 40, but no more than twice as many
		{3, 0.1, 1, 7},  // 30, and 4 more are more than twice as many
		{10, 0.5, 0, 1}, // never none
	} {
		sc := autoscaled(t, fmt.Sprintf("service web; endpoints a:%d", c.pods))
		sc.Autoscale.Target = c.target
		f := fleet.New(sc)
		f.Step(15*s, always(c.actual))
		if got := active(f); got != c.want {
			t.Errorf("%d pods at %g of %g: %d pods, want %d", c.pods, c.actual, c.target, got, c.want)
		}
	}
}

func TestTheNumberOfPodsStaysWithinItsBounds(t *testing.T) {
	for _, c := range []struct {
		pods, least, most int
		actual            float64
		want              int
	}{
		{10, 2, 12, 1, 12},
		{10, 4, 12, 0, 4},
		{10, 15, 20, 0, 15}, // without a look at the load
		{10, 1, 3, 1, 3},
		{10, 0, 0, 1, 1}, // a maximum below the minimum is the minimum, which is 1 at least
	} {
		sc := autoscaled(t, fmt.Sprintf("service web; endpoints a:%d", c.pods))
		sc.Autoscale.Min, sc.Autoscale.Max = c.least, c.most
		f := fleet.New(sc)
		f.Step(15*s, always(c.actual))
		if got := active(f); got != c.want {
			t.Errorf("%d pods between %d and %d at %g: %d pods, want %d", c.pods, c.least, c.most, c.actual, got, c.want)
		}
	}
}

func TestPodsThatWereAddedShortlyBeforeCountAgainstTheLimit(t *testing.T) {
	sc := autoscaled(t, "service web; endpoints a:1")
	sc.Autoscale.Target, sc.Autoscale.Every, sc.Autoscale.Window, sc.Autoscale.Max = 0.1, 5*s, 5*s, 12
	sc.Length = 60 * s
	check(t, `
		0s a1
		5s a1+4
		15s a5
		20s a5+5
		30s a10
		35s a10+2
		45s a12`, play(t, sc, func(time.Duration, int) float64 { return 1 }))
}

func TestNobodyScalesWithinTheTolerance(t *testing.T) {
	sc := autoscaled(t, "service web; endpoints a:10 b:10 c:10")
	sc.Length = time.Hour
	turn := 0
	check(t, "0s a10 b10 c10", play(t, sc, func(_ time.Duration, id int) float64 {
		if id == 0 {
			turn++
		}
		return 0.5 + 0.05*float64(1-turn%2*2)
	}))
}

func TestTheWorkOfAPodCountsOverTheWindow(t *testing.T) {
	sc := autoscaled(t, "service web; endpoints a:10")
	sc.Autoscale.Window, sc.Autoscale.Max = 60*s, 30
	f := fleet.New(sc)
	for now := 5 * s; now <= 60*s; now += 5 * s {
		busy := 0.5
		if now > 45*s {
			busy = 0.9 // for 15 s of 60: the mean is 0.6
		}
		f.Step(now, always(busy))
	}
	if got := active(f); got != 12 {
		t.Errorf("%d pods, want 12", got)
	}
}

func TestTheHighestRecommendationHoldsAgainstScalingDown(t *testing.T) {
	sc := autoscaled(t, "service web; endpoints a:10")
	sc.Autoscale.Stabilization = 60 * s
	sc.Server.Start, sc.Server.Drain = 0, 0
	sc.Length = 200 * s
	check(t, `
		0s a10
		30s a20
		105s a10
		120s a5`, play(t, sc, func(now time.Duration, _ int) float64 {
		switch {
		case now == 30*s:
			return 1 // calls for 20
		case now <= 45*s:
			return 0.5 // calls for as many as there are: at 45 s those are 20
		case now <= 60*s:
			return 0.25 // calls for 10
		case now <= 120*s:
			return 0.125 // calls for 5, or 3 of 10
		default:
			return 0.5
		}
	}))
}

func TestPodsThatAreNotReadyDampScalingUp(t *testing.T) {
	sc := autoscaled(t, "service web; endpoints a:4 a:4!")
	f := fleet.New(sc)
	f.Step(15*s, always(1)) // 4 pods at twice the target, 4 count as idle: the ratio is 1
	if got := active(f); got != 8 {
		t.Errorf("%d pods, want 8", got)
	}
}

func TestPodsThatHaveJustBecomeReadyAreLeftOut(t *testing.T) {
	sc := autoscaled(t, "service web; endpoints a:4")
	sc.Autoscale.Max, sc.Autoscale.Window = 100, 30*s
	sc.Length = 100 * s
	// 8 pods at 15 s, ready at 25 s, count at the sync of 60 s, 35 s later: until then the four old ones at twice the
	// target call for 8.
	check(t, `
		0s a4
		15s a4+4
		25s a8
		60s a8+8
		70s a16`, play(t, sc, func(now time.Duration, _ int) float64 {
		if now > 60*s {
			return 0.5
		}
		return 1
	}))
}

func TestPodsOfALostZoneDampScaling(t *testing.T) {
	for _, c := range []struct {
		name string
		busy float64
		want int
	}{
		{"up: they count as idle", 0.8, 12},         // 8×0.8 / 12 / 0.5 = 1.07 is tolerated; the 8 alone call for 13
		{"down: they count as at the target", 0, 4}, // 4×0.5 / 12 / 0.5 = 0.33: 4 of 12; the 8 alone call for none
	} {
		t.Run(c.name, func(t *testing.T) {
			sc := autoscaled(t, "service web; endpoints a:4 b:4 c:4")
			sc.Discovery.Lost = 40 * s
			f := fleet.New(sc)
			f.Command(s, scenario.Step{Verb: scenario.Lose, Where: scenario.Where{Zone: "b"}})
			f.Step(15*s, func(id int) float64 {
				if f.Lost(id) {
					return 0.9 // what it says does not count: nobody hears it
				}
				return c.busy
			})
			if got := active(f); got != c.want {
				t.Errorf("%d pods, want %d", got, c.want)
			}
		})
	}
}

func TestPodsAreSpreadOverZones(t *testing.T) {
	for _, c := range []struct{ name, cluster, want string }{
		{"up: the emptiest zone first, then by name", "service web; endpoints a:3 b:1 c:2", `
			0s a3 b1 c2
			15s a3+1 b1+3 c2+2
			25s a4 b4 c4`},
		{"zones without pods count", "nodes a:4 b:4 c:4; service web; endpoints a:4", `
			0s a4 b0 c0
			15s a4 b0+2 c0+2
			25s a4 b2 c2`},
		{"control planes do not", "nodes a:4 b:4^; service web; endpoints a:4", `
			0s a4 b0
			15s a4+4 b0
			25s a8 b0`},
	} {
		t.Run(c.name, func(t *testing.T) {
			sc := autoscaled(t, c.cluster)
			sc.Length = 29 * s
			check(t, c.want, play(t, sc, func(time.Duration, int) float64 { return 1 }))
		})
	}
}

func TestPodsGoFromTheFullestZoneTheYoungestFirst(t *testing.T) {
	sc := autoscaled(t, "service web; endpoints a:3 b:4 c:3")
	f := fleet.New(sc)
	f.Step(15*s, always(0.3)) // 6
	var stay []int
	for _, p := range f.Pods() {
		if p.Phase == fleet.Ready {
			stay = append(stay, p.ID)
		}
	}
	if got, want := fmt.Sprint(stay), "[0 1 3 4 7 8]"; got != want {
		t.Errorf("%s stay, want %s", got, want)
	}
}

func TestPodsThatAreNotReadyGoFirst(t *testing.T) {
	sc := autoscaled(t, "nodes a:4 b:4; service web; endpoints a:4 b:2")
	f := fleet.New(sc)
	f.Command(s, scenario.Step{Verb: scenario.Lose, Where: scenario.Where{Zone: "b"}})
	f.Step(2*s, always(0.16))
	f.Command(8*s, scenario.Step{Verb: scenario.Scale, Where: scenario.Where{Zone: "a"}, Count: 5})
	f.Step(15*s, always(0.16)) // 4×0.16 and two lost ones at 0.5 are 0.55 of what 6 should do: 4
	if got, want := line(f), "a4 b0!2"; got != want {
		t.Errorf("%s, want %s: the one that starts goes first, then those of the lost zone", got, want)
	}
}
