package fleet_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/fleet"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

const seeds = 60

// TestWhateverHappensTheFleetIsSound plays random clusters with random commands, and looks at everything after each event.
func TestWhateverHappensTheFleetIsSound(t *testing.T) {
	for seed := range uint64(seeds) {
		sc := anything(t, rand.New(rand.NewPCG(seed, 1)))
		if t.Failed() {
			return
		}
		w := watcher{t: t, seed: seed, sc: sc, f: fleet.New(sc)}
		first := w.run(rand.New(rand.NewPCG(seed, 2)))
		again := watcher{t: t, seed: seed, sc: sc, f: fleet.New(sc)}
		if second := again.run(rand.New(rand.NewPCG(seed, 2))); first != second {
			t.Errorf("seed %d: two runs differ", seed)
		}
	}
}

// anything draws a scenario.
func anything(t *testing.T, random *rand.Rand) *scenario.Scenario {
	t.Helper()
	clusters := []string{
		"nodes a:4 b:4 c:4; service web; endpoints a:3 b:2 c:1",
		"nodes a:4x2 b:4x3! b:2; service web; endpoints a:2@a-1 b:1! b:1~ a:1{cluster=west}",
		"service web; endpoints -:3 v6=-:2",
		"nodes a:4^ a:4 b:8; service shop/web port=http:80->8080; endpoints a:3>a b:2>b{pod=x/y}",
		"service web; endpoints 255.255.255.254=a:2 b:1",
	}
	sc := story(t, clusters[random.IntN(len(clusters))])
	sc.Server.Start, sc.Server.Drain = time.Duration(random.IntN(3))*5*s, time.Duration(random.IntN(3))*4*s
	sc.Discovery.Lost = time.Duration(random.IntN(3)) * 20 * s
	if random.IntN(2) == 0 {
		sc.Autoscale = &scenario.Autoscale{
			Min: 1 + random.IntN(4), Max: 4 + random.IntN(20), Target: 0.6, Every: 15 * s, Tolerance: 0.1,
			Window: 30 * s, Stabilization: time.Duration(random.IntN(3)) * 60 * s,
		}
	}
	if random.IntN(2) == 0 {
		sc.NodePools = &scenario.NodePools{
			PodsPerNode: 1 + random.IntN(4), Max: 1 + random.IntN(4), Boot: time.Duration(random.IntN(3)) * 20 * s,
			Idle: time.Duration(random.IntN(3)) * 30 * s,
		}
	}
	return sc
}

// watcher plays a fleet and looks for what may never be.
type watcher struct {
	t       *testing.T
	seed    uint64
	sc      *scenario.Scenario
	f       *fleet.Fleet
	pods    []fleet.Pod // as they were
	last    topology.Snapshot
	crowded int // pods per node at the start, at most
}

// run gives a digest of everything that was.
func (w *watcher) run(random *rand.Rand) uint64 {
	digest := fnv.New64a()
	busy := 0.5
	command := time.Duration(random.IntN(30)) * s
	w.pods = append(w.pods, w.f.Pods()...)
	w.last = w.f.Snapshot()
	w.crowded = w.crowd()
	for now := time.Duration(0); now < 600*s; {
		next := min(w.f.Next(), command)
		if next < now {
			w.fail("the next event is at %v, which is past at %v", next, now)
			return 0
		}
		now = next
		hasChanged := true
		if now == command {
			w.f.Command(now, anyStep(random))
			command = now + time.Duration(random.IntN(60))*s
			busy = random.Float64()
		} else {
			hasChanged = w.f.Step(now, func(int) float64 { return busy })
		}
		w.look(now)
		if !hasChanged && w.f.Snapshot().Services[0] != w.last.Services[0] {
			w.fail("Step told of no change at %v, but the API says something else", now)
		}
		w.last = w.f.Snapshot()
		_, _ = fmt.Fprintln(digest, now, w.f.Pods(), w.last.String()) // a hash takes everything
		if w.t.Failed() {
			return 0
		}
	}
	return digest.Sum64()
}

func anyStep(random *rand.Rand) scenario.Step {
	places := []scenario.Where{{}, {Zone: "a"}, {Zone: "b"}, {Zone: "a", Part: 0.5}, {Zone: "b", First: 1, Last: 2}, {Cluster: "west"}}
	verbs := []scenario.Verb{scenario.Rollout, scenario.Scale, scenario.Lose, scenario.Return, scenario.Slow}
	return scenario.Step{
		Verb: verbs[random.IntN(len(verbs))], Where: places[random.IntN(len(places))], Count: random.IntN(7) - 1,
	}
}

func (w *watcher) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("seed %d: %s", w.seed, fmt.Sprintf(format, args...))
}

func (w *watcher) look(now time.Duration) {
	w.t.Helper()
	addrs := make(map[netip.Addr]bool)
	places := make(map[string]int)
	for id, p := range w.f.Pods() {
		if p.ID != id || addrs[p.Addr] || !p.Addr.IsValid() {
			w.fail("pod %d has the id %d and the address %s, which is not its own", id, p.ID, p.Addr)
		}
		addrs[p.Addr] = true
		if id < len(w.pods) {
			w.compare(now, w.pods[id], p)
		} else if p.Since != now || id >= len(w.sc.Snapshot.Services[0].Endpoints) != p.Cold {
			w.fail("pod %d at %v is new: %+v", id, now, p)
		}
		if p.Phase == fleet.Pending || p.Phase == fleet.Ready {
			places[fmt.Sprintf("%s %s %d", p.Zone, p.Cluster, p.Place)]++
		}
	}
	for place, count := range places {
		if count > 3 && !strings.HasSuffix(place, " 0") { // an old pod, its replacement, and one that was scaled up beside them
			w.fail("%d pods have the place %s", count, place)
		}
	}
	w.pods = append(w.pods[:0], w.f.Pods()...)
	if w.sc.NodePools != nil && w.crowd() > max(w.sc.NodePools.PodsPerNode, w.crowded) {
		w.fail("%d pods on a node at %v", w.crowd(), now)
	}
	w.api()
}

// compare looks at what became of a pod.
func (w *watcher) compare(now time.Duration, was, is fleet.Pod) {
	w.t.Helper()
	if is.Phase < was.Phase || is.Phase != was.Phase && is.Since > now {
		w.fail("pod %d at %v: %+v after %+v", is.ID, now, is, was)
	}
	if is.Addr != was.Addr || was.Place != 0 && (is.Zone != was.Zone || is.Place != was.Place) || is.Cluster != was.Cluster {
		w.fail("pod %d moved: %+v after %+v", is.ID, is, was)
	}
	if is.Cluster != "" && is != was {
		w.fail("a pod of another cluster changed: %+v after %+v", is, was)
	}
}

// crowd counts the pods of the fullest node.
func (w *watcher) crowd() int {
	on := make(map[string]int)
	most := 0
	for _, p := range w.f.Pods() {
		if p.Phase != fleet.Gone && p.Node != "" {
			on[p.Node]++
			most = max(most, on[p.Node])
		}
	}
	return most
}

// api compares what the API says with the pods, and with itself after a round trip through its text.
func (w *watcher) api() {
	w.t.Helper()
	snapshot := w.f.Snapshot()
	text := snapshot.String()
	parsed, err := topology.ParseSnapshot(text)
	if err != nil {
		w.fail("%v in the text\n%s", err, text)
		return
	}
	if !reflect.DeepEqual(snapshot, parsed) {
		w.fail("the text of the snapshot is of another one:\n%s", text)
	}
	said := make(map[netip.Addr]topology.Endpoint)
	for _, e := range snapshot.Services[0].Endpoints {
		said[e.Addr] = e
	}
	for _, p := range w.f.Pods() {
		e, ok := said[p.Addr]
		if ok != (p.Phase != fleet.Gone && (p.Phase != fleet.Pending || p.Place != 0 && e.Addr.IsValid())) {
			w.fail("pod %+v: the API has an endpoint: %t", p, ok)
		}
		if ok && e.IsReady() && (p.Phase != fleet.Ready || e.Zone != p.Zone || e.Node != p.Node) {
			w.fail("pod %+v is %s for the API", p, topology.FormatEndpoints([]topology.Endpoint{e}))
		}
	}
}

// TestARolloutNeverTakesCapacityAway counts ready pods in each zone while all pods are replaced.
func TestARolloutNeverTakesCapacityAway(t *testing.T) {
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 3))
		a, b := 1+random.IntN(8), 1+random.IntN(8)
		sc := story(t, fmt.Sprintf("service web; endpoints a:%d b:%d", a, b))
		f := fleet.New(sc)
		f.Command(s, scenario.Step{Verb: scenario.Rollout, Count: 1 + random.IntN(5)})
		for f.Next() < time.Hour {
			f.Step(f.Next(), nil)
			ready := map[topology.Zone]int{}
			for _, p := range f.Pods() {
				if p.Phase == fleet.Ready {
					ready[p.Zone]++
				}
			}
			if ready["a"] < a || ready["b"] < b {
				t.Fatalf("seed %d: %v of a:%d b:%d are ready", seed, ready, a, b)
			}
		}
		old := 0
		for _, p := range f.Pods() {
			if p.Phase == fleet.Ready && !p.Cold {
				old++
			}
		}
		if got := active(f); old > 0 || got != a+b {
			t.Errorf("seed %d: %d pods, of which %d were not replaced; want %d", seed, got, old, a+b)
		}
	}
}
