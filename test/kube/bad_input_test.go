//go:build e2e

package kube_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/kube/webhook"
	"github.com/weir-lb/weir/test/kube"
)

// Conditions of a Service whose settings are followed, and of one whose settings are not.
func accepted(reason string) metav1.Condition {
	return metav1.Condition{Type: api.ConditionAccepted, Status: metav1.ConditionTrue, Reason: reason}
}

func notAccepted(reason string) metav1.Condition {
	return metav1.Condition{Type: api.ConditionAccepted, Status: metav1.ConditionFalse, Reason: reason}
}

// hinted waits until every ready pod is listed and says what is wanted of its endpoint's hints.
func hinted(a *kube.App, what string, want func(*kube.Endpoint) bool) {
	a.AwaitSlices()
	a.Cluster.Until("the endpoints of "+a.Name+" are hinted for "+what, func() error {
		endpoints := a.Endpoints()
		for i := range endpoints {
			if !want(&endpoints[i]) {
				return fmt.Errorf("%s", &endpoints[i])
			}
		}
		return nil
	})
}

func ownZoneOnly(e *kube.Endpoint) bool { return slices.Equal(e.ForZones, []string{e.Zone}) }

func ownNode(e *kube.Endpoint) bool { return slices.Equal(e.ForNodes, []string{e.Node}) }

func anyZone(e *kube.Endpoint) bool { return len(e.ForZones) > 0 }

func noHint(e *kube.Endpoint) bool { return !e.Hinted() }

// badSetting is a setting that weir does not follow, on a Service whose hints it had written.
type badSetting struct {
	app        *kube.App
	invalidate func(*corev1.Service)
	reason     string // of event, condition and metric
	condition  metav1.Condition
	kept       func(*kube.Endpoint) bool // what the hints go on saying, of endpoints that come later too
	correct    func(*corev1.Service)
	corrected  func(*kube.Endpoint) bool
}

func badSettings(c *kube.Cluster) []badSetting {
	deploy := func(name, mode string, annotations map[string]string) *kube.App {
		return c.Deploy(kube.AppOptions{
			Namespace: "shop", Name: name, Labels: labelled(mode), Annotations: annotations,
			Pods: map[string]int{"zone-a": 2, "zone-b": 1, "zone-c": 1},
		})
	}
	limit := func(text string) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Annotations[api.AnnotationOverloadLimit] = text }
	}
	return []badSetting{
		{
			app:        deploy("mode", "PreferSameZone", nil),
			invalidate: func(s *corev1.Service) { s.Labels[api.LabelDistribution] = "Nearest" },
			reason:     "UnknownMode", condition: notAccepted("UnknownMode"), kept: ownZoneOnly,
			correct: func(s *corev1.Service) { s.Labels[api.LabelDistribution] = "PreferSameNode" }, corrected: ownNode,
		},
		{
			app:        deploy("conflict", "PreferSameZone", nil),
			invalidate: func(s *corev1.Service) { s.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"} },
			reason:     "ConflictingModes", condition: accepted("ConflictingModes"), kept: ownZoneOnly,
			correct: func(s *corev1.Service) { s.Annotations = nil }, corrected: ownZoneOnly,
		},
		{
			// Mode Auto has hints for four endpoints in three zones only where more than the usual 20 % is allowed.
			app:        deploy("limit", "Auto", map[string]string{api.AnnotationOverloadLimit: "90%"}),
			invalidate: limit("lots"), reason: "BadOverloadLimit", condition: notAccepted("BadOverloadLimit"), kept: anyZone,
			correct: limit("0.2"), corrected: noHint,
		},
	}
}

// TestInvalidSettingsKeepTheLastGoodHints makes a setting of each of several Services invalid, adds
// endpoints, and then corrects it.
func TestInvalidSettingsKeepTheLastGoodHints(t *testing.T) {
	t.Parallel()
	c := kube.Start(t, kube.Options{})
	c.Nodes(2, "zone-a", "zone-b", "zone-c")
	w := newControllers(t, c)
	settings := badSettings(c)
	m := w.start("weir")
	for _, one := range settings {
		hinted(one.app, "what was asked for first", one.kept)
	}
	w.converged(kube.Limit)
	history, stop := w.record()
	for _, one := range settings {
		one.app.Change(one.invalidate)
	}
	for _, one := range settings {
		w.reports(one.app, one.reason, one.condition, kube.Limit)
		for _, metric := range []string{"weir_events_total", "weir_service_warnings"} {
			if n := w.sum(metric, `reason="`+one.reason+`"`); n < 1 {
				t.Errorf("%s{reason=%q} is %v", metric, one.reason, n)
			}
		}
		one.app.Scale("zone-a", 3)
		hinted(one.app, "what was asked for last and understood", one.kept)
	}
	// Two more syncs of the built-in controller, which knows no such hints.
	w.quiet()
	for _, one := range settings {
		hinted(one.app, "what was asked for last and understood", one.kept)
	}
	stop()
	if lost := history.unhinted(); len(lost) > 0 {
		t.Errorf("ready endpoints without hints in versions since the settings became invalid: %q", lost)
	}
	t.Logf("measured: %d invalid settings, %d versions of slices, none without hints", len(settings), history.length())
	for _, one := range settings {
		one.app.Change(one.correct)
		hinted(one.app, "what was asked for at last", one.corrected)
		c.Until("the corrected setting is accepted", func() error { return hasCondition(one.app.Service(), accepted("Accepted")) })
	}
	throwGarbage(w, m, settings[0].app)
}

// throwGarbage calls the webhook of a replica with what no API server sends, as fast as it answers, while pods come and go.
func throwGarbage(w *controllers, m *member, a *kube.App) {
	w.Helper()
	roots := x509.NewCertPool()
	configuration, err := w.c.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(w.Context(), webhook.DefaultConfiguration, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	if !roots.AppendCertsFromPEM(configuration.Webhooks[0].ClientConfig.CABundle) {
		w.Fatal("the webhook's configuration has no authority")
	}
	caller := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "weir-webhook." + namespace + ".svc"},
	}}
	defer caller.CloseIdleConnections()
	history, stop := w.record()
	defer stop()
	before := w.sum("weir_webhook_requests_total", `result="rejected"`)
	enough, done, thrown := make(chan struct{}), make(chan struct{}), 0
	go func() {
		defer close(done)
		for {
			select {
			case <-enough:
				return
			default:
			}
			if err := throwOnce(caller, m.webhook); err != nil {
				w.Error(err)
				return
			}
			thrown++
		}
	}()
	for _, count := range []int{5, 2, 4} {
		a.Scale("zone-b", count)
		hinted(a, "its node", ownNode)
	}
	close(enough)
	<-done
	stop()
	if lost := history.unhinted(a.Name); len(lost) > 0 {
		w.Errorf("ready endpoints without hints in versions while the webhook was given garbage: %q", lost)
	}
	if got := w.sum("weir_webhook_requests_total", `result="rejected"`) - before; got < float64(thrown) {
		w.Errorf("the webhook counts %v rejected requests of at least %d", got, thrown)
	}
	w.Logf("measured: the webhook was given garbage %d times and answered 400 while slices were written with their hints", thrown)
}

// garbage is bodies that are no AdmissionReview of an EndpointSlice, or not quite.
func garbage() map[string][]byte {
	review := func(request string) []byte {
		return []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":` + request + `}`)
	}
	const resource = `"resource":{"group":"discovery.k8s.io","version":"v1","resource":"endpointslices"},"operation":"UPDATE"`
	return map[string][]byte{
		"nothing":        {},
		"bytes":          {0, 1, 2, 0xff, 0xfe},
		"half":           []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1"`),
		"list":           []byte(`[]`),
		"deep":           bytes.Repeat([]byte(`{"request":[`), 20_000),
		"old version":    []byte(`{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"1"}}`),
		"no request":     review(`null`),
		"no uid":         review(`{` + resource + `}`),
		"no object":      review(`{"uid":"1",` + resource + `,"object":null}`),
		"another object": review(`{"uid":"1",` + resource + `,"object":{"apiVersion":"v1","kind":"Pod"}}`),
		"other types":    review(`{"uid":"1",` + resource + `,"object":{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","endpoints":{"a":1}}}`),
		"too much":       bytes.Repeat([]byte("x"), 8<<20),
	}
}

// throwOnce calls the webhook once with each piece of garbage, and sends it bytes that are no HTTP, and no TLS.
func throwOnce(caller *http.Client, address string) error {
	url := "https://" + address + webhook.Path
	for name, body := range garbage() {
		response, err := caller.Post(url+"?timeout=2s", "application/json", bytes.NewReader(body)) //nolint:noctx // the client has a timeout.
		if name == "too much" && err != nil {
			continue // answered and closed before all was sent
		}
		if err != nil {
			return fmt.Errorf("send %s to the webhook: %w", name, err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusBadRequest {
			return fmt.Errorf("the webhook answers %s with %s, want 400", name, response.Status)
		}
	}
	for _, raw := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\xff\xff\x01garbage", "\x00\x00\x00\x00"} {
		if err := sendRaw(address, raw); err != nil {
			return err
		}
	}
	return nil
}

// sendRaw sends bytes to a port and reads until the other side ends it.
func sendRaw(address, bytes string) error {
	conn, err := net.Dial("tcp", address) //nolint:noctx // loopback accepts or refuses at once.
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte(bytes)); err != nil {
		return err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, conn)
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return fmt.Errorf("the webhook keeps a connection that sent %q", bytes)
	}
	return nil // however it ended
}

// TestSlicesStayWithinTheLimitsOfTheAPI has weir hint slices that have as much as the API takes: 1,000 endpoints, hints for
// eight zones on each, and more zones than an endpoint can name.
func TestSlicesStayWithinTheLimitsOfTheAPI(t *testing.T) {
	t.Parallel()
	const zones, most = 10, 8
	c := kube.Start(t, kube.Options{})
	var names []string
	for i := range zones {
		names = append(names, fmt.Sprintf("zone-%d", i))
	}
	c.Nodes(1, names...)
	w := newControllers(t, c)
	// Without a selector only the test and weir write its slices.
	large := c.Deploy(kube.AppOptions{
		Namespace: "shop", Name: "large", Labels: labelled("Balanced"), Change: func(s *corev1.Service) { s.Spec.Selector = nil },
	})
	const endpoints = 1000
	var places []string
	for i := range endpoints {
		places = append(places, names[i*i%3])
	}
	slice := foreignSlice("large", 1, places...)
	for i := range slice.Endpoints {
		slice.Endpoints[i].Hints = new(discoveryv1.EndpointHints)
		for _, z := range names[:most] {
			slice.Endpoints[i].Hints.ForZones = append(slice.Endpoints[i].Hints.ForZones, discoveryv1.ForZone{Name: z})
		}
	}
	if _, err := c.Client.DiscoveryV1().EndpointSlices("shop").Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	one := c.Deploy(kube.AppOptions{Namespace: "shop", Name: "one", Labels: labelled("Balanced"), Pods: map[string]int{"zone-0": 1}})
	w.start("weir")
	w.converged(kube.Limit)
	check := func(a *kube.App, endpoints int) {
		t.Helper()
		got := a.Endpoints()
		if len(got) != endpoints {
			t.Errorf("%s has %d endpoints, want %d", a.Name, len(got), endpoints)
		}
		changed := 0
		for i := range got {
			if n := len(got[i].ForZones); n < 1 || n > most {
				t.Errorf("%s: hints for %d zones, want 1 to %d", &got[i], n, most)
			}
			if len(got[i].ForZones) < most {
				changed++
			}
		}
		t.Logf("measured: %s: %d endpoints, %d of them with hints for fewer than %d of %d zones", a.Name, endpoints, changed, most, zones)
	}
	check(large, endpoints)
	check(one, 1)
	hasMark := slices.ContainsFunc(large.Slices(), func(s *discoveryv1.EndpointSlice) bool { return s.Annotations[api.AnnotationHints] == "Balanced" })
	if !hasMark {
		t.Error("weir did not write the slice of 1,000 endpoints")
	}
	for _, write := range c.Writes() {
		if write.User == controllerUser && write.Code >= 400 && write.Code != http.StatusConflict {
			t.Errorf("the API server answers %d to %s %s %s", write.Code, write.Verb, write.Resource, write.Object)
		}
	}
}

// foreignSlice is a slice of a Service, with the ready endpoints of another Service, one in each of these zones. Its number
// makes its addresses its own.
func foreignSlice(service string, number int, zones ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: service + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "test"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(kube.PodPort)), Protocol: new(corev1.ProtocolTCP)}},
	}
	for i, zone := range zones {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.%d.%d.%d", 200+number, i/250, i%250+1)}, Zone: &zone,
			Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		})
	}
	return s
}

// refusal is how the API server refuses to patch the slices of a Service, and what is reported about it.
type refusal struct {
	name   string // of the Service
	answer func(http.ResponseWriter, *http.Request)
	result string // label of weir_slice_writes_total
	app    *kube.App
	before []kube.Endpoint
	asked  atomic.Int64 // patches that were refused
}

func refusals() []*refusal {
	status := func(code int32, reason metav1.StatusReason) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { answerStatus(w, code, reason) }
	}
	return []*refusal{
		{name: "forbidden", result: "forbidden", answer: status(http.StatusForbidden, metav1.StatusReasonForbidden)},
		{name: "conflict", result: "stale", answer: status(http.StatusConflict, metav1.StatusReasonConflict)},
		{name: "invalid", result: "invalid", answer: status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)},
		{name: "throttled", result: "throttled", answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			answerStatus(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
		}},
		{name: "broken", result: "unavailable", answer: status(http.StatusInternalServerError, metav1.StatusReasonInternalError)},
		{name: "unavailable", result: "unavailable", answer: status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)},
		{name: "gateway", result: "timeout", answer: status(http.StatusGatewayTimeout, metav1.StatusReasonTimeout)},
		{name: "silent", result: "timeout", answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	}
}

// answerStatus answers as an API server does.
func answerStatus(w http.ResponseWriter, code int32, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(&metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: "the test refuses",
	})
}

// refuser stands between weir and the API server. While it refuses, patches of the slices of some Services are answered by
// it; all else goes through, with the rights of weir's account.
type refuser struct {
	kubeconfig string
	refusals   []*refusal
	refuses    atomic.Bool
}

func newRefuser(t *testing.T, c *kube.Cluster, refusals []*refusal) *refuser {
	t.Helper()
	f := &refuser{refusals: refusals, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	account := c.ServiceAccountKubeconfig(namespace, "weir-controller")
	config, err := clientcmd.BuildConfigFromFlags("", account)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(c.URL())
	if err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // a watch is told at once
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if one := f.of(r); one != nil {
			one.asked.Add(1)
			one.answer(w, r)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	certificate, key := c.ServerCertificate("test", "refuser")
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	through, err := clientcmd.LoadFromFile(account)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range through.Clusters {
		cluster.Server = server.URL
	}
	if err := clientcmd.WriteToFile(*through, f.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return f
}

// of gives the refusal that a request meets; nil: none.
func (f *refuser) of(r *http.Request) *refusal {
	_, slice, found := strings.Cut(r.URL.Path, "/endpointslices/")
	if !found || r.Method != http.MethodPatch || !f.refuses.Load() {
		return nil
	}
	for _, one := range f.refusals {
		if strings.HasPrefix(slice, one.name+"-") {
			return one
		}
	}
	return nil
}

// TestRefusedPatchesKeepTheLastGoodHints refuses the patches of one Service each with one answer, while those of
// another Service go through.
func TestRefusedPatchesKeepTheLastGoodHints(t *testing.T) {
	t.Parallel()
	c := kube.Start(t, kube.Options{})
	c.Nodes(2, "zone-a", "zone-b", "zone-c")
	w := newControllers(t, c)
	// Only the test and weir's controller write their slices, so that hints are written by patches only.
	number := 0
	deploy := func(name string) *kube.App {
		a := c.Deploy(kube.AppOptions{
			Namespace: "shop", Name: name, Labels: labelled("Balanced"), Change: func(s *corev1.Service) { s.Spec.Selector = nil },
		})
		number++
		slice := foreignSlice(name, number, "zone-a", "zone-b", "zone-b", "zone-c")
		if _, err := c.Client.DiscoveryV1().EndpointSlices("shop").Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return a
	}
	f := newRefuser(t, c, refusals())
	for _, one := range f.refusals {
		one.app = deploy(one.name)
	}
	spared := deploy("spared")
	w.start("weir", "--kubeconfig="+f.kubeconfig)
	w.converged(kube.Limit)
	w.quiet()
	for _, one := range f.refusals {
		one.before = one.app.Endpoints()
	}
	was := spared.Endpoints()

	f.refuses.Store(true)
	began := time.Now()
	c.Node("zone-b", "64") // all plans change
	took := c.Until("the Service that is not refused has new hints", func() error {
		if now := spared.Endpoints(); fmt.Sprint(now) == fmt.Sprint(was) {
			return fmt.Errorf("%v", now)
		}
		return nil
	})
	refused := metav1.Condition{Type: api.ConditionProgrammed, Status: metav1.ConditionFalse, Reason: "WriteRefused"}
	for _, one := range f.refusals {
		w.reports(one.app, "FailedToUpdateEndpointSlices", refused, 3*time.Minute)
		t.Logf("measured: refused with %s: event and condition after %.0f s, asked %d times by then", one.name, time.Since(began).Seconds(), one.asked.Load())
	}
	for _, one := range f.refusals {
		if n := one.asked.Load(); n < 2 {
			t.Errorf("%s: %d patches: want more than one try", one.name, n)
		}
		if n := w.sum("weir_slice_writes_total", `result="`+one.result+`"`); n < 2 {
			t.Errorf("%s: weir_slice_writes_total{result=%q} is %v", one.name, one.result, n)
		}
		if now := one.app.Endpoints(); fmt.Sprint(now) != fmt.Sprint(one.before) {
			t.Errorf("%s: hints while patches are refused: %v, want those before: %v", one.name, now, one.before)
		}
	}
	f.refuses.Store(false)
	ended := time.Now()
	w.converged(90 * time.Second)
	for _, one := range f.refusals {
		c.Until("the condition of "+one.name+" is good again", func() error {
			return hasCondition(one.app.Service(), metav1.Condition{Type: api.ConditionProgrammed, Status: metav1.ConditionTrue, Reason: "Hinted"})
		})
	}
	t.Logf("measured: beside refused Services another one had its hints after %.1f s; the refused ones %.1f s after the API server relented",
		took.Seconds(), time.Since(ended).Seconds())
}
