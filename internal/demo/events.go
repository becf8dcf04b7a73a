package demo

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// event is a change at a time of the run.
type event struct {
	at time.Duration
	do func() error
}

// endpointState is how the endpoints of a play are doing.
type endpointState struct {
	faults []scenario.Condition
	lost   []bool
	since  []time.Duration // when those that are lost were
	api    apiState
}

// events lists all changes but those of rates, by time.
//
// What changes in the API no agent knows at once: each hears of it after a delay of its own.
func (p *play) events() []event {
	n := len(p.layout.endpoints)
	s := &endpointState{
		faults: make([]scenario.Condition, n), lost: make([]bool, n), since: make([]time.Duration, n),
		api: apiState{unready: make([]bool, n)},
	}
	delays := p.delays()
	var events []event
	tell := func(at time.Duration, change func(v *apiState)) {
		var told apiState
		events = append(events, event{at, func() error {
			change(&s.api)
			told = apiState{slices.Clone(s.api.unready), slices.Clone(s.api.drains)}
			return nil
		}})
		for i, delay := range delays {
			events = append(events, event{at + delay, func() error {
				p.specs[i].snapshots.Store(p.layout.snapshot(p.options.Player, told))
				return nil
			}})
		}
	}
	for i := range p.scenario.Steps {
		st := &p.scenario.Steps[i]
		if st.Verb == scenario.Rate {
			continue // the clients' arrivals have it
		}
		events = append(events, event{st.At, func() error { return p.apply(s, st) }})
		switch st.Verb {
		case scenario.Lose:
			tell(st.At+p.scenario.Discovery.Lost, func(v *apiState) {
				p.each(st, func(i int) {
					if s.lost[i] && s.since[i] == st.At { // not back, nor lost anew
						v.unready[i] = true
					}
				})
			})
		case scenario.Return:
			tell(st.At, func(v *apiState) { p.each(st, func(i int) { v.unready[i] = false }) })
		case scenario.Drain:
			if p.options.Player.Strategy == DefaultStrategy {
				until := time.Now().Add(st.At + st.Time)
				tell(st.At, func(v *apiState) { v.drains = append(v.drains, topology.Drain{Zone: st.Where.Zone, Until: until}) })
			}
		default:
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return events
}

// delays says how long after a change of the API each agent hears of it.
func (p *play) delays() []time.Duration {
	random := rand.New(rand.NewPCG(p.options.Seed, uint64(len(p.layout.endpoints)+len(p.layout.clients))))
	d := p.scenario.Discovery
	var delays []time.Duration
	for range p.specs {
		delays = append(delays, time.Duration(float64(d.Delay)*(1+d.Jitter*(2*random.Float64()-1))))
	}
	return delays
}

// each calls f for the endpoints that a step means.
func (p *play) each(st *scenario.Step, f func(i int)) {
	for i := range p.layout.endpoints {
		if p.layout.endpoints[i].isMeant(st.Where) {
			f(i)
		}
	}
}

// apply makes the endpoints that the step means do as it says.
func (p *play) apply(s *endpointState, st *scenario.Step) error {
	var failed error
	p.each(st, func(i int) {
		s.faults[i].Apply(st)
		switch st.Verb {
		case scenario.Lose:
			if !s.lost[i] {
				s.lost[i], s.since[i] = true, st.At
			}
		case scenario.Return:
			s.lost[i] = false
		default:
		}
		next := s.faults[i]
		if s.lost[i] {
			next.Hang, next.Refuse = true, false // there is no node that could refuse
		}
		failed = cmp.Or(failed, p.endpoints[i].set(next))
	})
	return failed
}
