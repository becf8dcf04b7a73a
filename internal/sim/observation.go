package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/sim/scenario"
)

// Observation is a run that was not simulated: the scenario was played on sockets, and this was noted.
type Observation struct {
	Scenario  *scenario.Scenario
	Strategy  string
	Seed      uint64
	Requests  []Observed // in any order
	Work      []Work     // in any order
	Endpoints []Endpoint // Addr, Zone and Cluster of each; what the others say is found out
}

// Observed is a request that is over.
type Observed struct {
	Row      int           // of the client's zone in Scenario.Clients
	Due      time.Duration // in the run
	Took     time.Duration // from then on
	Success  bool          // answered well before Request.Timeout
	Shed     bool          // rejected by the balancer
	Taken    bool          // by an endpoint
	Crossed  bool          // that endpoint is not in the client's zone and cluster
	Attempts int
	Cost     float64 // topology.Cost of all attempts
}

// Work is what a request asked of an endpoint.
type Work struct {
	Endpoint int // index in Observation.Endpoints
	At       time.Duration
	Service  time.Duration // how long it takes a worker
}

// Result sums up what was observed, as that of a simulation is summed up. What was due after the scenario's length counts
// nowhere.
func (o *Observation) Result() *Result {
	r := newRecorder(o.Scenario)
	requests := slices.SortedFunc(slices.Values(o.Requests), func(a, b Observed) int { return cmp.Compare(a.Due, b.Due) })
	for now := time.Second; now <= o.Scenario.Length; now += time.Second {
		for len(requests) > 0 && requests[0].Due < now {
			q := &requests[0]
			r.add(q.outcome())
			requests = requests[1:]
		}
		r.second(now, len(o.Endpoints))
	}
	result := r.sumUp()
	result.Strategy, result.Seed = o.Strategy, o.Seed
	result.Endpoints = o.loads(r)
	for i := range result.Endpoints {
		result.PeakLoad = max(result.PeakLoad, result.Endpoints[i].Peak)
	}
	return result
}

func (q *Observed) outcome() *outcome {
	return &outcome{
		ending: ending{success: q.Success, shed: q.Shed},
		zone:   q.Row, due: q.Due, took: q.Took, tries: q.Attempts, cost: q.Cost, taken: q.Taken, crossed: q.Crossed,
	}
}

// Sum sums up some requests of a scenario, which were sent within a time of that length, by the definitions of a Result.
func Sum(sc *scenario.Scenario, requests []Observed, lasting time.Duration) Figures {
	all := new(sum)
	for i := range requests {
		o := requests[i].outcome()
		one := o.one(sc)
		all.add(o, &one)
	}
	return all.figures(sc, lasting)
}

// loads finds out what the endpoints did.
func (o *Observation) loads(r *recorder) []Endpoint {
	seconds := int(o.Scenario.Length / time.Second)
	all := slices.Clone(o.Endpoints)
	for i := range all {
		all[i].Line = make([]float32, seconds)
	}
	workers := float64(o.Scenario.Server.Workers)
	for _, w := range o.Work {
		if second := int(w.At / time.Second); second < seconds {
			all[w.Endpoint].Line[second] += float32(w.Service.Seconds() / workers)
		}
		if r.stress(w.At) {
			all[w.Endpoint].Requests++
		}
	}
	for i := range all {
		e, counted := &all[i], 0
		for second, load := range e.Line {
			if r.covers(time.Duration(second+1) * time.Second) {
				e.Peak, e.Load = max(e.Peak, float64(load)), e.Load+float64(load)
				counted++
			}
		}
		e.Load /= max(1, float64(counted))
	}
	return all
}
