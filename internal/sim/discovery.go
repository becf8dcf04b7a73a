package sim

import (
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// portRule is the part of the service that clients use.
type portRule struct {
	topology.Port

	family topology.Family
}

func portOf(sc *scenario.Scenario) portRule {
	svc := sc.Snapshot.Services[0]
	return portRule{Port: svc.Ports[0], family: svc.Families()[0]}
}

// discovery is what clients learn, in order: the endpoints and hints of each change of the API.
type discovery struct {
	service *topology.Service // of the last change
	plan    *plan.Plan
	all     []update
	checks  int // how often health checks have changed their minds
}

// update is what one change makes of the clients' targets.
type update struct {
	classes map[class]*classTargets
	skew    overflow.Skew // that policies allow, and the demand that the plan expects
}

// class is a class of clients: all have the same targets.
type class struct {
	zone topology.Zone
	node string
}

// classTargets is what the clients of a class send to.
type classTargets struct {
	targets  []pick.Target
	prepared *pick.Prepared
	checks   int // how often health checks had changed their minds then
}

// observe looks at the API and, if it says something new, makes the update; it tells whether there is one.
func (s *Simulation) observe() bool {
	k, snapshot := &s.discovery, s.cluster.Snapshot()
	if snapshot.Services[0] == k.service {
		return false
	}
	k.service = snapshot.Services[0]
	service := *k.service
	service.Mode = s.options.Strategy.Mode
	input := plan.InputOf(&snapshot, plan.SurveyNodes(snapshot.Nodes), &service, s.port.family)
	input.Previous = k.plan
	input.MaxSkew = s.maxSkew()
	p := plan.Compute(input)
	k.plan = &p
	u := update{classes: make(map[class]*classTargets)}
	if input.MaxSkew > 0 {
		u.skew = overflow.Skew{Max: input.MaxSkew, Demand: p.DemandByZone()}
	}
	query := route.Query{
		Service: &service, Endpoints: p.Endpoints, Port: s.port.Port,
		Costs: snapshot.Costs, Regions: snapshot.Regions(), Settings: s.options.Strategy.Settings,
		KeepsHome: s.options.Strategy.KeepsHome, Mode: service.Mode,
	}
	for i := range s.clients {
		at := s.classOf(&s.clients[i])
		if u.classes[at] != nil {
			continue
		}
		query.Client = policy.Client{Node: at.node, Zone: at.zone}
		u.classes[at] = &classTargets{targets: route.Select(query).Endpoints, checks: -1}
	}
	k.all = append(k.all, u)
	return true
}

// maxSkew is what policies say of the skew; 0: nothing.
func (s *Simulation) maxSkew() float64 {
	if p := s.options.Strategy.Settings; p != nil && p.Locality.MaxSkew != nil {
		return float64(*p.Locality.MaxSkew)
	}
	return 0
}

// classOf gives the class of a client. The node counts only where hints or policies look at it.
func (s *Simulation) classOf(c *client) class {
	at := class{zone: s.zones[c.zone].Zone, node: c.node}
	nodes := s.zones[c.zone].nodes
	if s.options.Strategy.Mode != topology.ModePreferSameNode &&
		s.discovery.service.InternalPolicy != topology.PolicyLocal && len(nodes) > 0 {
		at.node = nodes[0]
	}
	return at
}

// announce lets each client learn of the last change, when it is its turn.
func (s *Simulation) announce() {
	number := len(s.discovery.all) - 1
	d := &s.sc.Discovery
	for i := range s.clients {
		at := s.now + s.clients[i].delayed(d.Delay, d.Jitter)
		s.agenda.add(at, evLearn, uint32(i), uint32(number)) //nolint:gosec // indexes.
	}
}

// delayed spreads a delay over the clients.
func (c *client) delayed(d time.Duration, jitter float64) time.Duration {
	return max(0, d+time.Duration(float64(d)*jitter*c.late))
}

// learn gives a client the targets of an update, unless it has a later one.
func (s *Simulation) learn(i uint32, number int) {
	c := &s.clients[i]
	if number < c.latest {
		return
	}
	c.latest = number
	k := &s.discovery
	c.capped.Skew = k.all[number].skew
	a := k.all[number].classes[s.classOf(c)]
	if a.checks != k.checks {
		a.checks = k.checks
		a.prepared = pick.Prepare(s.options.Strategy.Pool, s.healthy(a.targets))
	}
	c.pool.Apply(s.now, a.prepared)
	s.wake(i)
}

// healthy gives the targets with those marked that active health checks have found to be dead.
func (s *Simulation) healthy(targets []pick.Target) []pick.Target {
	marked := make([]pick.Target, len(targets))
	copy(marked, targets)
	for i := range marked {
		if v, ok := s.byAddr[marked[i].Addr.Addr()]; ok && s.servers[v].marked {
			marked[i].Unready = true
		}
	}
	return marked
}

// examine begins the time after which health checks notice what has happened to an endpoint.
func (s *Simulation) examine(id int) {
	v := &s.servers[id]
	dead := v.lost || v.fault.Hang || v.refusing()
	if dead == v.dead {
		return
	}
	v.dead = dead
	v.state++
	if s.options.Strategy.Checks > 0 {
		s.agenda.add(s.now+s.options.Strategy.Checks, evCheck, uint32(id), v.state) //nolint:gosec // an index.
	}
}

// check is the moment at which health checks notice, if nothing has changed since they began to doubt. They belong to
// each client; all notice at the same time.
func (s *Simulation) check(id int, state uint32) {
	v := &s.servers[id]
	if v.state != state || v.marked == v.dead {
		return
	}
	v.marked = v.dead
	s.discovery.checks++
	for i := range s.clients {
		s.learn(uint32(i), s.clients[i].latest) //nolint:gosec // an index.
	}
}
