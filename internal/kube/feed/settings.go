package feed

import (
	"slices"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
)

// KeepLastGood does for a record that was made of a cluster's objects alone what a feed does for those of its first state: it
// replaces a mode that is refused by the last good one that the objects still show.
func KeepLastGood(r *Record) {
	if r.Service != nil {
		keepLastGood(r, nil)
	}
}

// keepLastGood replaces each setting that is refused by its last good value.
//
// A mode is last known from the record before, if weir managed the service then; else from the mark on its slices, which
// outlives a restart. Where neither is known, the service is left alone until its mode is corrected. The other settings are not
// marked anywhere, so that a restart gives them their defaults.
func keepLastGood(r, before *Record) {
	if before != nil && (before.Service == nil || before.Object.UID != r.Object.UID) {
		before = nil // another service of that name
	}
	for i := range r.Problems {
		switch p := &r.Problems[i]; {
		case !p.IsRefused():
		case isModeField(p.Field):
			p.Instead = keepMode(r, before)
		case before != nil:
			keepSetting(p.Field, r.Service, before.Service)
			p.Instead = "the last good value stays"
		}
	}
}

// isModeField tells whether a distribution mode is written in a field of a Service.
func isModeField(field string) bool {
	switch field {
	case "metadata.labels[" + api.LabelDistribution + "]",
		"metadata.annotations[" + api.AnnotationTopologyMode + "]",
		"metadata.annotations[" + api.AnnotationTopologyAwareHints + "]",
		"spec.trafficDistribution":
		return true
	default:
		return false
	}
}

// keepMode says what counts instead of the mode that is refused.
func keepMode(r, before *Record) (instead string) {
	mode, ok := markedMode(r)
	if before != nil && before.Managed {
		mode, ok = before.Service.Mode, true
	}
	if !ok {
		r.Managed = false
		return "the hints are left alone"
	}
	r.Service.Mode = mode
	return string(mode) + " stays"
}

// markedMode gives the mode that weir last wrote hints for.
func markedMode(r *Record) (topology.Mode, bool) {
	for _, s := range r.Slices {
		if mode, err := topology.ParseMode(s.Annotations[api.AnnotationHints]); err == nil {
			return mode, true
		}
	}
	return topology.ModeUnset, false
}

// keepSetting keeps what one annotation said before.
func keepSetting(field string, now, before *topology.Service) {
	switch field {
	case "metadata.annotations[" + api.AnnotationOverloadLimit + "]":
		now.OverloadLimit = before.OverloadLimit
	case "metadata.annotations[" + api.AnnotationDemand + "]":
		now.Demand = slices.Clone(before.Demand)
	case "metadata.annotations[" + api.AnnotationStrategy + "]":
		now.Overflow.Strategy = before.Overflow.Strategy
	case "metadata.annotations[" + api.AnnotationPrefer + "]":
		now.Overflow.Prefer = before.Overflow.Prefer
	case "metadata.annotations[" + api.AnnotationOverload + "]":
		now.Overflow.Shed = before.Overflow.Shed
	case "metadata.annotations[" + api.AnnotationDrainZone + "]":
		now.Overflow.Drains = slices.Clone(before.Overflow.Drains)
	}
}
