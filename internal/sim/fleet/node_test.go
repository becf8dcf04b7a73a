package fleet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/fleet"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// pooled is a cluster whose nodes take two pods each; a new node boots for 30 s.
func pooled(t *testing.T, cluster string) *scenario.Scenario {
	t.Helper()
	sc := story(t, cluster)
	sc.NodePools = &scenario.NodePools{PodsPerNode: 2, Max: 2, Boot: 30 * s}
	sc.Length = 200 * s
	return sc
}

// nodes writes the nodes and, for each pod that has one, the node that it is on.
func nodes(f *fleet.Fleet) string {
	snapshot := f.Snapshot()
	text, _, _ := strings.Cut(snapshot.String(), "\n")
	text = strings.TrimPrefix(text, "nodes ") + " |"
	for _, p := range f.Pods() {
		if p.Phase != fleet.Gone && p.Node != "" {
			text += " " + p.Node
		}
	}
	return text
}

func scale(at time.Duration, zone string, count int) scenario.Step {
	return scenario.Step{At: at, Verb: scenario.Scale, Where: where(zone), Count: count}
}

func TestPodsWithoutRoomWaitForANode(t *testing.T) {
	sc := pooled(t, "nodes eu/a:8 b:2; service web; endpoints a:1 b:1")
	sc.Steps = []scenario.Step{scale(10*s, "a", 5)}
	check(t, `
		0s a1 b1
		10s a1+4 b1
		20s a2+3 b1
		50s a4+1 b1`, play(t, sc, idle))

	f := fleet.New(sc)
	check(t, "eu/a:8 b:2 | a-1 b-1", nodes(f))
	f.Command(10*s, sc.Steps[0])
	check(t, "eu/a:8 b:2 | a-1 b-1 a-1", nodes(f))
	if f.Next() != 20*s {
		t.Errorf("next is %v, want 20s", f.Next())
	}
	if f.Step(20*s, nil); f.Next() != 40*s {
		t.Errorf("next is %v, want 40s: 30 s after the request", f.Next())
	}
	f.Step(40*s, nil)
	check(t, "eu/a:8x2 b:2 | a-1 b-1 a-1 a-2 a-2", nodes(f)) // and no third, the fifth pod waits
}

func TestTheFirstPodsAreOnTheirNodes(t *testing.T) {
	for _, c := range []struct{ name, cluster, want string }{
		{"filled in order", "nodes a:4x3 b:4; service web; endpoints a:3 b:1", "a:4x3 b:4 | a-1 a-1 a-2 b-1"},
		{"around those that name one", "nodes a:4x3; service web; endpoints a:3 a:1@a-1", "a:4x3 | a-1 a-2 a-2 a-1"},
		{"more than there is room for", "nodes a:4x2; service web; endpoints a:6", "a:4x2 | a-1 a-1 a-2 a-2 a-1 a-2"},
		{"neither on control planes nor on broken nodes", "nodes a:4^ a:4! a:4; service web; endpoints a:2", "a:4^ a:4! a:4 | a-3 a-3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			check(t, c.want, nodes(fleet.New(pooled(t, c.cluster))))
		})
	}
}

func TestRoomInAnotherZoneIsBetterThanNone(t *testing.T) {
	sc := pooled(t, "nodes a:4 b:4 c:4; service web; endpoints a:2 b:2 c:1")
	sc.Autoscale = &scenario.Autoscale{Min: 1, Max: 14, Target: 0.5, Every: 15 * s, Window: 15 * s}
	// 10 are wanted at 15 s. One finds room in c, though there are no more pods in a; the others get a node in a and one in
	// b. Of 12 at 45 s two wait for a node in c; of 14 at 75 s two wait for ever: no zone may have a third node.
	check(t, `
		0s a2 b2 c1
		15s a2 b2 c1+1 ?4
		25s a2 b2 c2 ?4
		45s a2+2 b2+2 c2 ?2
		55s a4 b4 c2 ?2
		75s a4 b4 c2+2 ?2
		85s a4 b4 c4 ?2`, play(t, sc, func(time.Duration, int) float64 { return 1 }))
}

func TestNodesForManyPodsAreSpreadOverZones(t *testing.T) {
	sc := pooled(t, "nodes a:4 b:4 c:4; service web; endpoints a:2 b:2 c:2")
	sc.NodePools.Max = 9
	sc.Autoscale = &scenario.Autoscale{Min: 12, Max: 12, Every: 15 * s}
	f := fleet.New(sc)
	f.Step(50*s, always(0))
	check(t, "a:4x2 b:4x2 c:4x2 | a-1 a-1 b-1 b-1 c-1 c-1 a-2 b-2 c-2 a-2 b-2 c-2", nodes(f))
}

func TestAnEmptyNodeGoes(t *testing.T) {
	sc := pooled(t, "nodes a:4 b:4x3; service web; endpoints a:2 b:2")
	sc.NodePools.Idle = 60 * s
	sc.NodePools.Max = 9
	f := fleet.New(sc)
	f.Command(10*s, scale(0, "a", 4))
	f.Step(40*s, nil)
	check(t, "a:4x2 b:4x3 | a-1 a-1 b-1 b-1 a-2 a-2", nodes(f))
	f.Step(50*s, nil)
	f.Command(60*s, scale(0, "a", 2))
	f.Command(60*s, scale(0, "b", 0))
	f.Step(65*s, nil) // drained
	check(t, "a:4x2 b:4x3 | a-1 a-1", nodes(f))
	if f.Next() != 125*s {
		t.Errorf("next is %v, want 125s: 60 s after the last pod is gone", f.Next())
	}
	f.Step(125*s, nil)
	// a-2 and b-1 go; b-2 and b-3 never had a pod of the service.
	check(t, "a:4 b-2=b:4 b-3=b:4 | a-1 a-1", nodes(f))
	f.Command(130*s, scale(0, "a", 0))
	if f.Step(500*s, nil); f.Next() <= 500*s {
		t.Errorf("next is %v", f.Next())
	}
	check(t, "a:4 b-2=b:4 b-3=b:4 |", nodes(f)) // the last one of a zone stays
	f.Command(500*s, scale(0, "a", 4))
	f.Step(530*s, nil)
	check(t, "a:4 a-3=a:4 b-2=b:4 b-3=b:4 | a-1 a-1 a-3 a-3", nodes(f)) // no name is used twice
}

func TestANewNodeIsLikeTheFirstOfItsZone(t *testing.T) {
	for _, c := range []struct {
		name, cluster, zone string
		count               int
		want                string
	}{
		{"its zone's", "nodes x=eu/a:2 y=eu/a:16 b:8; service web; endpoints a:4", "a", 5, "eu/a:2 b:8 x=eu/a:2 y=eu/a:16"},
		{"no control plane", "nodes eu/a:2^ eu/a:8; service web; endpoints a:2", "a", 3, "eu/a:2^ eu/a:8x2"},
		{"the scenario's, where the zone has none", "nodes eu/b:8; service web; endpoints a:2", "a", 3, "a:8 eu/b:8"},
		{"without a zone", "nodes n=-:4; service web; endpoints -:2", "", 3, "n=-:4 node-1=-:4"},
		{"of unknown size, where there is none", "service web; endpoints a:2", "a", 3, "a:?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sc := pooled(t, c.cluster)
			sc.NodePools.Max = 9
			f := fleet.New(sc)
			f.Command(s, scale(0, c.zone, c.count))
			f.Step(31*s, nil)
			got, _, _ := strings.Cut(nodes(f), " |")
			check(t, c.want, got)
		})
	}
}

func TestALostZoneBootsNoNode(t *testing.T) {
	sc := pooled(t, "nodes a:4 b:4; service web; endpoints a:2 b:2")
	sc.Discovery.Lost = 40 * s
	sc.Steps = []scenario.Step{
		scale(10*s, "a", 3),
		{At: 20 * s, Verb: scenario.Lose, Where: where("a")},
		{At: 100 * s, Verb: scenario.Return, Where: where("a")},
	}
	check(t, `
		0s a2 b2
		10s a2+1 b2
		20s a0+1!2 b2
		100s a2+1 b2
		110s a3 b2`, play(t, sc, idle))
}

func TestPodsWithoutNodePoolsAreOnNodesIfTheFirstAre(t *testing.T) {
	sc := story(t, "nodes a:4x2 b:4; service web; endpoints a:2@a-1 b:1@b-1")
	f := fleet.New(sc)
	f.Command(s, scale(0, "a", 4))
	f.Command(s, scenario.Step{Verb: scenario.Rollout, Where: where("b"), Count: 1})
	check(t, "a:4x2 b:4 | a-1 a-1 b-1 a-2 a-2 b-1", nodes(f))
	f = fleet.New(story(t, "nodes a:4x2 b:4; service web; endpoints a:2"))
	f.Command(s, scale(0, "a", 4))
	check(t, "a:4x2 b:4 |", nodes(f))
}

func TestTheAPISaysWhichPodsThereAre(t *testing.T) {
	sc := pooled(t, "nodes a:4; service web; endpoints a:1@a-1>a{pod=shop/web-0}")
	f := fleet.New(sc)
	endpoints := func() string {
		snapshot := f.Snapshot()
		text := snapshot.String()
		return text[strings.Index(text, "endpoints"):]
	}
	f.Command(s, scale(0, "a", 3)) // one starts, one waits: that has no endpoint
	check(t, "endpoints a:1@a-1>a{pod=shop/web-0} a:1!@a-1{pod=shop/web-0-1}", endpoints())
	f.Step(11*s, nil)
	check(t, "endpoints a:1@a-1>a{pod=shop/web-0} a:1@a-1{pod=shop/web-0-1}", endpoints())
	f.Command(12*s, scale(0, "a", 1))
	check(t, "endpoints a:1@a-1>a{pod=shop/web-0} a:1~@a-1{pod=shop/web-0-1}", endpoints())
	f.Step(17*s, nil)
	check(t, "endpoints a:1@a-1>a{pod=shop/web-0}", endpoints())
}

func TestTheFirstPodAnswersWhereTheServiceDoes(t *testing.T) {
	f := fleet.New(story(t, "nodes a:4; service web port=http:80 ip=10.96.0.1; endpoints b:1{cluster=west}"))
	f.Command(s, scale(0, "a", 1))
	snapshot := f.Snapshot()
	check(t, "b:1{cluster=west,ports=http:80} a:1!{ports=http:80}", topology.FormatEndpoints(snapshot.Services[0].Endpoints))
}

func TestTheSnapshotIsTheSameUntilTheAPISaysSomethingElse(t *testing.T) {
	f := fleet.New(story(t, cluster))
	before := f.Snapshot()
	if f.Step(100*s, nil) {
		t.Error("Step tells of a change where there is none")
	}
	f.Command(100*s, scenario.Step{Verb: scenario.Slow, Factor: 2})
	if after := f.Snapshot(); after.Services[0] != before.Services[0] {
		t.Error("nothing changed, but the snapshot is another")
	}
	old := before.String()
	f.Command(101*s, scale(0, "a", 2))
	if after := f.Snapshot(); after.Services[0] == before.Services[0] {
		t.Error("a pod starts, but the snapshot is the same")
	}
	if diff := cmp.Diff(old, before.String()); diff != "" {
		t.Errorf("a snapshot changed after it was handed out:\n%s", diff)
	}
}
