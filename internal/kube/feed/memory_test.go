package feed_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-lb/weir/internal/kube/feed"
)

// The cluster that weir must follow within 1 GiB.
const (
	largeServices  = 10_000
	largeEndpoints = 150_000
	largeNodes     = 5_000
)

// marshaler is an object that travels as the API server sends it.
type marshaler interface {
	client.Object
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

// arrive gives an object as it comes out of the decoder, with memory of its own, and trimmed.
func arrive[T marshaler](tb testing.TB, trim func(client.Object), object, empty T) T {
	tb.Helper()
	data, err := object.Marshal()
	if err != nil {
		tb.Fatal(err)
	}
	if err := empty.Unmarshal(data); err != nil {
		tb.Fatal(err)
	}
	trim(empty)
	return empty
}

// large makes a large cluster's objects.
func large(tb testing.TB) []client.Object {
	tb.Helper()
	trim := trimmers()
	var objects []client.Object
	host := func(i int) string { return fmt.Sprintf("ip-10-%d-%d-%d.eu-west-1.compute.internal", i%3, i/250, i%250) }
	zone := func(i int) string { return []string{"eu-west-1a", "eu-west-1b", "eu-west-1c"}[i%3] }
	for i := range largeNodes {
		n := node(host(i), zone(i))
		n.Annotations = map[string]string{"node.alpha.kubernetes.io/ttl": "0"}
		n.Status.Images = make([]corev1.ContainerImage, 50)
		burden(n)
		objects = append(objects, arrive(tb, trim, n, &corev1.Node{}))
	}
	const each = largeEndpoints / largeServices
	for i := range largeServices {
		name := fmt.Sprintf("service-%d", i)
		s := service(name, "app="+name, "app.kubernetes.io/managed-by=Helm")
		burden(s)
		objects = append(objects, arrive(tb, trim, s, &corev1.Service{}))
		e := slice(name+"-x7k2p", name)
		e.Labels["endpointslice.kubernetes.io/managed-by"] = "endpointslice-controller.k8s.io"
		for j := range each {
			k := i*each + j
			e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{
				Addresses:  []string{fmt.Sprintf("10.%d.%d.%d", k>>16, k>>8&255, k&255)},
				Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
				NodeName:   new(host(k % largeNodes)), Zone: new(zone(k % largeNodes)),
				Hints: &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: zone(k % largeNodes)}}},
				TargetRef: &corev1.ObjectReference{
					Kind: "Pod", Namespace: "shop", Name: fmt.Sprintf("%s-7d4b9c6f5-%05d", name, j), UID: "0d9a8f1e-5b7c-4d2a-9e3f-1a2b3c4d5e6f",
				},
			})
		}
		burden(e)
		objects = append(objects, arrive(tb, trim, e, &discoveryv1.EndpointSlice{}))
	}
	return objects
}

// heap gives the bytes that are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what a finalizer held after the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestALargeClusterFitsIntoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := heap()
		objects := large(t)
		cached := heap() - before
		w := start(t, feed.Options{}, objects...)
		s := w.state()
		total := heap() - before
		n := 0
		for _, svc := range s.Snapshot.Services {
			n += len(svc.Endpoints)
		}
		if n != largeEndpoints || len(s.Snapshot.Nodes) != largeNodes {
			t.Fatalf("want %d endpoints on %d nodes, got %d on %d", largeEndpoints, largeNodes, n, len(s.Snapshot.Nodes))
		}
		t.Logf("%d services, %d endpoints, %d nodes: %d MiB of objects, %d MiB with the state; %d bytes for each endpoint",
			largeServices, largeEndpoints, largeNodes, cached>>20, total>>20, total/largeEndpoints)
		// A quarter of 1 GiB: decoding a change, the plans and the garbage between two collections want theirs.
		if total > 256<<20 {
			t.Errorf("want at most 256 MiB, got %d", total>>20)
		}
		runtime.KeepAlive(objects)
	})
}

// follow runs a feed of a large cluster for as long as a benchmark, and gives what tells it of one change and waits for
// the state with it.
func follow(b *testing.B, objects []client.Object) (informers *informertest.FakeInformers, after func(change func())) {
	b.Helper()
	informers = &informertest.FakeInformers{}
	f, err := feed.New(informers, feed.Options{Delay: 1})
	if err != nil {
		b.Fatal(err)
	}
	for _, object := range objects {
		i, err := informers.FakeInformerFor(b.Context(), object)
		if err != nil {
			b.Fatal(err)
		}
		i.Add(object)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	<-f.Synced()
	return informers, func(change func()) {
		_, changed := f.States().Load()
		change()
		<-changed
	}
}

// BenchmarkChange measures the step from one state to the next when a service of a large cluster changes.
func BenchmarkChange(b *testing.B) {
	objects := large(b)
	informers, after := follow(b, objects)
	web, ok := objects[len(objects)-1].(*discoveryv1.EndpointSlice)
	if !ok {
		b.Fatalf("the last object is a %T", objects[len(objects)-1])
	}
	informer, err := informers.FakeInformerFor(b.Context(), web)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		next := web.DeepCopy()
		next.ResourceVersion = fmt.Sprint("v", i)
		next.Endpoints[0].Conditions.Ready = new(i%2 == 0)
		after(func() { informer.Update(web, next) })
	}
}

// BenchmarkNodeGone measures the step when a node of a large cluster goes, or comes back.
func BenchmarkNodeGone(b *testing.B) {
	objects := large(b)
	informers, after := follow(b, objects)
	n, ok := objects[0].(*corev1.Node)
	if !ok {
		b.Fatalf("the first object is a %T", objects[0])
	}
	informer, err := informers.FakeInformerFor(b.Context(), n)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if i++; i%2 == 1 {
			after(func() { informer.Delete(n) })
		} else {
			after(func() { informer.Add(n) })
		}
	}
}
