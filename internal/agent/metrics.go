package agent

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-lb/weir/internal/core/topology"
)

// metrics are what the request path counts. Every label is bounded by the cluster: services, zones, protocols and
// classes of codes, never a path, a client or an endpoint.
type metrics struct {
	requests    *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	bytes       *prometheus.CounterVec
	cost        *prometheus.CounterVec
	costBytes   *prometheus.CounterVec
	retries     *prometheus.CounterVec
	refusals    *prometheus.CounterVec
	connections *prometheus.GaugeVec
}

// durationBuckets reach from a fast answer over loopback to a long poll, at most doubling where most answers are.
func durationBuckets() []float64 {
	return []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30}
}

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &metrics{
		requests: counter("weir_requests_total",
			"Requests, or TCP connections, that ended.",
			"service", "client_zone", "endpoint_zone", "protocol", "code"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "weir_request_duration_seconds",
			Help:    "Time from a request's head to the end of its response.",
			Buckets: durationBuckets(),
		}, []string{"service", "client_zone", "endpoint_zone"}),
		bytes: counter("weir_request_bytes_total",
			"Bytes of bodies: in (from the client) and out.",
			"service", "client_zone", "endpoint_zone", "direction"),
		cost: counter("weir_request_cost_total",
			"Sum of the costs of requests.",
			"service", "client_zone", "endpoint_zone"),
		costBytes: counter("weir_cost_bytes_total",
			"Bytes in both directions, each times its cost.",
			"service", "client_zone", "endpoint_zone"),
		retries: counter("weir_retries_total",
			"Attempts of requests after the first one.",
			"service"),
		refusals: counter("weir_refusals_total",
			"Requests that weir answered itself, by reason.",
			"service", "reason"),
		connections: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_connections",
			Help: "Open connections of clients.",
		}, []string{"service"}),
	}
}

// series is a metric with labels.
type series interface {
	prometheus.Collector
	DeletePartialMatch(labels prometheus.Labels) int
}

func (m *metrics) all() []series {
	return []series{m.requests, m.duration, m.bytes, m.cost, m.costBytes, m.retries, m.refusals, m.connections}
}

// forget drops the series of a service that is gone, so that they do not pile up in a cluster that changes.
func (m *metrics) forget(service topology.ServiceName) {
	for _, s := range m.all() {
		s.DeletePartialMatch(prometheus.Labels{"service": service.String()})
	}
}
