package agent

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/l7"
)

// The label values of zones that have no name.
const (
	zoneNone    = "none"    // the request reached no endpoint
	zoneUnknown = "unknown" // the node or endpoint carries no zone
)

// observer counts the requests of one service. Every series is looked up by its labels once; after that a request finds
// its counters through a short list of zones and an index. Safe for concurrent use.
type observer struct {
	metrics *metrics
	service string
	client  string // zone

	connections prometheus.Gauge
	retries     prometheus.Counter

	pairs  atomic.Pointer[[]*zonePair] // one for each endpoint zone seen; replaced, never changed
	adding sync.Mutex                  // held to replace pairs
}

// zonePair is the traffic from the client's zone to one other.
type zonePair struct {
	to string // label of the zone that answered

	duration        prometheus.Observer
	in, out         prometheus.Counter
	cost, costBytes prometheus.Counter
	requests        [protocols][codes]atomic.Pointer[prometheus.Counter]
}

func (m *metrics) observer(service topology.ServiceName, client topology.Zone) *observer {
	name := service.String()
	o := &observer{
		metrics:     m,
		service:     name,
		client:      zoneLabel(client),
		connections: m.connections.WithLabelValues(name),
		retries:     m.retries.WithLabelValues(name),
	}
	o.pairs.Store(&[]*zonePair{})
	return o
}

func zoneLabel(z topology.Zone) string {
	if z == "" {
		return zoneUnknown
	}
	return string(z)
}

// Connections counts open connections of clients.
func (o *observer) Connections(delta int) { o.connections.Add(float64(delta)) }

// Request counts one request that is over.
func (o *observer) Request(r l7.Result) {
	p := o.pair(&r)
	p.count(o, &r).Inc()
	p.duration.Observe(r.Duration.Seconds())
	p.in.Add(float64(r.In))
	p.out.Add(float64(r.Out))
	if r.Cost > 0 {
		p.cost.Add(float64(r.Cost))
		p.costBytes.Add(float64(r.In+r.Out) * float64(r.Cost))
	}
	if r.Attempts > 1 {
		o.retries.Add(float64(r.Attempts - 1))
	}
	if r.Reason != "" {
		o.metrics.refusals.WithLabelValues(o.service, string(r.Reason)).Inc() // rare: looked up each time
	}
}

// pair finds the counters for the zone that answered. A cluster has few zones, so a list beats a map.
func (o *observer) pair(r *l7.Result) *zonePair {
	to := zoneNone
	if r.Endpoint.IsValid() {
		to = zoneLabel(r.Zone)
	}
	if p := find(*o.pairs.Load(), to); p != nil {
		return p
	}
	o.adding.Lock()
	defer o.adding.Unlock()
	pairs := *o.pairs.Load()
	if p := find(pairs, to); p != nil {
		return p
	}
	p := o.newPair(to)
	more := append(slices.Clip(pairs), p)
	o.pairs.Store(&more)
	return p
}

func find(pairs []*zonePair, to string) *zonePair {
	for _, p := range pairs {
		if p.to == to {
			return p
		}
	}
	return nil
}

func (o *observer) newPair(to string) *zonePair {
	m := o.metrics
	return &zonePair{
		to:        to,
		duration:  m.duration.WithLabelValues(o.service, o.client, to),
		in:        m.bytes.WithLabelValues(o.service, o.client, to, "in"),
		out:       m.bytes.WithLabelValues(o.service, o.client, to, "out"),
		cost:      m.cost.WithLabelValues(o.service, o.client, to),
		costBytes: m.costBytes.WithLabelValues(o.service, o.client, to),
	}
}

// count gives the counter of a result's protocol and class of code.
func (p *zonePair) count(o *observer, r *l7.Result) prometheus.Counter {
	protocol, code := min(int(r.Protocol), protocols-1), codeOf(r)
	slot := &p.requests[protocol][code]
	if c := slot.Load(); c != nil {
		return *c
	}
	c := o.metrics.requests.WithLabelValues(o.service, o.client, p.to, r.Protocol.String(), codeName(code))
	slot.Store(&c)
	return c
}

// The values of the label code, as an index: what a gRPC client sees is its status, what an HTTP client sees is a class
// of codes, and a TCP connection went well or did not.
const (
	protocols = int(l7.TCP) + 1

	codeCanceled = 0 // the client closed before it was answered
	codeHTTP     = 0 // + first digit of the HTTP status, 1 to 5
	codeOK       = 6 // a TCP connection that ended as it should
	codeFailed   = 7 // a TCP connection that broke
	codeGRPC     = 8 // + gRPC status, 0 to 16
	codes        = codeGRPC + 17
)

// grpcNames are the gRPC status codes from 0 on.
func grpcNames() []string {
	return []string{
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
		"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
		"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
	}
}

func codeOf(r *l7.Result) int {
	switch {
	case r.Status > l7.NoStatus && int(r.Status) < codes-codeGRPC:
		return codeGRPC + int(r.Status)
	case r.Code >= 100 && r.Code < 600:
		return codeHTTP + r.Code/100
	case r.Outcome == pick.Success:
		return codeOK
	case r.Outcome.Failed():
		return codeFailed
	default:
		return codeCanceled
	}
}

func codeName(code int) string {
	switch {
	case code >= codeGRPC:
		return grpcNames()[code-codeGRPC]
	case code == codeOK:
		return "ok"
	case code == codeFailed:
		return "failed"
	case code == codeCanceled:
		return "canceled"
	default:
		return strconv.Itoa(code) + "xx"
	}
}
