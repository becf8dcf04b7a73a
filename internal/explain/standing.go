package explain

import (
	"fmt"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/grid"
)

// Owner says what writes the hints of a service.
type Owner string

// The owners.
const (
	OwnerWeir   Owner = "weir"   // weir's controller and webhook
	OwnerNative Owner = "native" // whoever manages the EndpointSlices: as a rule the built-in controller
)

// State says how far the EndpointSlices of a service say its plan.
type State string

// The states.
const (
	Programmed State = "programmed" // they do, and consumers follow hints
	Pending    State = "pending"    // some do not yet
	NoHints    State = "noHints"    // they carry none, and none are planned
)

// Standing is how a live cluster stands to a plan. Its JSON names are promised (docs/json.md).
type Standing struct {
	Owner      Owner       `json:"owner"`
	AskedBy    string      `json:"askedBy,omitempty"` // label, annotation or field; empty: the service asks for nothing
	State      State       `json:"state"`
	Slices     int         `json:"slices"`               // EndpointSlices of the family
	Pending    int         `json:"pending"`              // of them: do not say the plan yet
	Now        Summary     `json:"now"`                  // what the hints on the EndpointSlices come to
	Refused    []string    `json:"refused,omitempty"`    // requested settings that are not followed, and why
	Conditions []Condition `json:"conditions,omitempty"` // weir's conditions on the Service
}

// Condition is a condition that weir's controller wrote on a Service.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Blames  bool   `json:"-"` // it says why the EndpointSlices do not say the plan
}

// NewStanding compares a cluster with a plan: now is what plan.Observe sees, and so many slices do not say the plan.
func NewStanding(owner Owner, now *plan.Plan, slices, pending int) *Standing {
	s := &Standing{Owner: owner, Slices: slices, Pending: pending, Now: Summarise(now), State: NoHints}
	switch {
	case pending > 0:
		s.State = Pending
	case now.Hinted:
		s.State = Programmed
	}
	return s
}

// Summary is what a plan comes to, or the hints that are there now.
type Summary struct {
	Hinted   bool            `json:"hinted"`
	InZone   float64         `json:"inZone"`   // of all requests
	Overload float64         `json:"overload"` // of the most loaded zone
	Cost     float64         `json:"cost"`     // of a mean request
	Reasons  []reason.Reason `json:"reasons"`
}

// Summarise sums a plan up.
func Summarise(p *plan.Plan) Summary {
	f := Summary{
		Hinted: p.Hinted, InZone: float64(p.InZone), Cost: float64(p.Cost),
		Reasons: append([]reason.Reason{}, p.Reasons...),
	}
	for i := range p.Zones {
		f.Overload = max(f.Overload, p.Zones[i].Overload)
	}
	return f
}

// refusedCode stands in a list where a setting is refused; conditions use it too.
const refusedCode = "Refused"

// why gives a code and a text for the state of a service: a setting that is refused, else why slices lag behind, else why
// the cluster does other than the plan, else the plan's first reason.
func (x *Explanation) why() (code, text string) {
	s := x.Cluster
	if len(s.Refused) > 0 {
		return refusedCode, s.Refused[0]
	}
	if s.State == Pending {
		for _, c := range s.Conditions {
			if c.Blames {
				return c.Reason, c.Message
			}
		}
	}
	reasons := x.Plan.Reasons
	if s.Owner == OwnerNative && s.Now.Hinted != x.Plan.Hinted && len(s.Now.Reasons) > 0 {
		reasons = s.Now.Reasons
	}
	if len(reasons) == 0 {
		return "-", ""
	}
	return string(reasons[0].Code), reasons[0].String()
}

// cell prints the state.
func (s *Standing) cell() grid.Cell {
	switch s.State {
	case Programmed:
		return grid.Cell{Text: "programmed", Tone: good}
	case Pending:
		return grid.Cell{Text: fmt.Sprintf("pending %d/%d slices", s.Pending, s.Slices), Tone: warn}
	default:
		return grid.Text("no hints")
	}
}

// line prints the summary in one line.
func (f *Summary) line() string {
	hinted := "no hints"
	if f.Hinted {
		hinted = "hints"
	}
	return fmt.Sprintf("%s, %s in zone, overload %s, cost %.2f", hinted, percent(f.InZone), overload(f.Overload).Text, f.Cost)
}

// agrees tells whether what is there now is what is planned, as far as a person would see.
func (f *Summary) agrees(p *Plan) bool {
	planned := Summary{Hinted: p.Hinted, InZone: p.InZone, Overload: p.Overload, Cost: p.Cost}
	return planned.line() == f.line()
}

// askedBy says where a mode comes from, for people; not where the service asked for something that is refused.
func (s *Standing) askedBy(m topology.Mode) string {
	if s.AskedBy == "" || len(s.Refused) > 0 {
		return string(m)
	}
	return fmt.Sprintf("%s (by %s)", m, s.AskedBy)
}
