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
	to    destination
	label string

	duration        prometheus.Observer
	in, out         prometheus.Counter
	cost, costBytes prometheus.Counter
	requests        [protocols][codes]atomic.Pointer[prometheus.Counter]
}

// destination is the zone that answered.
type destination struct {
	zone topology.Zone
	none bool // the request reached no endpoint
}

func (d destination) label() string {
	if d.none {
		return zoneNone
	}
	return zoneLabel(d.zone)
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
	w := o.pair(&r)
	w.count(o, &r).Inc()
	w.duration.Observe(r.Duration.Seconds())
	w.in.Add(float64(r.In))
	w.out.Add(float64(r.Out))
	if r.Cost > 0 {
		w.cost.Add(float64(r.Cost))
		w.costBytes.Add(float64(r.In+r.Out) * float64(r.Cost))
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
	to := destination{zone: r.Zone, none: !r.Endpoint.IsValid()}
	if w := find(*o.pairs.Load(), to); w != nil {
		return w
	}
	o.adding.Lock()
	defer o.adding.Unlock()
	pairs := *o.pairs.Load()
	if w := find(pairs, to); w != nil {
		return w
	}
	w := o.newPair(to)
	more := append(slices.Clip(pairs), w)
	o.pairs.Store(&more)
	return w
}

func find(pairs []*zonePair, to destination) *zonePair {
	for _, w := range pairs {
		if w.to == to {
			return w
		}
	}
	return nil
}

func (o *observer) newPair(to destination) *zonePair {
	label, m := to.label(), o.metrics
	return &zonePair{
		to:        to,
		label:     label,
		duration:  m.duration.WithLabelValues(o.service, o.client, label),
		in:        m.bytes.WithLabelValues(o.service, o.client, label, "in"),
		out:       m.bytes.WithLabelValues(o.service, o.client, label, "out"),
		cost:      m.cost.WithLabelValues(o.service, o.client, label),
		costBytes: m.costBytes.WithLabelValues(o.service, o.client, label),
	}
}

// count gives the counter of a result's protocol and class of code.
func (w *zonePair) count(o *observer, r *l7.Result) prometheus.Counter {
	protocol, code := min(int(r.Protocol), protocols-1), codeOf(r)
	slot := &w.requests[protocol][code]
	if c := slot.Load(); c != nil {
		return *c
	}
	c := o.metrics.requests.WithLabelValues(o.service, o.client, w.label, r.Protocol.String(), codeName(code))
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
