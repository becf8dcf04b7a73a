package sim_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// station is one endpoint with one Poisson stream of requests and no network, as queueing theory has it.
func station(tb testing.TB, workers int, load float64, d scenario.Distribution) *scenario.Scenario {
	tb.Helper()
	const long = time.Hour // nobody is impatient
	rate := load * float64(workers) / d.Mean.Seconds()
	return &scenario.Scenario{
		Name:     "station",
		Snapshot: snapshot(tb, "nodes a:4; service web; endpoints a:1"),
		Clients:  []scenario.Clients{{Zone: "a", Count: 1, Rate: rate}},
		Server:   scenario.Server{Workers: workers, Queue: 1 << 30, Service: d},
		Request:  scenario.Request{Timeout: time.Minute},
		Length:   sim.Warmup + time.Duration(needed(load)/rate*float64(time.Second)),
		Stress:   scenario.Window{From: long, To: long},
	}
}

// needed gives the number of requests after which the mean wait of one worker has a standard error of 0.8 %.
// Source: Whitt, Planning queueing simulations (1989), for M/M/1.
func needed(load float64) float64 {
	variance := load * (2 + 5*load - 4*load*load + load*load*load) / math.Pow(1-load, 4)
	mean := load / (1 - load)
	const wanted = 0.008
	return variance / mean / mean / wanted / wanted
}

// erlangC gives the probability that a request waits, by the sum of its definition: the dumb twin of the recursion that
// textbooks recommend.
func erlangC(workers int, load float64) float64 {
	offered := load * float64(workers)
	term, sum := 1.0, 0.0
	for k := range workers {
		if k > 0 {
			term *= offered / float64(k)
		}
		sum += term
	}
	last := term * offered / float64(workers) / (1 - load)
	return last / (sum + last)
}

// around is a duration, give or take a fraction of it.
type around struct {
	duration time.Duration
	fraction float64
}

// within compares a duration with what theory says.
func within(tb testing.TB, what string, got time.Duration, want around) {
	tb.Helper()
	if off := float64(got)/float64(want.duration) - 1; math.Abs(off) > want.fraction {
		tb.Errorf("%s is %v, theory says %v: %+.2f %%", what, got, want.duration, 100*off)
	}
}

func TestMeanWaitsAreThoseOfQueueingTheory(t *testing.T) {
	const mean = 100 * time.Microsecond
	for _, workers := range []int{1, 4} {
		for _, load := range []float64{0.3, 0.6, 0.8} {
			t.Run(fmt.Sprintf("M/M/%d at %v", workers, load), func(t *testing.T) {
				t.Parallel()
				sc := station(t, workers, load, scenario.Distribution{Kind: scenario.Exponential, Mean: mean})
				r := run(t, sc, balance(t, "Random"), 1)
				wait := time.Duration(erlangC(workers, load) * float64(mean) / float64(workers) / (1 - load))
				within(t, "the mean wait", r.Whole.Mean-mean, around{wait, 0.02})
				within(t, "the mean time in the system", r.Whole.Mean, around{wait + mean, 0.02})
			})
		}
	}
}

func TestQuantilesOfOneWorkerAreExponentialWhenFirstComeIsFirstServed(t *testing.T) {
	t.Parallel()
	const mean, load = 100 * time.Microsecond, 0.6
	sc := station(t, 1, load, scenario.Distribution{Kind: scenario.Exponential, Mean: mean})
	r := run(t, sc, balance(t, "Random"), 2)
	usual := float64(mean) / (1 - load)
	within(t, "the median", r.Whole.P50, around{time.Duration(math.Ln2 * usual), 0.02})
	within(t, "p99", r.Whole.P99, around{time.Duration(math.Log(100) * usual), 0.02})
	within(t, "p99.9", r.Whole.P999, around{time.Duration(math.Log(1000) * usual), 0.03})
}

func TestMeanWaitOfOneWorkerFollowsTheVarianceOfItsWork(t *testing.T) {
	const mean, load = 100 * time.Microsecond, 0.6
	for _, c := range []struct {
		scenario.Distribution
		square float64 // E[S²] / E[S]²
	}{
		{scenario.Distribution{Kind: scenario.Constant, Mean: mean}, 1},
		{scenario.Distribution{Kind: scenario.Lognormal, Mean: mean, CV: 0.5}, 1.25},
		{scenario.Distribution{Kind: scenario.Lognormal, Mean: mean, CV: 1.2}, 2.44},
		{scenario.Distribution{Kind: scenario.Bimodal, Mean: mean, Heavy: 0.1, Factor: 10}, 10.9 / (1.9 * 1.9)},
	} {
		t.Run(fmt.Sprintf("%s %v", c.Kind, c.CV), func(t *testing.T) {
			t.Parallel()
			r := run(t, station(t, 1, load, c.Distribution), balance(t, "Random"), 1)
			wait := time.Duration(load / (1 - load) / 2 * c.square * float64(mean)) // Pollaczek and Khinchine
			within(t, "the mean wait", r.Whole.Mean-mean, around{wait, 0.02})
		})
	}
}

func TestNumberInTheSystemIsRateTimesTime(t *testing.T) {
	t.Parallel()
	sc := station(t, 2, 0.6, scenario.Distribution{Kind: scenario.Exponential, Mean: 10 * time.Millisecond})
	sc.Length = 200 * time.Second
	s, err := sim.New(sim.Options{Scenario: sc, Strategy: balance(t, "Random"), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	const grain = time.Millisecond
	var looks, seen int
	for now := sim.Warmup; now < sc.Length; now += grain {
		s.Step(now)
		looks++
		seen += s.UnderWay()
	}
	got := float64(seen) / float64(looks)
	f := s.Result().Whole
	if want := f.Rate * f.Mean.Seconds(); math.Abs(got/want-1) > 0.01 {
		t.Errorf("%v requests are in the system on average, rate times time is %v", got, want)
	}
}

func TestLoadOfAnEndpointIsTheWorkThatArrives(t *testing.T) {
	t.Parallel()
	sc := station(t, 2, 0.6, scenario.Distribution{Kind: scenario.Constant, Mean: time.Millisecond})
	sc.Length, sc.Stress = 60*time.Second, scenario.Window{From: 10 * time.Second, To: 60 * time.Second}
	r := run(t, sc, balance(t, "Random"), 1)
	if e := r.Endpoints[0]; math.Abs(e.Load-0.6) > 0.01 || e.Peak < e.Load || e.Peak != r.PeakLoad || len(e.Line) != 60 {
		t.Errorf("the endpoint at a load of 0.6 reports %v, at most %v (peak of all %v), in %d seconds",
			e.Load, e.Peak, r.PeakLoad, len(e.Line))
	}
}
