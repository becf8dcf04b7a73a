package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// under is the usual layout with one thing that happens in zone a while the stress is on.
func under(tb testing.TB, st scenario.Step) *scenario.Scenario {
	tb.Helper()
	sc := usual(tb)
	st.At = sc.Stress.From
	st.Where.Zone = "a"
	sc.Steps = []scenario.Step{st, {At: sc.Stress.To, Verb: scenario.Heal, Where: scenario.Where{Zone: "a"}}}
	return sc
}

// about is a number, give or take another.
type about struct{ number, by float64 }

// near compares a fraction with what it should be.
func near(tb testing.TB, what string, got float64, want about) {
	tb.Helper()
	if math.Abs(got-want.number) > want.by {
		tb.Errorf("%s is %v, want %v ± %v", what, got, want.number, want.by)
	}
}

func TestEachRequestEndsOnceWhateverHappens(t *testing.T) {
	for name, step := range map[string]scenario.Step{
		"slow":   {Verb: scenario.Slow, Factor: 20},
		"hang":   {Verb: scenario.Hang, Where: scenario.Where{Part: 0.5}},
		"refuse": {Verb: scenario.Refuse},
		"fail":   {Verb: scenario.Fail, Ratio: 0.3},
		"delay":  {Verb: scenario.Delay, Time: 1500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := under(t, step)
			sc.Length = 50 * time.Second
			sc.Request = scenario.Request{
				Timeout: time.Second, Attempt: 400 * time.Millisecond, Retries: 2, Backoff: 10 * time.Millisecond,
				Polls: 0.01, Streams: 0.01, Hold: 2 * time.Second, Load: 0.02, Accepted: true,
			}
			for _, strategy := range overflow.Names() {
				balancesOut(t, sc, strategy)
			}
		})
	}
}

// balancesOut plays a scenario and looks for requests that were lost or counted twice.
func balancesOut(t *testing.T, sc *scenario.Scenario, strategy string) {
	t.Helper()
	s, err := sim.New(sim.Options{Scenario: sc, Strategy: balance(t, strategy), Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	s.Step(sc.Length)
	r := s.Result()
	var counted int64
	for _, p := range r.Line {
		for _, z := range p.Zones {
			counted += z.Requests
			if z.Good+z.Failed > z.Requests || z.Crossed > z.Answered || z.Answered > z.Requests {
				t.Fatalf("%s: the numbers of a second contradict each other: %+v", strategy, z)
			}
		}
	}
	if parts := r.Calm.Requests + r.Window.Requests + r.After.Requests; parts != r.Whole.Requests || counted != r.Requests {
		t.Errorf("%s: %d requests in periods, %d in all; %d in seconds, %d in all",
			strategy, parts, r.Whole.Requests, counted, r.Requests)
	}
	if r.Affected.Requests+r.Others.Requests != r.Window.Requests {
		t.Errorf("%s: %d affected and %d others are not %d", strategy, r.Affected.Requests, r.Others.Requests, r.Window.Requests)
	}
	s.Step(s.Now() + time.Minute) // streams end
	if s.UnderWay() != 0 || s.Exchanges() != 0 {
		t.Errorf("%s: %d requests and %d exchanges are left", strategy, s.UnderWay(), s.Exchanges())
	}
	for i := range s.Clients() {
		for _, e := range s.Pool(i).Status().Endpoints {
			if e.InFlight != 0 {
				t.Errorf("%s: client %d has %d requests at %s that nobody knows of", strategy, i, e.InFlight, e.Addr)
			}
		}
	}
}

func TestAnEndpointThatHangsCostsTheTimeout(t *testing.T) {
	t.Parallel()
	r := run(t, under(t, scenario.Step{Verb: scenario.Hang}), balance(t, "Static"), 1)
	near(t, "success", r.Affected.Success, about{0, 0.001})
	if r.Affected.P50 != time.Second || r.Affected.Mean != time.Second {
		t.Errorf("latencies of failures are %v and %v, want the timeout", r.Affected.P50, r.Affected.Mean)
	}
	near(t, "success of others", r.Others.Success, about{1, 0})
}

func TestErrorsComeAtTheirRatio(t *testing.T) {
	t.Parallel()
	sc := under(t, scenario.Step{Verb: scenario.Fail, Ratio: 0.3})
	r := run(t, sc, balance(t, "Static"), 1)
	near(t, "success", r.Affected.Success, about{0.7, 0.02})
	near(t, "attempts", r.Affected.Attempts, about{1, 0})

	sc.Request.Retries = 1
	r = run(t, sc, balance(t, "Static"), 1)
	near(t, "success with retries of what was not accepted", r.Affected.Success, about{0.7, 0.02})

	sc.Request.Accepted = true
	r = run(t, sc, balance(t, "Static"), 1)
	near(t, "success with retries", r.Affected.Success, about{0.91, 0.02})
	near(t, "attempts with retries", r.Affected.Attempts, about{1.3, 0.02})
}

func TestBudgetBoundsRetries(t *testing.T) {
	t.Parallel()
	sc := under(t, scenario.Step{Verb: scenario.Refuse})
	sc.Request.Retries = 3
	without := run(t, sc, balance(t, "Static"), 1)
	near(t, "attempts", without.Affected.Attempts, about{4, 0.01})
	sc.Request.Budget = 0.2
	with := run(t, sc, balance(t, "Static"), 1)
	// The stress lasts for 20 s, and ten seconds' budget had been saved up.
	near(t, "attempts with a budget", with.Affected.Attempts, about{1.3, 0.03})
	near(t, "success", with.Affected.Success, about{0, 0.001})
	near(t, "share in the zone, of nothing", with.Affected.InZone, about{1, 0})
}

func TestARetryAvoidsWhoRefused(t *testing.T) {
	t.Parallel()
	sc := under(t, scenario.Step{Verb: scenario.Refuse, Where: scenario.Where{First: 1, Last: 1}})
	sc.Request.Retries = 1
	r := run(t, sc, balance(t, "Static"), 1)
	near(t, "success", r.Affected.Success, about{1, 0.001})
	if r.Affected.Attempts <= 1 {
		t.Error("nobody was refused")
	}
}

func TestABalancerGoesOnAfterARefusedConnection(t *testing.T) {
	t.Parallel()
	const work, rtt = 5 * time.Millisecond, 10 * time.Millisecond
	sc := under(t, scenario.Step{Verb: scenario.Refuse, Where: scenario.Where{First: 1, Last: 1}})
	sc.Server.Service = scenario.Distribution{Kind: scenario.Constant, Mean: work}
	sc.Server.Workers = 1000
	sc.Network = scenario.Network{SameZone: rtt}
	c := balance(t, "Static")
	c.Pool.Algorithm, c.Pool.Health.Failures, c.Reconnects = pick.Random, -1, 1
	r := run(t, sc, c, 1)
	near(t, "success", r.Affected.Success, about{1, 0})
	near(t, "attempts", r.Affected.Attempts, about{1 + 1.0/6, 0.01})
	within(t, "mean latency with a round trip more for one in six", r.Affected.Mean, around{work + rtt + rtt/6, 0.01})

	sc.Steps[0].Verb = scenario.Hang
	r = run(t, sc, c, 1)
	near(t, "success when nobody answers", r.Affected.Success, about{5.0 / 6, 0.01})
	near(t, "attempts when nobody answers", r.Affected.Attempts, about{1, 0})
}

func TestReconnectsAreNoRetries(t *testing.T) {
	t.Parallel()
	sc := under(t, scenario.Step{Verb: scenario.Refuse})
	c := balance(t, "Static")
	c.Reconnects = 2
	near(t, "attempts", run(t, sc, c, 1).Affected.Attempts, about{3, 0.001})
	sc.Request.Retries = 1
	near(t, "attempts with a retry", run(t, sc, c, 1).Affected.Attempts, about{4, 0.001})
	sc.Request.Budget = 0.0001
	near(t, "attempts without a budget", run(t, sc, c, 1).Affected.Attempts, about{3, 0.01})
}

func TestAFullQueueIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	sc := under(t, scenario.Step{Verb: scenario.Slow, Factor: 10})
	sc.Server.Queue = 0
	r := run(t, sc, balance(t, "Static"), 1)
	if r.Affected.Success > 0.5 || r.Affected.P50 != time.Second {
		t.Errorf("success is %v, p50 %v", r.Affected.Success, r.Affected.P50)
	}
	if r.PeakLoad < 4 {
		t.Errorf("the peak load is %v: what is rejected arrived, too", r.PeakLoad)
	}
}

func TestAttemptsTimeOutBeforeRequests(t *testing.T) {
	t.Parallel()
	sc := under(t, scenario.Step{Verb: scenario.Hang, Where: scenario.Where{First: 1, Last: 1}})
	sc.Request.Attempt, sc.Request.Retries = 200*time.Millisecond, 2
	c := balance(t, "Static")
	c.Pool.Algorithm, c.Pool.Health.Failures = pick.Random, -1
	r := run(t, sc, c, 1)
	if f := r.Affected; f.Success < 0.97 || f.Attempts < 1.1 || f.P99 < 200*time.Millisecond {
		t.Errorf("success is %v with %v attempts, p99 %v", f.Success, f.Attempts, f.P99)
	}
}

func TestStrategiesGetTheSameRequests(t *testing.T) {
	t.Parallel()
	sc := brownout(t)
	a, b := run(t, sc, balance(t, "Static"), 7), run(t, sc, balance(t, "Random"), 7)
	for i := range a.Line {
		for z := range a.Line[i].Zones {
			if x, y := a.Line[i].Zones[z].Requests, b.Line[i].Zones[z].Requests; x != y {
				t.Fatalf("second %d: %d and %d requests", i, x, y)
			}
		}
	}
	// With a worker for everybody and no network latency is work: the same to the last bit.
	sc = usual(t)
	sc.Network = scenario.Network{}
	sc.Server.Workers = 1000
	a, b = run(t, sc, balance(t, "Static"), 7), run(t, sc, balance(t, "Random"), 7)
	if a.Whole.Mean != b.Whole.Mean || a.Whole.P99 != b.Whole.P99 || a.Digest == b.Digest {
		t.Errorf("work differs: %v and %v", a.Whole, b.Whole)
	}
}
