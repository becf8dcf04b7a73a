package webhook

import "github.com/prometheus/client_golang/prometheus"

// result says what became of a request, as the label of a metric.
type result string

const (
	resultPatched   result = "patched"   // hints were put on, changed or taken off
	resultUnchanged result = "unchanged" // the object says the plan already, or the request is none of ours
	resultUnknown   result = "unknown"   // nothing is decided for the service yet
	resultRejected  result = "rejected"  // not a request that can be read: 400
)

// metrics are what the webhook counts.
type metrics struct {
	requests *prometheus.CounterVec
	duration prometheus.Histogram
	expiry   prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_webhook_requests_total",
			Help: "Admission requests answered, by result: patched, unchanged, unknown or rejected.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "weir_webhook_duration_seconds",
			Help: "Time from an admission request's head to the end of its answer.",
			// A call is planned to take a millisecond, and the API server gives up after two seconds.
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .1, .5, 2},
		}),
		expiry: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_webhook_certificate_expiry_timestamp_seconds",
			Help: "When the certificate that the webhook serves with ends; 0 while there is none.",
		}),
	}
	for _, known := range []result{resultPatched, resultUnchanged, resultUnknown, resultRejected} {
		m.requests.WithLabelValues(string(known))
	}
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.expiry} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
