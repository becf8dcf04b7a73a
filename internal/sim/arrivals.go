package sim

import (
	"math/rand/v2"
	"time"

	"github.com/weir-lb/weir/internal/sim/scenario"
)

// Arrivals are the requests of one client: those that a simulation with this seed lets it send, whatever becomes of them.
// A player of the scenario on sockets sends the same. One goroutine at a time.
type Arrivals struct {
	Row   int     // of the client's zone in Scenario.Clients
	Place int     // the client's number in its zone, from 0
	Share float64 // of its zone's rate

	sc     *scenario.Scenario
	demand *demand
	work   scenario.Sampler
	random *rand.Rand
	area   float64
	cursor int
	next   time.Duration
}

// NewArrivals gives the arrivals of each client, in the order of Scenario.Clients.
func NewArrivals(sc *scenario.Scenario, seed uint64) []*Arrivals {
	var all []*Arrivals
	for row := range sc.Clients {
		of := &sc.Clients[row]
		d := newDemand(sc, of)
		for place := range of.Count {
			a := &Arrivals{
				Row: row, Place: place, Share: 1 / float64(of.Count),
				sc: sc, demand: d, work: scenario.NewSampler(sc.Server.Service), next: never,
				random: rand.New(generator(seed, ofArrivals, len(all))), //nolint:gosec // not for secrets.
			}
			if of.Shares != nil {
				a.Share = of.Shares[place]
			}
			a.expect()
			all = append(all, a)
		}
	}
	return all
}

// expect draws when the next request is due.
func (a *Arrivals) expect() {
	if a.Share > 0 {
		a.area += a.random.ExpFloat64() / a.Share
		a.next = a.demand.due(a.area, &a.cursor)
	}
}

// Next gives when the client's next request is due and how long it takes a worker of usual speed; false: there is none.
func (a *Arrivals) Next() (due, service time.Duration, ok bool) {
	if a.next == never {
		return 0, 0, false
	}
	due = a.next
	a.expect()
	return due, a.take().work, true
}

// request is everything that chance has to say about a request.
type request struct {
	work time.Duration
	luck uint64
	form form
	hold time.Duration // of polls and streams
}

// take draws the request that is due; call it after expect, which draws when the one after it is.
func (a *Arrivals) take() request {
	q := request{work: a.work.Draw(a.random), luck: a.random.Uint64()}
	if r := &a.sc.Request; r.Polls > 0 || r.Streams > 0 {
		long := a.random.ExpFloat64()
		switch u := a.random.Float64(); {
		case u < r.Polls:
			q.form, q.hold = poll, r.Hold
		case u < r.Polls+r.Streams:
			q.form, q.hold = stream, time.Duration(long*float64(r.Hold))
		}
	}
	return q
}

// Peak is the highest rate that all clients of a scenario have together, in requests per second.
func Peak(sc *scenario.Scenario) float64 {
	var all []*demand
	for i := range sc.Clients {
		all = append(all, newDemand(sc, &sc.Clients[i]))
	}
	highest := 0.0
	for _, d := range all {
		for _, p := range d.pieces[:len(d.pieces)-1] {
			before, now := 0.0, 0.0
			for _, other := range all {
				b, n := other.around(p.from)
				before, now = before+b, now+n
			}
			highest = max(highest, before, now)
		}
	}
	return highest
}

// around gives the rate just before a time of the run, in seconds, and from then on.
func (d *demand) around(at float64) (before, now float64) {
	for i, p := range d.pieces[:len(d.pieces)-1] {
		if p.from < at {
			before = p.rate + p.slope*(min(at, d.pieces[i+1].from)-p.from)
		}
		if p.from <= at {
			now = p.rate + p.slope*(at-p.from)
		}
	}
	return before, now
}
