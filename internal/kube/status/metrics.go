package status

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-lb/weir/internal/core/topology"
)

// metrics are what is counted when something happens; collector counts when metrics are gathered. Every label is
// bounded: modes, kinds of errors and codes of reasons, never the name of an object. What one service comes to is what
// weir explain tells.
type metrics struct {
	changedPerSync  *prometheus.HistogramVec
	syncs           *prometheus.CounterVec
	writes          *prometheus.CounterVec
	writeDuration   prometheus.Histogram
	undoings        *prometheus.CounterVec
	programming     prometheus.Histogram
	conditionWrites *prometheus.CounterVec
	events          *prometheus.CounterVec
}

// When hints that were undone are written again.
const (
	atOnce  = "at_once"
	delayed = "delayed"
)

// upstream begins the names that the KEPs give.
const upstream = "endpoint_slice_controller_"

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		changedPerSync: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: upstream + "endpointslices_changed_per_sync",
			Help: "EndpointSlices written in one sync of a service.",
			// Counts: most syncs write nothing or a slice; 5,000 endpoints in slices of 100 are 50, two families of 1,000
			// slices are more than any cluster has.
			Buckets: []float64{0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000},
		}, []string{"topology", "traffic_distribution"}),
		syncs: counter(upstream+"syncs",
			"Syncs of a service: success, stale (another writer was first) or error.", "result"),
		writes: counter("weir_slice_writes_total",
			"Patches of EndpointSlices, by what the API server answered.", "result"),
		writeDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "weir_slice_write_duration_seconds",
			Help:    "Time of one patch of an EndpointSlice, waiting for the client's own rate limit included.",
			Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30},
		}),
		undoings: counter("weir_hints_undone_total",
			"Times that another writer removed the hints of a service, by whether they were written again at once or later.", "rewrite"),
		programming: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "weir_hints_programming_duration_seconds",
			Help: "Time from when a change was seen until all EndpointSlices of the service said the plan.",
			// Reaches to the minutes that writing to every service of a large cluster takes under a rate limit.
			Buckets: []float64{.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 120, 300, 600},
		}),
		conditionWrites: counter("weir_conditions_writes_total",
			"Writes of conditions to Services, by what the API server answered.", "result"),
		events: counter("weir_events_total",
			"Events sent about Services, by reason.", "reason"),
	}
	for _, rewrite := range []string{atOnce, delayed} { // both are there from the start, so that a rate sees the first
		m.undoings.WithLabelValues(rewrite)
	}
	return m
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.changedPerSync, m.syncs, m.writes, m.writeDuration, m.undoings, m.programming, m.conditionWrites, m.events,
	}
}

// sync counts one sync of a service.
func (m *metrics) sync(mode topology.Mode, o Outcome) {
	byTopology, distribution := "Disabled", string(mode)
	if mode == topology.ModeAuto {
		byTopology, distribution = "Auto", ""
	}
	m.changedPerSync.WithLabelValues(byTopology, distribution).Observe(float64(o.Written))
	switch kindOf(o.Err) {
	case none:
		m.syncs.WithLabelValues("success").Inc()
	case stale:
		m.syncs.WithLabelValues("stale").Inc()
	default:
		m.syncs.WithLabelValues("error").Inc()
	}
}

func (m *metrics) wrote(took time.Duration, err error) {
	m.writes.WithLabelValues(kindOf(err).label()).Inc()
	m.writeDuration.Observe(took.Seconds())
}

func (m *metrics) undone(wait time.Duration) {
	rewrite := atOnce
	if wait > 0 {
		rewrite = delayed
	}
	m.undoings.WithLabelValues(rewrite).Inc()
}
