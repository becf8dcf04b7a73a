package sim

import (
	"time"

	"github.com/weir-lb/weir/internal/sim/scenario"
)

// path is a kind of network path between a client and an endpoint.
type path uint8

const (
	inZone path = iota
	acrossZones
	acrossClusters
	paths = 3
)

// network has the latency of each kind of path, in one direction.
type network struct {
	half   [paths]time.Duration
	jitter float64
}

func newNetwork(n scenario.Network) network {
	return network{
		half:   [paths]time.Duration{n.SameZone / 2, n.CrossZone / 2, n.CrossCluster / 2},
		jitter: n.Jitter,
	}
}

// latency draws how long a message between a client and an endpoint takes, in one direction.
func (s *Simulation) latency(c *client, v *server) time.Duration {
	took := s.network.half[v.paths[c.zone]] + v.fault.Delay/2
	if s.network.jitter > 0 {
		return took + time.Duration(float64(took)*s.network.jitter*c.chance.ExpFloat64())
	}
	return took
}

// travel makes an exchange arrive at the other end of its path.
func (s *Simulation) travel(i uint32, k kind) {
	x := &s.exchanges.all[i]
	c, v := &s.clients[x.client], &s.servers[x.server]
	took := s.latency(c, v)
	if x.connects && k == evArrive && !v.refusing() { // the refusal is the answer to the first packet
		there := s.latency(c, v)
		back := s.latency(c, v)
		x.rtt = there + back
		took += x.rtt
	}
	s.agenda.add(s.now+took, k, i, x.generation)
}
