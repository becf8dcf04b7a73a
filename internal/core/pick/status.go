package pick

import (
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Status is a pool at one instant, for people and metrics. It shares nothing with the pool.
type Status struct {
	State     overflow.State
	Reason    reason.Reason // of the last change of state
	Since     time.Duration // when that was
	Baseline  time.Duration // the learned no-stress latency; 0: not known yet
	Shed      float64       // fraction of requests that are rejected
	Groups    []GroupStatus // in waterfall order, home first
	Endpoints []EndpointStatus
}

// GroupStatus is one group of a pool.
type GroupStatus struct {
	overflow.GroupStatus
	Zone      topology.Zone // the home group's: the client's
	Cluster   string
	Cost      topology.Cost
	Home      bool
	Endpoints int
	Ready     int           // of Endpoints
	Usable    int           // ready, neither sitting out nor drained, at the last tick
	RTT       time.Duration // how long connecting takes; 0: not known
	Drained   bool
	Tier      int
	Panics    bool // who sits out is used like everybody, as too few are left; see Config.Panic
}

// EndpointStatus is one endpoint of a pool, in the order of the last Update.
type EndpointStatus struct {
	Target
	Group     int // index into Status.Groups
	InFlight  int64
	Slowdown  float64       // recent, with prior; 1 is normal
	Out       bool          // sits out or is on trial
	Until     time.Duration // when its pause ends; meaningful while Out
	Ejections int64         // pauses ever
	Drained   bool
	Ramp      float64 // how much of its weight counts; below 1 while it starts slowly
}

// Brief is the part of a Status that shows whether something happened. It is cheap enough to be read after every tick.
type Brief struct {
	State     overflow.State
	Ejections int64 // pauses ever of the endpoints that are there: falls when one of them is removed
}

// Brief tells the little that changes seldom. It is safe for concurrent use and allocates nothing.
func (p *Pool) Brief() Brief {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := Brief{State: p.decision.State}
	for _, m := range p.members {
		b.Ejections += m.health.Total
	}
	return b
}

// Status tells how the pool stands. It is safe for concurrent use.
func (p *Pool) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := &p.decision
	s := Status{
		State: d.State, Reason: d.Reason, Since: d.Since, Baseline: d.Baseline, Shed: d.Shed,
		Groups: make([]GroupStatus, len(p.groups)), Endpoints: make([]EndpointStatus, len(p.members)),
	}
	for i, described := range scene(p.groups, p.options.Zone, len(p.members)).Groups {
		g := p.groups[i]
		s.Groups[i] = GroupStatus{
			Zone: described.Zone, Cluster: described.Cluster, Cost: g.Cost, Home: i == 0, Endpoints: len(g.Members),
			Ready: len(g.Ready), Usable: g.usable, RTT: time.Duration(g.rtt.Load()), Drained: g.drained,
			Tier: described.Tier, Panics: g.panics,
		}
		if i < len(d.Groups) {
			s.Groups[i].GroupStatus = d.Groups[i]
		}
	}
	for i, m := range p.members {
		s.Endpoints[i] = EndpointStatus{
			Target: m.target, Group: m.group, InFlight: m.inFlight(),
			Slowdown: float64(m.weight.Load()) / weightOne, Ramp: 1,
			Out: m.standing.Load() != serving, Until: m.health.Until, Ejections: m.health.Total, Drained: m.drained,
		}
		if ramp := m.ramp.Load(); ramp > 0 {
			s.Endpoints[i].Ramp = float64(ramp) / rampOne
		}
	}
	return s
}
