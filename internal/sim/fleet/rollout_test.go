package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/sim/fleet"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

func rollout(at time.Duration, zone string, count int) scenario.Step {
	return scenario.Step{At: at, Verb: scenario.Rollout, Where: where(zone), Count: count}
}

func TestANewPodTakesThePlaceOfTheOldOne(t *testing.T) {
	sc := story(t, "service web; endpoints a:2 b:2")
	f := fleet.New(sc)
	f.Command(s, scenario.Step{Verb: scenario.Rollout, Count: 3})
	for f.Next() < time.Hour {
		f.Step(f.Next(), nil)
	}
	got := ""
	for _, p := range f.Pods() {
		if p.Phase != fleet.Gone {
			got += fmt.Sprintf("%d %s %s%d ready at %v, cold %t\n", p.ID, p.Addr, p.Zone, p.Place, p.ReadyAt, p.Cold)
		}
	}
	check(t, `
		4 10.0.0.5 a1 ready at 11s, cold true
		5 10.0.0.6 a2 ready at 11s, cold true
		6 10.0.0.7 b1 ready at 11s, cold true
		7 10.0.0.8 b2 ready at 21s, cold true`, got[:len(got)-1])
}

func TestPartOfAZoneIsReplaced(t *testing.T) {
	for _, c := range []struct {
		where scenario.Where
		want  string
	}{
		{scenario.Where{Zone: "a", First: 2, Last: 3}, "[2 3]"},
		{scenario.Where{Zone: "a", Part: 0.5}, "[1 2 3]"},
		{scenario.Where{Zone: "a", Part: 0.4}, "[1 2]"},
		{scenario.Where{Zone: "a", Part: 1}, "[1 2 3 4 5]"},
		{scenario.Where{Zone: "b"}, "[]"},
		{scenario.Where{Cluster: "west"}, "[]"},
		{scenario.Where{}, "[1 2 3 4 5]"},
	} {
		f := fleet.New(story(t, "service web; endpoints a:5 a:2{cluster=west}"))
		f.Command(s, scenario.Step{Verb: scenario.Rollout, Where: c.where, Count: 10})
		places := []int{}
		for _, p := range f.Pods() {
			if p.Phase == fleet.Pending {
				places = append(places, p.Place)
			}
		}
		if got := fmt.Sprint(places); got != c.want {
			t.Errorf("%+v: places %s are replaced, want %s", c.where, got, c.want)
		}
	}
}

func TestRolloutsRunOneAfterTheOther(t *testing.T) {
	sc := story(t, "service web; endpoints a:1 b:1")
	sc.Length = 100 * s
	sc.Steps = []scenario.Step{rollout(10*s, "a", 1), rollout(15*s, "", 2)}
	check(t, `
		0s a1 b1
		10s a1+1 b1
		20s a1+1-1 b1+1
		25s a1+1 b1+1
		30s a1-1 b1-1
		35s a1 b1`, play(t, sc, idle))
}

func TestPodsThatStartAtOnceAreReplacedAtOnce(t *testing.T) {
	sc := story(t, "service web; endpoints a:4")
	sc.Server.Start, sc.Server.Drain = 0, 0
	sc.Length = 20 * s
	sc.Steps = []scenario.Step{rollout(10*s, "a", 1)}
	f := fleet.New(sc)
	f.Command(10*s, sc.Steps[0])
	f.Step(10*s, nil)
	if got := len(f.Pods()); got != 8 || line(f) != "a4" {
		t.Errorf("%d pods, %s", got, line(f))
	}
}

func TestAPodThatIsRemovedMeanwhileIsNotReplaced(t *testing.T) {
	sc := story(t, "service web; endpoints a:4")
	sc.Length = 100 * s
	// Place 4 goes while places 1 and 2 are replaced, place 2 and its replacement, too.
	sc.Steps = []scenario.Step{rollout(10*s, "a", 2), scale(15*s, "a", 3), scale(16*s, "a", 1)}
	check(t, `
		0s a4
		10s a4+2
		15s a3+2-1
		16s a1+1-3
		20s a1-3
		21s a1-1
		25s a1`, play(t, sc, idle))
}

func TestARolloutWaitsForALostZone(t *testing.T) {
	sc := story(t, "nodes a:4 b:4; service web; endpoints a:1 b:1")
	sc.Discovery.Lost = 40 * s
	sc.Length = 200 * s
	sc.Steps = []scenario.Step{
		{At: 10 * s, Verb: scenario.Lose, Where: where("a")},
		rollout(15*s, "", 1), // its pod goes to a node that nobody knows to be lost
		{At: 100 * s, Verb: scenario.Return, Where: where("a")},
	}
	check(t, `
		0s a1 b1
		10s a0!1 b1
		15s a0!2 b1
		100s a1-1 b1+1
		105s a1 b1+1
		110s a1 b1-1
		115s a1 b1`, play(t, sc, idle))
}

func TestARolloutWithoutRoomWaits(t *testing.T) {
	sc := pooled(t, "nodes a:4; service web; endpoints a:2")
	sc.NodePools.Max = 1
	sc.Steps = []scenario.Step{rollout(10*s, "a", 1), scale(50*s, "a", 1)}
	check(t, `
		0s a2
		10s a2+1
		50s a1+1-1
		55s a1+1
		65s a1-1
		70s a1`, play(t, sc, idle))
}
