package demo

import (
	"fmt"
	"sync"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// entry is a request that is over, as the simulator's definitions sum it up, and what a real machine adds.
type entry struct {
	sim.Observed

	result outcome
	stall  time.Duration // how long it was sent after it was due
}

// requestLog notes what happens in a play. It is safe for concurrent use.
type requestLog struct {
	layout *layout
	costs  [][]topology.Cost // from a row of clients to an endpoint

	mu      sync.Mutex
	entries []entry // as they ended
	work    []sim.Work
}

func newRequestLog(l *layout) *requestLog {
	g := &requestLog{layout: l}
	w := &l.scenario.Snapshot
	regions := w.Regions()
	for _, c := range l.scenario.Clients {
		var row []topology.Cost
		for i := range l.endpoints {
			row = append(row, w.Costs.Between(topology.Place{Zone: c.Zone, Region: regions[c.Zone]}, l.endpoints[i].Place))
		}
		g.costs = append(g.costs, row)
	}
	return g
}

// add files a request that is over.
func (g *requestLog) add(s sample) {
	e := entry{
		Observed: sim.Observed{
			Row: s.row, Due: s.due, Took: s.done - s.due,
			Success:  s.result == good,
			Shed:     s.result == rejected && len(s.reached) == 0,
			Attempts: max(len(s.reached), 1),
		},
		result: s.result, stall: s.sent - s.due,
	}
	for _, endpoint := range s.reached {
		e.Cost += float64(g.costs[s.row][endpoint])
	}
	if n := len(s.reached); n > 0 {
		last := &g.layout.endpoints[s.reached[n-1]]
		e.Taken = true
		e.Crossed = last.Cluster != "" || last.Zone != g.layout.scenario.Clients[s.row].Zone
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.entries = append(g.entries, e)
}

// ask notes that a request asks an endpoint for a worker.
func (g *requestLog) ask(endpoint int, at, service time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.work = append(g.work, sim.Work{Endpoint: endpoint, At: at, Service: service})
}

// recentSpan is how much of the past the live table sums up: long enough for a p99 of a few hundred requests.
const recentSpan = 2 * time.Second

// recent sums up, for each row of clients, the requests that were over in the last seconds before now.
func (g *requestLog) recent(now time.Duration) []Measures {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := len(g.entries)
	for first > 0 && g.entries[first-1].done() > now-recentSpan {
		first--
	}
	all := make([]Measures, len(g.costs))
	for row := range all {
		all[row] = measuresOf(g.layout.scenario, g.entries[first:], min(now, recentSpan), func(e *entry) bool { return e.Row == row })
	}
	return all
}

// result sums up the whole as a simulation is summed up. Call it when every request is over.
func (g *requestLog) result(p Player, seed uint64) *sim.Result {
	o := sim.Observation{Scenario: g.layout.scenario, Strategy: p.Name, Seed: seed, Work: g.work}
	for i := range g.entries {
		o.Requests = append(o.Requests, g.entries[i].Observed)
	}
	for i := range g.layout.endpoints {
		e := &g.layout.endpoints[i]
		o.Endpoints = append(o.Endpoints, sim.Endpoint{Addr: e.named, Zone: e.Zone, Cluster: e.Cluster})
	}
	return o.Result()
}

// done is when the request was over.
func (e *entry) done() time.Duration { return e.Due + e.Took }

// Measures sum up requests, by the simulator's definitions.
type Measures struct {
	Requests int64   `json:"requests"`
	Rate     float64 `json:"rate"`      // requests due per second
	InZone   float64 `json:"inZone"`    // of the requests that an endpoint took: fraction taken in the client's zone
	Success  float64 `json:"success"`   // of all requests: fraction answered 2xx within the timeout, from when they were due
	P50      Millis  `json:"p50Millis"` // from when a request was due until it was answered; a failed one counts as the timeout
	P99      Millis  `json:"p99Millis"`
	Stall    Millis  `json:"stallMillis"` // the longest that a request was sent after it was due: the machine's fault
	Cost     float64 `json:"cost"`        // mean cost of a request; 1 is one crossing between zones
	Errors   Errors  `json:"errors"`
}

// Millis is a latency in milliseconds, as machines read it.
type Millis float64

func millis(d time.Duration) Millis { return Millis(float64(d) / float64(time.Millisecond)) }

// Errors count the requests that were not answered well, by how they ended.
type Errors struct {
	Late      int `json:"late"`      // no answer within the timeout
	Erroneous int `json:"erroneous"` // an endpoint answered other than 2xx
	Rejected  int `json:"rejected"`  // the agent answered for want of an endpoint
	Broken    int `json:"broken"`    // the connection to the agent broke
	Dropped   int `json:"dropped"`   // not even sent, because too many were outstanding
}

// measuresOf sums up the entries that count, which were due in a time of that length.
func measuresOf(sc *scenario.Scenario, entries []entry, lasting time.Duration, counts func(*entry) bool) Measures {
	var (
		requests []sim.Observed
		ended    [outcomes]int
		stall    time.Duration
	)
	for i := range entries {
		if e := &entries[i]; counts(e) {
			requests = append(requests, e.Observed)
			ended[e.result]++
			stall = max(stall, e.stall)
		}
	}
	f := sim.Sum(sc, requests, lasting)
	return Measures{
		Requests: f.Requests, Rate: f.Rate, InZone: f.InZone, Success: f.Success,
		P50: millis(f.P50), P99: millis(f.P99), Stall: millis(stall), Cost: f.Cost,
		Errors: Errors{
			Late: ended[late], Erroneous: ended[erroneous], Rejected: ended[rejected], Broken: ended[broken], Dropped: ended[dropped],
		},
	}
}

// bucketWidth is the grain at which spills and returns are dated: the agents decide every 100 ms.
const bucketWidth = 100 * time.Millisecond

// When a spill counts as visible, and when as over.
const (
	spillShare   = 0.10 // of a zone's requests in one bucket: ten times what calm may leak
	spillAnswers = 2    // at least: one may be a probe
	returnShare  = 0.95 // of a zone's requests stay in the zone again …
	returnSpan   = 10   // … over this many buckets: 1 s
)

// timeline is what the clients of a zone saw, by when the requests were over, bucket by bucket since the run began.
type timeline []struct{ taken, crossed int }

func timelineOf(entries []entry, row int) timeline {
	var line timeline
	for i := range entries {
		e := &entries[i]
		if e.Row != row || !e.Taken {
			continue
		}
		at := bucketOf(e.done())
		if at >= len(line) {
			line = append(line, make(timeline, at+1-len(line))...)
		}
		line[at].taken++
		if e.Crossed {
			line[at].crossed++
		}
	}
	return line
}

func bucketOf(at time.Duration) int { return int(max(at, 0) / bucketWidth) }

// spillAfter gives how many seconds after since the zone's spill became visible, counted to the end of the first bucket
// with enough requests to other zones; nil if it did not before until. A spill that was there already counts from the
// first bucket.
func (l timeline) spillAfter(since, until time.Duration) *float64 {
	for i := bucketOf(since); i < len(l) && time.Duration(i)*bucketWidth < until; i++ {
		if l[i].crossed >= spillAnswers && float64(l[i].crossed) >= spillShare*float64(l[i].taken) {
			return new((time.Duration(i+1)*bucketWidth - since).Seconds())
		}
	}
	return nil
}

// returnAfter gives how many seconds after since the zone's traffic was back, counted to the beginning of the first
// returnSpan buckets in which it stayed in the zone; nil if there were none before until.
func (l timeline) returnAfter(since, until time.Duration) *float64 {
	last := min(bucketOf(until), len(l)) - returnSpan
	for i := bucketOf(since); i <= last; i++ {
		taken, crossed := 0, 0
		for _, b := range l[i : i+returnSpan] {
			taken, crossed = taken+b.taken, crossed+b.crossed
		}
		if taken > 0 && float64(taken-crossed) >= returnShare*float64(taken) {
			return new(max(time.Duration(i)*bucketWidth-since, 0).Seconds())
		}
	}
	return nil
}

// stallLimit is what a machine may be late by at the worst without being blamed for it: every latency has its part of it.
const stallLimit = 50 * time.Millisecond

// complaint says what was wrong with the machine on which the play was; empty: nothing. A busy machine comes first: requests
// that were never sent follow from it.
func (f *Measures) complaint() string {
	switch {
	case f.Stall > millis(stallLimit):
		return fmt.Sprintf("this machine was too busy: requests were sent up to %s after they were due. The verdict is void: "+
			"repeat this on an idle machine, or with fewer requests (--rate, with --scenario --peak)", f.Stall)
	case f.Errors.Dropped > 0:
		return fmt.Sprintf("%d requests were never sent, because too many were outstanding", f.Errors.Dropped)
	default:
		return ""
	}
}
