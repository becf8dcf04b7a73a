package demo

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// loopbackTrip is what a request from a client through its agent to an endpoint and its answer take on loopback, in one
// process that has time to spare. The network of a scenario is longer by this much less.
const loopbackTrip = 300 * time.Microsecond

// playDesk answers an endpoint's questions about requests.
type playDesk struct {
	play  *play
	place int
}

func (d *playDesk) work(r *http.Request) time.Duration {
	nanos, err := strconv.ParseInt(r.Header.Get(workHeader), 10, 64)
	if err != nil || nanos < 0 {
		return 0 // not one of the clients'
	}
	return time.Duration(nanos)
}

// trip is what the scenario's network takes beside what loopback does.
func (d *playDesk) trip(r *http.Request) time.Duration {
	n := &d.play.scenario.Network
	trip := n.CrossZone
	switch e := &d.play.stage.endpoints[d.place]; {
	case e.Cluster != "":
		trip = n.CrossCluster
	case e.Zone == topology.Zone(r.Header.Get(fromHeader)):
		trip = n.SameZone
	}
	if n.Jitter > 0 {
		there, back := rand.ExpFloat64(), rand.ExpFloat64()
		trip += time.Duration(float64(trip) / 2 * n.Jitter * (there + back))
	}
	return max(trip-loopbackTrip, 0)
}

func (d *playDesk) arrived(r *http.Request) { d.play.ledger.arrived(r, d.place) }

func (d *playDesk) asks(service time.Duration) {
	d.play.diary.ask(d.place, d.play.sinceOrigin(), service)
}
