package demo

import (
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// Report is what one strategy did over one run of the script.
type Report struct {
	Strategy    string        `json:"strategy"`
	RetryOn     string        `json:"retryOn,omitempty"` // beside refused and reset connections
	Rate        float64       `json:"rate"`              // requests per second and zone, when calm
	Seed        uint64        `json:"seed"`
	Zones       []string      `json:"zones"`
	Phases      []PhaseReport `json:"phases"`
	Total       Figures       `json:"total"`
	Interrupted bool          `json:"interrupted,omitempty"` // the last phase did not run to its end
	Checks      []Check       `json:"checks"`
	Passed      bool          `json:"passed"`
}

// PhaseReport is what happened in one phase.
type PhaseReport struct {
	Title    string        `json:"title"`
	Event    Event         `json:"event"`
	Zone     topology.Zone `json:"zone,omitempty"` // the zone that was hit
	Seconds  float64       `json:"seconds"`
	All      Figures       `json:"all"`
	Hit      *Figures      `json:"hit,omitempty"`             // of the clients in the zone that was hit
	Zones    []Figures     `json:"zones"`                     // in the order of Report.Zones
	Spilled  *float64      `json:"secondsToSpill,omitempty"`  // from the fault to a visible spill; nil: none was seen
	Returned *float64      `json:"secondsToReturn,omitempty"` // from the fault's end until back in zone; nil: not seen
}

// report sums up what was recorded of the phases that began, up to end.
func (r *recorder) report(script []Phase, zones []topology.Zone, end time.Duration) ([]PhaseReport, Figures) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var (
		phases []PhaseReport
		total  tally
	)
	for i, start := range r.starts {
		stop := end
		if i+1 < len(r.starts) {
			stop = r.starts[i+1]
		}
		p := PhaseReport{
			Title: script[i].String(), Event: script[i].Event, Zone: script[i].Zone, Seconds: (stop - start).Seconds(),
		}
		var all tally
		for zone := range r.phases[i] {
			p.Zones = append(p.Zones, r.phases[i][zone].figures(stop-start))
			all.merge(&r.phases[i][zone])
			if script[i].Event.IsFault() && zones[zone] == script[i].Zone {
				p.Hit = &p.Zones[zone]
				p.Spilled = r.lines[zone].spillAfter(start, stop)
				p.Returned = r.lines[zone].returnAfter(stop, r.untilHitAgainLocked(script, i, end))
			}
		}
		p.All = all.figures(stop - start)
		total.merge(&all)
		phases = append(phases, p)
	}
	if len(r.starts) == 0 {
		return nil, Figures{}
	}
	return phases, total.figures(end - r.starts[0])
}

// untilHitAgainLocked gives the moment at which the zone of phase i is hit by another fault, or end.
func (r *recorder) untilHitAgainLocked(script []Phase, i int, end time.Duration) time.Duration {
	for j := i + 1; j < len(r.starts); j++ {
		if script[j].Zone == script[i].Zone {
			return r.starts[j]
		}
	}
	return end
}
