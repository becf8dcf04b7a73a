package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/hints"
)

const (
	// bodyLimit is more than an API server sends: etcd takes 1.5 MiB for an object, JSON may need twice that, there are an
	// old and a new one, and little around them.
	bodyLimit = 7 << 20
	// keepLimit is the largest buffer that is kept for the next request: a slice of 1,000 endpoints, twice.
	keepLimit = 1 << 20
	// largeBudget bounds what all bodies above keepLimit, or of unknown size, may take at once: any pod in the cluster can
	// reach the port, and the memory has to last for the plans. Reviews of common slices never need any of it.
	largeBudget = 128 << 20
)

// handler answers admission reviews. It is safe for concurrent use.
type handler struct {
	decisions Decisions
	metrics   *metrics
	buffers   sync.Pool
	large     *semaphore.Weighted
}

// newHandler makes the webhook without a server. It answers an AdmissionReview of admission.k8s.io/v1 with 200 and allows
// what it asks for, whatever it is; and anything else, be it never so small a mistake, with 400; large bodies that come too
// many at once with 503.
//
// The incoming object alone decides: a dry run is like any other, and an old object is not read.
func newHandler(d Decisions, m *metrics) *handler {
	return &handler{
		decisions: d, metrics: m, buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }},
		large: semaphore.NewWeighted(largeBudget),
	}
}

// ServeHTTP answers one review.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	timer := prometheus.NewTimer(h.metrics.duration)
	defer timer.ObserveDuration()
	if r.ContentLength < 0 || r.ContentLength > keepLimit {
		if !h.large.TryAcquire(bodyLimit) {
			h.metrics.requests.WithLabelValues(string(resultRejected)).Inc()
			http.Error(w, "too many large reviews at once", http.StatusServiceUnavailable)
			return
		}
		defer h.large.Release(bodyLimit)
	}
	buffer := h.buffers.Get().(*bytes.Buffer)
	defer func() {
		if buffer.Cap() <= keepLimit {
			h.buffers.Put(buffer)
		}
	}()
	buffer.Reset()
	answer, what, err := h.answer(w, r, buffer)
	h.metrics.requests.WithLabelValues(string(what)).Inc()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // a client that is gone does not mind
}

// answer reads a request into the buffer and gives the body that answers it.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, buffer *bytes.Buffer) ([]byte, result, error) {
	if r.Method != http.MethodPost {
		return nil, resultRejected, fmt.Errorf("want a POST of an AdmissionReview, got %s", r.Method)
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, resultRejected, errors.New("want the content type application/json")
	}
	if _, err := buffer.ReadFrom(http.MaxBytesReader(w, r.Body, bodyLimit)); err != nil {
		return nil, resultRejected, fmt.Errorf("read the body: %w", err)
	}
	asked, err := parse(buffer.Bytes())
	if err != nil {
		return nil, resultRejected, err
	}
	ops, what, err := h.decide(asked)
	if err != nil {
		return nil, resultRejected, err
	}
	body, err := spell(asked, ops)
	return body, what, err
}

// decide gives the operations that make the incoming object say the plan.
func (h *handler) decide(r *request) ([]hints.Op, result, error) {
	if !r.concerns() {
		return nil, resultUnchanged, nil
	}
	s, err := r.slice()
	if err != nil {
		return nil, resultRejected, err
	}
	name := topology.ServiceName{Namespace: s.Namespace, Name: s.Labels[api.LabelServiceName]}
	d, ok := h.decisions.Lookup(name)
	if !ok {
		return nil, resultUnknown, nil
	}
	ops := hints.Edit(s, d)
	if len(ops) == 0 {
		return nil, resultUnchanged, nil
	}
	return ops, resultPatched, nil
}

// spell writes the review that allows a request with the operations.
func spell(r *request, ops []hints.Op) ([]byte, error) {
	response := &admissionv1.AdmissionResponse{UID: r.UID, Allowed: true}
	if len(ops) > 0 {
		patch, err := json.Marshal(ops)
		if err != nil {
			return nil, fmt.Errorf("write the patch: %w", err)
		}
		kind := admissionv1.PatchTypeJSONPatch
		response.Patch, response.PatchType = patch, &kind
	}
	return json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: response,
	})
}
