package sim_test

import (
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// inZone gives the share of a zone's requests that stayed in it, in a second of the run.
func inZone(r *sim.Result, zone, second int) float64 {
	p := r.Line[second].Zones[zone]
	if p.Answered == 0 {
		return 1
	}
	return 1 - float64(p.Crossed)/float64(p.Answered)
}

func TestClientsLearnOfALostZoneAfterTheAPIAndTheDelay(t *testing.T) {
	t.Parallel()
	sc := usual(t)
	sc.Discovery = scenario.Discovery{Delay: 2 * time.Second, Jitter: 0, Lost: 5 * time.Second}
	sc.Steps = []scenario.Step{
		{At: 25 * time.Second, Verb: scenario.Lose, Where: scenario.Where{Zone: "a"}},
		{At: 45 * time.Second, Verb: scenario.Return, Where: scenario.Where{Zone: "a"}},
	}
	c := balance(t, "Static")
	c.Pool.Health.Failures = -1
	r := run(t, sc, c, 1)
	for second, want := range map[int]int64{20: 0, 27: 1, 30: 1, 33: 0, 40: 0} {
		p := r.Line[second].Zones[0]
		if all := p.Failed == p.Requests; all != (want == 1) || want == 0 && p.Failed > 0 {
			t.Errorf("second %d: %d of %d requests of zone a failed", second, p.Failed, p.Requests)
		}
	}
	near(t, "in-zone share after the API knows", inZone(r, 0, 35), about{0, 0})
	near(t, "in-zone share after the return", inZone(r, 0, 55), about{1, 0})
	near(t, "in-zone share of zone b", inZone(r, 1, 30), about{1, 0})
	near(t, "ready pods before", float64(r.Line[20].Pods), about{18, 0})
	near(t, "ready pods while the API knows", float64(r.Line[40].Pods), about{12, 0})
}

func TestHealthChecksMoveTrafficBeforeTheAPI(t *testing.T) {
	t.Parallel()
	sc := under(t, scenario.Step{Verb: scenario.Hang})
	c := balance(t, "Weir")
	c.Checks = 5 * time.Second
	c.New = balance(t, "Random").New // shares by ready endpoints, without a reaction of its own
	c.Pool.Health.Failures = -1
	r := run(t, sc, c, 1)
	before, after := r.Line[27].Zones[0], r.Line[35].Zones[0]
	if before.Failed == 0 || after.Failed > 0 {
		t.Errorf("%d requests failed before the checks noticed, %d after", before.Failed, after.Failed)
	}
	if back := r.Line[55].Zones[0]; back.Crossed == back.Answered {
		t.Error("checks never noticed that zone a was back")
	}
}

func TestADrainIsForThoseWhoFollowIt(t *testing.T) {
	t.Parallel()
	sc := usual(t)
	sc.Steps = []scenario.Step{
		{At: 25 * time.Second, Verb: scenario.Drain, Where: scenario.Where{Zone: "a"}, Time: 10 * time.Second},
	}
	c := balance(t, "Weir")
	r := run(t, sc, c, 1)
	near(t, "in-zone share before", inZone(r, 0, 20), about{1, 0.02})
	near(t, "in-zone share while drained", inZone(r, 0, 30), about{0, 0})
	near(t, "in-zone share of zone b", inZone(r, 1, 30), about{1, 0.1})
	c.Drains = false
	r = run(t, sc, c, 1)
	near(t, "in-zone share of who does not follow", inZone(r, 0, 30), about{1, 0.02})
}

func TestNewPodsAreSlowUntilTheyAreWarm(t *testing.T) {
	t.Parallel()
	const work = 5 * time.Millisecond
	sc := station(t, 4, 0.01, scenario.Distribution{Kind: scenario.Constant, Mean: work})
	sc.Server.Start, sc.Server.Cold, sc.Server.Warm, sc.Server.Drain = 2*time.Second, 5, 8*time.Second, time.Second
	sc.Server.Workers = 1000
	sc.Length, sc.Stress = 50*time.Second, scenario.Window{From: 15 * time.Second, To: 45 * time.Second}
	sc.Clients[0].Rate = 2000
	sc.Steps = []scenario.Step{{At: 20 * time.Second, Verb: scenario.Rollout, Count: 1}}
	r := run(t, sc, balance(t, "Static"), 1)
	near(t, "success", r.Window.Success, about{1, 0.0001})
	if len(r.Endpoints) != 2 {
		t.Fatalf("there were %d pods, want the old one and the new one", len(r.Endpoints))
	}
	warm, cold := r.Line[15].P99, r.Line[24].P99
	within(t, "latency before", warm, around{work, 0.01})
	if cold < 3*work || cold > 5*work {
		t.Errorf("a new pod takes %v for %v of work", cold, work)
	}
	within(t, "latency of a warm pod", r.Line[40].P99, around{work, 0.01})
	if old := r.Endpoints[0].Line; old[15] == 0 || len(old) > 40 && old[40] > 0 {
		t.Errorf("the old pod's loads are %v", old)
	}
}

func TestANewConnectionPaysARoundTrip(t *testing.T) {
	t.Parallel()
	const work, rtt = 5 * time.Millisecond, 10 * time.Millisecond
	sc := station(t, 1000, 0.1, scenario.Distribution{Kind: scenario.Constant, Mean: work})
	sc.Network = scenario.Network{SameZone: rtt}
	sc.Clients[0].Rate = 0.02 // each after the connection has been closed, nearly always
	sc.Length = 4000 * time.Second
	r := run(t, sc, balance(t, "Static"), 1)
	within(t, "the slowest latency", r.Whole.P99, around{work + 2*rtt, 0.02})
	sc.Clients[0].Rate = 100
	sc.Length = 60 * time.Second
	r = run(t, sc, balance(t, "Static"), 1)
	within(t, "latency on a warm connection", r.Whole.P99, around{work + rtt, 0.02})
}

func TestPollsAndStreamsHoldNoWorker(t *testing.T) {
	t.Parallel()
	sc := station(t, 4, 0.5, scenario.Distribution{Kind: scenario.Constant, Mean: time.Millisecond})
	sc.Clients[0].Rate = 100
	sc.Length = 60 * time.Second
	sc.Request = scenario.Request{Timeout: time.Second, Polls: 0.5, Hold: 5 * time.Second}
	r := run(t, sc, balance(t, "Static"), 1)
	near(t, "success of polls", r.Whole.Success, about{1, 0})
	if r.Whole.P99 > 2*time.Millisecond {
		t.Errorf("p99 is %v: the time that a poll is held does not count", r.Whole.P99)
	}
	// 100 streams a second of 2 s on average, each a hundredth of a worker: two of four workers.
	sc.Request = scenario.Request{Timeout: time.Second, Streams: 1, Hold: 2 * time.Second, Load: 0.01}
	sc.Stress = scenario.Window{From: 20 * time.Second, To: 60 * time.Second}
	r = run(t, sc, balance(t, "Static"), 1)
	near(t, "load of streams", r.Endpoints[0].Load, about{0.5 + 0.1*2/4, 0.05})
	within(t, "latency beside streams", r.Window.P50, around{2 * time.Millisecond, 0.1})
}

func TestTheTraceSeesEveryTick(t *testing.T) {
	t.Parallel()
	sc := brownout(t)
	seen, states := 0, map[string]bool{}
	last := time.Duration(-1)
	_, err := sim.Run(sim.Options{
		Scenario: sc, Strategy: balance(t, "Weir"), Seed: 1,
		Trace: &sim.Trace{Client: 0, Tick: func(now time.Duration, s pick.Status) {
			if last >= 0 && now-last != 100*time.Millisecond {
				t.Errorf("a tick at %v comes after one at %v", now, last)
			}
			last = now
			seen++
			states[s.State.String()] = true
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 590 || !states["calm"] || !states["evacuated"] {
		t.Errorf("%d ticks in 60 s, states %v", seen, states)
	}
}

func TestWhatCannotBePlayedIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(*scenario.Scenario){
		"no service":   func(s *scenario.Scenario) { s.Snapshot.Services = nil },
		"no length":    func(s *scenario.Scenario) { s.Length = 0 },
		"no workers":   func(s *scenario.Scenario) { s.Server.Workers = 0 },
		"no work":      func(s *scenario.Scenario) { s.Server.Service.Mean = 0 },
		"no patience":  func(s *scenario.Scenario) { s.Request.Timeout = 0 },
		"wrong shares": func(s *scenario.Scenario) { s.Clients[1].Shares = []float64{1} },
		"no port":      func(s *scenario.Scenario) { s.Snapshot.Services[0].Ports = nil },
		"nothing there": func(s *scenario.Scenario) {
			s.Snapshot.Services[0] = &topology.Service{Ports: s.Snapshot.Services[0].Ports}
		},
	} {
		sc := usual(t)
		spoil(sc)
		if _, err := sim.New(sim.Options{Scenario: sc, Strategy: balance(t, "Weir")}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := sim.New(sim.Options{}); err == nil {
		t.Error("no error without a scenario")
	}
}
