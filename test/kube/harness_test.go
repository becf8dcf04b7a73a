//go:build e2e

package kube_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/weir-lb/weir/test/kube"
)

func hintsPodsThatAreOnlyObjects(s subtest) {
	t, c := s.T, s.c
	app := c.Deploy(kube.AppOptions{
		Namespace: "objects", Name: "web", Distribution: corev1.ServiceTrafficDistributionPreferSameZone,
		Families: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
		Pods:     map[string]int{"zone-a": 2, "zone-b": 1, "zone-c": 1},
	})
	app.AwaitSlices()
	for _, e := range app.Endpoints() {
		if !slices.Equal(e.ForZones, []string{e.Zone}) {
			t.Errorf("%s: want its own zone hinted", &e)
		}
	}

	app.SetReady(app.Pods("zone-a")[0], corev1.ConditionFalse)
	app.AwaitSlices()
	app.SetReady(app.Pods("zone-a")[0], corev1.ConditionTrue)
	app.Scale("zone-b", 3)
	app.AwaitSlices()
	app.Scale("zone-b", 0)
	app.AwaitSlices()

	app.Change(func(s *corev1.Service) {
		s.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"}
	})
	app.Scale("zone-b", 3) // 6 in all: Auto is feasible for 6 over three equal zones, and not for 5
	c.Until("Auto hints two endpoints of each family to each zone", func() error {
		counts := make(map[string]int)
		for _, e := range app.Endpoints() {
			for _, z := range e.ForZones {
				counts[z]++
			}
		}
		if want := map[string]int{"zone-a": 4, "zone-b": 4, "zone-c": 4}; !maps.Equal(want, counts) {
			return fmt.Errorf("endpoints by zone that is hinted: %v", counts)
		}
		return nil
	})
}

func churnKeepsTheNumberOfPods(s subtest) {
	t, c := s.T, s.c
	app := c.Deploy(kube.AppOptions{Namespace: "churn", Name: "web", Pods: map[string]int{"zone-a": 3, "zone-b": 2}})
	app.AwaitSlices()
	stop := app.Churn(10, rand.New(rand.NewPCG(1, 2)))
	time.Sleep(2 * time.Second)
	replaced := stop()
	if replaced < 5 {
		t.Errorf("churn of 10 pods a second replaced %d in 2 s", replaced)
	}
	app.AwaitSlices()
	if a, b := app.Count("zone-a"), app.Count("zone-b"); a != 3 || b != 2 {
		t.Errorf("after the churn zones have %d and %d pods, want 3 and 2", a, b)
	}
	count := 0
	for _, w := range c.Writes() {
		if w.User == kube.BuiltIn && w.Resource == "endpointslices" && w.Verb == "update" && w.Code == 200 {
			count++
		}
	}
	if count == 0 {
		t.Error("the audit log has no update by kube-controller-manager")
	}
	t.Logf("%d pods replaced, %d updates of slices", replaced, count)
}

func outageEndsWithTheSameState(s subtest) {
	t, c := s.T, s.c
	app := c.Deploy(kube.AppOptions{Namespace: "outage", Name: "web", Pods: map[string]int{"zone-a": 2}})
	app.AwaitSlices()
	before := app.Endpoints()
	c.StopAPIServer()
	if _, err := c.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("the API server answers after it was stopped")
	}
	c.StartAPIServer()
	if after := app.Endpoints(); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("endpoints before the outage %v, after it %v", before, after)
	}
	app.Scale("zone-a", 3)
	app.AwaitSlices()
}

func serviceAccountMayDoWhatItsRolesSay(s subtest) {
	t, c := s.T, s.c
	c.Namespace("weir-system")
	path := c.ServiceAccountKubeconfig("weir-system", "weir-controller")
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list := func() error {
		_, err := client.DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{})
		return err
	}
	if err := list(); !apierrors.IsForbidden(err) {
		t.Errorf("without a role listing slices gives %v, want forbidden", err)
	}
	c.Kubectl("create", "clusterrole", "reader", "--verb=list", "--resource=endpointslices."+discoveryv1.GroupName)
	c.Kubectl("create", "clusterrolebinding", "reader", "--clusterrole=reader", "--serviceaccount=weir-system:weir-controller")
	c.Until("the role is in force", list)
}
