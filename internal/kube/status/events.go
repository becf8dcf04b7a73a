package status

import (
	"fmt"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/events"
	"github.com/weir-lb/weir/internal/kube/feed"
)

// Reasons of events: those of Kubernetes 1.36 for mode Auto and for failures, and their like for the other modes.
const (
	eventAutoOn       = "TopologyAwareHintsEnabled"
	eventAutoOff      = "TopologyAwareHintsDisabled"
	eventOn           = "TrafficDistributionEnabled"
	eventOff          = "TrafficDistributionDisabled"
	eventFailedUpdate = "FailedToUpdateEndpointSlices"
)

// Texts of Kubernetes 1.36 for mode Auto.
const (
	textAutoOn          = "Topology Aware Hints has been enabled"
	textAutoOff         = "Topology Aware Hints has been disabled"
	textNodes           = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
	textOneZone         = "Nodes only ready in one zone"
	textEndpoints       = "Insufficient number of endpoints (%d endpoints, %d zones)"
	textOverload        = "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold (%d endpoints, %d zones)"
	textEndpointsZone   = "One or more endpoints do not have a zone specified"
	textFamily          = "%s, addressType: %s"
	textFailedUpdate    = "Error updating Endpoint Slices for Service %s/%s: %v"
	textNoLongerManaged = "hints are no longer managed"
)

// notice is an event to be sent. Kubernetes takes events that agree in all but the note for one, so that action tells
// apart what should stay two.
type notice struct{ kind, reason, action, note string }

// begin takes what the Service's conditions say as reported already: the process may be new, the Service is not. A Service
// that chooses a mode and has no conditions was never reported on; for others only changes are reported.
func (m *memory) begin(r *feed.Record, v verdict, o Outcome) {
	m.warned = make(map[string]bool)
	m.asked = len(v.conditions) > 0
	accepted := meta.FindStatusCondition(r.Object.Status.Conditions, api.ConditionAccepted)
	programmed := meta.FindStatusCondition(r.Object.Status.Conditions, api.ConditionProgrammed)
	if !m.asked {
		m.families = v.families
		return
	}
	now := v.conditions[1]
	switch {
	case programmed == nil:
	case now.Status == "", programmed.Status == now.Status && programmed.Reason == now.Reason,
		programmed.Reason == reasonHintsUndone: // which says nothing new about hints
		m.families = v.families
	case programmed.Reason == reasonHinted:
		for family, s := range v.families {
			if s.mode != topology.ModeUnset {
				m.families[family] = state{mode: s.mode, hinted: true}
			}
		}
	}
	if programmed != nil && programmed.Reason == reasonWriteRefused && programmed.Reason == now.Reason {
		m.failure = kindOf(o.Err)
	}
	for _, w := range v.warnings {
		told := programmed != nil
		if isRefusal(w.reason) {
			told = accepted != nil && accepted.Status == metav1.ConditionFalse
		}
		if told {
			m.warned[w.key] = true
		}
	}
}

// notices lists what a verdict has that was not reported yet, and takes it as reported.
func (m *memory) notices(r *feed.Record, v verdict, o Outcome) []notice {
	var list []notice
	speaks := m.asked || len(v.conditions) > 0 // a Service that chose a mode until now gets a last event
	m.asked = len(v.conditions) > 0
	for _, family := range topology.Families() {
		before, now := m.families[family], v.families[family]
		if now.hinted && !o.done() {
			continue // not before it is true
		}
		m.families[family] = now
		if speaks && before != now {
			list = append(list, transition(before, now, v.plans[family], family)...)
		}
	}
	list = append(list, m.alerts(v.warnings)...)
	return append(list, m.failed(r, o)...)
}

// transition gives the events of a family that went from one state to another.
func transition(before, now state, p *plan.Plan, family topology.Family) []notice {
	event := func(kind, reason, why, text string) notice {
		return notice{kind, reason, why + family.String(), fmt.Sprintf(textFamily, text, family)}
	}
	var list []notice
	wasAuto, wasOther := before.hinted && before.mode == topology.ModeAuto, before.hinted && before.mode != topology.ModeAuto
	if wasAuto && now.mode != topology.ModeAuto {
		list = append(list, event(corev1.EventTypeWarning, eventAutoOff, "Unhint", textAutoOff))
	}
	switch {
	case now.hinted && now.mode == topology.ModeAuto:
		list = append(list, event(corev1.EventTypeNormal, eventAutoOn, "Hint", textAutoOn))
	case now.hinted:
		list = append(list, event(corev1.EventTypeNormal, eventOn, "Hint", p.Reasons[0].String()))
	case now.mode == topology.ModeUnset:
		if wasOther {
			list = append(list, event(corev1.EventTypeNormal, eventOff, "Unhint", textNoLongerManaged))
		}
	case isEmpty(p) && !before.hinted: // a service that has no pods yet, or a family that it does not use
	case now.mode == topology.ModeAuto:
		list = append(list, event(corev1.EventTypeWarning, eventAutoOff, string(now.code), autoText(p)))
	case now.code == reason.HintsDisabled:
		if wasOther {
			list = append(list, event(corev1.EventTypeNormal, eventOff, string(now.code), obstacle(p).String()))
		}
	default:
		list = append(list, event(corev1.EventTypeWarning, eventOff, string(now.code), obstacle(p).String()))
	}
	return list
}

// autoText says in the words of Kubernetes why mode Auto gives no hints, and in weir's where Kubernetes has none.
func autoText(p *plan.Plan) string {
	ready, zones := 0, 0
	for i := range p.Endpoints {
		if p.Endpoints[i].IsReady() {
			ready++
		}
	}
	for i := range p.Zones {
		if p.Zones[i].Demand > 0 {
			zones++
		}
	}
	why := obstacle(p)
	switch why.Code {
	case reason.NodesWithoutZone, reason.NodesWithoutCPU:
		return textNodes
	case reason.TooFewZones:
		if why.Values[0].Number == 0 {
			return textNodes
		}
		return textOneZone
	case reason.TooFewEndpoints, reason.NoEndpoints:
		return fmt.Sprintf(textEndpoints, ready, zones)
	case reason.OverloadTooHigh:
		return fmt.Sprintf(textOverload, ready, zones)
	case reason.EndpointsWithoutZone:
		return textEndpointsZone
	default:
		return why.String()
	}
}

// alerts gives the warnings that were not there before.
func (m *memory) alerts(now []warning) []notice {
	var list []notice
	before := m.warned
	m.warned = make(map[string]bool, len(now))
	for _, w := range now {
		if !before[w.key] {
			list = append(list, notice{corev1.EventTypeWarning, w.reason, w.about, w.note})
		}
		m.warned[w.key] = true
	}
	return list
}

// failed reports an error of the API server, once until it is another one or all is well. That another writer was
// first is worth a word only where looking again did not help.
func (m *memory) failed(r *feed.Record, o Outcome) []notice {
	failure := kindOf(o.Err)
	if failure == none {
		m.failures = 0
		if o.done() {
			m.failure = none
		}
		return nil
	}
	m.failures++
	if failure == m.failure || failure == stale && m.failures == 1 {
		return nil
	}
	m.failure = failure
	note := fmt.Sprintf(textFailedUpdate, r.Name.Namespace, r.Name.Name, o.Err)
	return []notice{{corev1.EventTypeWarning, eventFailedUpdate, "Write" + string(failure), note}}
}

// Limits of the Events API, in bytes.
const (
	maxNote   = 1024
	maxAction = 128
)

func (r *Reporter) send(s *corev1.Service, n notice) {
	r.metrics.events.WithLabelValues(n.reason).Inc()
	if r.events == nil {
		return
	}
	r.events.Send(events.Event{
		Regarding: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Service", Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion,
		},
		Type: n.kind, Reason: n.reason, Action: cut(n.action, maxAction), Note: cut(n.note, maxNote),
	})
}

// cut shortens text to a number of bytes, at the border of a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const dots = "…"
	end := limit - len(dots)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}

func isRefusal(reason string) bool {
	switch reason {
	case reasonUnknownMode, reasonBadOverloadLimit, reasonBadDemand, reasonBadAnnotation:
		return true
	default:
		return false
	}
}
