package agent_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/reason"
)

// load asks the service from n clients without pause. The function it gives stops them and tells how many requests got
// no 200 at all; it may be called again.
func (r *running) load(n int) (stop func() int64) {
	quit := make(chan struct{})
	var failed atomic.Int64
	var clients sync.WaitGroup
	for range n {
		clients.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
				}
				if status, _, err := r.get(); err != nil || status != http.StatusOK {
					failed.Add(1)
				}
			}
		})
	}
	return sync.OnceValue(func() int64 {
		close(quit)
		clients.Wait()
		return failed.Load()
	})
}

func hits(endpoints []*endpoint) int64 {
	var n int64
	for _, e := range endpoints {
		n += e.hits.Load()
	}
	return n
}

// codes lists the codes of the agent's problems.
func (r *running) codes() []reason.Code {
	var codes []reason.Code
	for _, p := range r.Status().Problems {
		codes = append(codes, p.Reason.Code)
	}
	return codes
}

// page asks one of the agent's pages.
func (r *running) page(t *testing.T, path string, into any) int {
	t.Helper()
	mux := http.NewServeMux()
	for pattern, h := range r.Pages() {
		mux.Handle(pattern, h)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return w.Code
}

// pool shows the live pool of shop/web.
func (r *running) pool(t *testing.T) poolPage {
	t.Helper()
	var pools []poolPage
	if status := r.page(t, "/pools/shop/web", &pools); status != http.StatusOK || len(pools) == 0 {
		t.Fatalf("/pools/shop/web: status %d, %d pools", status, len(pools))
	}
	return pools[0]
}

// poolPage is what the tests read of a page of pools.
type poolPage struct {
	State     string
	Baseline  float64 `json:"baselineMillis"`
	Groups    []agent.GroupStatus
	Endpoints []agent.EndpointStatus
}

// gauge reads one metric that has this label value.
func (r *running) gauge(t *testing.T, name, label, value string) float64 {
	t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == label && l.GetValue() == value {
					sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}
