package policyset_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/kube/apitest"
	"github.com/weir-lb/weir/internal/kube/policyset"
	"github.com/weir-lb/weir/internal/patience"
)

// askAgain is short for tests, and long enough for many questions not to be a burden.
const askAgain = 50 * time.Millisecond

// town is a cluster and a follower of it.
type town struct {
	*testing.T
	*apitest.Server
	*policyset.Follower
	log *patience.Log
}

// build starts a cluster that has the kinds.
func build(t *testing.T, kinds ...string) *town {
	t.Helper()
	w := &town{T: t, Server: apitest.New(t), log: &patience.Log{}}
	for _, k := range kinds {
		w.install(k)
	}
	return w
}

func (w *town) install(kind string) {
	resources := map[string]schema.GroupVersionResource{
		v1alpha1.Kind: v1alpha1.GroupVersion().WithResource(v1alpha1.Resource),
		"HTTPRoute":   {Group: gatewayv1.GroupName, Version: "v1", Resource: "httproutes"},
		"GRPCRoute":   {Group: gatewayv1.GroupName, Version: "v1", Resource: "grpcroutes"},
	}
	w.Install(resources[kind], kind)
}

// follow follows the cluster for the length of the test.
func (w *town) follow(o policyset.Options) {
	w.Helper()
	o.AskAgain, o.Logger = askAgain, cmp.Or(o.Logger, slog.New(slog.NewTextHandler(w.log, nil)))
	var err error
	if w.Follower, err = policyset.NewFollower(&rest.Config{Host: w.URL()}, o); err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Follower.Run(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
	})
}

// set gives the newest set.
func (w *town) set() *policy.Set {
	s, _ := w.Sets().Load()
	return s
}

// rules lists what each policy chose: name=Algorithm.
func (w *town) rules() string {
	all := make(map[string]bool)
	for _, r := range w.set().Rules {
		algorithm := policy.Algorithm("")
		if r.Conf.LoadBalancer != nil {
			algorithm = r.Conf.LoadBalancer.Type
		}
		all[fmt.Sprintf("%s=%s", r.Origin.Name, algorithm)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(all)), " ")
}

// waitFor waits until the policies are these, and asserts that they stay.
func (w *town) waitFor(rules string) {
	w.Helper()
	are := func() bool { return w.rules() == rules }
	patience.Until(w, "the rules are "+rules, are)
	patience.Stays(w, 4*policyset.DefaultDelay, "the rules are "+rules, are)
}

// said gives the problems, one in a line.
func (w *town) said() string {
	problems, _ := w.Problems().Load()
	texts := make([]string, 0, len(problems))
	for _, p := range problems {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, "\n")
}

// named makes a policy of namespace shop for the service web.
func named(name, algorithm string) *v1alpha1.LoadBalancingPolicy {
	p := &v1alpha1.LoadBalancingPolicy{}
	p.Namespace, p.Name = "shop", name
	p.CreationTimestamp = metav1.NewTime(time.Unix(1_700_000_000, 0))
	p.Spec.TargetRefs = []v1alpha1.TargetRef{{Kind: "Service", Name: "web"}}
	p.Spec.LoadBalancer = &policy.LoadBalancer{Type: policy.Algorithm(algorithm)}
	return p
}

func TestAPolicyIsFollowedFromItsCreationToItsDeletion(t *testing.T) {
	w := build(t, v1alpha1.Kind, "HTTPRoute", "GRPCRoute")
	w.Set(named("first", "Random"))
	w.follow(policyset.Options{})
	<-w.Ready()
	w.waitFor("first=Random")
	w.Set(named("second", "Maglev"))
	w.waitFor("first=Random second=Maglev")
	w.Set(named("first", "RoundRobin"))
	w.waitFor("first=RoundRobin second=Maglev")
	w.Drop(named("first", ""))
	w.waitFor("second=Maglev")
	if text := w.log.String(); strings.Contains(text, "WARN") || w.said() != "" {
		t.Errorf("want no complaint, got %s\n%s", w.said(), text)
	}
}

func TestKindsThatAreNotInstalledAreFoundWhenTheyAre(t *testing.T) {
	w := build(t)
	w.follow(policyset.Options{Wait: time.Hour})
	<-w.Ready() // at once: what is not there is not waited for
	if s := w.set(); s == nil || len(s.Rules) != 0 {
		t.Fatalf("want an empty set, got %v", s)
	}
	w.install(v1alpha1.Kind)
	w.Set(named("p", "Random"))
	w.waitFor("p=Random")
	w.install("HTTPRoute")
	w.Set(read[gatewayv1.HTTPRoute](t, `{metadata: {name: r, namespace: shop}, spec: {rules: [{name: a}]}}`))
	patience.Until(t, "the route is found", func() bool { return len(w.set().Routes) == 1 })
	text := w.log.String()
	if n := strings.Count(text, "\n"); strings.Contains(text, "WARN") || n > 5 {
		t.Errorf("want a line for each kind that is not there and for each that comes, got %d\n%s", n, text)
	}
}

func TestAKindThatIsUninstalledHasNoObjects(t *testing.T) {
	w := build(t, v1alpha1.Kind)
	w.Set(named("p", "Random"))
	w.follow(policyset.Options{})
	<-w.Ready()
	w.waitFor("p=Random")
	w.Uninstall(v1alpha1.Kind)
	w.waitFor("")
	w.install(v1alpha1.Kind)
	w.Set(named("q", "Maglev"))
	w.waitFor("q=Maglev")
	if strings.Contains(w.log.String(), "WARN") {
		t.Errorf("want no complaint, got\n%s", w.log)
	}
}

func TestAPolicyThatBecomesInvalidKeepsItsLastGoodRules(t *testing.T) {
	w := build(t, v1alpha1.Kind)
	w.Set(named("p", "Random"), named("bad", "Fastest"))
	w.follow(policyset.Options{})
	<-w.Ready()
	w.waitFor("p=Random")
	if text := w.said(); !strings.Contains(text, "LoadBalancingPolicy shop/bad: spec.loadBalancer.type: ") ||
		!strings.HasSuffix(text, ": nothing of it is followed") {
		t.Errorf("want a word on the bad policy, got %q", text)
	}
	w.Set(named("p", "Slowest"))
	patience.Until(t, "the problem is told", func() bool { return strings.Contains(w.said(), "shop/p") })
	patience.Stays(t, time.Second, "the last good rules are there", func() bool {
		return strings.HasSuffix(w.said(), ": the last good rules stay") && w.rules() == "p=Random"
	})
	w.Set(named("other", "Maglev"))
	w.waitFor("other=Maglev p=Random")
	w.Set(named("p", "RoundRobin"), named("bad", "Random"))
	w.waitFor("bad=Random other=Maglev p=RoundRobin")
	if w.said() != "" {
		t.Errorf("want no problem, got %q", w.said())
	}
	w.Set(named("p", "Slowest"))
	patience.Until(t, "the problem is told", func() bool { return strings.Contains(w.said(), "shop/p") })
	w.Drop(named("p", ""))
	w.waitFor("bad=Random other=Maglev")
	another := named("p", "Slowest")
	another.CreationTimestamp = metav1.NewTime(time.Unix(1_800_000_000, 0))
	w.Set(another)
	patience.Until(t, "the problem is told", func() bool { return strings.HasSuffix(w.said(), "nothing of it is followed") })
	if n := strings.Count(w.log.String(), "shop/bad"); n != 1 {
		t.Errorf("a problem was logged %d times", n)
	}
}

func TestWhileTheAPIServerIsAwayTheLastSetStays(t *testing.T) {
	w := build(t, v1alpha1.Kind, "HTTPRoute", "GRPCRoute")
	w.Set(named("p", "Random"), named("q", "Random"))
	w.follow(policyset.Options{})
	<-w.Ready()
	w.waitFor("p=Random q=Random")
	w.Go()
	w.Drop(named("q", "")) // nobody sees it go
	w.Set(named("p", "Maglev"))
	patience.Until(t, "the log tells of the outage", func() bool { return strings.Contains(w.log.String(), "WARN") })
	patience.Stays(t, time.Second, "the last rules are there", func() bool { return w.rules() == "p=Random q=Random" })
	w.Return()
	w.waitFor("p=Maglev")
}

func TestAnAPIServerThatIsAwayAtTheStartIsNotWaitedForLong(t *testing.T) {
	w := build(t, v1alpha1.Kind)
	w.Go()
	w.follow(policyset.Options{Wait: 100 * time.Millisecond, Pods: policyset.All, Logger: slog.New(slog.NewJSONHandler(w.log, nil))})
	<-w.Ready()
	if log := w.log.String(); !strings.Contains(log, `"waited":"100ms"`) {
		t.Errorf("the log does not tell how long was waited, with its unit: %s", log)
	}
	if got := w.rules(); got != "" {
		t.Errorf("want no rules, got %q", got)
	}
	w.Set(named("p", "Random"))
	w.Return()
	w.waitFor("p=Random")
}

func TestAPolicyForARouteThatIsNotThereNamesThoseNearby(t *testing.T) {
	w := build(t, v1alpha1.Kind, "HTTPRoute", "GRPCRoute")
	p := read[v1alpha1.LoadBalancingPolicy](t, `
metadata: {name: p, namespace: shop}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: serach, sectionName: qurey}]
  hashPolicies: [{type: SourceIP}]`)
	route := read[gatewayv1.HTTPRoute](t, `{metadata: {name: search, namespace: shop}, spec: {rules: [{name: query}, {}]}}`)
	w.Set(p, route)
	w.follow(policyset.Options{})
	<-w.Ready()
	waitSaid := func(want string) {
		t.Helper()
		patience.Until(t, "the problem is told", func() bool { return w.said() == want })
	}
	waitSaid("LoadBalancingPolicy shop/p: spec.targetRefs[0]: there is no HTTPRoute shop/serach: did you mean shop/search?")
	p.Spec.TargetRefs[0].Name = "search"
	w.Set(p)
	waitSaid(`LoadBalancingPolicy shop/p: spec.targetRefs[0].sectionName: HTTPRoute shop/search has no rule "qurey": did you mean query?`)
	route.Spec.Rules[1].Name = new(gatewayv1.SectionName("qurey"))
	w.Set(route)
	waitSaid("")
}

// pod makes a pod of namespace shop.
func pod(name, node, ip string, labels map[string]string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.Labels = "shop", name, labels
	p.Spec.NodeName = node
	p.Status.Phase, p.Status.PodIPs = corev1.PodRunning, []corev1.PodIP{{IP: ip}}
	return p
}

func TestWhatPodsAndNodesAreFollowedIsChosen(t *testing.T) {
	for name, test := range map[string]struct {
		options policyset.Options
		want    string
	}{
		"none": {policyset.Options{}, "pods  nodes  namespaces "},
		"own": {
			policyset.Options{Node: "n1", Pods: policyset.Own, Nodes: policyset.Own},
			"pods a@n1[10.0.0.1] nodes n1 namespaces shop",
		},
		"all": {
			policyset.Options{Node: "n1", Pods: policyset.All, Nodes: policyset.All},
			"pods a@n1[10.0.0.1] b@n2[10.0.0.2] nodes n1 n2 namespaces shop",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := build(t)
			w.Set(pod("a", "n1", "10.0.0.1", nil), pod("b", "n2", "10.0.0.2", nil), finished(pod("c", "n1", "10.0.0.1", nil)))
			w.Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}},
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
			w.follow(test.options)
			<-w.Ready()
			patience.Until(t, test.want, func() bool { return directory(w.set()) == test.want })
		})
	}
}

func finished(p *corev1.Pod) *corev1.Pod {
	p.Status.Phase = corev1.PodSucceeded
	return p
}

// directory gives the objects that policies may refer to.
func directory(s *policy.Set) string {
	pods := make([]string, 0, len(s.Pods))
	for _, p := range s.Pods {
		pods = append(pods, p.Name+"@"+p.Node+fmt.Sprint(p.IPs))
	}
	return fmt.Sprintf("pods %s nodes %s namespaces %s", strings.Join(pods, " "),
		strings.Join(slices.Sorted(maps.Keys(s.Nodes)), " "), strings.Join(slices.Sorted(maps.Keys(s.Namespaces)), " "))
}

func TestPodsAreFollowedThroughTheirLives(t *testing.T) {
	w := build(t, v1alpha1.Kind)
	a := pod("a", "n1", "10.0.0.1", map[string]string{"app": "web"})
	a.Annotations = map[string]string{"weir.dev/weight": "7", "long": strings.Repeat("x", 300)}
	w.Set(a, pod("c", "n1", "10.0.0.3", nil))
	w.follow(policyset.Options{Pods: policyset.All})
	<-w.Ready()
	if p := w.set().Pod("shop", "a"); p == nil || p.Labels["app"] != "web" || p.Annotations["weir.dev/weight"] != "7" || len(p.Annotations) != 1 {
		t.Fatalf("got %+v", p)
	}
	before := w.set()
	a.Status.Message = "of no interest"
	w.Set(a, named("p", "Random")) // the policy tells when the pod was seen
	w.waitFor("p=Random")
	if &before.Pods[0] != &w.set().Pods[0] {
		t.Error("pods that did not change were made anew")
	}
	w.Set(pod("b", "n2", "10.0.0.2", nil))
	patience.Until(t, "the new pod is there", func() bool { return len(w.set().Pods) == 3 })
	if got, want := directory(w.set()), "pods a@n1[10.0.0.1] b@n2[10.0.0.2] c@n1[10.0.0.3] nodes  namespaces "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.Set(finished(a))
	w.Drop(pod("c", "", "", nil))
	patience.Until(t, "the others are gone", func() bool { return directory(w.set()) == "pods b@n2[10.0.0.2] nodes  namespaces " })
}

func TestOptionsThatContradictEachOtherAreRefused(t *testing.T) {
	for _, o := range []policyset.Options{{Pods: "some"}, {Nodes: "every"}, {Pods: policyset.Own}, {Nodes: policyset.Own}} {
		if _, err := policyset.NewFollower(&rest.Config{Host: "127.0.0.1"}, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
