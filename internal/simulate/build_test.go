package simulate_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/simulate"
)

// built makes a scenario of the first service of a snapshot in text form.
func built(t *testing.T, snapshot string, g simulate.Given) (*scenario.Scenario, error) {
	t.Helper()
	s, err := topology.ParseSnapshot(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return simulate.Build(&s, s.Services[0], g)
}

const shop = "nodes a:4 b:8 c:4; service shop/web mode=Auto; endpoints a:3 b:1! b:2 c:1"

func rates(t *testing.T, text string) simulate.Rates {
	t.Helper()
	r, err := simulate.ParseRates(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// clients writes who sends how much.
func clients(sc *scenario.Scenario) map[topology.Zone]float64 {
	found := make(map[topology.Zone]float64)
	for _, c := range sc.Clients {
		found[c.Zone] = math.Round(c.Rate)
	}
	return found
}

func TestTheRateIsDividedAsThePlanExpectsIt(t *testing.T) {
	for name, c := range map[string]struct {
		snapshot, rate string
		want           map[topology.Zone]float64
	}{
		"by CPU":        {shop, "2000", map[topology.Zone]float64{"a": 500, "b": 1000, "c": 500}},
		"as it is told": {strings.Replace(shop, "mode=Auto", "demand=a:0.7,c:0.3", 1), "1000", map[topology.Zone]float64{"a": 700, "c": 300}},
		"by zone":       {shop, "c:400,a:1200", map[topology.Zone]float64{"a": 1200, "c": 400}},
		"without nodes": {"service web; endpoints a:3 b:1", "400", map[topology.Zone]float64{"a": 300, "b": 100}},
	} {
		sc, err := built(t, c.snapshot, simulate.Given{Rates: rates(t, c.rate)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, clients(sc)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOnlyReadyEndpointsOfOneFamilyAreSimulated(t *testing.T) {
	sc, err := built(t, "nodes a:4 b:4; service web; endpoints a:2 b:1! v6=b:3", simulate.Given{Rates: rates(t, "100")})
	if err != nil {
		t.Fatal(err)
	}
	if got := topology.FormatEndpoints(sc.Snapshot.Services[0].Endpoints); got != "a:2" {
		t.Errorf("endpoints %s, want a:2", got)
	}
	if sc.Stress.To > sc.Length || sc.Stress.From <= 10*time.Second || len(sc.Steps) != 0 {
		t.Errorf("window %v of %v with %d steps", sc.Stress, sc.Length, len(sc.Steps))
	}
}

func TestTwoOfServiceTimeWorkersAndUtilisationMakeTheThird(t *testing.T) {
	const snapshot = "nodes a:4; service web; endpoints a:4" // 100 requests/s each
	for name, c := range map[string]struct {
		given   simulate.Given
		workers int
		mean    time.Duration
		busy    float64
	}{
		"nothing":                       {simulate.Given{}, 3, 20 * time.Millisecond, 2.0 / 3},
		"utilisation":                   {simulate.Given{Utilisation: 0.5}, 4, 20 * time.Millisecond, 0.5},
		"service time":                  {simulate.Given{ServiceTime: 60 * time.Millisecond}, 10, 60 * time.Millisecond, 0.6},
		"workers":                       {simulate.Given{Workers: 8}, 8, 20 * time.Millisecond, 0.25},
		"workers and utilisation":       {simulate.Given{Workers: 8, Utilisation: 0.8}, 8, 64 * time.Millisecond, 0.8},
		"workers and service time":      {simulate.Given{Workers: 1, ServiceTime: 5 * time.Millisecond}, 1, 5 * time.Millisecond, 0.5},
		"service time and utilisation":  {simulate.Given{ServiceTime: 90 * time.Millisecond, Utilisation: 0.9}, 10, 90 * time.Millisecond, 0.9},
		"more capacity than one can do": {simulate.Given{ServiceTime: time.Millisecond, Utilisation: 0.9}, 1, time.Millisecond, 0.1},
	} {
		c.given.Rates = rates(t, "400")
		sc, err := built(t, snapshot, c.given)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if sc.Server.Workers != c.workers || sc.Server.Service.Mean != c.mean || math.Abs(simulate.Utilisation(sc)-c.busy) > 1e-3 {
			t.Errorf("%s: %d workers of %v, %.3f busy; want %d of %v, %.3f",
				name, sc.Server.Workers, sc.Server.Service.Mean, simulate.Utilisation(sc), c.workers, c.mean, c.busy)
		}
	}
}

func TestAServiceThatCannotBeSimulatedIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		snapshot string
		given    simulate.Given
		want     string
	}{
		"no endpoint":       {"nodes a:4; service web; endpoints a:1!", simulate.Given{Rates: simulate.Rates{Total: 1}}, "no ready IPv4 endpoint"},
		"none at all":       {"nodes a:4; service web", simulate.Given{Rates: simulate.Rates{Total: 1}}, "service default/web has no endpoints"},
		"no zone":           {"nodes a:4; service web; endpoints -:1", simulate.Given{Rates: simulate.Rates{Total: 1}}, "has no zone"},
		"no traffic":        {shop, simulate.Given{}, "there is no traffic"},
		"an unknown zone":   {shop, simulate.Given{Rates: simulate.Rates{Zones: []simulate.ZoneRate{{Zone: "x", Rate: 1}}}}, "no zone x: did you mean a, b, c?"},
		"all three":         {shop, simulate.Given{Rates: simulate.Rates{Total: 1}, Workers: 1, ServiceTime: 1, Utilisation: 1}, "two of them"},
		"too much":          {shop, simulate.Given{Rates: simulate.Rates{Total: 1}, Utilisation: 9}, "utilisation 9: want"},
		"too slow":          {shop, simulate.Given{Rates: simulate.Rates{Total: 1}, ServiceTime: time.Hour}, "requests of 1h0m0s: want"},
		"too many workers":  {shop, simulate.Given{Rates: simulate.Rates{Total: 1}, Workers: 1e6}, "1000000 workers"},
		"busy by no number": {shop, simulate.Given{Rates: simulate.Rates{Total: 1}, Utilisation: math.NaN()}, "utilisation NaN: want"},
		"too fast":          {shop, simulate.Given{Rates: simulate.Rates{Total: 1}, ServiceTime: 1}, "requests of 1ns: want at most 100000 and 1µs to 1m0s"},
		"nearly idle":       {shop, simulate.Given{Rates: simulate.Rates{Total: 1}, Utilisation: 1e-300}, "2147483647 workers"},
		"longer than time":  {shop, simulate.Given{Rates: simulate.Rates{Total: 1e-300}, Workers: 1, Utilisation: 0.5}, "1 worker of an endpoint with"},
		"slow from so busy": {shop, simulate.Given{Rates: simulate.Rates{Total: 0.001}, Workers: 100, Utilisation: 1}, "want at most"},
	} {
		if _, err := built(t, c.snapshot, c.given); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
}

func TestRatesThatMakeNoSenseAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":            "want requests per second",
		"-1":          "above 0",
		"many":        `rate "many"`,
		"NaN":         "above 0",
		"1e9":         "at most 1000000",
		"a:1,a:2":     "zone a has two rates",
		"a:x":         `zone a: rate "x"`,
		"a:1,:2":      `rate ":2"`,
		"a:1,b":       "zone b: rate",
		"a:9e5,b:9e5": "in all: want at most",
	} {
		if _, err := simulate.ParseRates(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rate %q: %v, want an error with %q", text, err, want)
		}
	}
}
