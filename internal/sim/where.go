package sim

import (
	"math"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// spot is an endpoint's place: its number among all endpoints of its zone.
type spot struct {
	zone         topology.Zone
	cluster      string
	place, count int
}

// has tells whether the endpoint at a spot is meant.
func has(w *scenario.Where, at spot) bool {
	if w.Zone != "" && w.Zone != at.zone || (w.Zone != "" || w.Cluster != "") && w.Cluster != at.cluster {
		return false
	}
	switch {
	case w.First > 0:
		return w.First <= at.place && at.place <= max(w.First, w.Last)
	case w.Part > 0:
		const rounding = 1e-9 // a half of six is three, whatever the last bit says
		return float64(at.place) <= math.Ceil(w.Part*float64(at.count)-rounding)
	default:
		return true
	}
}
