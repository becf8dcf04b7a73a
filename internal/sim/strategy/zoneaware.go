package strategy

import (
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// smallest is the number of healthy endpoints below which Envoy does not route by zones.
const smallest = 6

// zoneAware is Envoy's zone-aware routing. It compares the fraction of all healthy endpoints that a zone has with the
// fraction of all clients: a zone that has at least as much of the one as of the other keeps its requests. Otherwise it
// keeps as large a part as the first is of the second, and sends the rest to zones that have more endpoints than
// clients, in proportion to how much more. So all endpoints get about the same number of requests if all clients send
// the same.
//
// It does not look at zones, and spreads requests over all healthy endpoints alike, when there are fewer than smallest
// of them, or when the number of clients is not known. When less than half of all endpoints are healthy it
// spreads them over all, healthy or not.
//
// Source: Envoy's pages on zone-aware routing and panic threshold, and its runtime settings for the numbers. We
// simplified: fractions are exact where Envoy rounds to a hundredth of a percent; clients are all healthy; endpoints of
// other clusters count for the zone whose name they have; a client without any ready endpoint in its zone has a pool
// that knows no zones.
type zoneAware struct {
	localities

	clients []ZoneCount
}

func newZoneAware(client Client) *zoneAware { return &zoneAware{clients: client.Clients} }

// Step implements overflow.Strategy.
func (z *zoneAware) Step(now time.Duration, c *overflow.Counters) overflow.Decision {
	hosts, healthy := z.hosts(now, c)
	if z.panics {
		return z.decide(even(hosts), reason.New(reason.TooFewHealthy).
			With("usable", float64(healthy), reason.Count).With("all", float64(z.layout.Endpoints), reason.Count))
	}
	return z.decide(z.shares(hosts), reason.New(reason.CountsEndpoints))
}

// localities are what Envoy's strategies have in common: a locality is a group of the pool, and when less than half of all
// endpoints are healthy (panic) health is ignored.
type localities struct {
	layout overflow.Layout
	begun  bool
	panics bool
	since  time.Duration // when panic began or ended
}

// Reset implements overflow.Strategy.
func (l *localities) Reset(now time.Duration, layout overflow.Layout) {
	l.layout = layout
	if !l.begun {
		l.begun, l.since = true, now
	}
}

// hosts gives the number of endpoints of each group that requests may go to, and how many are healthy in all.
func (l *localities) hosts(now time.Duration, c *overflow.Counters) (hosts []int, healthy int) {
	hosts = make([]int, len(l.layout.Groups))
	for i := range hosts {
		if i < len(c.Groups) {
			hosts[i] = c.Groups[i].Usable
		}
		healthy += hosts[i]
	}
	if panics := float64(healthy) < panicBelow*float64(l.layout.Endpoints); panics != l.panics {
		l.panics, l.since = panics, now
	}
	for i := range hosts {
		if l.panics {
			hosts[i] = len(l.layout.Groups[i].Endpoints)
		}
	}
	return hosts, healthy
}

// decide gives each group its share.
func (l *localities) decide(shares []float64, why reason.Reason) overflow.Decision {
	d := overflow.Decision{
		Cap: overflow.DefaultConstants().Cap, Panic: l.panics, Groups: make([]overflow.GroupStatus, len(shares)),
		Reason: why, Since: l.since,
	}
	for i, share := range shares {
		d.Groups[i].Share = share
		if share > 0 {
			d.Routes = append(d.Routes, overflow.Route{Group: i, Share: share})
		}
	}
	return d
}

// shares gives each group its share of the requests, by its healthy endpoints.
func (z *zoneAware) shares(usable []int) []float64 {
	alike := even(usable)
	zones, of := z.zones()
	s := sides{endpoints: make([]int, len(zones)), clients: make([]int, len(zones))}
	for i, n := range usable {
		s.endpoints[of[i]] += n
		s.allEndpoints += n
	}
	for _, count := range z.clients {
		s.allClients += count.Count
		for i, zone := range zones {
			if zone == count.Zone {
				s.clients[i] += count.Count
			}
		}
	}
	if s.allEndpoints < smallest || s.allClients == 0 {
		return alike
	}
	byZone := s.split()
	shares := make([]float64, len(usable))
	for i, n := range usable {
		if n > 0 {
			shares[i] = byZone[of[i]] * float64(n) / float64(s.endpoints[of[i]])
		}
	}
	return shares
}

// zones lists the zones of the groups, the client's own first, and tells which of them each group belongs to.
func (z *zoneAware) zones() (zones []topology.Zone, of []int) {
	at := make(map[topology.Zone]int, len(z.layout.Groups))
	for _, g := range z.layout.Groups {
		i, ok := at[g.Zone]
		if !ok {
			i = len(zones)
			at[g.Zone] = i
			zones = append(zones, g.Zone)
		}
		of = append(of, i)
	}
	return zones, of
}

// sides are healthy endpoints and clients by zone, the client's own zone first. Clients may be in further zones.
type sides struct {
	endpoints, clients       []int
	allEndpoints, allClients int
}

// split gives each zone its share of the own zone's requests.
func (s *sides) split() []float64 {
	shares := make([]float64, len(s.endpoints))
	if own := s.residual(0); own >= 0 && s.endpoints[0] > 0 {
		shares[0] = 1
		return shares
	}
	if s.endpoints[0] > 0 {
		shares[0] = float64(s.endpoints[0]*s.allClients) / float64(s.clients[0]*s.allEndpoints)
	}
	room := 0
	for i := 1; i < len(shares); i++ {
		room += max(0, s.residual(i))
	}
	if room == 0 { // a zone that is said to have no client, and has no endpoint
		return even(s.endpoints)
	}
	rest := 1 - shares[0]
	for i := 1; i < len(shares); i++ {
		shares[i] = rest * float64(max(0, s.residual(i))) / float64(room)
	}
	return shares
}

// residual is how much more of the endpoints than of the clients a zone has, as a multiple of 1/(all endpoints × all
// clients), so that it is exact.
func (s *sides) residual(i int) int {
	return s.endpoints[i]*s.allClients - s.clients[i]*s.allEndpoints
}

// even shares by numbers; the first gets everything if all are 0.
func even(numbers []int) []float64 {
	shares := make([]float64, len(numbers))
	sum := 0
	for _, n := range numbers {
		sum += n
	}
	for i, n := range numbers {
		if sum > 0 {
			shares[i] = float64(n) / float64(sum)
		}
	}
	if sum == 0 && len(shares) > 0 {
		shares[0] = 1
	}
	return shares
}
