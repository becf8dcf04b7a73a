//go:build e2e

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/test/kube"
)

const (
	// policyLimit bounds what is promised to take a second: on a busy machine the test itself needs some.
	policyLimit = 5 * time.Second
	// policyOutage is longer than the pauses after which an agent first tries again.
	policyOutage = 5 * time.Second
	// missed is how long a change may take after an outage, or after the resource came: the pauses between two tries.
	missed = 2 * time.Minute
)

// The specs that the agent is to follow, all about shop/web. Without policies, hints keep requests from zone a in the zone.
const (
	flat    = "loadBalancer: {type: Random}, locality: {disabled: true}"
	toZoneB = `locality: {weights: [{key: topology.kubernetes.io/zone, value: zone-b, weight: 1}]}`
	frontsC = `clients: {podSelector: {matchLabels: {app: front}}}, ` +
		`locality: {weights: [{key: topology.kubernetes.io/zone, value: zone-c, weight: 1}]}`
	notPrime = "loadBalancer: {type: Maglev, maglev: {tableSize: 100}}, hashPolicies: [{type: SourceIP}]"
)

// followed is a cluster whose policies an agent on the node zone-a-0 follows, with the rights of its role.
type followed struct {
	*policyCluster
	*liveAgent
	app     *kube.App
	address netip.AddrPort
	front   *nodeClient // a pod on the node
}

// zone gives the endpoints of a zone.
func (f *followed) zone(name string) []netip.AddrPort { return inZone(f.app, f.address, name) }

// reaches waits until a client's requests reach endpoints of this list only, and tells how long after the write of a
// policy that was. It counts from the API server's answer, which is before kubectl has ended.
func (f *followed) reaches(client *nodeClient, want []netip.AddrPort, limit time.Duration) time.Duration {
	f.Helper()
	var since time.Time
	f.c().UntilWithin(limit+kube.Limit, fmt.Sprintf("requests reach %v", want), func() error {
		since = time.Now()
		for range 2 * len(want) { // one at a time, so that a wrong endpoint is reached if it is used
			one, err := client.reached(f.address)
			if err != nil || !slices.Contains(want, one) {
				return errors.Join(fmt.Errorf("%s was reached", one), err)
			}
		}
		return nil
	})
	took := max(since.Sub(f.written()), 0)
	if took > limit {
		f.Errorf("the policy took %s to be followed, want at most %s", took, limit)
	}
	return took
}

// c is the cluster, which both parts have.
func (f *followed) c() *kube.Cluster { return f.policyCluster.c }

// written is when a policy was last written.
func (f *followed) written() time.Time {
	f.Helper()
	var last time.Time
	for _, w := range f.c().Writes() {
		if w.Resource == v1alpha1.Resource && w.Code < http.StatusMultipleChoices && w.At.After(last) {
			last = w.At
		}
	}
	if last.IsZero() {
		f.Fatal("the API server tells of no write of a policy")
	}
	return last
}

// pod makes a client that is the app's first pod in a zone: its connections come from the pod's address.
func (f *followed) pod(node *kube.Proxy, app *kube.App, zone string) *nodeClient {
	f.Helper()
	t := f.T
	pod, err := f.c().Client.CoreV1().Pods(app.Namespace).Get(t.Context(), app.Pods(zone)[0], metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	from := &net.TCPAddr{IP: net.ParseIP(pod.Status.PodIP)}
	dial := func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = node.Do(func() (err error) {
			conn, err = (&net.Dialer{LocalAddr: from}).DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
	return &nodeClient{t, &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// newFollowed makes a cluster without the resource, with weir's controller and agent, each with its role, and waits until
// requests from zone a stay in the zone by the built-in hints.
func newFollowed(t *testing.T) *followed {
	t.Helper()
	p := newPolicyCluster(t, kube.Start(t, kube.Options{}))
	p.c.Nodes(1, "zone-a", "zone-b", "zone-c")
	controllers := newControllers(t, p.c)
	p.c.Kubectl("delete", "crd", "loadbalancingpolicies.weir.dev")
	p.c.Until("the resource is gone", func() error {
		err := p.client.List(t.Context(), new(v1alpha1.LoadBalancingPolicyList))
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
	controllers.start("one")
	controllers.leader()
	app := p.c.Deploy(kube.AppOptions{
		Namespace: "shop", Name: "web", Distribution: corev1.ServiceTrafficDistributionPreferSameZone,
		Labels: map[string]string{"service.kubernetes.io/service-proxy-name": "weir"},
		// On a busy machine answers are late for a moment, and the adaptive overflow sends some requests to other zones.
		Annotations: map[string]string{api.AnnotationStrategy: "Static"},
		Pods:        map[string]int{"zone-a": 2, "zone-b": 2, "zone-c": 2},
	})
	front := p.c.Deploy(kube.AppOptions{Namespace: "shop", Name: "front", Pods: map[string]int{"zone-a": 1}})
	settledHints(t, app, 6)

	f := &followed{policyCluster: p, app: app, address: app.Addresses()[0]}
	node := p.c.Bare("zone-a-0")
	node.Own(f.address.Addr())
	f.liveAgent = &liveAgent{nodeClient: newNodeClient(t, node), c: p.c}
	f.process = node.Weir("agent", "agent", "--node=zone-a-0", "--kubeconfig="+agentKubeconfig(p.c))
	f.awaitReady()
	f.front = f.pod(node, front, "zone-a")
	f.awaitChosen(f.address, f.zone("zone-a"))
	f.wantReached(f.address, f.zone("zone-a"))
	return f
}

func TestAnAgentFollowsThePoliciesOfARealAPIServer(t *testing.T) {
	t.Parallel()
	f := newFollowed(t)
	f.findsTheResource()
	f.followsEdits()
	f.tellsClientsApart()
	f.keepsTheLastGoodPolicy()
}

// findsTheResource sees that an agent and a controller which were there first find the resource and its first policy.
func (f *followed) findsTheResource() {
	f.Helper()
	f.install()
	installed := time.Now()
	f.apply("traffic", to+toZoneB)
	f.reaches(f.nodeClient, f.zone("zone-b"), missed)
	f.Logf("measured: a resource that is installed later is found %.1f s after", time.Since(installed).Seconds())
	f.wants("traffic", "Accepted", "Programmed")
	f.wantsMark("shop", "web", "shop/traffic")
}

// followsEdits sees how soon requests follow kubectl apply and delete.
func (f *followed) followsEdits() {
	f.Helper()
	for _, step := range []struct {
		name, spec string // empty: it is deleted
		want       []netip.AddrPort
	}{
		{"an edit", flat, f.zone("")},
		{"a deletion", "", f.zone("zone-a")},
		{"a new one", toZoneB, f.zone("zone-b")},
	} {
		if step.spec == "" {
			f.c().Kubectl("delete", "lbp", "-n", "shop", "traffic")
		} else {
			f.apply("traffic", to+step.spec)
		}
		if step.name == "an edit" {
			f.leavesZoneB()
		}
		took := f.reaches(f.nodeClient, step.want, policyLimit)
		f.Logf("measured: %s of a policy is followed after %d ms", step.name, took.Milliseconds())
		f.wantReached(f.address, step.want)
		if step.spec == "" {
			f.wantsMark("shop", "web")
			continue
		}
		f.wants("traffic", "Accepted", "Programmed")
		f.wantsMark("shop", "web", "shop/traffic")
	}
}

// leavesZoneB waits until another zone answers: all endpoints are wanted, and those of zone b were used before.
func (f *followed) leavesZoneB() {
	f.Helper()
	before := f.zone("zone-b")
	f.c().Until("endpoints of other zones are used", func() error {
		one, err := f.reached(f.address)
		if err == nil && slices.Contains(before, one) {
			err = fmt.Errorf("%s was reached", one)
		}
		return err
	})
}

// tellsClientsApart sees that a policy for pods with a label is about them alone.
func (f *followed) tellsClientsApart() {
	f.Helper()
	f.apply("fronts", to+frontsC)
	took := f.reaches(f.front, f.zone("zone-c"), policyLimit)
	f.Logf("measured: a policy for some pods is followed after %d ms", took.Milliseconds())
	f.front.wantReached(f.address, f.zone("zone-c"))
	f.wantReached(f.address, f.zone("zone-b"))
	f.wants("fronts", "Accepted", "Programmed")
	f.wantsMark("shop", "web", "shop/fronts", "shop/traffic")
	f.explains("shop/fronts", "--client=shop/front-0")
	f.explains("shop/traffic")
	f.c().Kubectl("delete", "lbp", "-n", "shop", "fronts")
	f.reaches(f.front, f.zone("zone-b"), policyLimit)
	f.wantsMark("shop", "web", "shop/traffic")
}

// explains sees that weir explain names a policy.
func (f *followed) explains(policy string, args ...string) {
	f.Helper()
	out, err := f.c().RunWeir(append([]string{"explain", "shop/web", "--kubeconfig=" + f.c().AdminKubeconfig()}, args...)...)
	if err != nil || !strings.Contains(out, "LoadBalancingPolicy "+policy) {
		f.Errorf("explain does not name %s: %v\n%s", policy, err, out)
	}
}

// keepsTheLastGoodPolicy makes a policy invalid in a respect that the API server does not check, stops the API server, and corrects both.
func (f *followed) keepsTheLastGoodPolicy() {
	f.Helper()
	f.apply("traffic", to+notPrime)
	f.wants("traffic", "Invalid", "Reconciling", "spec.loadBalancer.maglev.tableSize", "the last valid form")
	f.wantsMark("shop", "web")
	f.c().Until("the agent tells of the policy", func() error {
		if !strings.Contains(f.process.Log(), "spec.loadBalancer.maglev.tableSize: is 100, which is not a prime number: the next one is 101: the last good rules stay") {
			return errors.New("it does not")
		}
		return nil
	})
	f.wantReached(f.address, f.zone("zone-b"))

	requests, client, want := 0, f.nodeClient, f.zone("zone-b")
	f.c().StopAPIServer()
	for started := time.Now(); time.Since(started) < policyOutage; requests++ {
		if one, err := client.reached(f.address); err != nil || !slices.Contains(want, one) {
			f.Fatalf("request %d of the outage reaches %s, %v; want one of %v", requests, one, err, want)
		}
	}
	f.c().StartAPIServer()
	back := time.Now()
	f.apply("traffic", to+flat)
	f.leavesZoneB()
	f.Logf("measured: %d requests without an API server, none failed or reached an endpoint that the policy excludes; a change is followed %.1f s after its return",
		requests, time.Since(back).Seconds())
	f.wantReached(f.address, f.zone(""))
	f.wants("traffic", "Accepted", "Programmed")
	f.wantsMark("shop", "web", "shop/traffic")
	f.c().Kubectl("delete", "lbp", "-n", "shop", "traffic")
	f.reaches(client, f.zone("zone-a"), missed)
}
