package demo

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/l7"
	"github.com/weir-lb/weir/internal/latest"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// playStage says who of a scenario listens where.
type playStage struct {
	service   *topology.Service // as the scenario has it
	world     topology.Snapshot // as the scenario has it, with addresses on loopback
	host      string            // the Host header of requests
	endpoints []playEndpoint    // in the world's order
	clients   []playClient      // by zone, then number
	server    scenario.Server
}

// playEndpoint is an endpoint of the world.
type playEndpoint struct {
	topology.Place

	addr  netip.AddrPort
	named netip.Addr // its address in the scenario
	place int        // its number in its zone, from 1 …
	count int        // … of so many
}

// isMeant tells whether a step's place names the endpoint.
func (e *playEndpoint) isMeant(w scenario.Where) bool {
	return w.Has(e.Zone, e.Cluster, e.place, e.count)
}

// playClient is a client, and its agent.
type playClient struct {
	topology.Place

	addr netip.AddrPort // of the agent
	name string         // of the agent's node
	row  int            // index in Scenario.Clients
}

// newPlayStage gives every endpoint and every agent a free address.
func newPlayStage(sc *scenario.Scenario) (*playStage, error) {
	s := &playStage{service: sc.World.Services[0], server: sc.Server}
	s.cast(sc)
	listeners := len(s.endpoints) + len(s.clients)
	var err error
	for port := firstPort; port <= lastPort; port += portStep {
		for _, at := range []func(int) netip.AddrPort{ownAddress(uint16(port)), ownPort(uint16(port))} {
			if err = s.assign(at); err == nil {
				s.settle(sc)
				return s, nil
			}
		}
	}
	return nil, fmt.Errorf("find loopback addresses for %d listeners: %w", listeners, err)
}

// cast lists who plays.
func (s *playStage) cast(sc *scenario.Scenario) {
	regions := sc.World.Regions()
	count := make(map[topology.Place]int)
	for _, e := range s.service.Endpoints {
		at := topology.Place{Zone: e.Zone, Region: regions[e.Zone], Cluster: e.Cluster}
		count[at]++
		s.endpoints = append(s.endpoints, playEndpoint{Place: at, named: e.Addr, place: count[at]})
	}
	for i := range s.endpoints {
		s.endpoints[i].count = count[s.endpoints[i].Place]
	}
	for row, c := range sc.Clients {
		for i := range c.Count {
			s.clients = append(s.clients, playClient{
				Place: topology.Place{Zone: c.Zone, Region: regions[c.Zone]},
				name:  fmt.Sprintf("client-%s-%d", c.Zone, i+1), row: row,
			})
		}
	}
}

// ownAddress gives each listener its own address of 127.77.0.0/16, where the system has all of 127.0.0.0/8 (Linux).
func ownAddress(port uint16) func(int) netip.AddrPort {
	const perNet = 250
	return func(i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 77, byte(i / perNet), byte(1 + i%perNet)}), port)
	}
}

// ownPort gives each listener its own port of 127.0.0.1.
func ownPort(port uint16) func(int) netip.AddrPort {
	return func(i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port+uint16(i))
	}
}

// assign gives all listeners addresses. Endpoints come first and in order: the world's order, in which steps number them,
// is that of addresses.
func (s *playStage) assign(at func(int) netip.AddrPort) error {
	for i := range len(s.endpoints) + len(s.clients) {
		addr := at(i)
		listener, err := net.Listen("tcp", addr.String())
		if err != nil {
			return err
		}
		_ = listener.Close() // it accepted nothing
		if i < len(s.endpoints) {
			s.endpoints[i].addr = addr
		} else {
			s.clients[i-len(s.endpoints)].addr = addr
		}
	}
	return nil
}

// settle makes the world as agents see it.
func (s *playStage) settle(sc *scenario.Scenario) {
	svc := *s.service
	port := svc.Ports[0]
	svc.ClusterIPs = []netip.Addr{netip.AddrFrom4([4]byte{127, 77, 255, 1})} // nobody listens there: agents are mapped
	svc.Endpoints = slices.Clone(svc.Endpoints)
	for i := range svc.Endpoints {
		svc.Endpoints[i].Addr = s.endpoints[i].addr.Addr()
		svc.Endpoints[i].Ports = []topology.EndpointPort{{
			Name: port.Name, Protocol: topology.TCP, AppProtocol: "http", Port: s.endpoints[i].addr.Port(),
		}}
	}
	svc.Ports = []topology.Port{{Name: port.Name, Protocol: topology.TCP, AppProtocol: "http", Port: port.Port}}
	s.host = fmt.Sprintf("%s.%s.svc:%d", svc.Name, svc.Namespace, port.Port)
	s.world = topology.Snapshot{Nodes: sc.World.Nodes, Services: []*topology.Service{&svc}, Costs: sc.World.Costs}
}

// capacity is what an endpoint can do.
func (s *playStage) capacity(i int) capacity {
	e := &s.endpoints[i]
	return capacity{
		Concurrency: s.server.Workers, Queue: s.server.Queue, Service: s.server.Service,
		Speed: s.server.Speed(e.Zone, e.Cluster, e.place, e.count),
	}
}

// seats gives each client an agent that balances as the player does.
func (s *playStage) seats(sc *scenario.Scenario, p Player) []seat {
	var seats []seat
	for _, c := range s.clients {
		seats = append(seats, seat{
			config: agent.Config{
				Node: c.name, Zone: c.Zone,
				Map:      []agent.Mapping{{Service: s.service.ServiceName, To: c.addr}},
				Mode:     p.Mode,
				Strategy: p.Strategy,
				Retry:    retryOf(&sc.Request),
				Timeouts: l7.Timeouts{Request: sc.Request.Timeout, Response: attemptOf(&sc.Request), Connect: sc.Request.Timeout},
				Drain:    agentDrain,
			},
			snapshots: latest.New(s.snapshot(p, view{})),
		})
	}
	return seats
}

// retryOf is what agents try again: what the scenario's clients would, or else refused connections alone, as often as by
// default.
func retryOf(r *scenario.Request) l7.Retry {
	if r.Retries == 0 {
		attempts := l7.DefaultRetry().Attempts
		return l7.Retry{On: l7.OnConnectFailure, Attempts: attempts, BudgetRatio: float64(attempts)} // no limit
	}
	retry := l7.Retry{
		On: l7.OnConnectFailure | l7.OnReset, Attempts: 1 + r.Retries, BudgetRatio: r.Budget, MinPerSecond: -1,
	}
	if r.Accepted {
		retry.On |= l7.On5xx
	}
	if r.Budget == 0 {
		retry.BudgetRatio = float64(1 + r.Retries) // no limit
	}
	return retry
}

// attemptOf is how long an agent waits for one endpoint.
func attemptOf(r *scenario.Request) time.Duration { return cmp.Or(r.Attempt, r.Timeout) }
