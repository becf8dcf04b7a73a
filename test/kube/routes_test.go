//go:build e2e

package kube_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weir-lb/weir/test/kube"
)

// marker answers admission reviews with a patch that marks the object.
func marker(t *testing.T) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, fmt.Sprintf("%v, %v", err, review.Request), http.StatusBadRequest)
			return
		}
		kind := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: true, PatchType: &kind,
			Patch: []byte(`[{"op":"add","path":"/metadata/annotations","value":{"test":"marked"}}]`),
		}
		review.Request = nil
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Errorf("answer the API server: %v", err)
		}
	})
}

func apiServerCallsAWebhookByItsService(s subtest) {
	t, c := s.T, s.c
	c.Deploy(kube.AppOptions{Namespace: "hooks", Name: "hook", Change: func(s *corev1.Service) {
		s.Spec.Selector = nil
		s.Spec.Ports = []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromInt32(9443)}}
	}})
	certificate, key := c.ServerCertificate("hooks", "hook")
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(marker(t))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)

	path, none, ignore := "/mark", admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Ignore
	defer c.Kubectl("delete", "mutatingwebhookconfiguration", "marker", "--ignore-not-found")
	_, err = c.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "marker"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "marker.test.weir.dev", SideEffects: &none, FailurePolicy: &ignore, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service:  &admissionregistrationv1.ServiceReference{Namespace: "hooks", Name: "hook", Path: &path},
				CABundle: c.CA(),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// marks tells whether a new object passes through the webhook.
	marks := func() bool {
		t.Helper()
		made, err := c.Client.CoreV1().ConfigMaps("hooks").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "one-"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return made.Annotations["test"] == "marked"
	}

	c.Route("hooks", "hook", 443, "127.0.0.1:1", server.Listener.Addr().String())
	c.Until("the webhook is called, at the second address", func() error {
		if !marks() {
			return fmt.Errorf("a new object is not marked")
		}
		return nil
	})
	c.Route("hooks", "hook", 443)
	server.CloseClientConnections()
	if marks() {
		t.Error("the webhook is called though nothing is routed to it")
	}
	c.Route("hooks", "hook", 443, server.Listener.Addr().String())
	if !marks() {
		t.Error("the webhook is not called though it is routed to again")
	}
}
