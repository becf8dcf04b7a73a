package demo

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// What clients tell endpoints through the proxy in between: which request this is, the zone where it comes from, and how many
// nanoseconds it takes a worker.
const (
	requestHeader = "X-Demo-Request"
	zoneHeader    = "X-Demo-Zone"
	workHeader    = "X-Demo-Work"
)

// endpointHeader is in every answer of an endpoint, and in none of an agent's own.
const endpointHeader = "X-Demo-Endpoint"

// loopbackTrip is what a request from a client through its agent to an endpoint and its answer take on loopback, in one
// process that has time to spare. The network of a scenario is longer by this much less.
const loopbackTrip = 300 * time.Microsecond

// endpointTraffic is the traffic of an endpoint of a play.
type endpointTraffic struct {
	play     *play
	endpoint int // index in layout.endpoints
}

func (t *endpointTraffic) work(r *http.Request) time.Duration {
	nanos, err := strconv.ParseInt(r.Header.Get(workHeader), 10, 64)
	if err != nil || nanos < 0 {
		return 0 // not one of the clients'
	}
	return time.Duration(nanos)
}

// trip is what the scenario's network takes beside what loopback does.
func (t *endpointTraffic) trip(r *http.Request) time.Duration {
	n := &t.play.scenario.Network
	trip := n.CrossZone
	switch e := &t.play.layout.endpoints[t.endpoint]; {
	case e.Cluster != "":
		trip = n.CrossCluster
	case e.Zone == topology.Zone(r.Header.Get(zoneHeader)):
		trip = n.SameZone
	}
	if n.Jitter > 0 {
		there, back := rand.ExpFloat64(), rand.ExpFloat64()
		trip += time.Duration(float64(trip) / 2 * n.Jitter * (there + back))
	}
	return max(trip-loopbackTrip, 0)
}

func (t *endpointTraffic) arrived(r *http.Request) { t.play.reached.arrived(r, t.endpoint) }

func (t *endpointTraffic) asks(service time.Duration) {
	t.play.log.ask(t.endpoint, t.play.sinceOrigin(), service)
}

// tracker notes which endpoints each request arrived at. An answer says which endpoint gave it; of a request that was not
// answered only this can tell which one swallowed it. Clients and endpoints share a process, so they share the tracker. The
// zero value is empty. It is safe for concurrent use.
type tracker struct {
	mu   sync.Mutex
	last uint64
	open map[uint64][]int // where each request under way arrived
}

// begin gives a new request its number.
func (t *tracker) begin() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = make(map[uint64][]int)
	}
	t.last++
	t.open[t.last] = nil
	return t.last
}

// arrived notes that the request r reached an endpoint. What arrives after its client has left is not noted.
func (t *tracker) arrived(r *http.Request, endpoint int) {
	id, err := strconv.ParseUint(r.Header.Get(requestHeader), 10, 64)
	if err != nil {
		return // not one of the clients'
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if endpoints, ok := t.open[id]; ok {
		t.open[id] = append(endpoints, endpoint)
	}
}

// end forgets the request and gives the endpoints in order of arrival.
func (t *tracker) end(id uint64) []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	endpoints := t.open[id]
	delete(t.open, id)
	return endpoints
}
