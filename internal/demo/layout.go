package demo

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/latest"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// Ports from which a free one is sought: below the range that kernels hand out to clients (32768 on Linux, 49152
// elsewhere), so that no client takes an endpoint's port while it is gone.
const (
	firstPort = 18080
	lastPort  = 18980
	portStep  = 20
)

// layout says which endpoint and which agent of a scenario listens where.
type layout struct {
	scenario  *scenario.Scenario
	cluster   topology.Snapshot // as the scenario has it, with addresses on loopback
	service   netip.AddrPort    // the cluster IP; nothing listens there: agents are told to listen elsewhere
	endpoints []endpointInfo    // in the scenario's order
	clients   []clientInfo      // by zone, then number
}

// endpointInfo is an endpoint of the scenario.
type endpointInfo struct {
	topology.Place

	addr   netip.AddrPort
	named  netip.Addr // its address in the scenario
	number int        // in its zone, from 1 …
	count  int        // … of so many
}

// isMeant tells whether a step names the endpoint.
func (e *endpointInfo) isMeant(w scenario.Where) bool {
	return w.Has(e.Zone, e.Cluster, e.number, e.count)
}

// clientInfo is a client, and its agent.
type clientInfo struct {
	topology.Place

	addr netip.AddrPort // of the agent
	name string         // of the agent's node
	row  int            // index in Scenario.Clients
}

// newLayout gives every endpoint and every agent a free address.
func newLayout(sc *scenario.Scenario) (*layout, error) {
	l := &layout{scenario: sc}
	l.list()
	listeners := len(l.endpoints) + len(l.clients) + 1
	var err error
	for port := firstPort; port <= lastPort; port += portStep {
		for _, at := range []func(int) netip.AddrPort{ownAddress(uint16(port)), ownPort(uint16(port))} {
			if err = free(at, listeners); err == nil {
				l.assign(at)
				l.compile()
				return l, nil
			}
		}
	}
	return nil, fmt.Errorf("find loopback addresses for %d listeners: %w", listeners, err)
}

// list finds the endpoints and the clients.
func (l *layout) list() {
	regions := l.scenario.Snapshot.Regions()
	count := make(map[topology.Place]int)
	for _, e := range l.scenario.Service().Endpoints {
		at := topology.Place{Zone: e.Zone, Region: regions[e.Zone], Cluster: e.Cluster}
		count[at]++
		l.endpoints = append(l.endpoints, endpointInfo{Place: at, named: e.Addr, number: count[at]})
	}
	for i := range l.endpoints {
		l.endpoints[i].count = count[l.endpoints[i].Place]
	}
	for row, c := range l.scenario.Clients {
		for i := range c.Count {
			l.clients = append(l.clients, clientInfo{
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

// assign gives all listeners addresses. Endpoints come first and in order: the order in which steps number them is that of
// addresses.
func (l *layout) assign(at func(int) netip.AddrPort) {
	for i := range l.endpoints {
		l.endpoints[i].addr = at(i)
	}
	for i := range l.clients {
		l.clients[i].addr = at(len(l.endpoints) + i)
	}
	l.service = at(len(l.endpoints) + len(l.clients))
}

// free tells whether that many listeners can have their addresses.
func free(at func(int) netip.AddrPort, count int) error {
	for i := range count {
		listener, err := net.Listen("tcp", at(i).String())
		if err != nil {
			return err
		}
		_ = listener.Close() // it accepted nothing
	}
	return nil
}

// compile makes the cluster as agents see it.
func (l *layout) compile() {
	w := &l.scenario.Snapshot
	svc := *l.scenario.Service()
	port := topology.Port{Name: svc.Ports[0].Name, Protocol: topology.TCP, AppProtocol: "http", Port: l.service.Port()}
	svc.Ports = []topology.Port{port}
	svc.ClusterIPs = []netip.Addr{l.service.Addr()}
	svc.Endpoints = slices.Clone(svc.Endpoints)
	for i := range svc.Endpoints {
		addr := l.endpoints[i].addr
		svc.Endpoints[i].Addr = addr.Addr()
		svc.Endpoints[i].Ports = []topology.EndpointPort{{Name: port.Name, Protocol: port.Protocol, AppProtocol: port.AppProtocol, Port: addr.Port()}}
	}
	l.cluster = topology.Snapshot{Nodes: w.Nodes, Services: []*topology.Service{&svc}, Costs: w.Costs}
}

// host is the Host header of requests: the service's name in the cluster.
func (l *layout) host() string {
	svc := l.cluster.Services[0]
	return fmt.Sprintf("%s.%s.svc:%d", svc.Name, svc.Namespace, l.service.Port())
}

// capacity is what an endpoint can do.
func (l *layout) capacity(i int) capacity {
	e, s := &l.endpoints[i], &l.scenario.Server
	return capacity{Workers: s.Workers, Queue: s.Queue, Speed: s.Speed(e.Zone, e.Cluster, e.number, e.count)}
}

// agentSpecs gives each client an agent that balances as the player does.
func (l *layout) agentSpecs(o *Options) ([]agentSpec, error) {
	p := o.Player
	_, timeouts := o.limits(&l.scenario.Request)
	retry, err := p.retry(&l.scenario.Request)
	var specs []agentSpec
	for _, c := range l.clients {
		specs = append(specs, agentSpec{
			config: agent.Config{
				Node: c.name, Zone: c.Zone,
				Map:      []agent.Mapping{{Service: l.cluster.Services[0].ServiceName, To: c.addr}},
				Mode:     p.Mode,
				Strategy: p.Strategy,
				Retry:    retry,
				Timeouts: timeouts,
				Drain:    agentDrain,
			},
			snapshots: latest.New(l.snapshot(p, apiState{})),
		})
	}
	return specs, err
}

// apiState is what the API says that changes during a play.
type apiState struct {
	unready []bool // by endpoint; nil: none
	drains  []topology.Drain
}

// snapshot is the cluster as the API says that it is.
func (l *layout) snapshot(p Player, v apiState) topology.Snapshot {
	cluster := l.cluster
	svc := *cluster.Services[0]
	svc.Mode = p.Mode
	svc.Overflow.Drains = slices.Concat(svc.Overflow.Drains, v.drains)
	svc.Endpoints = slices.Clone(svc.Endpoints)
	cluster.Nodes = slices.Clone(cluster.Nodes)
	has, alive := make(map[topology.Zone]bool), make(map[topology.Zone]bool)
	for i := range svc.Endpoints {
		own := l.endpoints[i].Cluster == ""
		has[l.endpoints[i].Zone] = has[l.endpoints[i].Zone] || own
		if v.unready != nil && v.unready[i] {
			svc.Endpoints[i].Ready, svc.Endpoints[i].Serving = topology.False, topology.False
		} else if own {
			alive[l.endpoints[i].Zone] = true
		}
	}
	for i := range cluster.Nodes {
		if n := &cluster.Nodes[i]; has[n.Zone] && !alive[n.Zone] {
			n.Ready = false
		}
	}
	cluster.Services = []*topology.Service{&svc}
	return cluster
}
