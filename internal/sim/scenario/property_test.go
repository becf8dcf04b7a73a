package scenario_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

func TestParseAndPrintAreInverse(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		want := randomScenario(random)
		if errs := want.Validate(); errs != nil {
			t.Fatalf("the generator makes nonsense: %v\n%s", errs, want)
		}
		text := want.String()
		got, err := scenario.Parse(want.Name, []byte(text))
		if err != nil {
			t.Fatalf("own text is refused: %v\n%s", err, text)
		}
		if diff := cmp.Diff(want, got, same()); diff != "" {
			t.Fatalf("the scenario changed on its way (-want +got):\n%s\n%s", diff, text)
		}
		if again := got.String(); again != text {
			t.Fatalf("the text changed on its way (-want +got):\n%s", cmp.Diff(text, again))
		}
	}
}

// generator makes random values that are valid; half of them are the defaults, so that both ways of printing are met.
type generator struct{ *rand.Rand }

func (g generator) often() bool { return g.IntN(2) == 0 }

func one[T any](g generator, values ...T) T { return values[g.IntN(len(values))] }

// time gives a duration from least to most in a random unit.
func (g generator) time(least, most time.Duration) time.Duration {
	unit := one(g, time.Nanosecond, time.Microsecond, time.Millisecond, time.Second, time.Hour)
	d := least + time.Duration(g.Int64N(int64(most-least)+1))
	return min(most, max(least, d/unit*unit))
}

func randomScenario(random *rand.Rand) *scenario.Scenario {
	g := generator{random}
	s, err := scenario.Parse("random", []byte(head))
	if err != nil {
		panic(err)
	}
	s.Name = one(g, "spike", "a.b", "x y")
	s.Title = one(g, "A title", "x", "Half of it -- fails --")
	s.About = one(g, "", "One line.\n", "Two\nlines, and\n\n  another paragraph.\n")
	s.Snapshot = g.snapshot()
	s.Clients = nil
	for _, zone := range []topology.Zone{"a", "b", "c"} {
		if zone == "b" || g.often() {
			s.Clients = append(s.Clients, g.clients(zone))
		}
		if zone != "b" && len(s.Clients) > 0 && s.Clients[len(s.Clients)-1].Zone == zone && g.often() {
			s.Affected = append(s.Affected, zone)
		}
	}
	if g.often() {
		s.Length = g.time(15*time.Second, 24*time.Hour)
	}
	s.Stress = scenario.Window{From: max(10*time.Second, s.Length/10*3), To: s.Length / 10 * 7}
	if g.often() {
		s.Stress.From = g.time(10*time.Second, s.Length-1)
		s.Stress.To = s.Stress.From + 1 + time.Duration(g.Int64N(int64(s.Length-s.Stress.From)))
	}
	s.NoWarmup = g.often()
	g.model(s)
	g.parts(s)
	at := time.Duration(0)
	for range g.IntN(8) {
		at += time.Duration(g.Int64N(int64(s.Length-at)/2 + 1))
		s.Steps = append(s.Steps, g.step(at))
	}
	s.Explain = one(g, "", "SERVICE  x\n\n  indented\n")
	s.Results = one(g, "", "x\n")
	return s
}

func (g generator) snapshot() topology.Snapshot {
	text := "nodes eu/a:4x3 eu/b:4x3 eu/c:4x3; service shop/web; endpoints a:6 b:6 c:6 a:6{cluster=west} d:7{cluster=east}"
	if g.often() {
		text += "; costs a>b=3"
	}
	s, err := topology.ParseSnapshot(text)
	if err != nil {
		panic(err)
	}
	return s
}

func (g generator) clients(zone topology.Zone) scenario.Clients {
	c := scenario.Clients{Zone: zone, Count: 1 + g.IntN(3000), Rate: one(g, 660, g.Float64()*1000+1e-3)}
	if g.often() {
		c.Count = 1 + g.IntN(5)
		left := 1.0
		for range c.Count - 1 {
			share := left * (0.1 + 0.8*g.Float64())
			c.Shares = append(c.Shares, share)
			left -= share
		}
		c.Shares = append(c.Shares, left)
	}
	return c
}

// model sets what every scenario has.
func (g generator) model(s *scenario.Scenario) {
	if g.often() {
		s.Server = scenario.Server{
			Workers: 1 + g.IntN(1000), Queue: g.IntN(1000), Service: g.distribution(), Start: g.time(0, time.Hour),
			Cold: 1 + g.Float64(), Warm: g.time(1, time.Hour), Drain: g.time(0, time.Hour),
		}
		for range g.IntN(3) {
			s.Server.Speeds = append(s.Server.Speeds, scenario.Speed{Where: g.where(), Factor: g.Float64() + 0.001})
		}
	}
	if g.often() {
		s.Network = scenario.Network{
			SameZone: g.time(0, time.Second), CrossZone: g.time(0, time.Second), CrossCluster: g.time(0, time.Second),
			Jitter: g.Float64(),
		}
	}
	if g.often() {
		timeout := g.time(time.Second, time.Hour)
		s.Request = scenario.Request{
			Timeout: timeout, Good: g.time(0, timeout), Attempt: g.time(0, timeout), Retries: g.IntN(100), Budget: g.Float64(),
			Backoff: g.time(0, time.Hour), Bytes: one(g, 0, 1<<20, 1e9, 1e12, g.Float64()*1e6, 1536), Polls: g.Float64() / 2,
			Streams: g.Float64() / 2, Hold: g.time(1, time.Hour), Load: g.Float64(), Accepted: g.often(),
		}
	}
	if g.often() {
		s.Price = scenario.Price{PerGB: g.Float64()}
		s.Discovery = scenario.Discovery{Delay: g.time(0, time.Hour), Jitter: g.Float64(), Lost: g.time(0, time.Hour)}
	}
}

// parts sets what scenarios may have.
func (g generator) parts(s *scenario.Scenario) {
	if g.often() {
		s.Day = &scenario.Day{Period: one(g, time.Minute, g.time(time.Second, time.Hour)), Low: one(g, 0.3, g.Float64()*0.3), High: 1}
		if g.often() {
			s.Day.Lag = map[topology.Zone]time.Duration{"b": g.time(0, time.Hour)}
		}
	}
	if g.often() {
		s.Autoscale = &scenario.Autoscale{
			Min: 1 + g.IntN(9), Max: 10 + g.IntN(90), Target: one(g, 0.6, 0.5+g.Float64()/2), Every: g.time(time.Second, time.Hour),
			Tolerance: g.Float64(), Window: g.time(time.Second, time.Hour), Stabilization: g.time(0, time.Hour),
		}
	}
	if g.often() {
		s.NodePools = &scenario.NodePools{
			PodsPerNode: one(g, 4, 2+g.IntN(50)), Max: 10 + g.IntN(2), Boot: g.time(0, time.Hour), Idle: g.time(0, time.Hour),
		}
	}
}

func (g generator) distribution() scenario.Distribution {
	d := scenario.Distribution{
		Kind: one(g, scenario.Constant, scenario.Exponential, scenario.Lognormal, scenario.Bimodal),
		Mean: g.time(1, 10*time.Minute),
	}
	switch d.Kind {
	case scenario.Lognormal:
		d.CV = one(g, 1, g.Float64()+0.01)
	case scenario.Bimodal:
		d.Heavy, d.Factor = one(g, 0.1, g.Float64()*0.9+0.01), one(g, 10, 2+g.Float64())
	default:
	}
	return d
}

func (g generator) where() scenario.Where {
	w := g.zones()
	switch g.IntN(4) {
	case 0:
		w.First = 1 + g.IntN(6)
		w.Last = w.First + g.IntN(7-w.First)
	case 1:
		w.Part = one(g, 0.5, 0.07, 0.125, 1, g.Float64()*0.9+0.001)
	}
	return w
}

// zones gives a place that is whole.
func (g generator) zones() scenario.Where {
	return one(g, scenario.Where{}, scenario.Where{Zone: "a"}, scenario.Where{Zone: "b"},
		scenario.Where{Cluster: "west"}, scenario.Where{Zone: "a", Cluster: "west"}, scenario.Where{Zone: "d", Cluster: "east"})
}

func (g generator) step(at time.Duration) scenario.Step {
	st := scenario.Step{At: at, Verb: one(g, scenario.Rate, scenario.Slow, scenario.Delay, scenario.Fail, scenario.Hang, scenario.Refuse,
		scenario.Heal, scenario.Lose, scenario.Return, scenario.Rollout, scenario.Scale, scenario.Drain)}
	st.Where = g.where()
	switch st.Verb {
	case scenario.Rate:
		st.Where = one(g, scenario.Where{}, scenario.Where{Zone: "b"})
		st.Factor, st.Over = one(g, 3, g.Float64()), one(g, 0, g.time(0, time.Hour))
	case scenario.Slow:
		st.Factor = one(g, 10, g.Float64())
	case scenario.Delay:
		st.Time = g.time(0, time.Hour)
	case scenario.Fail:
		st.Ratio = g.Float64()
	case scenario.Lose, scenario.Return:
		st.Where = g.zones()
	case scenario.Rollout:
		st.Where, st.Count = g.zones(), 1+g.IntN(3)
	case scenario.Scale:
		st.Where, st.Count = one(g, scenario.Where{Zone: "c"}, scenario.Where{Zone: "a", Cluster: "west"}), g.IntN(9)
	case scenario.Drain:
		st.Where, st.Time = scenario.Where{Zone: "c"}, g.time(0, time.Hour)
	default:
	}
	return st
}

func TestPlacesMeanTheirEndpoints(t *testing.T) {
	type at struct {
		zone    topology.Zone
		cluster string
	}
	layout := []struct {
		at
		count int
	}{{at{"a", ""}, 6}, {at{"b", ""}, 3}, {at{"a", "west"}, 2}}
	for _, c := range []struct {
		place scenario.Where
		want  string
	}{
		{scenario.Where{}, "a123456 b123 a@west12"},
		{scenario.Where{Zone: "a"}, "a123456 b a@west"},
		{scenario.Where{Cluster: "west"}, "a b a@west12"},
		{scenario.Where{Zone: "a", Cluster: "west"}, "a b a@west12"},
		{scenario.Where{Zone: "z"}, "a b a@west"},
		{scenario.Where{Zone: "a", First: 2, Last: 4}, "a234 b a@west"},
		{scenario.Where{First: 1, Last: 1}, "a1 b1 a@west1"},
		{scenario.Where{Zone: "a", Part: 0.5}, "a123 b a@west"},
		{scenario.Where{Part: 0.5}, "a123 b12 a@west1"},
		{scenario.Where{Zone: "a", Part: 0.01}, "a1 b a@west"},
		{scenario.Where{Part: 1}, "a123456 b123 a@west12"},
	} {
		got := ""
		for _, l := range layout {
			got += " " + string(l.zone)
			if l.cluster != "" {
				got += "@" + l.cluster
			}
			for place := 1; place <= l.count; place++ {
				if c.place.Has(l.zone, l.cluster, place, l.count) {
					got += fmt.Sprint(place)
				}
			}
		}
		if got != " "+c.want {
			t.Errorf("%s means%s, want %s", c.place, got, c.want)
		}
	}
}

func TestAPartIsRoundedUpOnce(t *testing.T) {
	for percent := 1; percent <= 100; percent++ {
		w := scenario.Where{Part: float64(percent) / 100}
		for count := 1; count <= 60; count++ {
			meant := 0
			for place := 1; place <= count; place++ {
				if w.Has("a", "", place, count) {
					meant++
				}
			}
			if want := (percent*count + 99) / 100; meant != want {
				t.Fatalf("%d %% of %d are %d, want %d", percent, count, meant, want)
			}
		}
	}
}

func TestClientsOfAPlace(t *testing.T) {
	if !(scenario.Where{}).HasClients("a") || !(scenario.Where{Zone: "a"}).HasClients("a") || (scenario.Where{Zone: "b"}).HasClients("a") {
		t.Error("clients are those of the zone, or all")
	}
}

func TestTheLastSpeedCounts(t *testing.T) {
	s := parse(t, head+"speed *:0.5 a/1:2")
	for place, want := range map[int]float64{1: 2, 2: 0.5} {
		if got := s.Server.Speed("a", "", place, 6); math.Abs(got-want) > 0 {
			t.Errorf("endpoint %d has speed %v, want %v", place, got, want)
		}
	}
	if got := parse(t, head).Server.Speed("a", "", 1, 6); math.Abs(got-1) > 0 {
		t.Errorf("an endpoint that nobody names has speed %v", got)
	}
}
