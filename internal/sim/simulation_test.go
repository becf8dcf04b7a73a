package sim_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

// snapshot reads a snapshot.
func snapshot(tb testing.TB, text string) topology.Snapshot {
	tb.Helper()
	s, err := topology.ParseSnapshot(text)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// usual is the reference's layout: three zones of six endpoints at 55 % of what they can do.
func usual(tb testing.TB) *scenario.Scenario {
	tb.Helper()
	sc := &scenario.Scenario{
		Name:     "usual",
		Snapshot: snapshot(tb, "nodes a:4x2 b:4x2 c:4x2; service web; endpoints a:6 b:6 c:6"),
		Server: scenario.Server{
			Workers: 4, Queue: 250,
			Service: scenario.Distribution{Kind: scenario.Lognormal, Mean: 20 * time.Millisecond, CV: 1},
		},
		Network:   scenario.Network{SameZone: 300 * time.Microsecond, CrossZone: 1200 * time.Microsecond, CrossCluster: 10 * time.Millisecond},
		Request:   scenario.Request{Timeout: time.Second, Bytes: 10_000},
		Price:     scenario.Price{PerGB: 0.02},
		Discovery: scenario.Discovery{Delay: time.Second, Jitter: 0.5, Lost: 40 * time.Second},
		Length:    60 * time.Second,
		Stress:    scenario.Window{From: 25 * time.Second, To: 45 * time.Second},
		Affected:  []topology.Zone{"a"},
	}
	for _, zone := range []topology.Zone{"a", "b", "c"} {
		sc.Clients = append(sc.Clients, scenario.Clients{
			Zone: zone, Count: 8, Rate: 660, Shares: []float64{.30, .20, .15, .10, .10, .07, .05, .03},
		})
	}
	return sc
}

// balance gives the strategy of that name; the overflow strategy is of the same name.
func balance(tb testing.TB, name string) *strategy.Strategy {
	tb.Helper()
	if _, err := overflow.New(name, overflow.Config{}); err != nil {
		tb.Fatal(err)
	}
	mode := topology.ModePreferSameZone
	if name == "Random" {
		mode = topology.ModeDisabled
	}
	return &strategy.Strategy{
		Name: name, Mode: mode, KeepsHome: overflow.KeepsHome(name), Drains: name == "Weir",
		New: func(strategy.Client) overflow.Strategy {
			s, err := overflow.New(name, overflow.Config{})
			if err != nil {
				panic(err)
			}
			return s
		},
	}
}

func run(tb testing.TB, sc *scenario.Scenario, c *strategy.Strategy, seed uint64) *sim.Result {
	tb.Helper()
	r, err := sim.Run(sim.Options{Scenario: sc, Strategy: c, Seed: seed})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func BenchmarkRun(b *testing.B) {
	for _, name := range overflow.Names() {
		b.Run(name, func(b *testing.B) {
			sc, c := usual(b), balance(b, name)
			var requests, events int64
			b.ReportAllocs()
			for b.Loop() {
				r := run(b, sc, c, 1)
				requests, events = requests+r.Requests, events+r.Events
			}
			b.ReportMetric(float64(requests)/b.Elapsed().Seconds(), "requests/s")
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// Ticks are most of the work where many clients send little.
func BenchmarkRunOfManyClients(b *testing.B) {
	sc, c := usual(b), balance(b, "Weir")
	sc.Length = 12 * time.Second
	for i := range sc.Clients {
		sc.Clients[i].Count, sc.Clients[i].Shares = 200, nil
	}
	b.ReportAllocs()
	var ticks int64
	for b.Loop() {
		run(b, sc, c, 1)
		ticks += int64(sc.Length/(100*time.Millisecond)) * 600
	}
	b.ReportMetric(float64(ticks)/b.Elapsed().Seconds(), "ticks/s")
}

func TestEqualSeedsGiveEqualResults(t *testing.T) {
	t.Parallel()
	for _, name := range overflow.Names() {
		sc := brownout(t)
		a, b := run(t, sc, balance(t, name), 1), run(t, sc, balance(t, name), 1)
		if diff := cmp.Diff(a, b, cmp.Comparer(equalAddr)); diff != "" {
			t.Errorf("%s: two runs of one seed differ (-first +second):\n%s", name, diff)
		}
		if c := run(t, sc, balance(t, name), 2); c.Digest == a.Digest || c.Requests == a.Requests {
			t.Errorf("%s: seeds 1 and 2 give the same run", name)
		}
	}
}

func equalAddr(a, b netip.Addr) bool { return a == b }

// brownout is the usual layout with zone a ten times slower while the stress is on.
func brownout(tb testing.TB) *scenario.Scenario {
	tb.Helper()
	sc := usual(tb)
	sc.Steps = []scenario.Step{
		{At: sc.Stress.From, Verb: scenario.Slow, Where: scenario.Where{Zone: "a"}, Factor: 10},
		{At: sc.Stress.To, Verb: scenario.Heal, Where: scenario.Where{Zone: "a"}},
	}
	return sc
}
