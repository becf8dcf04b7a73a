package feed

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what a feed counts.
type metrics struct {
	updates    prometheus.Counter
	services   prometheus.Gauge
	endpoints  prometheus.Gauge
	nodes      prometheus.Gauge
	problems   prometheus.Gauge
	lastUpdate prometheus.Gauge
}

func newMetrics() *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	return &metrics{
		updates: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_feed_updates_total", Help: "States made from the API server's events.",
		}),
		services:   gauge("weir_feed_services", "Services of the newest state."),
		endpoints:  gauge("weir_feed_endpoints", "Endpoints of the newest state, in any condition."),
		nodes:      gauge("weir_feed_nodes", "Nodes of the newest state."),
		problems:   gauge("weir_feed_problems", "Problems of the objects of the newest state."),
		lastUpdate: gauge("weir_feed_last_update_timestamp_seconds", "Time of the newest state, in seconds since 1970."),
	}
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.updates, m.services, m.endpoints, m.nodes, m.problems, m.lastUpdate}
}

// update shows a new state.
func (m *metrics) update(s *State, nodeProblems int) {
	endpoints, problems := 0, nodeProblems
	for _, r := range s.Records {
		problems += len(r.Problems)
		if r.Service != nil {
			endpoints += len(r.Service.Endpoints)
		}
	}
	m.updates.Inc()
	m.services.Set(float64(len(s.Snapshot.Services)))
	m.endpoints.Set(float64(endpoints))
	m.nodes.Set(float64(len(s.Snapshot.Nodes)))
	m.problems.Set(float64(problems))
	m.lastUpdate.SetToCurrentTime()
}
