package plan

import (
	"cmp"
	"math"
	"slices"
)

// setApart finds the zones whose endpoints serve their own zone alone, for each zone whether it is one: those that have no
// ready node, whose endpoints are ready only until the control plane notices that they are not, and those that a puzzle has
// no room for, as far as their endpoints can take their demand.
func (p *prepared) setApart() []bool {
	apart, n := make([]bool, len(p.zones)), 0
	if p.someServe() {
		for z := range p.zones {
			if apart[z] = p.isLost(z); apart[z] {
				n++
			}
		}
	}
	var able []int
	for z := range p.zones {
		if ratio := p.load(z); !apart[z] && ratio > 0 && ratio <= 1+p.start() {
			able = append(able, z)
		}
	}
	slices.SortStableFunc(able, func(a, b int) int { // those that leave the fair part of the others as it is
		return cmp.Compare(math.Abs(p.load(a)-1), math.Abs(p.load(b)-1))
	})
	for _, z := range able[:max(0, min(len(able), len(p.zones)-n-maxZones))] {
		apart[z] = true
	}
	return apart
}

// isLost tells whether a zone has nodes, none of them is ready, and no request is expected from there.
func (p *prepared) isLost(z int) bool {
	_, ok := slices.BinarySearch(p.Survey.Lost, p.zones[z])
	return ok && p.demand[z] == 0 && p.readyIn[z] > 0
}

// someServe tells whether there are ready endpoints that are in no lost zone.
func (p *prepared) someServe() bool {
	return slices.ContainsFunc(p.ready, func(i int) bool { return p.home[i] < 0 || !p.isLost(p.home[i]) })
}

// fair lists the ready endpoints that should get a part of all requests.
func (p *prepared) fair(ready []int) []int {
	if len(p.Survey.Lost) == 0 || !p.someServe() {
		return ready
	}
	return filter(ready, func(i int) bool { return p.home[i] < 0 || !p.isLost(p.home[i]) })
}

// load is what an endpoint of a zone gets of its own zone's demand, as a multiple of the fair part of all; 0: there is none.
func (p *prepared) load(z int) float64 {
	if p.readyIn[z] == 0 {
		return 0
	}
	return float64(p.demand[z]) * float64(len(p.ready)) / float64(p.readyIn[z])
}

// without gives what is left without some zones: their endpoints and their demand.
func (p *prepared) without(apart []bool) *prepared {
	if !slices.Contains(apart, true) {
		return p
	}
	rest := *p
	isApart := func(i int) bool { return p.home[i] >= 0 && apart[p.home[i]] }
	rest.ready = slices.DeleteFunc(slices.Clone(p.ready), isApart)
	rest.demand = slices.Clone(p.demand)
	sum := Share(0)
	for z := range rest.demand {
		if apart[z] {
			rest.demand[z] = 0
		}
		sum += rest.demand[z]
	}
	for z := range rest.demand {
		if sum > 0 {
			rest.demand[z] /= sum
		}
	}
	return &rest
}
