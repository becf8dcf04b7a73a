package demo

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// diary notes what happens in a play, for the simulator's own definitions to sum it up. It is safe for concurrent use.
type diary struct {
	stage *playStage
	costs [][]topology.Cost // from a row of clients to an endpoint

	mu       sync.Mutex
	observed sim.Observation
	dropped  int           // requests that were never sent
	stall    time.Duration // the longest that a request was sent after it was due
}

func newDiary(sc *scenario.Scenario, stage *playStage, o PlayOptions) *diary {
	d := &diary{
		stage:    stage,
		observed: sim.Observation{Scenario: sc, Strategy: o.Player.Contender, Seed: o.Seed},
	}
	regions := sc.World.Regions()
	for _, c := range sc.Clients {
		from := topology.Place{Zone: c.Zone, Region: regions[c.Zone]}
		var row []topology.Cost
		for i := range stage.endpoints {
			row = append(row, sc.World.Costs.Between(from, stage.endpoints[i].Place))
		}
		d.costs = append(d.costs, row)
	}
	for i := range stage.endpoints {
		e := &stage.endpoints[i]
		d.observed.Endpoints = append(d.observed.Endpoints, sim.Endpoint{Addr: e.named, Zone: e.Zone, Cluster: e.Cluster})
	}
	return d
}

// note files a request that is over.
func (d *diary) note(s sample) {
	r := sim.Observed{
		Row: s.zone, Due: s.due, Took: s.done - s.due,
		Success:  s.result == good,
		Shed:     s.result == rejected && len(s.reached) == 0,
		Attempts: max(len(s.reached), 1),
	}
	for _, place := range s.reached {
		r.Cost += float64(d.costs[s.zone][place])
	}
	if n := len(s.reached); n > 0 {
		last := &d.stage.endpoints[s.reached[n-1]]
		r.Taken = true
		r.Crossed = last.Cluster != "" || last.Zone != d.observed.Scenario.Clients[s.zone].Zone
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.observed.Requests = append(d.observed.Requests, r)
	d.stall = max(d.stall, s.sent-s.due)
	if s.result == dropped {
		d.dropped++
	}
}

// ask notes that a request asks an endpoint for a slot.
func (d *diary) ask(place int, at, service time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.observed.Work = append(d.observed.Work, sim.Work{Endpoint: place, At: at, Service: service})
}

// result sums up. Call it when every request is over.
func (d *diary) result() *sim.Result {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.observed.Result()
}

// playStall is what a machine may be late by at the worst without being blamed for it: every latency has its part of it.
const playStall = 50 * time.Millisecond

// complaint says what was wrong with the machine on which the play was; empty: nothing.
func (d *diary) complaint() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.dropped > 0:
		return fmt.Sprintf("%d requests were never sent, because too many were outstanding", d.dropped)
	case d.stall > playStall:
		return fmt.Sprintf("this machine was busy otherwise: requests were sent up to %v after they were due, and every figure "+
			"suffers from it", d.stall.Round(time.Millisecond))
	default:
		return ""
	}
}

// recentSpan is how much of the past the live line sums up.
const recentSpan = 3 * time.Second

// glance is what the live line tells.
type glance struct {
	rate                  float64 // requests per second
	inZone, success, good float64
	p99                   time.Duration
}

// recent sums up the requests that were over in the last seconds before now.
func (d *diary) recent(now time.Duration) glance {
	d.mu.Lock()
	defer d.mu.Unlock()
	var (
		taken, crossed, success, good int
		took                          []time.Duration
	)
	fast := d.observed.Scenario.GoodWithin()
	for _, r := range slices.Backward(d.observed.Requests) {
		if r.Due+r.Took < now-recentSpan {
			break // requests are filed as they end
		}
		took = append(took, r.Took)
		if r.Success {
			success++
			if r.Took <= fast {
				good++
			}
		}
		if r.Taken {
			taken++
		}
		if r.Crossed {
			crossed++
		}
	}
	g := glance{rate: float64(len(took)) / min(now, recentSpan).Seconds(), inZone: 1, success: 1, good: 1}
	if n := len(took); n > 0 {
		slices.Sort(took)
		g.p99 = took[n*99/100]
		g.success, g.good = float64(success)/float64(n), float64(good)/float64(n)
	}
	if taken > 0 {
		g.inZone = 1 - float64(crossed)/float64(taken)
	}
	return g
}
