package ops

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// NewRegistry makes a registry that holds what every command exports: weir_build_info, and the Go runtime's and the
// process's own metrics.
func NewRegistry(b Build) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		NewBuildInfo(b),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return r
}

// NewBuildInfo makes weir_build_info alone, for a registry that has the other metrics.
func NewBuildInfo(b Build) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "weir_build_info",
		Help:        "Which weir this is; always 1.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "go_version": b.Go},
	})
	info.Set(1)
	return info
}
