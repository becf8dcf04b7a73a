package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-lb/weir/api/v1alpha1"
)

// The services of the cluster: one that weir has programmed, one that it has not yet, one whose label is not understood,
// one that the built-in controller hinted, one that asks for nothing, one in two families, and an alias.
const clusterServices = `
- metadata: {name: pay, namespace: shop, labels: {weir.dev/distribution: PreferSameZone}}
- metadata: {name: web, namespace: shop, labels: {weir.dev/distribution: Balanced}}
  status:
    conditions:
    - {type: weir.dev/TrafficDistributionAccepted, status: "True", reason: Accepted, message: mode Balanced}
    - {type: weir.dev/TrafficDistributionProgrammed, status: "False", reason: WriteRefused, message: 403 of the API server}
- metadata: {name: cart, namespace: shop, labels: {weir.dev/distribution: Ballanced}}
- metadata: {name: dns, namespace: kube-system}
  spec: {trafficDistribution: PreferSameZone}
- metadata: {name: plain, namespace: shop}
- metadata: {name: dual, namespace: shop, annotations: {service.kubernetes.io/topology-mode: Auto}}
- metadata: {name: alias, namespace: shop}
  spec: {type: ExternalName, externalName: example.org}
`

// clusterSlices are the EndpointSlices: NAMESPACE SERVICE TYPE MARK, and for each endpoint its zone and the zone it is
// hinted to.
const clusterSlices = `
shop pay IPv4 PreferSameZone zone-a>zone-a zone-b>zone-b
shop pay IPv4 PreferSameZone zone-c>zone-c
shop web IPv4 - zone-a zone-a zone-a zone-a zone-a
shop web IPv4 - zone-b zone-c
shop cart IPv4 PreferSameZone zone-a>zone-a zone-b>zone-b zone-c>zone-c
kube-system dns IPv4 - zone-a>zone-a zone-b>zone-b
shop plain IPv4 - zone-a zone-b
shop dual IPv4 - zone-a>zone-a zone-b>zone-b zone-c
shop dual IPv6 - zone-a zone-b zone-c
`

// apiServer answers a reader of a cluster as a Kubernetes API server does, in pages as small as it is told.
type apiServer struct {
	*httptest.Server
	nodes    []corev1.Node
	services []corev1.Service
	slices   []discoveryv1.EndpointSlice
	policies []v1alpha1.LoadBalancingPolicy // nil: the resource is not installed
	routes   []gatewayv1.HTTPRoute          // nil: not installed, either
	pods     []corev1.Pod
	spaces   []corev1.Namespace
	pageSize int             // 0: what the client asks for
	expire   int             // so many requests for a further page are answered with 410
	denied   map[string]bool // resources that may not be read
	mu       sync.Mutex
	requests []string
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	a := &apiServer{denied: make(map[string]bool)}
	for _, z := range []string{"a", "b", "c"} {
		a.nodes = append(a.nodes, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node-" + z, Labels: map[string]string{"topology.kubernetes.io/zone": "zone-" + z}},
		})
	}
	for i := range a.nodes {
		status := `{allocatable: {cpu: "4"}, conditions: [{type: Ready, status: "True"}]}`
		if err := yaml.Unmarshal([]byte(status), &a.nodes[i].Status); err != nil {
			t.Fatal(err)
		}
	}
	if err := yaml.Unmarshal([]byte(clusterServices), &a.services); err != nil {
		t.Fatal(err)
	}
	for i := range a.services {
		s := &a.services[i]
		if s.Spec.Type == "" {
			s.Spec.ClusterIP = fmt.Sprintf("10.1.0.%d", i+1)
			s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}}
		}
	}
	for i, line := range strings.Split(strings.TrimSpace(clusterSlices), "\n") {
		a.slices = append(a.slices, slice(i, strings.Fields(line)))
	}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

// slice reads one line of clusterSlices.
func slice(n int, fields []string) discoveryv1.EndpointSlice {
	s := discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: fields[1] + "-" + strconv.Itoa(n), Namespace: fields[0],
			Labels: map[string]string{"kubernetes.io/service-name": fields[1]},
		},
		AddressType: discoveryv1.AddressType(fields[2]),
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}},
	}
	if mark := fields[3]; mark != "-" {
		s.Annotations = map[string]string{"weir.dev/hints": mark}
	}
	for i, text := range fields[4:] {
		zone, hint, _ := strings.Cut(text, ">")
		e := discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.0.%d.%d", n, i+1)}, Zone: new(zone),
			NodeName:   new("node-" + strings.TrimPrefix(zone, "zone-")),
			Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		}
		if s.AddressType == discoveryv1.AddressTypeIPv6 {
			e.Addresses = []string{fmt.Sprintf("fd00::%d:%d", n, i+1)}
		}
		if hint != "" {
			e.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: hint}}}
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

// kubeconfig writes a kubeconfig for the server, whose context works in namespace shop, and makes it the one that counts.
func (a *apiServer) kubeconfig(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	write(t, path, fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test, namespace: shop}}, {name: bare, context: {cluster: test}}]
clusters: [{name: test, cluster: {server: %q}}]
users: [{name: test, user: {token: secret}}]
`, a.URL))
	t.Setenv("KUBECONFIG", path)
}

// noCluster makes sure that no kubeconfig is found.
func noCluster(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		t.Setenv("KUBERNETES_SERVICE_HOST", "")
	}
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r.URL.String())
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if strings.HasPrefix(r.URL.Path, "/apis/weir.dev/") || strings.HasPrefix(r.URL.Path, "/apis/gateway.networking.k8s.io/") {
		a.serveCustom(w, r, parts[3:])
		return
	}
	parts = parts[slices.Index(parts, "v1")+1:]
	namespace := ""
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1], parts[2:]
	}
	switch {
	case a.denied[parts[0]]:
		fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, parts[0]+" is forbidden: User \"jane\" cannot list it")
	case parts[0] == "nodes":
		respond(w, a, r, a.nodes)
	case parts[0] == "endpointslices":
		_, name, selected := strings.Cut(r.URL.Query().Get("labelSelector"), "=")
		respond(w, a, r, where(a.slices, func(s *discoveryv1.EndpointSlice) bool {
			return (namespace == "" || s.Namespace == namespace) &&
				(!selected || s.Labels["kubernetes.io/service-name"] == name)
		}))
	case len(parts) == 2 && parts[0] == "namespaces":
		one(w, where(a.spaces, func(n *corev1.Namespace) bool { return n.Name == parts[1] }))
	case len(parts) == 2 && parts[0] == "pods":
		one(w, where(a.pods, func(p *corev1.Pod) bool { return p.Namespace == namespace && p.Name == parts[1] }))
	case parts[0] == "pods":
		respond(w, a, r, where(a.pods, func(p *corev1.Pod) bool { return p.Namespace == namespace }))
	case len(parts) == 2:
		one(w, where(a.services, func(s *corev1.Service) bool { return s.Namespace == namespace && s.Name == parts[1] }))
	default:
		respond(w, a, r, where(a.services, func(s *corev1.Service) bool {
			return namespace == "" || s.Namespace == namespace
		}))
	}
}

// serveCustom answers for the kinds that CRDs define. As of a real server, one that is not to be read is refused first, be it
// there or not; which there are may be asked by every user.
func (a *apiServer) serveCustom(w http.ResponseWriter, r *http.Request, parts []string) {
	installed := map[string]bool{"loadbalancingpolicies": a.policies != nil, "httproutes": a.routes != nil}
	group := map[bool]string{true: "loadbalancingpolicies", false: "httproutes"}[strings.HasPrefix(r.URL.Path, "/apis/weir.dev/")]
	switch {
	case len(parts) == 0 && installed[group]:
		send(w, http.StatusOK, metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: group}}})
	case len(parts) > 0 && a.denied[parts[0]]:
		fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, parts[0]+" is forbidden: User \"jane\" cannot list it")
	case len(parts) == 0 || !installed[parts[0]]:
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
	case parts[0] == "httproutes":
		respond(w, a, r, a.routes)
	default:
		respond(w, a, r, a.policies)
	}
}

// one sends the object that was found.
func one[T any](w http.ResponseWriter, found []T) {
	if len(found) == 0 {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
		return
	}
	send(w, http.StatusOK, found[0])
}

func where[T any](all []T, keep func(*T) bool) []T {
	var kept []T
	for i := range all {
		if keep(&all[i]) {
			kept = append(kept, all[i])
		}
	}
	return kept
}

// respond sends one page of a list.
func respond[T any](w http.ResponseWriter, a *apiServer, r *http.Request, items []T) {
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	if a.pageSize > 0 && limit > 0 {
		limit = a.pageSize
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	if from > 0 && a.expire > 0 {
		a.expire--
		fail(w, http.StatusGone, metav1.StatusReasonExpired, "the place in the list is forgotten")
		return
	}
	next := ""
	items = items[from:]
	if limit > 0 && len(items) > limit {
		items, next = items[:limit], strconv.Itoa(from+limit)
	}
	send(w, http.StatusOK, map[string]any{"metadata": map[string]string{"continue": next}, "items": items})
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	send(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message, //nolint:gosec // a status code.
	})
}

func send(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}
