//go:build e2e

package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-lb/weir/internal/kube/control"
	"github.com/weir-lb/weir/test/kube"
)

// controllerUser is the user that weir's controllers are to the API server.
const controllerUser = "system:serviceaccount:" + namespace + ":weir-controller"

// controllers is the replicas of weir's controller on a cluster, with the roles, the webhook and the flags of what is deployed,
// and no more rights. The API server is routed to the webhooks of all that run.
type controllers struct {
	*testing.T
	c       *kube.Cluster
	args    []string // of the Deployment
	members []*member
}

// member is one replica.
type member struct {
	name                    string
	process                 *kube.Process
	webhook, admin, metrics string // addresses
}

// newControllers deploys weir as its plain manifests do, without a replica.
func newControllers(t *testing.T, c *kube.Cluster) *controllers {
	t.Helper()
	c.Kubectl("apply", "-f", manifests)
	return readControllers(t, c)
}

// newControllersByChart deploys weir as its chart does with these values, without a replica.
func newControllersByChart(t *testing.T, c *kube.Cluster, values ...string) *controllers {
	t.Helper()
	args := []string{"install", "weir", "deploy/chart", "--namespace", namespace, "--create-namespace"}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	helm(t, c, args...)
	return readControllers(t, c)
}

func readControllers(t *testing.T, c *kube.Cluster) *controllers {
	t.Helper()
	d, err := c.Client.AppsV1().Deployments(namespace).Get(t.Context(), "weir-controller", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := &controllers{T: t, c: c}
	for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
		w.args = append(w.args, strings.ReplaceAll(arg, "$(POD_NAMESPACE)", namespace))
	}
	return w
}

// start starts a replica with further flags, and waits until it is ready.
func (w *controllers) start(name string, flags ...string) *member {
	w.Helper()
	address := func() string { return fmt.Sprintf("127.0.0.1:%d", w.c.Port()) }
	m := &member{name: name, webhook: address(), admin: address(), metrics: address()}
	health := address()
	args := append(slices.Clone(w.args), "--kubeconfig="+w.c.ServiceAccountKubeconfig(namespace, "weir-controller"),
		"--webhook-bind-address="+m.webhook, "--metrics-bind-address="+m.metrics,
		"--health-probe-bind-address="+health, "--admin-bind-address="+m.admin)
	m.process = w.c.Weir(name, append(args, flags...)...)
	w.c.Until(name+" is ready", func() error {
		if err := m.process.Running(); err != nil {
			w.Fatal(err)
		}
		_, err := w.c.Fetch("http://"+health+"/readyz", "")
		return err
	})
	w.members = append(w.members, m)
	w.route()
	return m
}

// stop asks a replica to end as a kubelet does.
func (w *controllers) stop(m *member) {
	w.Helper()
	if err := m.process.Terminate(kube.Limit); err != nil {
		w.Errorf("%s: %v", m.name, err)
	}
	w.forget(m)
}

// kill ends a replica at once, as when its node loses power, and leaves its address to the API server.
func (w *controllers) kill(m *member) {
	w.Helper()
	m.process.Kill()
}

// forget takes a replica's address from the API server, as when its pod is known to be gone.
func (w *controllers) forget(m *member) {
	w.Helper()
	w.members = slices.DeleteFunc(w.members, func(o *member) bool { return o == m })
	w.route()
}

func (w *controllers) route() {
	w.Helper()
	var addresses []string
	for _, m := range w.members {
		addresses = append(addresses, m.webhook)
	}
	w.c.Route(namespace, "weir-webhook", 443, addresses...)
}

// leads tells whether a replica leads.
func (w *controllers) leads(m *member) (bool, error) {
	text, err := w.c.Fetch("http://"+m.admin+"/services", "")
	if err != nil {
		return false, err
	}
	var page struct{ Leader bool }
	err = json.Unmarshal([]byte(text), &page)
	return page.Leader, err
}

// leader waits until one replica leads, and gives it and the others.
func (w *controllers) leader() (leader *member, others []*member) {
	w.Helper()
	w.c.Until("a replica leads", func() error {
		leader, others = nil, nil
		for _, m := range w.members {
			isLeader, err := w.leads(m)
			switch {
			case err != nil:
				return err
			case isLeader && leader != nil:
				w.Errorf("%s and %s lead at the same time", leader.name, m.name)
			case isLeader:
				leader = m
			default:
				others = append(others, m)
			}
		}
		if leader == nil {
			return errors.New("none does")
		}
		return nil
	})
	return leader, others
}

// sum adds the series of a metric of all replicas that carry these labels.
func (w *controllers) sum(metric string, labels ...string) float64 {
	w.Helper()
	sum := 0.0
	for _, m := range w.members {
		samples, err := w.c.Scrape("http://"+m.admin+"/metrics", "")
		if err != nil {
			w.Fatal(err)
		}
		sum += samples.Sum(metric, labels...)
	}
	return sum
}

// pending is an error when a controller that reads and plans the cluster anew would write something.
func pending(ctx context.Context, c *kube.Cluster) error {
	preview, err := control.ReadPreview(ctx, c.Admin, control.Options{})
	if err != nil {
		return err
	}
	if len(preview.Edits) > 0 {
		return fmt.Errorf("%d slices are to be written, the first %s", len(preview.Edits), preview.Edits[0].Slice)
	}
	return nil
}

// converged waits until the slices match the plan, as the test reads them and as the program does.
//
// Where the API server reaches no webhook they do so for moments only: the built-in controller removes hints again.
func (w *controllers) converged(limit time.Duration) {
	w.Helper()
	w.c.UntilWithin(limit, "the slices match the plan", func() error {
		if err := pending(w.Context(), w.c); err != nil {
			return err // without the start of a program, which takes a quarter of a second
		}
		out, err := w.c.RunWeir("controller", "--dry-run", "--log-level=error", "--kubeconfig="+w.c.AdminKubeconfig())
		if err == nil && !strings.Contains(out, "would write 0 EndpointSlices") {
			err = errors.New(out)
		}
		return err
	})
}

// sliceHistory is every version of the EndpointSlices of namespace shop from its beginning on. It is safe for
// concurrent use.
type sliceHistory struct {
	mu       sync.Mutex
	versions []sliceVersion
	ended    bool // on purpose
	err      error
}

type sliceVersion struct {
	at    time.Time
	slice *discoveryv1.EndpointSlice
}

// record records every version of the slices of namespace shop, until stop is called.
func (w *controllers) record() (c *sliceHistory, stop func()) {
	w.Helper()
	slices := w.c.Client.DiscoveryV1().EndpointSlices("shop")
	list, err := slices.List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	events, err := slices.Watch(w.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		w.Fatal(err)
	}
	c = new(sliceHistory)
	for i := range list.Items {
		c.note(watch.Added, &list.Items[i])
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range events.ResultChan() {
			c.note(e.Type, e.Object)
		}
	}()
	stop = sync.OnceFunc(func() {
		c.mu.Lock()
		c.ended = true
		c.mu.Unlock()
		events.Stop()
		<-done
		if c.err != nil {
			w.Error(c.err)
		}
	})
	w.Cleanup(stop)
	return c, stop
}

func (c *sliceHistory) note(what watch.EventType, object any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := object.(*discoveryv1.EndpointSlice)
	switch {
	case c.ended: // what comes now may be how the watch ends
	case !ok:
		c.err = fmt.Errorf("watch EndpointSlices: %v %v", what, object)
	case what != watch.Deleted:
		c.versions = append(c.versions, sliceVersion{time.Now(), s})
	}
}

// quiet waits until nothing has written a slice of namespace shop for three seconds: the built-in controller looks at what others
// wrote within one or two.
func (w *controllers) quiet() {
	w.Helper()
	history, stop := w.record()
	defer stop()
	length, since := history.length(), time.Now()
	w.c.Until("no slice is written", func() error {
		if now := history.length(); now != length {
			length, since = now, time.Now()
		}
		if time.Since(since) < 3*time.Second {
			return errors.New("one was")
		}
		return nil
	})
}

// length is how many versions there are so far.
func (c *sliceHistory) length() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.versions)
}

// unhinted lists the ready endpoints of Services without a hint, in all versions; without names those of all Services.
func (c *sliceHistory) unhinted(services ...string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []string
	for _, v := range c.versions {
		if len(services) > 0 && !slices.Contains(services, v.slice.Labels[discoveryv1.LabelServiceName]) {
			continue
		}
		for i := range v.slice.Endpoints {
			e := &v.slice.Endpoints[i]
			ready := e.Conditions.Ready != nil && *e.Conditions.Ready
			if ready && (e.Hints == nil || len(e.Hints.ForZones)+len(e.Hints.ForNodes) == 0) {
				found = append(found, fmt.Sprintf("%s of %s, version %s", e.Addresses[0], v.slice.Name, v.slice.ResourceVersion))
			}
		}
	}
	return found
}

// lastChange is when an endpoint that was there before got other hints for the last time; zero: never.
func (c *sliceHistory) lastChange() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	var last time.Time
	before := make(map[string]string) // hints by slice and address
	for _, v := range c.versions {
		for i := range v.slice.Endpoints {
			e := &v.slice.Endpoints[i]
			key, now := v.slice.Name+" "+e.Addresses[0], fmt.Sprint(e.Hints)
			if was, known := before[key]; known && was != now {
				last = v.at
			}
			before[key] = now
		}
	}
	return last
}

// reports waits until a Service has an event with this reason, and a condition with this status and reason.
func (w *controllers) reports(a *kube.App, event string, condition metav1.Condition, limit time.Duration) {
	w.Helper()
	w.c.UntilWithin(limit, fmt.Sprintf("%s has the event %s and the condition %s %s", a.Name, event, condition.Status, condition.Reason), func() error {
		if err := w.hasEvent(a, event); err != nil {
			return err
		}
		return hasCondition(a.Service(), condition)
	})
}

// hasEvent is nil when a Service has an event with this reason.
func (w *controllers) hasEvent(a *kube.App, reason string) error {
	w.Helper()
	list, err := w.c.Client.EventsV1().Events(a.Namespace).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	var others []string
	for i := range list.Items {
		e := &list.Items[i]
		if e.Regarding.Kind == "Service" && e.Regarding.Name == a.Name {
			if e.Reason == reason {
				return nil
			}
			others = append(others, e.Reason+": "+e.Note)
		}
	}
	return fmt.Errorf("its events: %q", others)
}

// hasCondition is nil when a Service has a condition of this type, status and reason.
func hasCondition(s *corev1.Service, want metav1.Condition) error {
	for _, c := range s.Status.Conditions {
		if c.Type == want.Type && c.Status == want.Status && c.Reason == want.Reason {
			return nil
		}
	}
	return fmt.Errorf("its conditions: %v", s.Status.Conditions)
}
