package feed_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/feed"
)

// fixture is a cluster as informers tell of it, and a feed that follows it. Use it in a synctest bubble.
type fixture struct {
	t        *testing.T
	cache    informertest.FakeInformers
	feed     *feed.Feed
	nodes    map[string]*corev1.Node
	services map[string]*corev1.Service
	slices   map[string]*discoveryv1.EndpointSlice
	version  int
}

// start makes a fixture whose feed runs for as long as the test. prepare may fill it before anything is synced.
func start(t *testing.T, o feed.Options, prepare ...client.Object) *fixture {
	t.Helper()
	w := &fixture{
		t: t, nodes: make(map[string]*corev1.Node), services: make(map[string]*corev1.Service),
		slices: make(map[string]*discoveryv1.EndpointSlice),
	}
	var err error
	if w.feed, err = feed.New(&w.cache, o); err != nil {
		t.Fatal(err)
	}
	for _, object := range prepare {
		w.set(object)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.feed.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the feed ended with %v", err)
		}
	})
	synctest.Wait()
	return w
}

// set tells of an object that is there from now on, in a version of its own.
func (w *fixture) set(object client.Object) {
	w.t.Helper()
	w.version++
	object.SetResourceVersion(fmt.Sprint(w.version))
	key := object.GetNamespace() + "/" + object.GetName()
	var before client.Object
	switch o := object.(type) {
	case *corev1.Node:
		before = replace(w.nodes, key, o)
	case *corev1.Service:
		before = replace(w.services, key, o)
	case *discoveryv1.EndpointSlice:
		before = replace(w.slices, key, o)
	}
	if before == nil {
		w.informer(object).Add(object)
	} else {
		w.informer(object).Update(before, object)
	}
}

// replace puts an object into a map and gives the one before, nil when there was none.
func replace[T client.Object](objects map[string]T, key string, now T) client.Object {
	before, ok := objects[key]
	objects[key] = now
	if !ok {
		return nil
	}
	return before
}

// drop tells that an object is gone.
func (w *fixture) drop(object client.Object) {
	w.t.Helper()
	key := object.GetNamespace() + "/" + object.GetName()
	switch object.(type) {
	case *corev1.Node:
		delete(w.nodes, key)
	case *corev1.Service:
		delete(w.services, key)
	case *discoveryv1.EndpointSlice:
		delete(w.slices, key)
	}
	w.informer(object).Delete(object)
}

func (w *fixture) informer(object client.Object) *controllertest.FakeInformer {
	w.t.Helper()
	i, err := w.cache.FakeInformerFor(w.t.Context(), object)
	if err != nil {
		w.t.Fatal(err)
	}
	return i
}

// state waits until what was told is gathered, and gives the state.
func (w *fixture) state() *feed.State {
	time.Sleep(2 * feed.DefaultDelay)
	synctest.Wait()
	s, _ := w.feed.States().Load()
	return s
}

// record gives one service's record of the state.
func (w *fixture) record(name string) *feed.Record {
	return w.state().Record(topology.ServiceName{Namespace: "shop", Name: name})
}

func node(name, zone string) *corev1.Node {
	n := &corev1.Node{}
	n.Name = name
	if zone != "" {
		n.Labels = map[string]string{api.LabelZone: zone}
	}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// service makes a Service of namespace shop; settings are labels, or annotations when they begin with @: key=value.
func service(name string, settings ...string) *corev1.Service {
	s := &corev1.Service{}
	s.Namespace, s.Name, s.UID = "shop", name, types.UID("uid-of-"+name)
	s.Labels, s.Annotations = make(map[string]string), make(map[string]string)
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "=")
		if key, ok := strings.CutPrefix(key, "@"); ok {
			s.Annotations[key] = value
		} else {
			s.Labels[key] = value
		}
	}
	s.Spec.ClusterIP = "10.0.0.1"
	s.Spec.Ports = []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}
	return s
}

// slice makes an EndpointSlice of a service of namespace shop; endpoints are ADDRESS[@NODE][/ZONE].
func slice(name, owner string, endpoints ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	s.Namespace, s.Name = "shop", name
	s.Labels = make(map[string]string)
	if owner != "" {
		s.Labels[api.LabelServiceName] = owner
	}
	s.Ports = []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}}
	for _, text := range endpoints {
		e := discoveryv1.Endpoint{}
		text, zone, hasZone := strings.Cut(text, "/")
		if hasZone {
			e.Zone = &zone
		}
		address, host, hasNode := strings.Cut(text, "@")
		if hasNode {
			e.NodeName = &host
		}
		e.Addresses = []string{address}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

// names lists the services of the records.
func names(s *feed.State) string {
	var all []string
	for _, r := range s.Records {
		all = append(all, r.Name.Name)
	}
	return strings.Join(slices.Clip(all), " ")
}
