package webhook_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	stdslices "slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/plans"
	"github.com/weir-lb/weir/internal/kube/webhook"
)

// decisions is what was decided, by service.
type decisions map[topology.ServiceName]*plans.Decision

func (d decisions) Lookup(name topology.ServiceName) (*plans.Decision, bool) {
	found, ok := d[name]
	return found, ok
}

func web() topology.ServiceName { return topology.ServiceName{Namespace: "shop", Name: "web"} }

// slices are those of a service with n endpoints over three zones, 100 in each slice, without hints.
func slices(n int) []*discoveryv1.EndpointSlice {
	var list []*discoveryv1.EndpointSlice
	for i := range n {
		if i%100 == 0 {
			list = append(list, &discoveryv1.EndpointSlice{
				TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: fmt.Sprintf("web-%05d", i), UID: "5cf0a6dd-2d4c-4b5f-8c9e-5ad0a7b6a001",
					Labels: map[string]string{
						api.LabelServiceName: "web", api.LabelDistribution: "Balanced",
						discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io",
					},
					Annotations: map[string]string{corev1.EndpointsLastChangeTriggerTime: "2026-11-21T10:00:00Z"},
					ManagedFields: []metav1.ManagedFieldsEntry{{
						Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate,
						APIVersion: "discovery.k8s.io/v1", FieldsType: "FieldsV1",
						FieldsV1: metav1.NewFieldsV1(`{"f:addressType":{},"f:endpoints":{},"f:metadata":{"f:labels":{".":{}}}}`),
					}},
				},
				AddressType: discoveryv1.AddressTypeIPv4,
				Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}},
			})
		}
		s := list[len(list)-1]
		s.Endpoints = append(s.Endpoints, endpoint(i))
	}
	return list
}

func endpoint(i int) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{fmt.Sprintf("10.%d.%d.%d", i/65536, i/256%256, i%256)},
		Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		NodeName:   new(fmt.Sprintf("ip-10-1-%d-%d.eu-west-1.compute.internal", i/256%256, i%256)),
		Zone:       new("eu-west-1" + string(rune('a'+i%3))),
		TargetRef: &corev1.ObjectReference{
			Kind: "Pod", Namespace: "shop", Name: fmt.Sprintf("web-7d4b9c6f5d-%05d", i), UID: "0d4b2b3e-6f1a-4b57-9b8e-0123456789ab",
		},
	}
}

// decide plans a service with the given slices in three zones of equal size.
func decide(list []*discoveryv1.EndpointSlice, mode topology.Mode) *plans.Decision {
	endpoints, _ := convert.Slices(list, nil)
	stdslices.SortFunc(endpoints, topology.CompareEndpoints)
	service := &topology.Service{ServiceName: web(), Mode: mode, Endpoints: endpoints}
	var survey plan.Survey
	for _, zone := range []topology.Zone{"eu-west-1a", "eu-west-1b", "eu-west-1c"} {
		survey.Zones = append(survey.Zones, plan.ZoneCapacity{Zone: zone, CPU: 4000, Nodes: 1})
		survey.Nodes++
	}
	return &plans.Decision{
		Record: &feed.Record{Name: web(), Slices: list, Service: service, Managed: true},
		Plans:  []plan.Plan{plan.Compute(plan.Input{Service: service, Family: topology.IPv4, Survey: survey})},
	}
}

// review is what an API server sends for an update of a slice.
func review(s *discoveryv1.EndpointSlice) *admissionv1.AdmissionReview {
	object, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	kind := metav1.GroupVersionKind{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"}
	resource := metav1.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "705ab4f5-6393-11e8-b7cc-42010a800002", Kind: kind, RequestKind: &kind, Resource: resource, RequestResource: &resource,
			Name: s.Name, Namespace: "shop", Operation: admissionv1.Update,
			Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: object},
			DryRun: new(false), Options: runtime.RawExtension{Raw: []byte(`{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}`)},
		},
	}
}

func encode(r *admissionv1.AdmissionReview) string {
	body, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(body)
}

func handler(tb testing.TB, d webhook.Decisions) (http.Handler, *prometheus.Registry) {
	tb.Helper()
	registry := prometheus.NewRegistry()
	h, err := webhook.NewHandler(d, registry)
	if err != nil {
		tb.Fatal(err)
	}
	return h, registry
}

// post sends a body as API servers do.
func post(h http.Handler, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, webhook.Path+"?timeout=2s", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
