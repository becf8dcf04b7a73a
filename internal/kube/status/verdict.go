package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/plans"
)

// Reasons of conditions that are no code of a plan. They are promised like those.
const (
	reasonAccepted         = "Accepted"
	reasonUnknownMode      = "UnknownMode"
	reasonBadOverloadLimit = "BadOverloadLimit"
	reasonBadDemand        = "BadDemand"
	reasonBadAnnotation    = "BadAnnotation"
	reasonExternalName     = "ExternalName"

	reasonHinted       = "Hinted"
	reasonNotManaged   = "NotManaged"
	reasonWritePending = "WritePending"
	reasonWriteRefused = "WriteRefused"
	reasonHintsUndone  = "HintsUndone"

	reasonConflictingModes = "ConflictingModes"
	reasonUnknownKey       = "UnknownKey"
)

// textHintsUndone is what there is to do about hints that do not stay.
const textHintsUndone = "another writer keeps taking off the hints that weir writes, so they are written less and less " +
	"often: see that weir's webhook is called for EndpointSlices and answers"

// verdict is all there is to say of a service at one instant.
type verdict struct {
	families [2]state // by family
	plans    [2]*plan.Plan
	warnings []warning // sorted
	// conditions are those that the Service should have; none when it did not ask. Their times are not set. One whose
	// Status is empty is to stay as it is.
	conditions []metav1.Condition
}

// state is what a family of a service came to. The zero state is that there is nothing to hint.
type state struct {
	mode   topology.Mode
	hinted bool
	code   reason.Code // why there are no hints; empty when there are
}

// warning is a problem to be reported once for each key.
type warning struct{ reason, about, note, key string }

// judge sums up a decision and what became of it; late is for how long the slices have not said the plan.
func judge(d *plans.Decision, o Outcome, late time.Duration) verdict {
	var v verdict
	for i := range d.Plans {
		p := &d.Plans[i]
		s := state{mode: p.Mode, hinted: p.Hinted}
		if !p.Hinted {
			s.code = obstacle(p).Code
		}
		v.families[p.Family], v.plans[p.Family] = s, p
	}
	if !asked(d) {
		return v
	}
	v.warnings = warningsOf(d, o)
	accepted, programmed := accept(d), program(d, o, late)
	accepted.ObservedGeneration, programmed.ObservedGeneration = d.Record.Object.Generation, d.Record.Object.Generation
	v.conditions = []metav1.Condition{accepted, programmed}
	return v
}

// obstacle is the reason that keeps a plan from having hints.
func obstacle(p *plan.Plan) reason.Reason {
	for _, r := range p.Reasons {
		if r.Code != reason.EndpointsServeOwnZone && r.Code != reason.EndpointsServeOwnNode {
			return r
		}
	}
	return reason.New(reason.NoEndpoints)
}

// isEmpty tells whether a family has nothing to hint at the moment. Where the other one has, that is no news.
func isEmpty(p *plan.Plan) bool {
	code := obstacle(p).Code
	return !p.Hinted && (code == reason.NoEndpoints || code == reason.OnlyTerminating)
}

// inUse lists the plans of families that have something to hint.
func inUse(d *plans.Decision) []*plan.Plan {
	list := make([]*plan.Plan, 0, len(d.Plans))
	for i := range d.Plans {
		if p := &d.Plans[i]; !isEmpty(p) {
			list = append(list, p)
		}
	}
	return list
}

// nothingThere says why no family is in use.
func nothingThere(d *plans.Decision) reason.Code {
	if len(d.Plans) == 0 {
		return reason.NoEndpoints
	}
	return obstacle(&d.Plans[0]).Code
}

// warningsOf lists what is wrong around a service, each once, sorted.
func warningsOf(d *plans.Decision, o Outcome) []warning {
	var list []warning
	if o.Undone {
		list = append(list, warning{reasonHintsUndone, reasonHintsUndone, textHintsUndone, reasonHintsUndone})
	}
	for i := range d.Plans {
		for _, r := range d.Plans[i].Reasons {
			if isWarning(r.Code) {
				code := string(r.Code) // the note has numbers and names, which come and go
				list = append(list, warning{reason: code, about: code, note: r.String(), key: code})
			}
		}
	}
	for _, p := range d.Record.Problems {
		if p.Object.Kind != "Service" || !strings.HasPrefix(p.Field, "metadata.") && !p.IsRefused() {
			continue
		}
		w := warning{about: p.Field, note: p.Text()}
		switch {
		case p.IsRefused():
			w.reason = refusal(p)
		case isNativeMode(p.Field):
			w.reason = reasonConflictingModes
		default:
			w.reason = reasonUnknownKey
		}
		w.key = w.reason + " " + w.note
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b warning) int { return strings.Compare(a.key, b.key) })
	return slices.CompactFunc(list, func(a, b warning) bool { return a.key == b.key })
}

// isWarning tells whether a code is worth a warning whatever else the plan says.
func isWarning(c reason.Code) bool {
	switch c {
	case reason.HeadlessService, reason.NodesWithoutZone, reason.NodesWithoutCPU, reason.EndpointsWithoutZone,
		reason.EndpointsWithoutNode, reason.ZonesWithoutEndpoints, reason.ZonesNotServed, reason.ZonesUnnamed,
		reason.EndpointsOverloaded, reason.OverloadUnavoidable:
		return true
	default:
		return false
	}
}

func isNativeMode(field string) bool {
	return strings.HasSuffix(field, "["+api.AnnotationTopologyMode+"]") ||
		strings.HasSuffix(field, "["+api.AnnotationTopologyAwareHints+"]")
}

// refusal gives the reason for a setting that is not followed.
func refusal(p reason.Finding) string {
	is := func(key string) bool { return strings.HasSuffix(p.Field, "["+key+"]") }
	switch {
	case is(api.LabelDistribution), isNativeMode(p.Field), p.Field == "spec.trafficDistribution":
		return reasonUnknownMode
	case is(api.AnnotationOverloadLimit):
		return reasonBadOverloadLimit
	case is(api.AnnotationDemand):
		return reasonBadDemand
	default:
		return reasonBadAnnotation
	}
}

// accept tells whether what the service asks for is understood. The mode counts more than the rest.
func accept(d *plans.Decision) metav1.Condition {
	c := metav1.Condition{Type: api.ConditionAccepted, Status: metav1.ConditionFalse}
	if d.Record.Service == nil {
		c.Reason, c.Message = reasonExternalName, "a Service of type ExternalName has no endpoints to distribute requests over"
		return c
	}
	var notes []string
	for _, p := range d.Record.Refused() {
		if r := refusal(p); c.Reason == "" || r == reasonUnknownMode {
			c.Reason = r
		}
		notes = append(notes, p.Text())
	}
	if len(notes) > 0 {
		c.Message = strings.Join(notes, "; ")
		return c
	}
	c.Status, c.Reason = metav1.ConditionTrue, reasonAccepted
	c.Message = fmt.Sprintf("%s, asked for by %s", modeOf(d), d.Record.Asked)
	for _, p := range d.Record.Problems {
		if isNativeMode(p.Field) { // which is passed over for the label
			c.Reason = reasonConflictingModes
			c.Message += "; " + p.Field + ": " + p.Message
		}
	}
	return c
}

// program tells whether the EndpointSlices say what the service asks for.
func program(d *plans.Decision, o Outcome, late time.Duration) metav1.Condition {
	c := metav1.Condition{Type: api.ConditionProgrammed, Status: metav1.ConditionFalse}
	failure := kindOf(o.Err)
	why, message, ok := planned(d)
	switch {
	case failure.lasts() || failure != none && late >= patience && !o.Undone: // a writer that removes hints causes conflicts, too
		c.Reason = reasonWriteRefused
		c.Message = fmt.Sprintf("%s: %d of %d EndpointSlices do not say the plan: %v", failure, o.Pending, o.Slices, o.Err)
	case !ok:
		c.Reason, c.Message = why, message
	case o.Undone:
		c.Reason, c.Message = reasonHintsUndone, textHintsUndone
	case o.Pending > 0 && late >= patience:
		c.Reason = reasonWritePending
		c.Message = fmt.Sprintf("%d of %d EndpointSlices do not say the plan yet", o.Pending, o.Slices)
	case !o.done():
		c.Status = "" // this passes
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, why, message
	}
	return c
}

// planned gives what the plans come to, as the reason and the message of a condition, and whether it is what the service
// asked for. A family without endpoints has no say while the other has some.
func planned(d *plans.Decision) (why, message string, ok bool) {
	if !d.Record.Managed {
		return reasonNotManaged, "no good distribution of it is known: its hints are left alone", false
	}
	used := inUse(d)
	if len(used) == 0 {
		code := nothingThere(d)
		return string(code), reason.New(code).String(), false
	}
	why, ok = reasonHinted, true
	var notes []string
	for _, p := range used {
		r := p.Reasons[0]
		if !p.Hinted {
			r = obstacle(p)
		}
		notes = append(notes, p.Family.String()+": "+r.String())
		switch {
		case p.Hinted || !ok:
		case r.Code == reason.HintsDisabled:
			why = string(r.Code)
		default:
			why, ok = string(r.Code), false
		}
	}
	return why, strings.Join(notes, "; "), ok
}
