package sim

import (
	"math"
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/sim/scenario"
)

// sumUp makes the result of a run all of whose requests are over.
func (s *Simulation) sumUp() *Result {
	result := s.recorder.sumUp()
	result.Strategy, result.Seed = s.options.Strategy.Name, s.options.Seed
	result.Events, result.Digest = s.events, uint64(s.digest)
	for id := range s.servers {
		v := &s.servers[id]
		e := Endpoint{
			Addr: v.pod.Addr, Zone: v.pod.Zone, Cluster: v.pod.Cluster, Requests: v.stress, Peak: v.peak,
			Load: v.sum / math.Max(1, float64(v.seconds)), Line: v.line,
		}
		result.PeakLoad = max(result.PeakLoad, e.Peak)
		result.Endpoints = append(result.Endpoints, e)
	}
	return result
}

// sumUp makes of a run, all of whose requests are over, the part of the result that requests alone make.
func (r *recorder) sumUp() *Result {
	for r.closed < len(r.points) {
		r.close()
	}
	length, stress := r.sc.Length, r.sc.Stress
	calmTime, stressTime := max(0, min(stress.From, length)-r.sc.Warmup()), max(0, min(stress.To, length)-stress.From)
	all, affected, others := r.allZones(), r.zonesThat(true), r.zonesThat(false)
	result := &Result{
		Scenario: r.sc.Name,
		Window:   r.figures(stressTime, all, stressed),
		Affected: r.figures(stressTime, affected, stressed),
		Others:   r.figures(stressTime, others, stressed),
		Calm:     r.figures(calmTime, all, calm),
		After:    r.figures(max(0, length-stress.To), all, after),
		Whole:    r.figures(max(0, length-r.sc.Warmup()), all, calm, stressed, after),
		React:    r.react(), Return: r.comeBack(), Oscillation: r.oscillation(),
		Line: r.points,
	}
	if len(others) == 0 {
		result.Others = Figures{}
	}
	for i := range r.tenths {
		result.Requests += int64(r.tenths[i].requests)
	}
	return result
}

// allZones lists the zones by index.
func (r *recorder) allZones() []int {
	zones := append(r.zonesThat(true), r.zonesThat(false)...)
	slices.Sort(zones) // sums of floats depend on the order
	return zones
}

// zonesThat lists the zones that the stress is about, or those that it is not about, by index.
func (r *recorder) zonesThat(affected bool) []int { //nolint:revive // which ones.
	var zones []int
	for z, is := range r.affected {
		if is == affected {
			zones = append(zones, z)
		}
	}
	return zones
}

// figures sums up the requests of some zones in some periods, which last so long together.
func (r *recorder) figures(lasting time.Duration, zones []int, in ...period) Figures {
	all := new(sum)
	for _, p := range in {
		for _, z := range zones {
			all.merge(&r.sums[p][z])
		}
	}
	return all.figures(r.sc, lasting)
}

// figures says what was counted, in a time of that length.
func (s *sum) figures(sc *scenario.Scenario, lasting time.Duration) Figures {
	f := Figures{Requests: s.latency.total, Success: 1, Good: 1, InZone: 1}
	if lasting > 0 {
		f.Rate = float64(f.Requests) / lasting.Seconds()
		f.CrossBytes = s.cost * sc.Request.Bytes / lasting.Seconds()
		f.Dollars = dollars(sc, s.cost/lasting.Seconds())
	}
	if s.taken > 0 {
		f.InZone = 1 - float64(s.crossed)/float64(s.taken)
	}
	if f.Requests == 0 {
		return f
	}
	n := float64(f.Requests)
	f.Success, f.Good, f.Shed = float64(s.success)/n, float64(s.good)/n, float64(s.shed)/n
	f.Attempts, f.Cost = float64(s.attempts)/n, s.cost/n
	f.Mean = time.Duration(float64(s.took) / n)
	f.P50, f.P99, f.P999 = s.latency.quantile(0.5), s.latency.quantile(0.99), s.latency.quantile(0.999)
	return f
}

// over adds up the affected clients' requests of a time, in whole tenths of a second.
func (r *recorder) over(from, to time.Duration) tally {
	var t tally
	zones := len(r.affected)
	for i := int(from / tenth); i < int(to/tenth) && (i+1)*zones <= len(r.tenths); i++ {
		for z, is := range r.affected {
			if is {
				t.merge(&r.tenths[i*zones+z])
			}
		}
	}
	return t
}

// goodShare is 1 without requests.
func (t *tally) goodShare() float64 {
	if t.requests == 0 {
		return 1
	}
	return float64(t.good) / float64(t.requests)
}

// spill is 0 without requests that were taken.
func (t *tally) spill() float64 {
	if t.taken == 0 {
		return 0
	}
	return float64(t.crossed) / float64(t.taken)
}

const (
	// leftBelow and backAbove are parts of the calm's good share. The first is lower, so that chance in a second of few
	// requests does not count as having left.
	leftBelow = 0.90
	backAbove = 0.95
	// backWithin is how near to the calm's in-zone share clients have to be to be back.
	backWithin = 0.01
)

// react finds the second from which on the affected clients were served well again. If the first second of the stress is
// not good enough they have left at once; else they leave when a second is clearly worse.
func (r *recorder) react() *time.Duration {
	from, to := r.sc.Stress.From, min(r.sc.Stress.To, r.sc.Length)
	before := r.over(r.sc.Warmup(), from)
	usual, limit := before.goodShare(), backAbove
	left := false
	for at := from; at+time.Second <= to; at += tenth {
		now := r.over(at, at+time.Second)
		switch share := now.goodShare(); {
		case !left && share < limit*usual:
			left = true
		case left && share >= backAbove*usual:
			took := at - from
			return &took
		}
		limit = leftBelow
	}
	if left {
		return nil
	}
	return new(time.Duration)
}

// comeBack finds the two seconds in which the affected clients were as much in their zone as before the stress.
func (r *recorder) comeBack() *time.Duration {
	const lasting = 2 * time.Second
	before := r.over(r.sc.Warmup(), r.sc.Stress.From)
	for at := r.sc.Stress.To; at+lasting <= r.sc.Length; at += tenth {
		now := r.over(at, at+lasting)
		if now.spill() <= before.spill()+backWithin {
			took := at - r.sc.Stress.To
			return &took
		}
	}
	return nil
}

// oscillation is the standard deviation of the affected clients' spill from second to second, in the second half of the
// stress.
func (r *recorder) oscillation() float64 {
	stress := r.sc.Stress
	var n, mean, squares float64
	for at := stress.From + (stress.To-stress.From)/2; at+time.Second <= min(stress.To, r.sc.Length); at += time.Second {
		second := r.over(at, at+time.Second)
		n++
		apart := second.spill() - mean
		mean += apart / n
		squares += apart * (second.spill() - mean)
	}
	if n < 2 {
		return 0
	}
	return math.Sqrt(squares / n)
}
