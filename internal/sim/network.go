package sim

import (
	"time"

	"github.com/weir-lb/weir/internal/sim/scenario"
)

// way is a kind of way between a client and an endpoint.
type way uint8

const (
	inZone way = iota
	acrossZones
	acrossClusters
	ways = 3
)

// network knows how long ways are.
type network struct {
	half   [ways]time.Duration
	jitter float64
}

func newNetwork(n scenario.Network) network {
	return network{
		half:   [ways]time.Duration{n.SameZone / 2, n.CrossZone / 2, n.CrossCluster / 2},
		jitter: n.Jitter,
	}
}

// oneWay draws how long one way between a client and an endpoint takes.
func (s *Simulation) oneWay(c *client, v *server) time.Duration {
	took := s.network.half[v.ways[c.zone]] + v.fault.Delay/2
	if s.network.jitter > 0 {
		return took + time.Duration(float64(took)*s.network.jitter*c.chance.ExpFloat64())
	}
	return took
}

// travel makes an exchange arrive at the other end of its way.
func (s *Simulation) travel(i uint32, k kind) {
	x := &s.exchanges.all[i]
	c, v := &s.clients[x.client], &s.servers[x.server]
	took := s.oneWay(c, v)
	if x.connects && k == evArrive && !v.refusing() { // the refusal is the answer to the first packet
		there := s.oneWay(c, v)
		back := s.oneWay(c, v)
		x.rtt = there + back
		took += x.rtt
	}
	s.agenda.add(s.now+took, k, i, x.generation)
}
