//go:build e2e

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/kube/control"
	"github.com/weir-lb/weir/test/kube"
)

func labelled(mode string) map[string]string { return map[string]string{api.LabelDistribution: mode} }

// TestAKilledLeaderIsFollowedWithinItsLease kills each of two replicas while it leads. From the kill on pods come and go,
// which the webhook of the other replica sees, and a node comes, for which only a leader of weir's writes slices.
func TestAKilledLeaderIsFollowedWithinItsLease(t *testing.T) {
	t.Parallel()
	c := kube.Start(t, kube.Options{})
	c.Nodes(2, "zone-a", "zone-b", "zone-c")
	w := newControllers(t, c)
	web := c.Deploy(kube.AppOptions{
		Namespace: "shop", Name: "web", Labels: labelled("PreferSameZone"),
		Pods: map[string]int{"zone-a": 3, "zone-b": 3, "zone-c": 3},
	})
	orders := c.Deploy(kube.AppOptions{
		Namespace: "shop", Name: "orders", Labels: labelled("Balanced"),
		Pods: map[string]int{"zone-a": 2, "zone-b": 2, "zone-c": 2},
	})
	w.start("weir-0")
	w.start("weir-1")
	settledHints(t, web, 9)
	settledHints(t, orders, 6)
	w.converged(kube.Limit)
	// Each node makes its zone the largest, by CPU.
	for round, node := range []struct{ zone, cpu string }{{"zone-b", "32"}, {"zone-c", "128"}} {
		killed := failOver(w, web, func() { c.Node(node.zone, node.cpu) })
		failOpen(w, web, killed)
		w.start(fmt.Sprintf("weir-%d", round+2))
	}
}

// takeover is the time after the lease's end: 4.4 retry periods, which are 1.8 s, and what API server and replica need on a
// busy machine.
const takeover = 5 * time.Second

// failOver kills the leader, lets pods and a change come, and sees that the other replica takes over in time without
// losing a hint. It gives the one that was killed.
func failOver(w *controllers, web *kube.App, change func()) *member {
	w.Helper()
	leader, others := w.leader()
	w.quiet()
	history, stop := w.record()
	defer stop()
	killedAt := time.Now()
	w.kill(leader)
	w.forget(leader)
	change()
	churn := web.Churn(2, rand.New(rand.NewPCG(3, 4)))
	time.Sleep(4 * time.Second)
	replaced := churn()
	web.AwaitSlices()
	w.c.Until("the other replica leads", func() error {
		leads, err := w.leads(others[0])
		if err == nil && !leads {
			err = errors.New("it does not")
		}
		return err
	})
	leads := time.Since(killedAt)
	w.converged(kube.Limit)
	stop()
	took := history.lastChange().Sub(killedAt)
	if limit := control.DefaultLeaseDuration + takeover; took > limit {
		w.Errorf("hints converged %v after the leader was killed, want at most %v", took, limit)
	}
	if took < 5*time.Second {
		w.Errorf("the last hints changed %v after the kill: nothing was left to the next leader", took)
	}
	if lost := history.unhinted(); len(lost) > 0 {
		w.Errorf("ready endpoints without hints in versions since the kill: %q", lost)
	}
	w.Logf("measured: SIGKILL of the leader: the next leads after %.1f s, hints converged after %.2f s, %d pods replaced, %d versions of slices, none without hints",
		leads.Seconds(), took.Seconds(), replaced, history.length())
	return leader
}

// failOpen leaves the API server no webhook but that of a killed replica: slices are written all the same, and the leader
// puts back what they lost.
func failOpen(w *controllers, web *kube.App, killed *member) {
	w.Helper()
	w.c.Route(namespace, "weir-webhook", 443, killed.webhook)
	w.c.CutRoutes()
	defer w.route()
	history, stop := w.record()
	defer stop()
	began := time.Now()
	web.Scale("zone-b", 4)
	web.AwaitSlices()
	written := time.Since(began)
	settledHints(w.T, web, 10)
	web.Scale("zone-b", 3)
	settledHints(w.T, web, 9)
	w.converged(kube.Limit)
	stop()
	lost := len(history.unhinted())
	if lost == 0 {
		w.Error("the built-in controller took no hints off: was a webhook called?")
	}
	w.Logf("measured: with the webhook of a killed replica only, an endpoint came after %.2f s; %d ready endpoints were without hints in versions until the leader wrote them",
		written.Seconds(), lost)
}

// Sizes of the outage: as many services as need more patches than the bucket holds, and an outage long enough that every
// lease ends in it.
const (
	outageServices = 60
	outage         = 30 * time.Second
)

// reconnected is the longest pause of client-go between two attempts to watch.
const reconnected = time.Minute

// The bucket of deploy/manifests: patches each second, and at once.
const (
	bucketRate = 20
	bucketSize = 30
)

// TestAnOutageOfTheAPIServerIsSurvivedAndEndsWithoutABurst takes the API server away for 30 s. A node that comes at its
// return changes the plan of every service.
func TestAnOutageOfTheAPIServerIsSurvivedAndEndsWithoutABurst(t *testing.T) {
	t.Parallel()
	c := kube.Start(t, kube.Options{})
	c.Nodes(2, "zone-a", "zone-b", "zone-c")
	w := newControllers(t, c)
	c.Apply(filepath.Join(manifests, "optional", "agent.yaml"))
	var apps []*kube.App
	for i := range outageServices {
		apps = append(apps, c.Deploy(kube.AppOptions{
			Namespace: "shop", Name: fmt.Sprintf("web-%02d", i), Labels: labelled("Balanced"),
			Pods: map[string]int{"zone-a": 1, "zone-b": 2, "zone-c": 1}, Change: serveHTTP,
		}))
	}
	const pods = 4 // of each
	members := []*member{w.start("weir-0"), w.start("weir-1")}
	w.converged(kube.Limit)
	w.quiet()
	load := startLoad(w, apps[0])

	c.StopAPIServer()
	time.Sleep(outage)
	c.StartAPIServer()
	returned := time.Now()
	c.Node("zone-b", "64")
	apps[0].Scale("zone-a", 3)
	// The watches of weir and of kube-controller-manager, which lists the new pods, reconnect after pauses that client-go lets
	// grow to 30 to 60 s; then come the new leader's lease and the writes.
	isRight := func() error {
		if n := len(apps[0].Endpoints()); n != pods+2 {
			return fmt.Errorf("%d endpoints are listed", n)
		}
		return pending(w.Context(), w.c)
	}
	w.c.UntilWithin(reconnected+kube.Limit, "the slices list the new pods and say the plan", isRight)
	newcomers := apps[0].Endpoints()
	took := time.Since(returned)
	c.Until("the agent uses the endpoints that came after the outage", func() error { return load.reachedAll(newcomers) })
	load.stop()

	for _, m := range append(members, load.agent) {
		if err := m.process.Running(); err != nil {
			t.Errorf("%s did not survive the outage: %v", m.name, err)
		}
	}
	if _, others := w.leader(); len(others) != 1 {
		t.Errorf("%d replicas do not lead after the outage, want 1", len(others))
	}
	if load.failed > 0 || load.answered < 100 {
		t.Errorf("of %d requests through the agent %d failed, the first with: %v", load.answered+load.failed, load.failed, load.err)
	}
	counts := w.wroteGently(returned)
	t.Logf("measured: API server gone for %v: %d requests through the agent, none failed; slices say the plan %.1f s after its return; %s",
		outage, load.answered, took.Seconds(), counts)
}

// wroteGently sees that weir's writes since a moment kept to the bucket, and tells how many there were.
func (w *controllers) wroteGently(since time.Time) string {
	w.Helper()
	times := make(map[string][]time.Time)
	for _, one := range w.c.Writes() {
		if one.User == controllerUser && one.At.After(since) {
			times[one.Resource] = append(times[one.Resource], one.At)
		}
	}
	if n := len(times["endpointslices"]); n < outageServices {
		w.Errorf("%d patches of slices after the outage, want at least one for each of %d services", n, outageServices)
	}
	var told []string
	for _, resource := range []string{"endpointslices", "services/status"} {
		most, excess := burst(times[resource], bucketRate, bucketSize)
		if excess > bucketSlack {
			w.Errorf("%d writes of %s more than the bucket gives in the time", excess, resource)
		}
		told = append(told, fmt.Sprintf("%d writes of %s, at most %d in a second", len(times[resource]), resource, most))
	}
	return strings.Join(told, ", ")
}

// bucketSlack is how many writes more than the bucket gives may be answered in a time: those that were under way when it
// began, which the API server answers in some tens of milliseconds, eight at a time.
const bucketSlack = 8

// burst gives the largest number of writes in any second, and by how many at most a bucket of this rate and size is
// exceeded.
func burst(times []time.Time, perSecond float64, size int) (most, excess int) {
	slices.SortFunc(times, time.Time.Compare)
	for i := range times {
		for j := i; j < len(times); j++ {
			took := times[j].Sub(times[i])
			if took < time.Second {
				most = max(most, j-i+1)
			}
			excess = max(excess, j-i+1-size-int(perSecond*took.Seconds()))
		}
	}
	return most, excess
}

// httpPort is where the pods of serveHTTP answer.
const httpPort = 8081

// serveHTTP makes a Service one of HTTP.
func serveHTTP(s *corev1.Service) {
	s.Spec.Ports[0].TargetPort, s.Spec.Ports[0].AppProtocol = intstr.FromInt32(httpPort), new("http")
}

// load is requests to a Service through an agent on a node, one after the other without an end.
type load struct {
	agent *member
	stop  func()

	mu               sync.Mutex
	answered, failed int
	err              error
	by               map[netip.Addr]int // answers by endpoint
}

// startLoad starts an agent on a node of zone-a, and the load.
func startLoad(w *controllers, a *kube.App) *load {
	w.Helper()
	const node, address = "zone-a-0", "127.0.10.1:80"
	p := w.c.Proxy(node)
	answerHTTP(w.T, p)
	l := &load{agent: &member{name: "agent"}, by: make(map[netip.Addr]int)}
	l.agent.process = p.Weir("agent", "agent", "--node="+node, "--map="+a.Namespace+"/"+a.Name+"=127.0.10.1",
		"--kubeconfig="+w.c.ServiceAccountKubeconfig(namespace, "weir-agent"), "--admin-bind-address=127.0.0.1:9902")
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, to string) (conn net.Conn, err error) {
			err = p.Do(func() (err error) {
				conn, err = new(net.Dialer).DialContext(ctx, network, to)
				return err
			})
			return conn, err
		},
	}}
	w.c.Until("the agent serves "+a.Name, func() error {
		if err := l.agent.process.Running(); err != nil {
			w.Fatal(err)
		}
		_, err := ask(client, "http://"+address)
		return err
	})
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			by, err := ask(client, "http://"+address)
			l.note(by, err)
			time.Sleep(10 * time.Millisecond)
		}
	}()
	l.stop = sync.OnceFunc(func() {
		cancel()
		<-done
		client.CloseIdleConnections()
	})
	w.Cleanup(l.stop)
	return l
}

func (l *load) note(by netip.Addr, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed++
		if l.err == nil {
			l.err = err
		}
		return
	}
	l.answered++
	l.by[by]++
}

// reachedAll is nil when every endpoint that is hinted for the agent's zone has answered.
func (l *load) reachedAll(endpoints []kube.Endpoint) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	near := 0
	for _, e := range endpoints {
		if !slices.Contains(e.ForZones, "zone-a") {
			continue
		}
		near++
		if l.by[e.Address] == 0 {
			return fmt.Errorf("%s has not answered: %v", &e, l.by)
		}
	}
	if near == 0 {
		return errors.New("no endpoint is hinted for the agent's zone")
	}
	return nil
}

// ask sends a request and gives the address of the endpoint that answered.
func ask(client *http.Client, url string) (netip.Addr, error) {
	response, err := client.Get(url) //nolint:noctx // the client has a timeout.
	if err != nil {
		return netip.Addr{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return netip.Addr{}, err
	}
	if response.StatusCode != http.StatusOK {
		return netip.Addr{}, fmt.Errorf("%s: %s", response.Status, text)
	}
	return netip.ParseAddr(string(text))
}

// answerHTTP lets every pod's address on a node answer with itself.
func answerHTTP(t *testing.T, p *kube.Proxy) {
	t.Helper()
	var listener net.Listener
	if err := p.Do(func() (err error) {
		listener, err = net.Listen("tcp", fmt.Sprintf("[::]:%d", httpPort)) //nolint:noctx // returns at once.
		return err
	}); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		self := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		_, _ = fmt.Fprint(w, self.AddrPort().Addr().Unmap())
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // until it is closed
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
}
