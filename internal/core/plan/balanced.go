package plan

import (
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// balanced keeps as much traffic in its zone as the overload limit allows and gives each ready endpoint the hints, of
// several zones where needed, that let consumers come closest to that.
//
// Every ready endpoint gets 1 to 8 hints and every zone with demand is named, unless there are more zones than hints.
// Source: weir's own; the reasoning and the measured distance from the best hints are in ADR-0005.
func balanced(p *prepared) allotment {
	if !usesCluster(p.Service) {
		return allotment{reasons: []reason.Reason{reason.New(reason.PolicyIsLocal)}}
	}
	if len(p.zones) == 0 {
		return allotment{reasons: []reason.Reason{reason.New(reason.NoZoneKnown)}}
	}
	apart := p.setApart()
	rest := p.without(apart)
	problem, t := newPuzzle(rest)
	b := &balance{prepared: rest, t: t, puzzle: problem, layout: problem.solve(), apart: apart}
	for z := range apart {
		if apart[z] {
			b.kept += float64(p.demand[z])
		}
	}
	b.layout.sort()
	b.score = b.layout.score()
	b.fresh = b.score
	sets := b.keep()
	if sets == nil {
		sets = b.assign()
	}
	hints := b.hintsOf(sets)
	for _, i := range p.ready {
		if z := p.home[i]; z >= 0 && apart[z] {
			hints[i].Zones = p.zones[z : z+1 : z+1]
		}
	}
	return allotment{hints: hints, reasons: b.reasons()}
}

// balance is a layout on its way to hints.
type balance struct {
	*prepared
	t      *translation
	puzzle *puzzle
	layout *layout
	score  score   // of layout
	fresh  score   // of the layout that would be if nothing were there
	apart  []bool  // see setApart
	kept   float64 // the demand of those zones: fraction of all requests
}

// hintsOf names the zones of each ready endpoint's set. Endpoints with the same set share one list.
func (b *balance) hintsOf(sets []zoneSet) []topology.Hints {
	hints := make([]topology.Hints, len(b.endpoints))
	named := make(map[zoneSet]topology.Hints, len(b.layout.groups))
	for k, i := range b.ready {
		h, ok := named[sets[k]]
		if !ok {
			h = b.t.hints(b.prepared, sets[k])
			named[sets[k]] = h
		}
		hints[i] = h
	}
	return hints
}

// reasons says what the layout comes to, and what a person should know about the input. It looks at what the hints are,
// not at whether they are new, so that planning again gives the same reasons.
func (b *balance) reasons() []reason.Reason {
	overload := b.puzzle.overload(b.score)
	above := overload > b.Limits.Start+tolerance
	avoidable := b.puzzle.overload(b.fresh) <= b.Limits.Start+tolerance
	code := reason.HintsBalanced
	if above && avoidable {
		code = reason.HintsKept
	}
	reasons := []reason.Reason{reason.New(code).
		With("inZone", b.whole(b.score.inZone), reason.Ratio).
		With("overload", overload, reason.Ratio).
		With("limit", b.Limits.Start, reason.Ratio).
		With("stop", b.Limits.Stop, reason.Ratio)}
	if above && !avoidable {
		reasons = append(reasons, reason.New(reason.OverloadUnavoidable).
			With("overload", overload, reason.Ratio).
			With("limit", b.Limits.Start, reason.Ratio))
	}
	if best := b.puzzle.ideal(); best > b.score.inZone+coarse {
		reasons = append(reasons, reason.New(reason.HintsTooCoarse).
			With("inZone", b.whole(b.score.inZone), reason.Ratio).
			With("best", b.whole(best), reason.Ratio))
	}
	return append(reasons, b.remarks()...)
}

// whole turns a part of the puzzle's requests that stay in their zone into one of all requests.
func (b *balance) whole(inZone float64) float64 { return b.kept + (1-b.kept)*inZone }

// coarse is how much of the traffic exact shares have to keep in zone beyond what hints do to be worth a word: less than
// a hundredth would print as the same number.
const coarse = 0.01

// remarks names what was left out or had to be guessed.
func (b *balance) remarks() []reason.Reason {
	var remarks []reason.Reason
	add := func(code reason.Code, objects []string) {
		if len(objects) > 0 {
			remarks = append(remarks, reason.New(code, objects...))
		}
	}
	add(reason.NodesWithoutZone, b.Survey.WithoutZone)
	switch {
	case b.guessed:
		remarks = append(remarks, reason.New(reason.DemandByEndpoints))
	case b.nodesCountEqually():
		remarks = append(remarks, reason.New(reason.NodesCountEqually))
	case len(normal(b.Demand)) == 0:
		add(reason.NodesWithoutCPU, b.Survey.WithoutCPU)
	}
	add(reason.EndpointsWithoutZone, b.withoutZone())
	var lost, idle, unnamed []string
	for i, zone := range b.zones {
		bit := b.t.bit[i]
		switch {
		case b.apart[i] && b.isLost(i):
			lost = append(lost, string(zone))
		case b.apart[i]:
		case b.demand[i] == 0:
			idle = append(idle, string(zone))
		case bit < 0 || b.layout.hinted[bit] == 0:
			unnamed = append(unnamed, string(zone))
		}
	}
	add(reason.ZonesNotReady, lost)
	if len(normal(b.Demand)) > 0 {
		add(reason.ZonesWithoutShare, idle)
	} else {
		add(reason.ZonesWithoutDemand, idle)
	}
	add(reason.ZonesUnnamed, unnamed)
	return remarks
}
