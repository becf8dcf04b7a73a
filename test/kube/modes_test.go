//go:build e2e

package kube_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/test/kube"
)

const (
	churnTime = time.Minute
	churnRate = 0.5 // pods of each app that are replaced in a second
	quietTime = 15 * time.Second
	foreign   = "mesh-foreign" // the slice of mesh that is not kube-controller-manager's
)

// hinted names the labelled apps all of whose ready endpoints are to have hints.
func hintedApps() []string { return []string{"auto", "balanced", "dual", "mesh", "node", "zone"} }

// TestHintsStayWhilePodsChurn has an app in every mode, one that is hinted natively, one of two families and one with a
// foreign slice, beside the live kube-controller-manager and with the webhook, for a minute of churn.
//
// It has the machine to itself: no version of a slice may be without hints.
func TestHintsStayWhilePodsChurn(t *testing.T) {
	s := newMixedCluster(t)
	webhook := s.startWebhook()
	s.converge()
	s.churn("up", func() {})
	s.converge()
	for _, name := range hintedApps() {
		if n := s.seen.of(name); n.unhinted > 0 || n.versions == 0 {
			t.Errorf("%s: %d of %d versions of its slices had a ready endpoint without hints, first %s", name, n.unhinted, n.versions, n.first)
		}
	}
	if n := s.seen.of("disabled"); n.hinted > 0 {
		t.Errorf("disabled: %d of %d versions of its slices had hints", n.hinted, n.versions)
	}
	if err := webhook.Running(); err != nil {
		t.Error(err)
	}
	s.removeLabels()
}

// TestHintsComeBackWhilePodsChurnWithoutAWebhook is the same where the API server reaches no webhook.
func TestHintsComeBackWhilePodsChurnWithoutAWebhook(t *testing.T) {
	t.Parallel()
	s := newMixedCluster(t)
	s.untilUndone()
	s.churn("down", func() {})
	for _, name := range hintedApps() {
		if n := s.seen.of(name); n.versions == n.unhinted {
			t.Errorf("%s: none of %d versions of its slices had all hints: the controller does not write on its own", name, n.versions)
		}
	}
	s.quiet("down")
	s.startWebhook()
	s.replaceOne()
	s.converge()
	s.removeLabels()
}

// TestHintsComeBackAfterTheWebhookIsKilled is the same where the webhook is killed half-way.
func TestHintsComeBackAfterTheWebhookIsKilled(t *testing.T) {
	t.Parallel()
	s := newMixedCluster(t)
	webhook := s.startWebhook()
	s.converge()
	s.churn("killed half-way", webhook.Kill)
	s.untilUndone()
	s.quiet("killed half-way")
	s.startWebhook()
	s.replaceOne()
	s.converge()
	s.removeLabels()
}

// mixedCluster is a cluster with an app of every kind and a replica of the controller, which leads and which the API server
// does not reach.
type mixedCluster struct {
	*testing.T
	c        *kube.Cluster
	apps     map[string]*kube.App
	seen     *versions
	replicas int
	rewrites int // of the foreign slice
}

func newMixedCluster(t *testing.T) *mixedCluster {
	t.Helper()
	s := &mixedCluster{T: t, c: kube.Start(t, kube.Options{}), apps: make(map[string]*kube.App)}
	s.c.Nodes(2, "zone-a", "zone-b", "zone-c")
	s.c.Kubectl("apply", "-f", manifests)
	deploy := func(name, mode string, change func(*kube.AppOptions)) {
		// Auto over three equal zones takes 9 endpoints, and 10 while one is being replaced.
		o := kube.AppOptions{Namespace: "shop", Name: name, Pods: map[string]int{"zone-a": 3, "zone-b": 3, "zone-c": 3}}
		if mode != "" {
			o.Labels = map[string]string{api.LabelDistribution: mode}
		}
		change(&o)
		s.apps[name] = s.c.Deploy(o)
	}
	asIs := func(*kube.AppOptions) {}
	natively := func(o *kube.AppOptions) { o.Distribution = corev1.ServiceTrafficDistributionPreferSameZone }
	deploy("auto", "Auto", asIs)
	deploy("zone", "PreferSameZone", asIs)
	deploy("node", "PreferSameNode", asIs)
	deploy("balanced", "Balanced", func(o *kube.AppOptions) { o.Pods = map[string]int{"zone-a": 5, "zone-b": 2, "zone-c": 2} })
	deploy("dual", "Balanced", func(o *kube.AppOptions) { o.Families = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol} })
	deploy("mesh", "PreferSameZone", asIs)
	deploy("disabled", "Disabled", natively)
	deploy("native", "", natively)
	for _, app := range s.apps {
		app.AwaitSlices()
	}
	s.makeForeign()
	s.seen = watchVersions(t, s.c, "shop")
	s.replica()
	s.c.Until("the controller leads", func() error {
		lease, err := s.c.Client.CoordinationV1().Leases(namespace).Get(t.Context(), "weir-controller", metav1.GetOptions{})
		if err == nil && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "") {
			err = fmt.Errorf("no replica holds the Lease")
		}
		return err
	})
	return s
}

// replica starts a replica of the controller, waits until it is ready and tells where its webhook is.
func (s *mixedCluster) replica() (process *kube.Process, webhook string) {
	s.Helper()
	address := func() string { return fmt.Sprintf("127.0.0.1:%d", s.c.Port()) }
	webhook, health := address(), address()
	s.replicas++
	process = s.c.Weir(fmt.Sprintf("weir-%d", s.replicas), "controller",
		"--kubeconfig="+s.c.ServiceAccountKubeconfig(namespace, "weir-controller"),
		"--webhook-bind-address="+webhook, "--health-probe-bind-address="+health, "--admin-bind-address=")
	s.c.Until("the controller is ready", func() error {
		if err := process.Running(); err != nil {
			s.Fatal(err)
		}
		if !answers(s.Context(), "http://"+health+"/readyz") {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	return process, webhook
}

// startWebhook starts a replica that the API server reaches, and does not lead.
func (s *mixedCluster) startWebhook() *kube.Process {
	s.Helper()
	process, address := s.replica()
	s.c.Route(namespace, "weir-webhook", 443, address)
	return process
}

// makeForeign has another manager add endpoints to mesh. It labels its slice as kube-controller-manager does.
func (s *mixedCluster) makeForeign() {
	s.Helper()
	_, err := s.c.Client.DiscoveryV1().EndpointSlices("shop").Create(s.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: foreign, Labels: map[string]string{
			discoveryv1.LabelServiceName: "mesh", discoveryv1.LabelManagedBy: "mesh.example.com",
			api.LabelDistribution: "PreferSameZone",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(kube.PodPort)), Protocol: new(corev1.ProtocolTCP)}},
		Endpoints:   s.foreignEndpoints(),
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
}

// foreignEndpoints are one in each of two zones; one of them is another each time.
func (s *mixedCluster) foreignEndpoints() []discoveryv1.Endpoint {
	s.rewrites++
	endpoint := func(number int, zone string) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.250.%d.%d", number/250, 1+number%250)}, Zone: &zone, NodeName: new(zone + "-0"),
			Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		}
	}
	return []discoveryv1.Endpoint{endpoint(0, "zone-a"), endpoint(s.rewrites, "zone-b")}
}

// changeForeign is a write of the foreign manager, which knows no hints.
func (s *mixedCluster) changeForeign(change func(*discoveryv1.EndpointSlice)) {
	s.Helper()
	client := s.c.Client.DiscoveryV1().EndpointSlices("shop")
	s.c.Until("the foreign slice is changed", func() error {
		slice, err := client.Get(s.Context(), foreign, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(slice)
		_, err = client.Update(s.Context(), slice, metav1.UpdateOptions{})
		return err
	})
}

// converge waits until a controller that sees the cluster for the first time would write nothing, and checks the hints.
func (s *mixedCluster) converge() {
	s.Helper()
	for _, app := range s.apps {
		if app.Name != "mesh" { // which has more endpoints than pods
			app.AwaitSlices()
		}
	}
	took := s.c.Until("all slices say the plan", func() error {
		if err := pending(s.Context(), s.c); err != nil {
			return err
		}
		return s.check()
	})
	s.Logf("measured: all slices say the plan after another %.1f s", took.Seconds())
}

// check compares hints with what they must be, where that follows from the endpoint alone.
func (s *mixedCluster) check() error {
	for name, app := range s.apps {
		for _, e := range app.Endpoints() {
			var ok bool
			switch name {
			case "zone", "mesh", "native":
				ok = slices.Equal(e.ForZones, []string{e.Zone}) && len(e.ForNodes) == 0
			case "node":
				ok = slices.Equal(e.ForNodes, []string{e.Node})
			case "disabled":
				ok = !e.Hinted()
			default:
				ok = e.Hinted()
			}
			if !ok {
				return fmt.Errorf("%s: endpoint %s", name, &e)
			}
		}
	}
	return nil
}

// churn replaces pods of all apps, and endpoints of the foreign slice, and does something half-way.
func (s *mixedCluster) churn(condition string, halfWay func()) {
	s.Helper()
	s.seen.reset()
	before := len(s.c.Writes())
	began := time.Now()
	var stops []func() int
	for i, name := range slices.Sorted(maps.Keys(s.apps)) {
		stops = append(stops, s.apps[name].Churn(churnRate, rand.New(rand.NewPCG(3, uint64(i)))))
	}
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	half := time.AfterFunc(churnTime/2, halfWay)
	defer half.Stop()
	for time.Since(began) < churnTime {
		<-tick.C
		s.changeForeign(func(slice *discoveryv1.EndpointSlice) { slice.Endpoints = s.foreignEndpoints() })
	}
	replaced := 0
	for _, stop := range stops {
		replaced += stop()
	}
	if want := int(churnTime.Seconds()*churnRate) * len(s.apps) / 2; replaced < want {
		s.Errorf("%d pods were replaced, want %d: this was no churn", replaced, want)
	}
	s.logWrites(condition, fmt.Sprintf("%d pods replaced in %.0f s", replaced, time.Since(began).Seconds()), before)
}

// logWrites logs the writers of slices since a point of the audit log, and gives weir's writes by slice.
func (s *mixedCluster) logWrites(condition, what string, since int) map[string]int {
	s.Helper()
	ours, theirs, others, refused := make(map[string]int), 0, 0, 0
	for _, w := range s.c.Writes()[since:] {
		_, slice, _ := strings.Cut(w.Object, "/")
		switch {
		case w.Resource != "endpointslices" || !strings.HasPrefix(w.Object, "shop/"):
		case w.Code >= 300:
			refused++
		case w.User == kube.BuiltIn:
			theirs++
		case w.User == "system:serviceaccount:"+namespace+":weir-controller":
			ours[slice]++
		default:
			others++
		}
	}
	sum := 0
	for slice, n := range ours {
		sum += n
		if strings.HasPrefix(slice, "native-") {
			s.Errorf("weir wrote %s, which is none of its business", slice)
		}
	}
	s.Logf("measured: webhook %s, %s: slices written %d times by kube-controller-manager, %d by weir, %d by others; %d conflicts",
		condition, what, theirs, sum, others, refused)
	for _, name := range slices.Sorted(maps.Keys(s.apps)) {
		n := s.seen.of(name)
		s.Logf("measured: webhook %s, %s: %d versions of slices, %d with a ready endpoint without hints", condition, name, n.versions, n.unhinted)
	}
	return ours
}

// untilUndone waits until the apps that kube-controller-manager works against say so.
func (s *mixedCluster) untilUndone() {
	s.Helper()
	s.c.Until("the Services tell that their hints are undone", func() error {
		for _, name := range hintedApps() {
			told := meta.FindStatusCondition(s.apps[name].Service().Status.Conditions, api.ConditionProgrammed)
			if told == nil || told.Status != metav1.ConditionFalse || told.Reason != "HintsUndone" {
				return fmt.Errorf("%s: %+v", name, told)
			}
		}
		return nil
	})
}

// quiet checks what is written while nothing happens and the hints are being undone.
func (s *mixedCluster) quiet(condition string) {
	s.Helper()
	s.seen.reset()
	before := len(s.c.Writes())
	time.Sleep(quietTime)
	// A service that has just begun is written 8 times in 22 s; without damping it would be every second or so.
	for slice, n := range s.logWrites(condition, fmt.Sprintf("%.0f s of rest", quietTime.Seconds()), before) {
		if n > 6 {
			s.Errorf("%s was written %d times by weir in %s", slice, n, quietTime)
		}
	}
}

// replaceOne has kube-controller-manager write every slice.
func (s *mixedCluster) replaceOne() {
	s.Helper()
	for _, app := range s.apps {
		n := app.Count("zone-b")
		app.Scale("zone-b", n+1)
		app.Scale("zone-b", n)
	}
	s.changeForeign(func(slice *discoveryv1.EndpointSlice) { slice.Endpoints = s.foreignEndpoints() })
}

// removeLabels removes weir's labels from the apps, and waits until nothing that weir wrote is there.
func (s *mixedCluster) removeLabels() {
	s.Helper()
	for _, app := range s.apps {
		app.Change(func(service *corev1.Service) { delete(service.Labels, api.LabelDistribution) })
	}
	s.changeForeign(func(slice *discoveryv1.EndpointSlice) { delete(slice.Labels, api.LabelDistribution) })
	took := s.c.Until("nothing but native hints is left", func() error {
		for name, app := range s.apps {
			for _, slice := range app.Slices() {
				if mark, marked := slice.Annotations[api.AnnotationHints]; marked {
					return fmt.Errorf("EndpointSlice %s is marked %q", slice.Name, mark)
				}
			}
			native := name == "native" || name == "disabled"
			for _, e := range app.Endpoints() {
				if e.Hinted() != native || native && !slices.Equal(e.ForZones, []string{e.Zone}) {
					return fmt.Errorf("%s: endpoint %s", name, &e)
				}
			}
			if conditions := app.Service().Status.Conditions; len(conditions) > 0 {
				return fmt.Errorf("%s has conditions: %+v", name, conditions)
			}
		}
		return nil
	})
	s.Logf("measured: nothing that weir wrote is there %.1f s after the labels went", took.Seconds())
}

// versions counts what the versions of a namespace's slices were like. It is safe for concurrent use.
type versions struct {
	mu    sync.Mutex
	count map[string]count // by service
}

// count is of the versions of a service's slices that have ready endpoints.
type count struct {
	versions int
	unhinted int    // with a ready endpoint without hints
	hinted   int    // with one that has some
	first    string // what is unhinted in the first that is
}

// watchVersions counts every version from now on until the test ends.
func watchVersions(t *testing.T, c *kube.Cluster, namespace string) *versions {
	t.Helper()
	v := &versions{count: make(map[string]count)}
	client := c.Client.DiscoveryV1().EndpointSlices(namespace)
	list, err := client.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	watch, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		stop()
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for event := range watch.ResultChan() {
			if slice, ok := event.Object.(*discoveryv1.EndpointSlice); ok {
				v.add(slice)
			} else if ctx.Err() == nil {
				t.Errorf("watch of EndpointSlices: %v", event.Object)
			}
		}
		if ctx.Err() == nil {
			t.Error("the watch of EndpointSlices ended before the test")
		}
	})
	t.Cleanup(func() {
		stop()
		watch.Stop()
		done.Wait()
	})
	return v
}

func (v *versions) add(s *discoveryv1.EndpointSlice) {
	ready, unhinted, first := 0, 0, ""
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if e.Conditions.Ready == nil || !*e.Conditions.Ready {
			continue
		}
		ready++
		if e.Hints == nil || len(e.Hints.ForZones)+len(e.Hints.ForNodes) == 0 {
			unhinted++
			first = fmt.Sprintf("%s of %s, version %s", e.Addresses[0], s.Name, s.ResourceVersion)
		}
	}
	if ready == 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	name := s.Labels[discoveryv1.LabelServiceName]
	n := v.count[name]
	n.versions++
	if unhinted > 0 {
		n.unhinted++
	}
	if unhinted < ready {
		n.hinted++
	}
	if n.first == "" {
		n.first = first
	}
	v.count[name] = n
}

func (v *versions) of(service string) count {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.count[service]
}

func (v *versions) reset() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.count)
}
