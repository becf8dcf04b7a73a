package feed_test

import (
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
	"github.com/weir-lb/weir/internal/kube/feed"
)

// trimmers gives what trims objects on their way into a cache.
func trimmers() func(client.Object) {
	options := feed.CacheOptions(feed.Options{})
	byType := make(map[reflect.Type]func(any) (any, error))
	for object, o := range options.ByObject {
		byType[reflect.TypeOf(object)] = o.Transform
	}
	return func(object client.Object) {
		trimmed, err := byType[reflect.TypeOf(object)](object)
		if err != nil || trimmed != object {
			panic(fmt.Sprintf("trimming %T gave %v and %v", object, trimmed, err))
		}
	}
}

// burden gives an object what the API server has for each and weir reads of none.
func burden(object client.Object) {
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
	object.SetOwnerReferences([]metav1.OwnerReference{{Name: "owner"}})
	object.SetFinalizers([]string{"x/y"})
}

func TestATrimmedServiceMeansTheSame(t *testing.T) {
	full := service("web", api.LabelDistribution+"=Auto", "app=web", "@"+api.AnnotationDemand+"=a=1",
		"@kubectl.kubernetes.io/last-applied-configuration={}")
	full.ResourceVersion, full.Generation = "7", 3
	full.Spec.Selector = map[string]string{"app": "web"}
	full.Spec.Type = corev1.ServiceTypeLoadBalancer
	full.Status.Conditions = []metav1.Condition{{Type: api.ConditionAccepted, Status: "True"}}
	full.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	burden(full)
	want := full.DeepCopy()
	want.ManagedFields, want.OwnerReferences, want.Finalizers = nil, nil, nil
	delete(want.Annotations, "kubectl.kubernetes.io/last-applied-configuration")
	trim := trimmers()
	for range 2 { // it is trimmed again when an informer lists anew
		trim(full)
		equal(t, "service", want, full)
	}
}

func TestATrimmedNodeMeansTheSame(t *testing.T) {
	full := node("n1", "a")
	for _, key := range []string{api.LabelRegion, api.LabelControlPlane, api.LabelMaster, "kubernetes.io/arch"} {
		full.Labels[key] = "x"
	}
	full.Annotations = map[string]string{"a": "b"}
	full.ResourceVersion = "7"
	full.Spec.PodCIDR = "10.1.0.0/24"
	full.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("1Gi")
	full.Status.Capacity = full.Status.Allocatable
	full.Status.Images = []corev1.ContainerImage{{Names: []string{"large"}}}
	full.Status.Conditions = append(full.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure})
	full.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	burden(full)
	want, wantProblems := convert.Node(full)
	trim := trimmers()
	for range 2 {
		trim(full)
		got, problems := convert.Node(full)
		equal(t, "node", want, got)
		equal(t, "problems", wantProblems, problems)
	}
	left := node("n1", "a")
	for _, key := range []string{api.LabelRegion, api.LabelControlPlane, api.LabelMaster} {
		left.Labels[key] = "x"
	}
	left.ResourceVersion = "7"
	equal(t, "what is left", left, full)
}

func TestATrimmedSliceMeansTheSame(t *testing.T) {
	full := slice("web-1", "web", "10.1.0.1@n1/a", "10.1.0.2@n2", "", "10.1.0.3/b", "10.1.0.4@n1/a")
	full.Annotations = map[string]string{}
	full.ResourceVersion, full.Generation, full.UID = "7", 3, "u"
	for i := range full.Endpoints {
		e := &full.Endpoints[i]
		e.Addresses = append(e.Addresses, "10.9.9.9")
		e.Conditions = discoveryv1.EndpointConditions{Ready: new(i%2 == 0), Serving: new(true)}
		e.Hostname = new("h")
		e.DeprecatedTopology = map[string]string{"a": "b"}
		e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: fmt.Sprint("web-", i), UID: "u", ResourceVersion: "1"}
	}
	full.Endpoints[2].Addresses = nil // left out of the endpoints, but not out of the slice
	full.Endpoints[0].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "a"}}, ForNodes: []discoveryv1.ForNode{{Name: "n1"}}}
	full.Endpoints[1].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{}}
	full.Endpoints[3].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "a"}}}
	full.Endpoints[4].Hints = full.Endpoints[0].Hints.DeepCopy()
	burden(full)
	want := full.DeepCopy()
	want.ManagedFields, want.OwnerReferences, want.Finalizers = nil, nil, nil
	for i := range want.Endpoints {
		e := &want.Endpoints[i]
		if len(e.Addresses) > 1 {
			e.Addresses = e.Addresses[:1]
		}
		e.Hostname, e.DeprecatedTopology = nil, nil
		e.TargetRef = &corev1.ObjectReference{Kind: e.TargetRef.Kind, Namespace: e.TargetRef.Namespace, Name: e.TargetRef.Name}
	}
	wantEndpoints, wantProblems := convert.Slices([]*discoveryv1.EndpointSlice{full.DeepCopy()}, convert.Zones{"n1": "a"})
	trim := trimmers()
	for range 2 {
		trim(full)
		if !reflect.DeepEqual(want, full) { // an empty list is not none
			t.Errorf("want %+v\ngot  %+v", want, full)
		}
		got, problems := convert.Slices([]*discoveryv1.EndpointSlice{full}, convert.Zones{"n1": topology.Zone("a")})
		equal(t, "endpoints", wantEndpoints, got)
		equal(t, "problems", wantProblems, problems)
	}
	if full.Annotations == nil {
		t.Error("annotations that were empty are gone")
	}
	if full.Endpoints[0].Hints != full.Endpoints[4].Hints || full.Endpoints[0].NodeName != full.Endpoints[4].NodeName {
		t.Error("equal hints and names of nodes are in memory twice")
	}
}

func TestSharingForgetsAndStaysRight(t *testing.T) {
	trim := trimmers()
	for i := range 70_000 { // more than are remembered
		name := fmt.Sprint("n", i)
		s := slice("web-1", "web", "10.1.0.1@"+name)
		s.Endpoints[0].Hints = &discoveryv1.EndpointHints{ForNodes: []discoveryv1.ForNode{{Name: name}}}
		trim(s)
		if e := s.Endpoints[0]; *e.NodeName != name || e.Hints.ForNodes[0].Name != name {
			t.Fatalf("want node %s, got %s with hints for %v", name, *e.NodeName, e.Hints.ForNodes)
		}
	}
}
