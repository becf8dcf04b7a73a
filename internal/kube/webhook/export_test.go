package webhook

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
)

// NewHandler makes the webhook without a server, counting on r.
func NewHandler(d Decisions, r prometheus.Registerer) (http.Handler, error) {
	m, err := newMetrics(r)
	if err != nil {
		return nil, err
	}
	return newHandler(d, m), nil
}
