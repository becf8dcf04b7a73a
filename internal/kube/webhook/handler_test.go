package webhook_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/hints"
	"github.com/weir-lb/weir/internal/kube/plans"
)

// allowed reads an answer, which has to be one that allows the request.
func allowed(tb testing.TB, w *httptest.ResponseRecorder, uid string) *admissionv1.AdmissionResponse {
	tb.Helper()
	if w.Code != http.StatusOK {
		tb.Fatalf("want 200, got %d: %s", w.Code, w.Body)
	}
	var r admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		tb.Fatalf("the answer is no review: %v", err)
	}
	if r.APIVersion != "admission.k8s.io/v1" || r.Kind != "AdmissionReview" || r.Response == nil {
		tb.Fatalf("want an AdmissionReview with a response, got %s", w.Body)
	}
	if !r.Response.Allowed || string(r.Response.UID) != uid {
		tb.Fatalf("want %s allowed, got %s", uid, w.Body)
	}
	return r.Response
}

// patched applies the patch of an answer to what was sent.
func patched(tb testing.TB, r *admissionv1.AdmissionReview, a *admissionv1.AdmissionResponse) *discoveryv1.EndpointSlice {
	tb.Helper()
	if a.PatchType == nil || *a.PatchType != admissionv1.PatchTypeJSONPatch {
		tb.Fatalf("want a JSON patch, got %v", a)
	}
	patch, err := jsonpatch.DecodePatch(a.Patch)
	if err != nil {
		tb.Fatal(err)
	}
	object, err := patch.Apply(r.Request.Object.Raw)
	if err != nil {
		tb.Fatalf("apply %s: %v", a.Patch, err)
	}
	s := new(discoveryv1.EndpointSlice)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(object, s); err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestAnIncomingSliceIsGivenThePlansHints(t *testing.T) {
	list := slices(250)
	d := decide(list, topology.ModePreferSameZone)
	h, _ := handler(t, decisions{web(): d})
	for _, s := range list {
		r := review(s)
		got := patched(t, r, allowed(t, post(h, encode(r)), string(r.Request.UID)))
		for i, e := range got.Endpoints {
			want := &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: *s.Endpoints[i].Zone}}}
			if diff := cmp.Diff(want, e.Hints); diff != "" {
				t.Errorf("%s, endpoint %d (-want +got):\n%s", s.Name, i, diff)
			}
		}
		if got.Annotations[api.AnnotationHints] != "PreferSameZone" {
			t.Errorf("want weir's mark on %s, got %v", s.Name, got.Annotations)
		}
	}
}

func TestAnEndpointThatThePlanDoesNotKnowIsHintedToItsOwnZone(t *testing.T) {
	list := slices(9)
	d := decide(list, topology.ModeBalanced)
	h, _ := handler(t, decisions{web(): d})
	s := list[0].DeepCopy()
	s.Endpoints = append(s.Endpoints, endpoint(5000))
	r := review(s)
	got := patched(t, r, allowed(t, post(h, encode(r)), string(r.Request.UID)))
	want := &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: *s.Endpoints[9].Zone}}}
	if diff := cmp.Diff(want, got.Endpoints[9].Hints); diff != "" {
		t.Errorf("the new endpoint's hints (-want +got):\n%s", diff)
	}
}

func TestHintsThatSomebodyStripsOrTurnsAreThoseOfThePlanAgain(t *testing.T) {
	list := slices(30)
	d := decide(list, topology.ModePreferSameZone)
	h, _ := handler(t, decisions{web(): d})
	turned := list[0].DeepCopy()
	turned.Annotations = nil
	for i := range turned.Endpoints {
		turned.Endpoints[i].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "eu-west-1c"}}}
	}
	r := review(turned)
	got := patched(t, r, allowed(t, post(h, encode(r)), string(r.Request.UID)))
	if ops := hints.Edit(got, d); len(ops) != 0 {
		t.Errorf("want a slice that says the plan, still to do: %v", ops)
	}
	again := review(got)
	if a := allowed(t, post(h, encode(again)), string(again.Request.UID)); a.Patch != nil || a.PatchType != nil {
		t.Errorf("want no patch for a slice that says the plan, got %s", a.Patch)
	}
}

func TestEveryWellFormedReviewIsAllowed(t *testing.T) {
	list := slices(3)
	d := decide(list, topology.ModePreferSameZone)
	unmanaged := &plans.Decision{Record: d.Record}
	record := *d.Record
	record.Managed = false
	unmanaged.Record = &record
	marked := list[0].DeepCopy()
	marked.Annotations[api.AnnotationHints] = "PreferSameZone"
	marked.Endpoints[0].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "eu-west-1a"}}}

	tests := map[string]struct {
		known   decisions
		slice   *discoveryv1.EndpointSlice
		change  func(*admissionv1.AdmissionRequest)
		patched bool
	}{
		"an update": {decisions{web(): d}, list[0], nil, true},
		"a create":  {decisions{web(): d}, list[0], func(r *admissionv1.AdmissionRequest) { r.Operation = "CREATE" }, true},
		"a dry run": {decisions{web(): d}, list[0], func(r *admissionv1.AdmissionRequest) { r.DryRun = new(true) }, true},
		"an object without a namespace": {decisions{web(): d}, list[0], func(r *admissionv1.AdmissionRequest) {
			r.Object.Raw = bytes.ReplaceAll(r.Object.Raw, []byte(`"namespace":"shop",`), nil)
		}, true},
		"a service that gave up weir, with its mark":  {decisions{web(): unmanaged}, marked, nil, true},
		"a service that gave up weir, without a mark": {decisions{web(): unmanaged}, list[0], nil, false},
		"a service that is not known":                 {nil, list[0], nil, false},
		"another namespace's service of that name": {decisions{web(): d}, list[0], func(r *admissionv1.AdmissionRequest) {
			r.Object.Raw = bytes.ReplaceAll(r.Object.Raw, []byte(`"namespace":"shop"`), []byte(`"namespace":"other"`))
		}, false},
		"a delete": {decisions{web(): d}, list[0], func(r *admissionv1.AdmissionRequest) {
			r.Operation, r.Object = "DELETE", runtime.RawExtension{}
		}, false},
		"another resource": {decisions{web(): d}, list[0], func(r *admissionv1.AdmissionRequest) {
			r.Resource.Resource, r.Object.Raw = "pods", []byte(`{"kind":"Pod","endpoints":"none"}`)
		}, false},
		"another version": {decisions{web(): d}, list[0], func(r *admissionv1.AdmissionRequest) { r.Resource.Version = "v1beta1" }, false},
		"a subresource":   {decisions{web(): d}, list[0], func(r *admissionv1.AdmissionRequest) { r.SubResource = "status" }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h, _ := handler(t, test.known)
			r := review(test.slice)
			if test.change != nil {
				test.change(r.Request)
			}
			a := allowed(t, post(h, encode(r)), string(r.Request.UID))
			if got := a.Patch != nil; got != test.patched {
				t.Errorf("want patched %t, got %s", test.patched, a.Patch)
			}
		})
	}
}

func TestGarbageIsAnswered400(t *testing.T) {
	list := slices(3)
	h, _ := handler(t, decisions{web(): decide(list, topology.ModePreferSameZone)})
	good := encode(review(list[0]))
	for name, body := range map[string]string{
		"nothing":                good[:0],
		"not JSON":               "endpoints: []",
		"an array":               "[" + good + "]",
		"cut off":                good[:len(good)-1],
		"cut off in the object":  good[:len(good)/3],
		"something after it":     good + "}",
		"another kind":           strings.Replace(good, `"AdmissionReview"`, `"AdmissionReport"`, 1),
		"another version":        strings.Replace(good, `"admission.k8s.io/v1"`, `"admission.k8s.io/v1beta1"`, 1),
		"no kind":                strings.Replace(good, `"kind":"AdmissionReview",`, ``, 1),
		"no request":             `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`,
		"a request of null":      `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":null}`,
		"no uid":                 strings.Replace(good, `"uid":"705ab4f5-6393-11e8-b7cc-42010a800002",`, ``, 1),
		"an object of no kind":   strings.ReplaceAll(good, `"EndpointSlice","apiVersion"`, `"Endpoints","apiVersion"`),
		"an object of null":      `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","operation":"CREATE","resource":{"group":"discovery.k8s.io","version":"v1","resource":"endpointslices"},"object":null}}`,
		"endpoints of a string":  strings.Replace(good, `"endpoints":[`, `"endpoints":"all","others":[`, 1),
		"a port that is too big": strings.Replace(good, `"port":8080`, `"port":80800000000`, 1),
		"a body over the limit":  good + strings.Repeat(" ", 7<<20),
	} {
		t.Run(name, func(t *testing.T) {
			if w := post(h, body); w.Code != http.StatusBadRequest || w.Body.Len() == 0 {
				t.Errorf("want 400 and why, got %d: %s", w.Code, w.Body)
			}
		})
	}
}

func TestLargeReviewsAreBoundedTogetherAndSmallOnesAreAnsweredMeanwhile(t *testing.T) {
	list := slices(3)
	h, _ := handler(t, decisions{web(): decide(list, topology.ModePreferSameZone)})
	const room = 128 / 7 // bodies of the greatest size within the budget
	var pending sync.WaitGroup
	bodies := make([]*io.PipeWriter, room)
	for i := range bodies {
		var body *io.PipeReader
		body, bodies[i] = io.Pipe()
		pending.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mutate-endpointslice", body) // of unknown length
			r.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(httptest.NewRecorder(), r)
		})
		if _, err := bodies[i].Write([]byte("{")); err != nil { // it is being read
			t.Fatal(err)
		}
	}
	if w := post(h, strings.Repeat(" ", 2<<20)); w.Code != http.StatusServiceUnavailable {
		t.Errorf("a large review over the budget: want 503, got %d: %s", w.Code, w.Body)
	}
	if w := post(h, encode(review(list[0]))); w.Code != http.StatusOK {
		t.Errorf("a small review meanwhile: want 200, got %d: %s", w.Code, w.Body)
	}
	for _, b := range bodies {
		_ = b.Close() // never an error
	}
	pending.Wait()
	if w := post(h, strings.Repeat(" ", 2<<20)); w.Code != http.StatusBadRequest {
		t.Errorf("a large one afterwards: want 400, got %d: %s", w.Code, w.Body)
	}
}

func TestARequestThatIsNoPostOfJSONIsAnswered400(t *testing.T) {
	list := slices(3)
	h, _ := handler(t, decisions{web(): decide(list, topology.ModePreferSameZone)})
	for name, test := range map[string]struct {
		method, content string
		want            int
	}{
		"a GET":                {http.MethodGet, "application/json", 400},
		"a PUT":                {http.MethodPut, "application/json", 400},
		"YAML":                 {http.MethodPost, "application/yaml", 400},
		"no content type":      {http.MethodPost, "", 400},
		"nonsense for a type":  {http.MethodPost, "json; ;", 400},
		"JSON with parameters": {http.MethodPost, "application/json; charset=utf-8", 200},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(test.method, "/", strings.NewReader(encode(review(list[0]))))
			r.Header.Set("Content-Type", test.content)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != test.want {
				t.Errorf("want %d, got %d: %s", test.want, w.Code, w.Body)
			}
		})
	}
}

func TestRequestsAreCountedByWhatBecameOfThem(t *testing.T) {
	list := slices(3)
	d := decide(list, topology.ModePreferSameZone)
	h, registry := handler(t, decisions{web(): d})
	r := review(list[0])
	hinted := patched(t, r, allowed(t, post(h, encode(r)), string(r.Request.UID)))
	other := list[0].DeepCopy()
	other.Labels[api.LabelServiceName] = "other"
	post(h, encode(review(hinted)))
	post(h, encode(review(hinted)))
	post(h, encode(review(other)))
	post(h, "garbage")

	want := map[string]float64{"patched": 1, "unchanged": 2, "unknown": 1, "rejected": 1}
	got, durations := counts(t, registry)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("weir_webhook_requests_total (-want +got):\n%s", diff)
	}
	if durations != 5 {
		t.Errorf("want 5 durations, got %d", durations)
	}
}

// counts gives the requests by result, and how many durations were seen.
func counts(t *testing.T, registry *prometheus.Registry) (map[string]float64, uint64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	requests := make(map[string]float64)
	var durations uint64
	for _, f := range families {
		for _, m := range f.GetMetric() {
			switch f.GetName() {
			case "weir_webhook_requests_total":
				requests[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			case "weir_webhook_duration_seconds":
				durations = m.GetHistogram().GetSampleCount()
			}
		}
	}
	return requests, durations
}

// FuzzHandler sends whatever it likes: never a panic, only 200 and 400, and a patch that applies and leaves nothing to do.
func FuzzHandler(f *testing.F) {
	list := slices(4)
	d := decide(list, topology.ModeBalanced)
	h, _ := handler(f, decisions{web(): d})
	f.Add(encode(review(list[0])))
	f.Add(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","\u006fbject":{},"object":{"a":"\""},"oldObject":[[`)
	f.Fuzz(func(t *testing.T, body string) {
		w := post(h, body)
		if w.Code == http.StatusBadRequest {
			return
		}
		var sent admissionv1.AdmissionReview
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(body), &sent); err != nil || sent.Request == nil {
			return // what is wrong is in the old object, which is not read
		}
		a := allowed(t, w, string(sent.Request.UID))
		if a.Patch == nil {
			return
		}
		if left := hints.Edit(patched(t, &sent, a), d); len(left) != 0 {
			t.Errorf("the patch %s leaves to be done: %v", a.Patch, left)
		}
	})
}

func BenchmarkHandler(b *testing.B) {
	list := slices(5000)
	d := decide(list, topology.ModeBalanced)
	h, _ := handler(b, decisions{web(): d})
	stripped := review(list[25])
	hinted := review(patched(b, stripped, allowed(b, post(h, encode(stripped)), string(stripped.Request.UID))))
	for name, r := range map[string]*admissionv1.AdmissionReview{"patched": stripped, "unchanged": hinted} {
		b.Run(name, func(b *testing.B) {
			body := encode(r)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if w := post(h, body); w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
		})
	}
}
