// Package scale fills a cluster of package kube with many Nodes, Services and EndpointSlices, and lets parts of it fail, for
// measurements. The slices are written as a third party's controller writes them, without pods.
//
// It promises the same objects for the same Size.
package scale

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/test/kube"
)

// manager is what manages the slices.
const manager = "scale.test.weir.dev"

// Namespace is where the Services are.
const Namespace = "scale"

const (
	sliceSize = 100 // endpoints in a slice, as the built-in controller's default
	workers   = 32  // requests at a time: enough to keep two processors busy, and no more than the API server queues
)

// Size is how much there is of everything.
type Size struct {
	Nodes, Services, Endpoints int
	Zones                      []string // given to nodes one after the other
	Modes                      []string // values of weir's label, given to Services one after the other
}

// A Load is a filled cluster.
type Load struct {
	Size  Size
	Nodes []string // by number; node i is in zone i modulo the zones

	cluster *kube.Cluster
	removed map[int]bool // nodes, by number
}

// Fill creates the objects and logs how long that took.
//
// A hundredth of the Services has half of the endpoints, as the largest few have in most clusters; the rest shares the
// others evenly. An endpoint is on a random node.
//
// Services take most of the time, and ever more: the API server counts all cluster IPs that are given out for each new one.
func Fill(tb testing.TB, c *kube.Cluster, size Size) *Load {
	tb.Helper()
	c.Namespace(Namespace)
	w := &Load{Size: size, cluster: c, removed: make(map[int]bool)}
	for i := range size.Nodes {
		w.Nodes = append(w.Nodes, fmt.Sprintf("node-%d", i))
	}
	lists := w.slices()
	step := func(what string, count int, create func(context.Context, int) error) {
		started := time.Now()
		if err := parallel(tb.Context(), count, create); err != nil {
			tb.Fatalf("create %s: %v", what, err)
		}
		took := time.Since(started)
		tb.Logf("created %d %s in %.1f s, %.0f a second", count, what, took.Seconds(), float64(count)/took.Seconds())
	}
	step("nodes", size.Nodes, func(ctx context.Context, i int) error {
		_, err := c.Client.CoreV1().Nodes().Create(ctx, kube.NewNode(w.Nodes[i], w.zone(i), "4", uint32(i+1)), metav1.CreateOptions{})
		return err
	})
	step("services", size.Services, func(ctx context.Context, i int) error {
		_, err := c.Client.CoreV1().Services(Namespace).Create(ctx, w.service(i), metav1.CreateOptions{})
		return err
	})
	step("slices", len(lists), func(ctx context.Context, i int) error {
		_, err := c.Client.DiscoveryV1().EndpointSlices(Namespace).Create(ctx, lists[i], metav1.CreateOptions{})
		return err
	})
	return w
}

// parallel calls f for 0 to count-1, several at a time.
func parallel(ctx context.Context, count int, f func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := range count {
		if ctx.Err() != nil {
			break // the first error is what Wait gives
		}
		group.Go(func() error { return f(ctx, i) })
	}
	return group.Wait()
}

// zone is that of node i.
func (w *Load) zone(i int) string { return w.Size.Zones[i%len(w.Size.Zones)] }

func (w *Load) name(i int) string { return fmt.Sprintf("service-%d", i) }

func (w *Load) labels(i int) map[string]string {
	return map[string]string{api.LabelDistribution: w.Size.Modes[i%len(w.Size.Modes)]}
}

func (w *Load) service(i int) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: w.name(i), Labels: w.labels(i)},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: kube.ServicePort}}},
	}
}

// count is how many endpoints Service i has.
func (w *Load) count(i int) int {
	large := max(1, w.Size.Services/100)
	half := w.Size.Endpoints / 2
	if i < large {
		return part(half, large, i)
	}
	return part(w.Size.Endpoints-half, w.Size.Services-large, i-large)
}

// part is the i-th of parts of total that differ by at most one.
func part(total, parts, i int) int { return total*(i+1)/parts - total*i/parts }

// slices makes the slices of all Services.
func (w *Load) slices() []*discoveryv1.EndpointSlice {
	random := rand.New(rand.NewPCG(uint64(w.Size.Endpoints), uint64(w.Size.Nodes)))
	var lists []*discoveryv1.EndpointSlice
	number := uint32(0)
	for i := range w.Size.Services {
		for rest := w.count(i); rest > 0; rest -= sliceSize {
			s := w.slice(i, len(lists))
			for range min(rest, sliceSize) {
				number++
				s.Endpoints = append(s.Endpoints, w.endpoint(random.IntN(w.Size.Nodes), number))
			}
			lists = append(lists, s)
		}
	}
	return lists
}

// slice is an empty slice of Service i.
func (w *Load) slice(i, number int) *discoveryv1.EndpointSlice {
	name, port, tcp := "http", int32(kube.PodPort), corev1.ProtocolTCP
	labels := w.labels(i) // as the built-in controller, the manager copies the Service's
	labels[discoveryv1.LabelServiceName], labels[discoveryv1.LabelManagedBy] = w.name(i), manager
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", w.name(i), number), Labels: labels},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &tcp}},
	}
}

func (w *Load) endpoint(node int, number uint32) discoveryv1.Endpoint {
	zone, yes, no := w.zone(node), true, false
	var address [4]byte
	binary.BigEndian.PutUint32(address[:], 10<<24|1<<23|number) // 10.128.0.0/9, in which nothing else is
	return discoveryv1.Endpoint{
		Addresses: []string{netip.AddrFrom4(address).String()}, NodeName: &w.Nodes[node], Zone: &zone,
		Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes, Terminating: &no},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: Namespace, Name: fmt.Sprintf("pod-%d", number)},
	}
}

// RemoveNode deletes node i and the endpoints on it. One goroutine at a time may change a Load.
func (w *Load) RemoveNode(ctx context.Context, i int) error {
	if err := w.cluster.Client.CoreV1().Nodes().Delete(ctx, w.Nodes[i], metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete node %s: %w", w.Nodes[i], err)
	}
	w.removed[i] = true
	return w.edit(ctx, func(s *discoveryv1.EndpointSlice) bool {
		before := len(s.Endpoints)
		s.Endpoints = slices.DeleteFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return *e.NodeName == w.Nodes[i] })
		return len(s.Endpoints) < before
	})
}

// FailZone makes all nodes of a zone not ready, and the endpoints on them, as the controllers of a cluster do when nothing
// is heard of a zone.
func (w *Load) FailZone(ctx context.Context, zone string) error {
	patch := []byte(`{"status":{"conditions":[{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown"}]}}`)
	err := parallel(ctx, w.Size.Nodes, func(ctx context.Context, i int) error {
		if w.zone(i) != zone || w.removed[i] {
			return nil
		}
		_, err := w.cluster.Client.CoreV1().Nodes().Patch(ctx, w.Nodes[i], types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
	if err != nil {
		return fmt.Errorf("make the nodes of %s not ready: %w", zone, err)
	}
	return w.edit(ctx, func(s *discoveryv1.EndpointSlice) bool {
		changed, no := false, false
		for i := range s.Endpoints {
			if e := &s.Endpoints[i]; *e.Zone == zone {
				e.Conditions.Ready, e.Conditions.Serving, changed = &no, &no, true
			}
		}
		return changed
	})
}

// edit writes each slice that change changes, hints and all else as they stand.
func (w *Load) edit(ctx context.Context, change func(*discoveryv1.EndpointSlice) bool) error {
	client := w.cluster.Client.DiscoveryV1().EndpointSlices(Namespace)
	list, err := w.Slices(ctx)
	if err != nil {
		return err
	}
	return parallel(ctx, len(list), func(ctx context.Context, i int) error {
		for s := &list[i]; change(s); {
			_, err := client.Update(ctx, s, metav1.UpdateOptions{})
			if !errors.IsConflict(err) {
				return err
			}
			if s, err = client.Get(ctx, s.Name, metav1.GetOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Slices reads all slices.
func (w *Load) Slices(ctx context.Context) ([]discoveryv1.EndpointSlice, error) {
	list, err := w.cluster.Client.DiscoveryV1().EndpointSlices(Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
