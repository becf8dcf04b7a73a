// Package apitest is a small API server for tests that watch a cluster where no real one can be had.
//
// It lists and watches Nodes, Namespaces, Pods, Services, EndpointSlices and what else is installed over HTTP on loopback,
// keeps every version that a watch may ask for, and can be gone for a while. It checks nothing: what is written with Set is
// what clients see.
package apitest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Server is an API server. Its methods are safe for concurrent use.
type Server struct {
	server *httptest.Server

	mu      sync.Mutex
	gone    bool
	version int
	kinds   map[string]*kind // by path
	changed chan struct{}    // closes at the next change, and when the server goes
}

// kind holds the objects of one kind, and what happened to them.
type kind struct {
	apiVersion, name string
	objects          map[string]client.Object // by namespace/name
	events           []event
	removed          bool
}

// event is one line of a watch.
type event struct {
	version int
	object  client.Object
	Type    string `json:"type"`
	Object  any    `json:"object"`
}

// The paths of the kinds.
const (
	nodes      = "/api/v1/nodes"
	namespaces = "/api/v1/namespaces"
	pods       = "/api/v1/pods"
	services   = "/api/v1/services"
	endpoint   = "/apis/discovery.k8s.io/v1/endpointslices"
)

// New starts an empty server that ends with the test.
func New(tb testing.TB) *Server {
	tb.Helper()
	core, discovery := corev1.SchemeGroupVersion.String(), discoveryv1.SchemeGroupVersion.String()
	s := &Server{changed: make(chan struct{}), kinds: map[string]*kind{
		nodes:      {apiVersion: core, name: "Node", objects: make(map[string]client.Object)},
		namespaces: {apiVersion: core, name: "Namespace", objects: make(map[string]client.Object)},
		pods:       {apiVersion: core, name: "Pod", objects: make(map[string]client.Object)},
		services:   {apiVersion: core, name: "Service", objects: make(map[string]client.Object)},
		endpoint:   {apiVersion: discovery, name: "EndpointSlice", objects: make(map[string]client.Object)},
	}}
	s.server = httptest.NewServer(s)
	tb.Cleanup(func() {
		s.Go()
		s.server.Close()
	})
	return s
}

// URL is where the server is.
func (s *Server) URL() string { return s.server.URL }

// Kubeconfig is the text of a kubeconfig that leads to the server.
func (s *Server) Kubeconfig() string {
	return `apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: "` + s.URL() + `"}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
users: [{name: test, user: {}}]
`
}

// Go breaks every connection and refuses all requests until Return.
func (s *Server) Go() {
	s.mu.Lock()
	s.gone = true
	s.wakeLocked()
	s.mu.Unlock()
	s.server.CloseClientConnections()
}

// Return ends what Go began.
func (s *Server) Return() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = false
}

// Install begins to serve a kind as a CRD does, without objects: the resource of a group and version, and the kind, which is
// the name of its Go type, too.
func (s *Server) Install(resource schema.GroupVersionResource, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds["/apis/"+resource.Group+"/"+resource.Version+"/"+resource.Resource] = &kind{
		apiVersion: resource.GroupVersion().String(), name: name, objects: make(map[string]client.Object),
	}
}

// Uninstall ends what Install began. Watches end, too, without events for the objects that go.
func (s *Server) Uninstall(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.kinds, func(_ string, k *kind) bool {
		k.removed = k.name == name
		return k.removed
	})
	s.wakeLocked()
}

// Set writes objects, each in a version of its own.
func (s *Server) Set(objects ...client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range objects {
		own, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			panic(fmt.Sprintf("a copy of %T is no object", object))
		}
		k := s.kindLocked(own)
		s.version++
		own.SetResourceVersion(strconv.Itoa(s.version))
		own.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(k.apiVersion, k.name))
		key, verb := own.GetNamespace()+"/"+own.GetName(), "ADDED"
		if _, ok := k.objects[key]; ok {
			verb = "MODIFIED"
		}
		k.objects[key] = own
		k.events = append(k.events, event{s.version, own, verb, own})
	}
	s.wakeLocked()
}

// Drop deletes an object.
func (s *Server) Drop(object client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kindLocked(object)
	key := object.GetNamespace() + "/" + object.GetName()
	last, ok := k.objects[key].DeepCopyObject().(client.Object)
	if !ok {
		panic("there is no " + key)
	}
	delete(k.objects, key)
	s.version++
	last.SetResourceVersion(strconv.Itoa(s.version))
	k.events = append(k.events, event{s.version, last, "DELETED", last})
	s.wakeLocked()
}

// kindLocked finds an object's kind, which has the name of its Go type.
func (s *Server) kindLocked(object client.Object) *kind {
	name := reflect.TypeOf(object).Elem().Name()
	for _, k := range s.kinds {
		if k.name == name {
			return k
		}
	}
	panic(fmt.Sprintf("%T is not served", object))
}

func (s *Server) wakeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// ServeHTTP answers a list or a watch.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	k, isGone := s.kinds[r.URL.Path], s.gone
	s.mu.Unlock()
	switch {
	case isGone:
		http.Error(w, "gone for a while", http.StatusServiceUnavailable)
	case k == nil || r.Method != http.MethodGet:
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", "application/json")
		q := r.URL.Query()
		wanted := selector(q.Get("fieldSelector"))
		if q.Get("watch") == "" {
			s.list(w, k, wanted)
			return
		}
		since, _ := strconv.Atoi(q.Get("resourceVersion")) // none is from the start
		encoder := json.NewEncoder(w)
		if q.Get("sendInitialEvents") == "true" {
			since = s.begin(encoder, k, wanted)
		}
		s.watch(r.Context(), stream{encoder, http.NewResponseController(w)}, k, watching{wanted, since})
	}
}

// selector is a field selector: empty, metadata.name=NAME or spec.nodeName=NAME.
type selector string

func (s selector) matches(object client.Object) bool {
	field, value, _ := strings.Cut(string(s), "=")
	if pod, ok := object.(*corev1.Pod); ok && field == "spec.nodeName" {
		return pod.Spec.NodeName == value
	}
	return field == "" || object.GetName() == value
}

func (s *Server) list(w http.ResponseWriter, k *kind, wanted selector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]any{ // a client that left needs no answer
		"apiVersion": k.apiVersion, "kind": k.name + "List",
		"metadata": metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)},
		"items":    k.selected(wanted),
	})
}

// selected gives the objects that are wanted, in a fixed order.
func (k *kind) selected(wanted selector) []client.Object {
	all := []client.Object{}
	for _, key := range slices.Sorted(maps.Keys(k.objects)) {
		if wanted.matches(k.objects[key]) {
			all = append(all, k.objects[key])
		}
	}
	return all
}

// begin sends what is there and that this is all, and gives its version.
func (s *Server) begin(out *json.Encoder, k *kind, wanted selector) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range k.selected(wanted) {
		_ = out.Encode(event{Type: "ADDED", Object: object})
	}
	_ = out.Encode(event{Type: "BOOKMARK", Object: map[string]any{
		"apiVersion": k.apiVersion, "kind": k.name,
		"metadata": metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(s.version),
			Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		},
	}})
	return s.version
}

// stream is an answer that goes on.
type stream struct {
	*json.Encoder
	*http.ResponseController
}

// watching is what a watch wants to see.
type watching struct {
	wanted selector
	since  int
}

// watch sends events until the client or the server goes.
func (s *Server) watch(ctx context.Context, out stream, k *kind, w watching) {
	for {
		s.mu.Lock()
		events, changed, isGone := k.events, s.changed, s.gone || k.removed
		s.mu.Unlock()
		if isGone {
			return
		}
		for _, e := range events {
			if e.version > w.since && w.wanted.matches(e.object) {
				_ = out.Encode(e)
			}
		}
		if len(events) > 0 {
			w.since = max(w.since, events[len(events)-1].version)
		}
		if out.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
