package policyset

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-lb/weir/internal/core/policy"
)

// manyPods is more than clusters have whose agents follow all pods.
const manyPods = 50_000

// somePod makes a pod as they are: of a workload of 20, with what controllers and networks write on it.
func somePod(i int) *corev1.Pod {
	name := fmt.Sprintf("service-%d-7d4b9c6f5-%05d", i/20, i)
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.UID = fmt.Sprintf("team-%d", i/1000), name, types.UID(fmt.Sprintf("0d9a8f1e-5b7c-4d2a-9e3f-%012d", i))
	p.ResourceVersion = fmt.Sprint(100_000 + i)
	p.Labels = map[string]string{
		"app.kubernetes.io/name": fmt.Sprintf("service-%d", i/20), "app.kubernetes.io/instance": fmt.Sprintf("service-%d-prod", i/20),
		"app.kubernetes.io/managed-by": "Helm", "tier": "backend", "pod-template-hash": "7d4b9c6f5",
	}
	p.Annotations = map[string]string{
		"checksum/config":                           strings.Repeat("ab", 32),
		"cni.projectcalico.org/podIP":               fmt.Sprintf("10.%d.%d.%d/32", i>>16, i>>8&255, i&255),
		"cni.projectcalico.org/containerID":         fmt.Sprintf("%064d", i),
		"k8s.v1.cni.cncf.io/network-status":         strings.Repeat(`{"name":"calico"}`, 30),
		"kubectl.kubernetes.io/default-container":   "main",
		"prometheus.io/scrape":                      "true",
		"cluster-autoscaler.kubernetes.io/safe-to-": "false",
	}
	p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(strings.Repeat(" ", 3000))}}
	p.Spec.NodeName = fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", i%500/250, i%250)
	p.Spec.Containers = make([]corev1.Container, 3)
	p.Status.Phase = corev1.PodRunning
	p.Status.PodIPs = []corev1.PodIP{{IP: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)}}
	return p
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // what a finalizer held after the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// fill gives a store as many pods as a large cluster has, and what an informer keeps of them.
func fill(tb testing.TB) (*store, map[string]any) {
	tb.Helper()
	s, cached := newStore(), make(map[string]any)
	var shared sharer
	for i := range manyPods {
		data, err := somePod(i).Marshal()
		if err != nil {
			tb.Fatal(err)
		}
		p := new(corev1.Pod)
		if err := p.Unmarshal(data); err != nil { // so that its texts are parts of one, as they come
			tb.Fatal(err)
		}
		kept, err := shared.trimPod(p)
		if err != nil {
			tb.Fatal(err)
		}
		k, ok := kept.(*keptPod)
		if !ok {
			tb.Fatalf("a pod becomes a %T", kept)
		}
		if again, err := shared.trimPod(k); again != kept || err != nil {
			tb.Fatal("trimming twice does harm")
		}
		cached[k.Namespace+"/"+k.Name] = k
		s.setPod(k)
	}
	return s, cached
}

func TestAllPodsOfALargeClusterFitIntoMemory(t *testing.T) {
	before := heap()
	s, cached := fill(t)
	objects := heap() - before
	o := Options{}.withDefaults()
	b := builder{options: &o}
	set, _ := b.next(s.take())
	total := heap() - before
	if len(set.Pods) != manyPods || set.Pod("team-0", "service-0-7d4b9c6f5-00007") == nil {
		t.Fatalf("got %d pods", len(set.Pods))
	}
	t.Logf("%d pods: %d MiB of objects, %d MiB with the set; %d bytes for each", manyPods, objects>>20, total>>20, total/manyPods)
	if total > 128<<20 { // what an agent may take for what only its largest clusters' most demanding policies want
		t.Errorf("want at most 128 MiB, got %d", total>>20)
	}
	runtime.KeepAlive(cached)
	runtime.KeepAlive(s)
}

// BenchmarkSetOfManyPods measures a set after the change of one pod among many.
func BenchmarkSetOfManyPods(b *testing.B) {
	s, _ := fill(b)
	o := Options{}.withDefaults()
	builder := builder{options: &o}
	builder.next(s.take())
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		pod := policy.Pod{Namespace: "team-3", Name: "new", Labels: policy.Labels{"i": fmt.Sprint(i)}}
		s.setPod(&keptPod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, pod: pod})
		builder.next(s.take())
	}
}
