package demo

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// What one machine can play.
const (
	// defaultFitRate is requests per second of all clients together, at their peak: an eighth of what two processors can do. A
	// request and its two passes through sockets take about 0.6 ms of processor time, and a wait for a processor is measured,
	// too. Requests that are rarer take longer, alike, so that stalls of a machine, tens of milliseconds, are short beside them.
	defaultFitRate = 250

	mostCalm   = 10 * time.Second // counted before the stress
	mostStress = 30 * time.Second
	mostAfter  = 10 * time.Second
)

// Fit derives from a scenario one that real sockets of one machine can play. It has the same zones, endpoints, clients,
// loads and faults; requests are fewer and each is as much longer: rates are divided by a factor, and service times,
// delays and the clients' patience are multiplied by it. The calm, the stress and the time after it are cut short where no
// step stands in what is cut off; days stay whole.
//
// The derived scenario is another one than the first: what balancers know per second is less. Compare only what was made of
// the same.
//
// The rate is that of all clients together, at their peak; 0: 250 requests per second.
func Fit(sc *scenario.Scenario, rate float64) *scenario.Scenario {
	fitted := *sc
	if factor := sim.Peak(sc) / cmp.Or(rate, defaultFitRate); factor > 1 {
		thin(&fitted, math.Ceil(factor*10)/10) // a figure that can be told
	}
	if sc.Day == nil {
		cutShort(&fitted)
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
func cutShort(sc *scenario.Scenario) {
	begin := min(sc.Stress.From, sc.Warmup()+mostCalm)
	end := begin + min(sc.Stress.To-sc.Stress.From, mostStress)
	length := end + min(sc.Length-sc.Stress.To, mostAfter)
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
			return // what happens then is part of the scenario
		}
		steps[i].At = at
	}
	sc.Steps, sc.Stress, sc.Length = steps, scenario.Window{From: begin, To: end}, length
}
