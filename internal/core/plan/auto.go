package plan

import (
	"github.com/weir-lb/weir/internal/core/reason"
)

// auto hints each ready endpoint to one zone, so that each zone has endpoints by its share of the demand: its own ones
// first, the surplus of rich zones to poor ones.
//
// Source: KEP-2433. How its text is read where it leaves a choice, and where weir departs from the controller of
// Kubernetes 1.36, is in ADR-0003.
func auto(p *prepared) allotment {
	if obstacles := p.autoObstacles(); len(obstacles) > 0 {
		return allotment{reasons: obstacles}
	}
	a := newAllocation(p)
	if lost := p.withoutZone(); len(lost) > 0 {
		var reasons []reason.Reason
		if total(a.minimums(p.start())) > len(p.ready) {
			reasons = append(reasons, a.tooHigh())
		}
		return allotment{reasons: append(reasons, reason.New(reason.EndpointsWithoutZone, lost...))}
	}
	limit := p.start()
	if p.hinted {
		limit = p.stop()
	}
	minimums := a.minimums(limit)
	if total(minimums) > len(p.ready) {
		return allotment{reasons: []reason.Reason{a.tooHigh()}}
	}
	kept := a.keep()
	a.rest()
	if kept == 0 {
		a.level(minimums)
	}
	a.fill(minimums)
	because := reason.New(reason.HintsByShare).
		With("overload", a.overload(), reason.Ratio).
		With("limit", p.Limits.Stop, reason.Ratio)
	reasons := []reason.Reason{because}
	if p.nodesCountEqually() {
		reasons = append(reasons, reason.New(reason.NodesCountEqually))
	}
	return allotment{hints: a.hints(), reasons: reasons}
}

// tolerance absorbs rounding: that 6 endpoints over 5 equal zones are overloaded by exactly 20 % must not depend on the
// last bit of 0.2 × 6. It is far below any difference that counts of endpoints can make.
const tolerance = 1e-9

// start is the highest expected overload with which hints may start: below the limit.
func (p *prepared) start() float64 { return p.Limits.Start - tolerance }

// stop is the highest expected overload with which hints stay: at most the limit.
func (p *prepared) stop() float64 { return p.Limits.Stop + tolerance }

// autoObstacles lists what forbids hints before any split is tried.
func (p *prepared) autoObstacles() []reason.Reason {
	if !usesCluster(p.Service) { // KEP-4444's table: with external Local internal traffic still follows Auto
		return []reason.Reason{reason.New(reason.PolicyIsLocal)}
	}
	var obstacles []reason.Reason
	if len(p.Survey.WithoutZone) > 0 {
		obstacles = append(obstacles, reason.New(reason.NodesWithoutZone, p.Survey.WithoutZone...))
	}
	if unknown := p.Survey.WithoutCPU; len(unknown) > 0 && len(unknown) < p.Survey.Nodes {
		obstacles = append(obstacles, reason.New(reason.NodesWithoutCPU, unknown...))
	}
	if len(obstacles) > 0 {
		return obstacles
	}
	zones := p.autoZones()
	switch {
	case zones < 2:
		return []reason.Reason{reason.New(reason.TooFewZones).With("zones", float64(zones), reason.Count)}
	case len(p.ready) < zones:
		return []reason.Reason{reason.New(reason.TooFewEndpoints).
			With("endpoints", float64(len(p.ready)), reason.Count).
			With("zones", float64(zones), reason.Count)}
	}
	return nil
}

// autoZones counts the zones that have to get endpoints. Demand that was guessed from the endpoints does not count: it
// says nothing about nodes.
func (p *prepared) autoZones() int {
	if p.guessed {
		return 0
	}
	zones := 0
	for _, d := range p.demand {
		if d > 0 {
			zones++
		}
	}
	return zones
}

// withoutZone names the ready endpoints whose zone is not known.
func (p *prepared) withoutZone() []string {
	var names []string
	for _, i := range p.ready {
		if p.endpoints[i].Zone == "" {
			names = append(names, nameOf(&p.endpoints[i]))
		}
	}
	return names
}

// nodesCountEqually tells whether demand follows the number of nodes, because no node reports CPU.
func (p *prepared) nodesCountEqually() bool {
	return len(p.Survey.WithoutCPU) > 0 && len(p.Survey.WithoutCPU) == p.Survey.Nodes && len(normal(p.Demand)) == 0
}
