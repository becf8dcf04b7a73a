package demo

import (
	"math"
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// FitOptions say what one machine can play. The zero value is for two processors.
type FitOptions struct {
	Rate   float64       // requests per second of all clients together, at their peak; 0: 250
	Calm   time.Duration // counted before the stress, at most; 0: 10 s
	Stress time.Duration // at most; 0: 30 s
	After  time.Duration // at most; 0: 10 s
}

// defaultFitRate is an eighth of what two processors can do: a request and its two ways through sockets take about 0.6 ms
// of processor time, and who waits for a processor measures that wait. Requests that are rarer take longer, alike, so that
// stalls of a machine, tens of milliseconds, are short beside them.
const defaultFitRate = 250

func (o FitOptions) withDefaults() FitOptions {
	if o.Rate == 0 {
		o.Rate = defaultFitRate
	}
	fill := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
		}
	}
	fill(&o.Calm, 10*time.Second)
	fill(&o.Stress, 30*time.Second)
	fill(&o.After, 10*time.Second)
	return o
}

// Fit derives from a scenario one that real sockets of one machine can play. It has the same zones, endpoints, clients,
// loads and faults; requests are fewer and each is as much longer: rates are divided by a factor, and service times,
// delays and the clients' patience are multiplied by it. The calm, the stress and the time after it are cut short where no
// step stands in what is cut off; daily courses stay whole.
//
// The derived scenario is another one than the first: what balancers know per second is less. Compare only what was made of
// the same.
func Fit(sc *scenario.Scenario, o FitOptions) *scenario.Scenario {
	o = o.withDefaults()
	fitted := *sc
	if factor := sim.Peak(sc) / o.Rate; factor > 1 {
		thin(&fitted, math.Ceil(factor*10)/10) // a figure that can be told
	}
	if sc.Day == nil {
		cutShort(&fitted, o)
	}
	return &fitted
}

// thin makes requests rarer and longer by a factor.
func thin(sc *scenario.Scenario, factor float64) {
	longer := func(d *time.Duration) { *d = time.Duration(float64(*d) * factor) }
	sc.Clients = slices.Clone(sc.Clients)
	for i := range sc.Clients {
		sc.Clients[i].Rate /= factor
	}
	longer(&sc.Server.Service.Mean)
	longer(&sc.Request.Timeout)
	longer(&sc.Request.Good)
	longer(&sc.Request.Attempt)
	longer(&sc.Request.Backoff)
	sc.Steps = slices.Clone(sc.Steps)
	for i := range sc.Steps {
		if sc.Steps[i].Verb == scenario.Delay {
			longer(&sc.Steps[i].Time)
		}
	}
}

// cutShort takes off time that nothing happens in: from the calm's beginning, and from the ends of the stress and of what
// follows.
func cutShort(sc *scenario.Scenario, o FitOptions) {
	begin := min(sc.Stress.From, sc.Warmup()+o.Calm)
	end := begin + min(sc.Stress.To-sc.Stress.From, o.Stress)
	length := end + min(sc.Length-sc.Stress.To, o.After)
	moved := func(at time.Duration) (time.Duration, bool) {
		switch {
		case at >= sc.Stress.To:
			return at - sc.Stress.To + end, at-sc.Stress.To+end < length
		case at >= sc.Stress.From:
			return at - sc.Stress.From + begin, at-sc.Stress.From+begin < end
		default:
			return max(at-sc.Stress.From+begin, 0), at == 0 || at >= sc.Stress.From-begin
		}
	}
	steps := slices.Clone(sc.Steps)
	for i := range steps {
		at, fits := moved(steps[i].At)
		if !fits {
			return // what happens then is part of the story
		}
		steps[i].At = at
	}
	sc.Steps, sc.Stress, sc.Length = steps, scenario.Window{From: begin, To: end}, length
}
