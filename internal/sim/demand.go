package sim

import (
	"math"
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// demand is the rate at which the clients of a zone send, over the run, as straight pieces. A client draws amounts of
// work at a rate of one and asks when the zone's rate has added up to them: so the draws do not depend on the rate, nor
// on anything that happens to the requests.
type demand struct{ pieces []piece }

// piece is a time in which the rate is a straight line. Times are seconds.
type piece struct {
	from        float64
	rate, slope float64 // at from, and per second
	area        float64 // requests before from
}

// ramp is a change of the factor on the rate.
type ramp struct {
	at, over time.Duration
	from, to float64
}

// level gives the factor at a time after the ramp's beginning.
func (r *ramp) level(t time.Duration) float64 {
	if t >= r.at+r.over {
		return r.to
	}
	return r.from + (r.to-r.from)*float64(t-r.at)/float64(r.over)
}

// dayParts is how many straight pieces a day's sine is made of: the error is below 0.04 % of its swing.
const dayParts = 128

// newDemand gives the demand of a zone's clients.
func newDemand(sc *scenario.Scenario, c *scenario.Clients) *demand {
	ramps := []ramp{{from: 1, to: 1}}
	knots := []time.Duration{0, sc.Length}
	for i := range sc.Steps {
		st := &sc.Steps[i]
		if st.Verb != scenario.Rate || !st.Where.HasClients(c.Zone) {
			continue
		}
		before := ramps[len(ramps)-1].level(st.At)
		ramps = append(ramps, ramp{at: st.At, over: st.Over, from: before, to: st.Factor})
		knots = append(knots, st.At, st.At+st.Over)
	}
	if sc.Day != nil {
		for i := range int64(float64(sc.Length)/float64(sc.Day.Period)*dayParts) + 1 {
			knots = append(knots, time.Duration(float64(i)*float64(sc.Day.Period)/dayParts))
		}
	}
	slices.Sort(knots)
	knots = slices.Compact(knots)
	d := &demand{}
	area := 0.0
	for i, from := range knots {
		if from >= sc.Length {
			break
		}
		to := knots[i+1]
		n := len(ramps) - 1
		for ramps[n].at > from {
			n--
		}
		begin := c.Rate * ramps[n].level(from) * hour(sc.Day, c.Zone, from)
		end := c.Rate * ramps[n].level(to) * hour(sc.Day, c.Zone, to)
		length := (to - from).Seconds()
		d.pieces = append(d.pieces, piece{from: from.Seconds(), rate: begin, slope: (end - begin) / length, area: area})
		area += (begin + end) / 2 * length
	}
	// The end: nothing is ever due after it.
	d.pieces = append(d.pieces, piece{from: math.Inf(1), area: area})
	return d
}

// hour gives the day's factor on the rates of a zone: lowest at the zone's midnight, with which its day begins.
func hour(d *scenario.Day, zone topology.Zone, t time.Duration) float64 {
	if d == nil {
		return 1
	}
	phase := float64(t-d.Lag[zone]) / float64(d.Period)
	return (d.High+d.Low)/2 - (d.High-d.Low)/2*math.Cos(2*math.Pi*phase)
}

// due tells when the zone's requests have added up to area; never: not in this run. cursor is where the caller's last
// answer was found; areas only grow.
func (d *demand) due(area float64, cursor *int) time.Duration {
	for *cursor < len(d.pieces)-1 && area >= d.pieces[*cursor+1].area {
		*cursor++
	}
	p := &d.pieces[*cursor]
	rest := area - p.area
	if *cursor == len(d.pieces)-1 {
		return never
	}
	x := 0.0
	if p.slope == 0 {
		x = rest / p.rate
	} else {
		// The root of rate x + slope x²/2 = rest, in the form that does not cancel out.
		x = 2 * rest / (p.rate + math.Sqrt(max(0, p.rate*p.rate+2*p.slope*rest)))
	}
	return time.Duration((p.from + x) * float64(time.Second))
}
