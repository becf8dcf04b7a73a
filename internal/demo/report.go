package demo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/sim"
)

// Report is what one strategy came to in one play of a scenario.
type Report struct {
	Scenario    string        `json:"scenario"`
	Strategy    string        `json:"strategy"`
	RetryOn     string        `json:"retryOn,omitempty"`
	Seed        uint64        `json:"seed"`
	Zones       []string      `json:"zones"`
	Phases      []PhaseReport `json:"phases"`
	Total       Measures      `json:"total"`
	Interrupted bool          `json:"interrupted,omitempty"` // the last phase was not played to its end
	Checks      []Check       `json:"checks,omitempty"`
	Agreement   *Agreement    `json:"agreement,omitempty"` // with the simulator
	Passed      bool          `json:"passed"`              // all Checks, and the Agreement; what is not there passes

	Result *sim.Result `json:"-"` // as that of a simulation
	title  string      // of the strategy
}

// PhaseReport is what happened in one phase.
type PhaseReport struct {
	Title    string     `json:"title"`
	IsFault  bool       `json:"fault,omitempty"`
	Zone     string     `json:"zone,omitempty"` // the zone that the fault is about
	From     float64    `json:"fromSeconds"`
	To       float64    `json:"toSeconds"`
	All      Measures   `json:"all"`
	Hit      *Measures  `json:"hit,omitempty"`             // of the clients in Zone
	Zones    []Measures `json:"zones"`                     // in the order of Report.Zones
	Spilled  *float64   `json:"secondsToSpill,omitempty"`  // from the fault to a visible spill; nil: none was seen
	Returned *float64   `json:"secondsToReturn,omitempty"` // from the fault's end until back in zone; nil: not seen
}

// Title is the strategy's name as tables have it.
func (r *Report) Title() string { return r.title }

// report sums up what was played. Call it when every request is over.
func (p *play) report() *Report {
	entries, sc := p.log.entries, p.scenario
	o := p.options
	r := &Report{
		Scenario: sc.Name, Strategy: o.Player.Name, RetryOn: o.Player.RetryOn, Seed: o.Seed, title: o.Player.Title(),
		Interrupted: p.end < sc.Length, Passed: true,
		Result: p.log.result(o.Player, o.Seed),
		Total:  measuresOf(sc, entries, p.end, func(*entry) bool { return true }),
	}
	for _, c := range sc.Clients {
		r.Zones = append(r.Zones, string(c.Zone))
	}
	for i, phase := range p.phases {
		if phase.From >= p.end {
			break
		}
		phase.To = min(phase.To, p.end)
		r.Phases = append(r.Phases, p.phaseReport(i, phase, entries))
	}
	return r
}

func (p *play) phaseReport(i int, phase Phase, entries []entry) PhaseReport {
	r := PhaseReport{
		Title: phase.Title, IsFault: phase.IsFault, Zone: phase.Zone, From: phase.From.Seconds(), To: phase.To.Seconds(),
	}
	lasting := phase.To - phase.From
	in := func(e *entry) bool { return e.Due >= phase.From && e.Due < phase.To }
	r.All = measuresOf(p.scenario, entries, lasting, in)
	for row, c := range p.scenario.Clients {
		r.Zones = append(r.Zones, measuresOf(p.scenario, entries, lasting, func(e *entry) bool { return e.Row == row && in(e) }))
		if phase.IsFault && string(c.Zone) == phase.Zone {
			line := timelineOf(entries, row)
			r.Hit = &r.Zones[row]
			r.Spilled = line.spillAfter(phase.From, phase.To)
			r.Returned = line.returnAfter(phase.To, p.nextFault(i))
		}
	}
	return r
}

// nextFault gives the moment at which the zone of phase i is hit by another fault, or the end.
func (p *play) nextFault(i int) time.Duration {
	for _, later := range p.phases[i+1:] {
		if later.Zone == p.phases[i].Zone {
			return min(later.From, p.end)
		}
	}
	return p.end
}

// ErrShort means that a play of the script missed a target.
var ErrShort = errors.New("the run missed its targets")

// What a play of the script has to reach. The targets are the project's goals: calm traffic stays, a fault is
// answered within a second, and almost no request fails.
const (
	wantInZone        = 0.99
	wantSpillSeconds  = 1.0
	wantSuccess       = 0.995
	wantSuccess5xx    = 0.999 // with retries on 5xx
	retryServerErrors = "5xx"
)

// Check is one measure and its target.
type Check struct {
	Name   string `json:"name"`
	Want   string `json:"want"`
	Got    string `json:"got"`
	Passed bool   `json:"passed"`
}

// Judge checks the report against what the script has to reach. A run that was interrupted is judged by the phases that it
// has, and does not pass.
func (r *Report) Judge() {
	for i := range r.Phases {
		switch p := &r.Phases[i]; {
		case p.Title == calm:
			r.Checks = append(r.Checks, atLeast("in zone when calm", wantInZone, p.All.InZone))
		case p.IsFault:
			r.Checks = append(r.Checks, spillCheck(p))
		}
	}
	want := wantSuccess
	if slices.Contains(strings.Split(r.RetryOn, ","), retryServerErrors) {
		want = wantSuccess5xx
	}
	r.Checks = append(r.Checks, atLeast("answered well", want, r.Total.Success))
	if r.Interrupted {
		r.Checks = append(r.Checks, Check{Name: "script", Want: "to its end", Got: "interrupted"})
	}
	r.Passed = !slices.ContainsFunc(r.Checks, func(c Check) bool { return !c.Passed })
}

// Compare adds how the report agrees with simulated runs of the same scenario: one for each of several seeds.
func (r *Report) Compare(simulated []*sim.Result) {
	a := Agree(r.Result, simulated)
	r.Agreement, r.Passed = &a, r.Passed && a.Agrees
}

func atLeast(name string, want, got float64) Check {
	return Check{Name: name, Want: "≥ " + percent(want, 1), Got: percent(got, 2), Passed: got >= want}
}

func spillCheck(p *PhaseReport) Check {
	c := Check{Name: "spill: " + p.Title, Want: fmt.Sprintf("≤ %.1f s", wantSpillSeconds), Got: "none seen"}
	if p.Spilled != nil {
		c.Got = fmt.Sprintf("%.1f s", *p.Spilled)
		c.Passed = *p.Spilled <= wantSpillSeconds
	}
	return c
}
