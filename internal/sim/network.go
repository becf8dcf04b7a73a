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

// span draws how long one way between a client and an endpoint takes; regular: always the same.
func (s *Simulation) span(c *client, v *server) (took time.Duration, regular bool) {
	took = s.network.half[v.ways[c.zone]] + v.delay/2
	if s.network.jitter > 0 {
		return took + time.Duration(float64(took)*s.network.jitter*c.chance.ExpFloat64()), false
	}
	return took, v.delay == 0
}

// travel makes an exchange arrive at the other end of its way.
func (s *Simulation) travel(i uint32, k kind) {
	x := &s.exchanges.all[i]
	c, v := &s.clients[x.client], &s.servers[x.server]
	took, regular := s.span(c, v)
	if x.connects && k == evArrive && !v.refusing() { // the refusal is the answer to the first packet
		there, _ := s.span(c, v)
		back, _ := s.span(c, v)
		x.rtt = there + back
		took, regular = took+x.rtt, false
	}
	if !regular {
		s.agenda.add(s.now+took, k, i, x.generation)
		return
	}
	s.agenda.append(lineWays+int(v.ways[c.zone]), s.now+took, event{order: uint64(k), about: i, tag: x.generation})
}
