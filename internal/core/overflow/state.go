package overflow

import (
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/reason"
)

// story is what people are told: the state, and why and when it was entered (docs/overflow-law.md 8).
type story struct {
	begun  bool
	state  State
	reason reason.Reason
	since  time.Duration
}

func (s *story) begin(now time.Duration) {
	if s.begun {
		return
	}
	*s = story{begun: true, state: Calm, reason: reason.New(reason.ZoneCopes), since: now}
}

// stateLasts is the shortest time that a state is reported: near a limit the law crosses it several times a second, which no reader
// of a log can follow. Calm is left at once.
const stateLasts = time.Second

// tell moves the state to where the law stands.
func (s *story) tell(m moment, w *weir) {
	if s.state != Calm && m.now-s.since < stateLasts {
		return
	}
	state, code := w.stands(s.state)
	code = w.ofNode(code)
	if state == s.state && !s.renamed(code) {
		return
	}
	s.state, s.since = state, m.now
	s.reason = w.why(code)
}

// renamed tells whether the same state has another cause now: evacuated by the law, by health or by an operator.
func (s *story) renamed(code reason.Code) bool {
	return s.state == Evacuated && s.reason.Code != code
}

// stands gives the law's state and its cause.
func (w *weir) stands(before State) (State, reason.Code) {
	here := w.zones[0]
	h := &w.home
	switch {
	case !here.open && here.drained:
		return Evacuated, reason.ZoneDrained
	case !here.open:
		return Evacuated, reason.ZoneUnusable
	case !h.armed && before == Calm:
		return Calm, reason.ZoneCopes
	case !h.armed:
		return Calm, reason.ZoneReturned
	case h.evacuated && h.shut:
		return Evacuated, reason.ZoneProbed
	case h.evacuated:
		return Evacuated, reason.ZoneEvacuated
	case h.recovering:
		return Recovering, reason.ZoneRecovering
	case w.noBetter && w.stayed > 0, before == NoHelp && here.share > nearlyAll:
		return NoHelp, reason.NoZoneIsBetter
	case here.sensor.slowdown > w.crisisAt(before):
		return Crisis, reason.ZoneInCrisis
	case here.sensor.slowdown > w.k.HomeSlowdown:
		return Overflow, reason.ZoneSlow
	case before == Overflow:
		return Overflow, w.story.reason.Code
	default:
		return Overflow, reason.ZoneReturning
	}
}

// ofNode says of the client's node what the law says of a zone, where home is the node and the zone has other endpoints.
func (w *weir) ofNode(code reason.Code) reason.Code {
	if !slices.ContainsFunc(w.zones, func(z *zone) bool { return z.group.Near }) {
		return code
	}
	switch code {
	case reason.ZoneCopes:
		return reason.NodeCopes
	case reason.ZoneReturned:
		return reason.NodeReturned
	case reason.ZoneUnusable, reason.ZoneEvacuated, reason.ZoneProbed:
		return reason.NodeUnusable
	case reason.ZoneSlow, reason.ZoneInCrisis, reason.ZoneRecovering, reason.ZoneReturning:
		return reason.NodeSlow
	default:
		return code
	}
}

// nearlyAll is a share of home at which nothing has been spilled but tests of other zones.
const nearlyAll = 0.95

// crisisAt is the slowdown of a crisis; it is left only when home is back at its limit.
func (w *weir) crisisAt(before State) float64 {
	if before == Crisis {
		return w.k.HomeSlowdown
	}
	return w.crisis
}

// why gives the reason with its numbers.
func (w *weir) why(code reason.Code) reason.Reason {
	s := &w.zones[0].sensor
	r := reason.New(code)
	if zone := w.zones[0].group.Zone; zone != "" {
		r = reason.New(code, string(zone))
	}
	switch code {
	case reason.ZoneSlow:
		return r.With("slowdown", s.slowdown, reason.Factor).With("limit", w.k.HomeSlowdown, reason.Factor)
	case reason.ZoneInCrisis, reason.ZoneEvacuated:
		return r.With("slowdown", s.slowdown, reason.Factor).With("delivered", s.delivered, reason.Ratio)
	case reason.ZoneRecovering, reason.ZoneProbed:
		return r.With("answers", w.home.needed, reason.Count)
	case reason.ZoneReturned, reason.ZoneReturning, reason.NoZoneIsBetter:
		return r.With("slowdown", s.slowdown, reason.Factor)
	default:
		return r
	}
}
