package demo

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/grid"
	"github.com/weir-lb/weir/internal/l7"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
	"github.com/weir-lb/weir/test/scenarios"
)

// story is a small scenario, whose length tests cut as they need: two zones, two endpoints and two clients in each.
func story(t *testing.T, steps ...scenario.Step) *scenario.Scenario {
	t.Helper()
	snapshot, err := topology.ParseSnapshot("nodes r/a:4x1 r/b:4x1\nservice shop/web\nendpoints a:2 b:2\n")
	if err != nil {
		t.Fatal(err)
	}
	return &scenario.Scenario{
		Name: "story", Snapshot: snapshot, Steps: steps,
		Clients: []scenario.Clients{{Zone: "a", Count: 2, Rate: 40}, {Zone: "b", Count: 2, Rate: 40, Shares: []float64{0.7, 0.3}}},
		Server: scenario.Server{
			Workers: 4, Queue: 16, Service: scenario.Distribution{Kind: scenario.Exponential, Mean: 10 * time.Millisecond},
		},
		Network:  scenario.Network{SameZone: 300 * time.Microsecond, CrossZone: 1200 * time.Microsecond},
		Request:  scenario.Request{Timeout: 2 * time.Second},
		Length:   sim.Warmup + 4*time.Second,
		Stress:   scenario.Window{From: sim.Warmup + time.Second, To: sim.Warmup + 3*time.Second},
		Affected: []topology.Zone{"a"},
	}
}

// TestAScenarioIsPlayedOnRealSockets is about the machinery: how well agents do is nothing to ask of a machine on which
// other tests run.
func TestAScenarioIsPlayedOnRealSockets(t *testing.T) {
	in := scenario.Where{Zone: "a"}
	sc := story(t,
		scenario.Step{At: 4 * time.Second, Verb: scenario.Refuse, Where: in},
		scenario.Step{At: 9 * time.Second, Verb: scenario.Heal, Where: in},
	)
	sc.Length = sim.Warmup
	sc.Stress = scenario.Window{From: 4 * time.Second, To: 9 * time.Second}
	var progress strings.Builder
	report, err := Play(t.Context(), sc, Options{Progress: &Display{out: &progress}})
	if err != nil {
		t.Fatal(err)
	}
	r := report.Result
	simulated, err := sim.Run(sim.Options{Scenario: sc, Strategy: (Player{}.withDefaults()).Simulated(), Seed: DefaultSeed})
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests != simulated.Requests {
		t.Errorf("%d requests were counted: the same story has %d", r.Requests, simulated.Requests)
	}
	var failed, answered, crossed, all int64
	for second, p := range r.Line {
		for row, z := range p.Zones {
			if want := simulated.Line[second].Zones[row].Requests; z.Requests != want {
				t.Errorf("in second %d zone %s sent %d requests: the story says %d", second, z.Zone, z.Requests, want)
			}
			failed, all = failed+z.Failed, all+z.Requests
			if z.Zone == "a" && second >= 6 && second < 9 { // two seconds after the zone went
				answered, crossed = answered+z.Answered, crossed+z.Crossed
			}
		}
	}
	if failed*2 > all {
		t.Errorf("%d of %d requests failed", failed, all)
	}
	if answered == 0 || crossed != answered {
		t.Errorf("with their zone gone %d of its clients' %d requests went elsewhere", crossed, answered)
	}
	if len(r.Endpoints) != 4 || r.PeakLoad <= 0 || r.Endpoints[3].Requests == 0 {
		t.Errorf("the endpoints have %+v", r.Endpoints)
	}
	if !strings.Contains(progress.String(), "story · Weir") {
		t.Errorf("the progress reads:\n%s", progress.String())
	}
}

func TestAnInterruptedPlayReportsWhatItHas(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	sc, err := Script(ScriptOptions{Rate: 50})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new", "folder")
	r, err := Play(ctx, sc, Options{Player: Player{Strategy: "Static"}, ManifestDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if r.Judge(); !r.Interrupted || r.Passed || len(r.Phases) != 1 || r.Total.Requests == 0 {
		t.Errorf("interrupted %v, passed %v, %d phases, %d requests", r.Interrupted, r.Passed, len(r.Phases), r.Total.Requests)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 3 {
		t.Errorf("the manifests are %v, %v: want three files", files, err)
	}
}

func TestZoneAwarenessAloneFallsShort(t *testing.T) {
	sc, err := Script(ScriptOptions{Rate: 50, Speed: 8}) // a fault outlasts a second in which the machine is busy
	if err != nil {
		t.Fatal(err)
	}
	r, err := Play(t.Context(), sc, Options{Player: Player{Strategy: "Static"}, Patience: ScriptPatience})
	if err != nil {
		t.Fatal(err)
	}
	r.Judge()
	if r.Passed || len(r.Phases) != 9 || r.Total.InZone != 1 {
		t.Fatalf("passed %v, %d phases, %v in zone: want all of nine in zone, and short", r.Passed, len(r.Phases), r.Total.InZone)
	}
	for _, p := range r.Phases {
		// Requests that were due in the phase and were sent or answered around its ends count, too. Where half of the endpoints
		// fail nothing is asked for: the agents leave out those that do.
		if p.Title == "zone-a gone" && p.Hit.Success > 0.5 {
			t.Errorf("%v of the requests from the zone that is gone were answered well", p.Hit.Success)
		}
	}
	if lines := joined(r.Lines(grid.Painter{})); !strings.Contains(lines, "Static misses a target") {
		t.Errorf("the report reads:\n%s", lines)
	}
}

func TestAgentsRefuseAnAddressThatIsTaken(t *testing.T) {
	p := staged(t, story(t))
	listener, err := net.Listen("tcp", p.layout.clients[1].addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // the test is not about it.
	if _, err := startAgents(t.Context(), p.specs); err == nil || !strings.Contains(err.Error(), "client-a-2") {
		t.Errorf("got %v, want an error that names the second client", err)
	}
}

func TestASecondPlayFindsOtherPorts(t *testing.T) {
	first := staged(t, story(t))
	second, err := newLayout(story(t))
	if err != nil {
		t.Fatal(err)
	}
	if second.service == first.layout.service {
		t.Errorf("both have %s", second.service)
	}
}

func TestWhatSocketsCannotPlayIsRefusedByName(t *testing.T) {
	sc := story(t, scenario.Step{Verb: scenario.Rollout, Line: 7}, scenario.Step{Verb: scenario.Scale, Line: 8})
	sc.Autoscale, sc.NodePools = &scenario.Autoscale{}, &scenario.NodePools{}
	sc.Request.Polls, sc.Request.Retries, sc.Request.Backoff = 0.1, 1, time.Second
	err := Playable(sc, Player{Strategy: "Envoy", Mode: "Sideways", RetryOn: "4xx"})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{"story", "line 7: rollout", "line 8: scale", "autoscale", "node pools", "polls", "backoff", "Envoy", "Sideways", "4xx"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v says nothing of %s", err, part)
		}
	}
	if _, err := Play(t.Context(), sc, Options{}); err == nil {
		t.Error("it is played nevertheless")
	}
	sc = story(t, scenario.Step{Verb: scenario.Refuse, Line: 9})
	sc.Request.Retries = 1
	if err := Playable(sc, Player{}.withDefaults()); err == nil || !strings.Contains(err.Error(), "line 9: refuse") {
		t.Errorf("retries and refused connections: %v", err)
	}
	if err := Playable(story(t), Player{}.withDefaults()); err != nil {
		t.Errorf("a story that can be played is refused: %v", err)
	}
}

func TestPlayersAreTheStrategiesThatAgentsHave(t *testing.T) {
	for name, want := range map[string]string{"weir": "Weir", "hazl": "Hazl", "random": "Random", "static-auto": "Static", "hints-balanced": "Static"} {
		if p, err := PlayerFor(name, topology.ModeAuto); err != nil || p.Strategy != want || p.Mode != topology.ModeAuto {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if _, err := PlayerFor("envoy-zone", topology.ModeAuto); err == nil || !strings.Contains(err.Error(), "envoy-zone") {
		t.Errorf("got %v", err)
	}
}

func TestPlayersReconnectAsTheirStrategiesDo(t *testing.T) {
	weir, err := strategy.Named("weir")
	if err != nil {
		t.Fatal(err)
	}
	retryOf := func(p Player, r scenario.Request) l7.Retry {
		t.Helper()
		retry, err := p.retry(&r)
		if err != nil {
			t.Fatal(err)
		}
		return retry
	}
	without, with := retryOf(Player{}, scenario.Request{}), retryOf(Player{}, scenario.Request{Retries: 1, Accepted: true})
	want := l7.Retry{On: l7.OnConnectFailure, Attempts: 1 + weir.Reconnects, BudgetRatio: float64(1 + weir.Reconnects)}
	if without != want {
		t.Errorf("agents of clients that do not retry have %+v, want %+v", without, want)
	}
	want = l7.Retry{
		On: l7.OnConnectFailure | l7.OnReset | l7.On5xx, Attempts: 2, BudgetRatio: 2, MinPerSecond: -1,
	}
	if with != want {
		t.Errorf("agents of clients that retry once have %+v, want %+v", with, want)
	}
	if got, want := retryOf(Player{RetryOn: "reset,5xx"}, scenario.Request{}), (l7.Retry{On: l7.OnReset | l7.OnConnectFailure | l7.On5xx}); got != want {
		t.Errorf("agents that are told what to retry have %+v, want %+v", got, want)
	}
	if got := (Player{}).Simulated().Reconnects; got != weir.Reconnects {
		t.Errorf("the simulator's agents go to %d others, weir in it to %d", got, weir.Reconnects)
	}
}

// staged is a play that is built but not performed.
func staged(t *testing.T, sc *scenario.Scenario) *play {
	t.Helper()
	began := time.Now()
	p := &play{
		scenario: sc, options: Options{Player: Player{}.withDefaults(), Seed: 1},
		clock: func() time.Duration { return time.Since(began) },
	}
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	if err := p.build(); err != nil {
		t.Fatal(err)
	}
	return p
}

// run lets all changes happen up to a time, at once.
func run(t *testing.T, events []event, until time.Duration) []event {
	t.Helper()
	for len(events) > 0 && events[0].at <= until {
		if err := events[0].do(); err != nil {
			t.Fatal(err)
		}
		events = events[1:]
	}
	return events
}

func TestFaultsBefallTheEndpointsThatAStepNames(t *testing.T) {
	half := scenario.Where{Zone: "b", Part: 0.5}
	p := staged(t, story(t,
		scenario.Step{At: 1 * time.Second, Verb: scenario.Slow, Where: half, Factor: 3},
		scenario.Step{At: 1 * time.Second, Verb: scenario.Fail, Where: half, Ratio: 0.5},
		scenario.Step{At: 2 * time.Second, Verb: scenario.Delay, Where: scenario.Where{Zone: "a"}, Time: time.Second},
		scenario.Step{At: 3 * time.Second, Verb: scenario.Hang, Where: scenario.Where{Zone: "a", First: 2, Last: 2}},
		scenario.Step{At: 4 * time.Second, Verb: scenario.Heal},
	))
	events := p.events()
	for _, c := range []struct {
		at   time.Duration
		want []scenario.Condition
	}{
		{1 * time.Second, []scenario.Condition{{}, {}, {Slow: 3, Fail: 0.5}, {}}},
		{2 * time.Second, []scenario.Condition{{Delay: time.Second}, {Delay: time.Second}, {Slow: 3, Fail: 0.5}, {}}},
		{3 * time.Second, []scenario.Condition{{Delay: time.Second}, {Delay: time.Second, Hang: true}, {Slow: 3, Fail: 0.5}, {}}},
		{4 * time.Second, []scenario.Condition{{}, {}, {}, {}}},
	} {
		events = run(t, events, c.at)
		var got []scenario.Condition
		for _, e := range p.endpoints {
			got = append(got, *e.state.Load())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("after %v: %+v, want %+v", c.at, got, c.want)
		}
	}
}

func TestAgentsHearOfALostZoneWhenTheAPIKnowsAndOfItsReturn(t *testing.T) {
	in := scenario.Where{Zone: "a"}
	sc := story(t,
		scenario.Step{At: 1 * time.Second, Verb: scenario.Lose, Where: in},
		scenario.Step{At: 9 * time.Second, Verb: scenario.Return, Where: in},
	)
	sc.Discovery = scenario.Discovery{Delay: time.Second, Jitter: 0.5, Lost: 4 * time.Second}
	p := staged(t, sc)
	events := p.events()
	sees := func() (ready []int, nodes int) {
		for _, s := range p.specs {
			snapshot, _ := s.snapshots.Load()
			n := 0
			for i := range snapshot.Services[0].Endpoints {
				if snapshot.Services[0].Endpoints[i].IsReady() {
					n++
				}
			}
			ready = append(ready, n)
			nodes = 0
			for i := range snapshot.Nodes {
				if snapshot.Nodes[i].Ready {
					nodes++
				}
			}
		}
		return ready, nodes
	}
	for _, c := range []struct {
		at    time.Duration
		hangs bool
		ready []int
		nodes int
	}{
		{1 * time.Second, true, []int{4, 4, 4, 4}, 2},
		{5 * time.Second, true, []int{4, 4, 4, 4}, 2}, // the API knows, no agent does
		{6500 * time.Millisecond, true, []int{2, 2, 2, 2}, 1},
		{9 * time.Second, false, []int{2, 2, 2, 2}, 1},
		{10500 * time.Millisecond, false, []int{4, 4, 4, 4}, 2},
	} {
		events = run(t, events, c.at)
		ready, nodes := sees()
		if hangs := p.endpoints[1].state.Load().Hang; hangs != c.hangs || !slices.Equal(ready, c.ready) || nodes != c.nodes {
			t.Errorf("after %v: hangs %v, %v endpoints and %d nodes are ready, want %v, %v and %d", c.at, hangs, ready, nodes, c.hangs, c.ready, c.nodes)
		}
	}
}

func TestASecondLossIsNoticedAsLateAsTheFirst(t *testing.T) {
	in := scenario.Where{Zone: "a"}
	sc := story(t,
		scenario.Step{At: 1 * time.Second, Verb: scenario.Lose, Where: in},
		scenario.Step{At: 3 * time.Second, Verb: scenario.Return, Where: in},
		scenario.Step{At: 4 * time.Second, Verb: scenario.Lose, Where: in},
		scenario.Step{At: 5 * time.Second, Verb: scenario.Lose}, // zone a is lost already
	)
	sc.Discovery = scenario.Discovery{Lost: 4 * time.Second}
	p := staged(t, sc)
	events := p.events()
	for _, c := range []struct {
		at    time.Duration
		ready int
	}{{5 * time.Second, 4}, {8 * time.Second, 2}, {9 * time.Second, 0}} {
		events = run(t, events, c.at)
		snapshot, _ := p.specs[0].snapshots.Load()
		ready := 0
		for _, e := range snapshot.Services[0].Endpoints {
			if e.IsReady() {
				ready++
			}
		}
		if ready != c.ready {
			t.Errorf("after %v: %d endpoints are ready, want %d", c.at, ready, c.ready)
		}
	}
}

func TestALostEndpointSwallowsEvenIfItRefused(t *testing.T) {
	in := scenario.Where{Zone: "a"}
	p := staged(t, story(t,
		scenario.Step{At: 1 * time.Second, Verb: scenario.Refuse, Where: in},
		scenario.Step{At: 2 * time.Second, Verb: scenario.Lose, Where: in},
		scenario.Step{At: 3 * time.Second, Verb: scenario.Return, Where: in},
	))
	events := p.events()
	for _, c := range []struct {
		at   time.Duration
		want scenario.Condition
	}{
		{1 * time.Second, scenario.Condition{Refuse: true}},
		{2 * time.Second, scenario.Condition{Hang: true}},
		{3 * time.Second, scenario.Condition{Refuse: true}},
	} {
		events = run(t, events, c.at)
		if got := *p.endpoints[0].state.Load(); got != c.want {
			t.Errorf("after %v: %+v, want %+v", c.at, got, c.want)
		}
	}
}

func TestALossThatIsKnownAtOnceIsToldAtOnce(t *testing.T) {
	sc := story(t, scenario.Step{At: time.Second, Verb: scenario.Lose, Where: scenario.Where{Zone: "a"}})
	sc.Discovery = scenario.Discovery{}
	p := staged(t, sc)
	run(t, p.events(), time.Second)
	snapshot, _ := p.specs[0].snapshots.Load()
	for _, e := range snapshot.Services[0].Endpoints {
		if e.IsReady() != (e.Zone != "a") {
			t.Errorf("endpoint %s of zone %s: ready is %v", e.Addr, e.Zone, e.IsReady())
		}
	}
}

func TestOnlyWeirHearsOfADrain(t *testing.T) {
	step := scenario.Step{At: time.Second, Verb: scenario.Drain, Where: scenario.Where{Zone: "b"}, Time: time.Minute}
	for strategy, want := range map[string]int{"Weir": 1, "Hazl": 0} {
		p := staged(t, story(t, step))
		p.options.Player.Strategy = strategy
		run(t, p.events(), time.Minute)
		snapshot, _ := p.specs[0].snapshots.Load()
		if drains := snapshot.Services[0].Overflow.Drains; len(drains) != want {
			t.Errorf("%s is told of %v", strategy, drains)
		}
	}
}

func TestTheNetworkIsLongerAcrossZonesAndClusters(t *testing.T) {
	sc := story(t)
	sc.Network = scenario.Network{SameZone: 100 * time.Microsecond, CrossZone: 2 * time.Millisecond, CrossCluster: 9 * time.Millisecond}
	p := staged(t, sc)
	p.layout.endpoints[3].Cluster = "west"
	from := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	from.Header.Set(zoneHeader, "a")
	for endpoint, want := range map[int]time.Duration{0: 0, 2: 2*time.Millisecond - loopbackTrip, 3: 9*time.Millisecond - loopbackTrip} {
		if got := (&endpointTraffic{play: p, endpoint: endpoint}).trip(from); got != want {
			t.Errorf("to endpoint %d a request is delayed by %v, want %v", endpoint, got, want)
		}
	}
}

func TestOnlyTheClientsOfAPlaySayHowMuchWorkTheyAre(t *testing.T) {
	d := &endpointTraffic{play: staged(t, story(t))}
	for said, want := range map[string]time.Duration{"2000000": 2 * time.Millisecond, "-5": 0, "much": 0, "": 0} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set(workHeader, said)
		if got := d.work(r); got != want {
			t.Errorf("%q is %v of work, want %v", said, got, want)
		}
	}
}

func TestStandardScenariosThatCanBePlayedFitOneMachine(t *testing.T) {
	played := 0
	for _, name := range scenarios.Names() {
		text, err := scenarios.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		sc, err := scenario.Parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		if Playable(sc, Player{}.withDefaults()) != nil {
			continue
		}
		played++
		fitted := Fit(sc, 0)
		if peak := sim.Peak(fitted); peak > defaultFitRate+1 {
			t.Errorf("%s sends %v requests/s at its peak", name, peak)
		}
		load := func(sc *scenario.Scenario) float64 { return sim.Peak(sc) * sc.Server.Service.Mean.Seconds() }
		if a, b := load(sc), load(fitted); a-b > 1e-6*a || b-a > 1e-6*a {
			t.Errorf("%s asks for %v workers at its peak, and then for %v", name, a, b)
		}
		if len(fitted.Validate()) > 0 {
			t.Errorf("%s: %v", name, fitted.Validate())
		}
	}
	if played < 6 {
		t.Errorf("%d of the standard scenarios can be played, want six at least", played)
	}
}

func TestFitKeepsTheStoryAndCutsTheTimeAroundIt(t *testing.T) {
	sc := story(t,
		scenario.Step{At: 40 * time.Second, Verb: scenario.Slow, Factor: 2},
		scenario.Step{At: 45 * time.Second, Verb: scenario.Delay, Time: 100 * time.Millisecond},
		scenario.Step{At: 90 * time.Second, Verb: scenario.Heal},
	)
	sc.Length, sc.Stress = 120*time.Second, scenario.Window{From: 40 * time.Second, To: 90 * time.Second}
	fitted := Fit(sc, 20)
	if fitted.Length != 60*time.Second || fitted.Stress != (scenario.Window{From: 20 * time.Second, To: 50 * time.Second}) {
		t.Errorf("it is %v long, with stress in %v", fitted.Length, fitted.Stress)
	}
	var at []time.Duration
	for _, st := range fitted.Steps {
		at = append(at, st.At)
	}
	if want := []time.Duration{20 * time.Second, 25 * time.Second, 50 * time.Second}; !slices.Equal(at, want) {
		t.Errorf("the steps are at %v, want %v", at, want)
	}
	if fitted.Clients[0].Rate != 10 || fitted.Server.Service.Mean != 40*time.Millisecond || fitted.Request.Timeout != 8*time.Second ||
		fitted.Steps[1].Time != 400*time.Millisecond {
		t.Errorf("a quarter of the requests is %v/s of %v within %v", fitted.Clients[0].Rate, fitted.Server.Service.Mean, fitted.Request.Timeout)
	}
	if sc.Clients[0].Rate != 40 || sc.Steps[0].At != 40*time.Second {
		t.Error("the scenario itself was changed")
	}
	sc.Steps[2].At = 100 * time.Second // just when what is left would be over
	if fitted := Fit(sc, 0); fitted.Length != sc.Length || fitted.Stress != sc.Stress {
		t.Errorf("the last step is cut off: %v, %v", fitted.Length, fitted.Stress)
	}
	sc.Steps[2].At = 90 * time.Second
	sc.Steps[1].At = 80 * time.Second // beyond what would be left of the stress
	if fitted := Fit(sc, 0); fitted.Length != sc.Length || fitted.Stress != sc.Stress {
		t.Errorf("a step of the story is cut off: %v, %v", fitted.Length, fitted.Stress)
	}
}
