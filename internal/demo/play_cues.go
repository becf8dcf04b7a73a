package demo

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// cue is a change of the world at a time.
type cue struct {
	at time.Duration
	do func() error
}

// view is what the API says that changes during a play.
type view struct {
	unready []bool // by endpoint; nil: none
	drains  []topology.Drain
}

// state is how the endpoints of a play are doing.
type state struct {
	faults []scenario.Condition
	lost   []bool
	since  []time.Duration // when those that are lost were
	view   view
}

// cues lists all changes but those of rates, by time.
//
// What the API says changes at once for nobody: each agent hears of it after a delay of its own.
func (p *play) cues() []cue {
	n := len(p.stage.endpoints)
	s := &state{
		faults: make([]scenario.Condition, n), lost: make([]bool, n), since: make([]time.Duration, n),
		view: view{unready: make([]bool, n)},
	}
	delays := p.delays()
	var cues []cue
	tell := func(at time.Duration, change func(v *view)) {
		var told view
		cues = append(cues, cue{at, func() error {
			change(&s.view)
			told = view{slices.Clone(s.view.unready), slices.Clone(s.view.drains)}
			return nil
		}})
		for i, delay := range delays {
			cues = append(cues, cue{at + delay, func() error {
				p.seats[i].snapshots.Store(p.stage.snapshot(p.options.Player, told))
				return nil
			}})
		}
	}
	for i := range p.scenario.Steps {
		st := &p.scenario.Steps[i]
		if st.Verb == scenario.Rate {
			continue
		}
		cues = append(cues, cue{st.At, func() error { return p.act(s, st) }})
		switch st.Verb {
		case scenario.Lose:
			tell(st.At+p.scenario.Discovery.Lost, func(v *view) {
				p.each(st, func(i int) {
					if s.lost[i] && s.since[i] == st.At { // not back, nor lost anew
						v.unready[i] = true
					}
				})
			})
		case scenario.Return:
			tell(st.At, func(v *view) { p.each(st, func(i int) { v.unready[i] = false }) })
		case scenario.Drain:
			if p.options.Player.Strategy == DefaultStrategy {
				until := time.Now().Add(st.At + st.Time)
				tell(st.At, func(v *view) { v.drains = append(v.drains, topology.Drain{Zone: st.Where.Zone, Until: until}) })
			}
		default:
		}
	}
	slices.SortStableFunc(cues, func(a, b cue) int { return cmp.Compare(a.at, b.at) })
	return cues
}

// delays says how long after a change of the API each agent hears of it.
func (p *play) delays() []time.Duration {
	random := rand.New(rand.NewPCG(p.options.Seed, uint64(len(p.stage.endpoints)+len(p.stage.clients))))
	d := p.scenario.Discovery
	var delays []time.Duration
	for range p.seats {
		delays = append(delays, time.Duration(float64(d.Delay)*(1+d.Jitter*(2*random.Float64()-1))))
	}
	return delays
}

// each calls f for the endpoints that a step means.
func (p *play) each(st *scenario.Step, f func(i int)) {
	for i := range p.stage.endpoints {
		if p.stage.endpoints[i].isMeant(st.Where) {
			f(i)
		}
	}
}

// act makes the endpoints that the step means do as it says.
func (p *play) act(s *state, st *scenario.Step) error {
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
			next.Hang, next.Refuse = true, false // nobody is there who could refuse
		}
		if err := p.world.endpoints[i].set(next); err != nil && failed == nil {
			failed = err
		}
	})
	return failed
}

// snapshot is the cluster as the API says that it is.
func (s *playStage) snapshot(p Player, v view) topology.Snapshot {
	world := s.world
	svc := *world.Services[0]
	svc.Mode = p.Mode
	svc.Overflow.Drains = slices.Concat(svc.Overflow.Drains, v.drains)
	svc.Endpoints = slices.Clone(svc.Endpoints)
	world.Nodes = slices.Clone(world.Nodes)
	alive := make(map[topology.Zone]bool)
	for i := range svc.Endpoints {
		if v.unready != nil && v.unready[i] {
			svc.Endpoints[i].Ready, svc.Endpoints[i].Serving = topology.False, topology.False
		} else if s.endpoints[i].Cluster == "" {
			alive[s.endpoints[i].Zone] = true
		}
	}
	for i := range world.Nodes {
		if n := &world.Nodes[i]; s.isHome(n.Zone) && !alive[n.Zone] {
			n.Ready = false
		}
	}
	world.Services = []*topology.Service{&svc}
	return world
}

// isHome tells whether the zone has endpoints, in the clients' own cluster.
func (s *playStage) isHome(zone topology.Zone) bool {
	return slices.ContainsFunc(s.endpoints, func(e playEndpoint) bool { return e.Zone == zone && e.Cluster == "" })
}
