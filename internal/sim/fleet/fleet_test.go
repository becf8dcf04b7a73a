package fleet_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/fleet"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

const s = time.Second

// cluster is three zones with a pod each unless a test has its own.
const cluster = "nodes a:4 b:4 c:4; service web; endpoints a:1 b:1 c:1"

func parse(t *testing.T, text string) topology.Snapshot {
	t.Helper()
	snapshot, err := topology.ParseSnapshot(text)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

// story is a small scenario: pods start in 10 s and drain in 5 s.
func story(t *testing.T, cluster string) *scenario.Scenario {
	t.Helper()
	return &scenario.Scenario{Snapshot: parse(t, cluster), Server: scenario.Server{Start: 10 * s, Drain: 5 * s}}
}

// play runs a fleet event by event and writes a line whenever pods, nodes or the API changed, each line only once.
func play(t *testing.T, sc *scenario.Scenario, busy func(now time.Duration, id int) float64) string {
	t.Helper()
	f := fleet.New(sc)
	times, states := []time.Duration{0}, []string{line(f)}
	note := func(now time.Duration) {
		if times[len(times)-1] == now {
			times, states = times[:len(times)-1], states[:len(states)-1]
		}
		if l := line(f); len(states) == 0 || l != states[len(states)-1] {
			times, states = append(times, now), append(states, l)
		}
	}
	steps := sc.Steps
	for {
		next := f.Next()
		if len(steps) > 0 && steps[0].At < next {
			f.Command(steps[0].At, steps[0])
			note(steps[0].At)
			steps = steps[1:]
			continue
		}
		if next > sc.Length {
			var lines []string
			for i := range times {
				lines = append(lines, fmt.Sprintf("%gs %s", times[i].Seconds(), states[i]))
			}
			return strings.Join(lines, "\n")
		}
		f.Step(next, func(id int) float64 { return busy(next, id) })
		if after := f.Next(); after <= next {
			t.Fatalf("after the step at %v the next one is at %v", next, after)
		}
		note(next)
	}
}

func idle(time.Duration, int) float64 { return 0 }

// line writes how many pods each zone has: ready, +starting, -terminating, !lost; waiting pods without a zone are ?; and
// the nodes that the API has, if there are more or fewer than in the scenario or some are not ready.
func line(f *fleet.Fleet) string {
	type count struct{ ready, starting, terminating, lost int }
	var zones []topology.Zone
	counts := make(map[topology.Zone]*count)
	snapshot := f.Snapshot()
	for _, z := range append(snapshot.Zones(), "") {
		zones = append(zones, z)
		counts[z] = &count{}
	}
	for id, pod := range f.Pods() {
		c := counts[pod.Zone]
		switch {
		case pod.Phase == fleet.Gone:
		case f.Lost(id):
			c.lost++
		case pod.Phase == fleet.Ready:
			c.ready++
		case pod.Phase == fleet.Terminating:
			c.terminating++
		default:
			c.starting++
		}
	}
	var words []string
	for _, z := range zones {
		c := counts[z]
		if z == "" {
			if c.starting > 0 {
				words = append(words, fmt.Sprintf("?%d", c.starting))
			}
			continue
		}
		word := fmt.Sprintf("%s%d", z, c.ready)
		for _, part := range []struct {
			mark  string
			count int
		}{{"+", c.starting}, {"-", c.terminating}, {"!", c.lost}} {
			if part.count > 0 {
				word += fmt.Sprintf("%s%d", part.mark, part.count)
			}
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func check(t *testing.T, want, got string) {
	t.Helper()
	var lines []string
	for l := range strings.Lines(want) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	if diff := cmp.Diff(strings.Join(lines, "\n"), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheFirstPodsAreThereFromTheStart(t *testing.T) {
	sc := story(t, "service web; endpoints a:2 b:1! b:1~ a:1 a:1{cluster=west} 10.9.9.9=b:1?")
	f := fleet.New(sc)
	var got []string
	for _, p := range f.Pods() {
		got = append(got, fmt.Sprintf("%d %s %s/%s%d phase=%d cold=%t", p.ID, p.Addr, p.Cluster, p.Zone, p.Place, p.Phase, p.Cold))
	}
	check(t, `
		0 10.0.0.1 /a1 phase=1 cold=false
		1 10.0.0.2 /a2 phase=1 cold=false
		2 10.0.0.3 /b1 phase=0 cold=false
		3 10.0.0.4 /b2 phase=2 cold=false
		4 10.0.0.5 /a3 phase=1 cold=false
		5 10.0.0.6 west/a1 phase=1 cold=false
		6 10.9.9.9 /b3 phase=1 cold=false`, strings.Join(got, "\n"))
	if diff := cmp.Diff(sc.Snapshot.String(), f.Snapshot().String()); diff != "" {
		t.Errorf("at the start the API says something else than the scenario (-scenario +API):\n%s", diff)
	}
	if f.Next() != 5*s {
		t.Errorf("next is %v, want 5s: the terminating pod goes", f.Next())
	}
	if f.Step(5*s, nil); f.Pods()[3].Phase != fleet.Gone || f.Next() != math.MaxInt64 {
		t.Errorf("the terminating pod is in phase %d, next is %v", f.Pods()[3].Phase, f.Next())
	}
}

func TestPodsAreReplacedInBatches(t *testing.T) {
	for _, c := range []struct{ name, cluster, want string }{
		{"one zone, two at a time", "service web; endpoints a:3 b:1", `
			0s a3 b1
			20s a3+2 b1
			30s a3+1-2 b1
			35s a3+1 b1
			40s a3-1 b1
			45s a3 b1`},
		{"other clusters stay as they are", "service web; endpoints a:1 a:2{cluster=west}", `
			0s a3
			20s a3+1
			30s a3-1
			35s a3`},
	} {
		t.Run(c.name, func(t *testing.T) {
			sc := story(t, c.cluster)
			sc.Length = 100 * s
			sc.Steps = []scenario.Step{{At: 20 * s, Verb: scenario.Rollout, Where: scenario.Where{Zone: "a"}, Count: 2}}
			check(t, c.want, play(t, sc, idle))
		})
	}
}

func TestAZoneGetsTheCountItIsScaledTo(t *testing.T) {
	sc := story(t, cluster)
	sc.Length = 200 * s
	sc.Steps = []scenario.Step{
		{At: 20 * s, Verb: scenario.Scale, Where: scenario.Where{Zone: "a"}, Count: 3},
		{At: 50 * s, Verb: scenario.Scale, Count: 2},
		{At: 55 * s, Verb: scenario.Scale, Where: scenario.Where{Zone: "b"}, Count: 0},
	}
	check(t, `
		0s a1 b1 c1
		20s a1+2 b1 c1
		30s a3 b1 c1
		50s a2-1 b1+1 c1+1
		55s a2 b0-1 c1+1
		60s a2 b0 c2`, play(t, sc, idle))
}

func TestALostZoneIsFoundLaterAndComesBackAtOnce(t *testing.T) {
	sc := story(t, cluster)
	sc.Discovery.Lost = 12 * s
	f := fleet.New(sc)
	where := scenario.Where{Zone: "b"}
	api := func() string { snapshot := f.Snapshot(); return strings.ReplaceAll(snapshot.String(), "\n", "; ") }
	f.Command(30*s, scenario.Step{Verb: scenario.Lose, Where: where})
	if !f.Lost(1) || f.Lost(0) {
		t.Error("the pod of zone b, and no other, is lost at once")
	}
	if api() != cluster {
		t.Errorf("the API knows at once: %s", api())
	}
	if f.Next() != 42*s {
		t.Errorf("the loss is discovered at %v, want 42s", f.Next())
	}
	if !f.Step(42*s, nil) {
		t.Error("Step does not tell that the API changed")
	}
	if want := "nodes a:4 b:4! c:4; service web; endpoints a:1 b:1! c:1"; api() != want {
		t.Errorf("the API says %s, want %s", api(), want)
	}
	f.Command(60*s, scenario.Step{Verb: scenario.Return, Where: where})
	if f.Lost(1) || api() != cluster {
		t.Errorf("after the return: lost %t, the API says %s", f.Lost(1), api())
	}
}

func where(zone string) scenario.Where { return scenario.Where{Zone: topology.Zone(zone)} }
