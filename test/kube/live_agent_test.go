//go:build e2e

package kube_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-lb/weir/test/kube"
)

const (
	agentAdmin = "http://127.0.0.1:9902" // on the node's own loopback
	// followLimit is what docs/guide/agent.md promises.
	followLimit = time.Second
	agentOutage = 30 * time.Second
	// tries is how many requests are sent at least where none may go astray.
	tries = 150
)

// nodeClient sends requests on a node, each over a connection of its own.
type nodeClient struct {
	t    *testing.T
	http *http.Client
}

func newNodeClient(t *testing.T, p *kube.Proxy) *nodeClient {
	t.Helper()
	dial := func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = p.Do(func() (err error) {
			conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
	return &nodeClient{t, &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// get gives the body of a page, of which the status is 200.
func (c *nodeClient) get(url string) (string, error) {
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

// reached gives the endpoint that answers one request to a service.
func (c *nodeClient) reached(address netip.AddrPort) (netip.AddrPort, error) {
	body, err := c.get("http://" + address.String() + "/")
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.ParseAddrPort(body)
}

// wantReached sends requests until each of these endpoints has answered, and sees that no other one does. That may take
// seconds: an endpoint that was slow once, or is new, is left out for a while when requests come one at a time.
func (c *nodeClient) wantReached(address netip.AddrPort, want []netip.AddrPort) {
	c.t.Helper()
	reached := make(map[netip.AddrPort]int)
	deadline := time.Now().Add(kube.Limit)
	for sent := 0; sent < tries || len(reached) < len(want); sent++ {
		one, err := c.reached(address)
		if err != nil || !slices.Contains(want, one) {
			c.t.Fatalf("request %d to %s reaches %s, %v; want one of %v", sent, address, one, err, want)
		}
		reached[one]++
		if time.Now().After(deadline) {
			pools, err := c.get(agentAdmin + "/pools")
			c.t.Fatalf("%d requests to %s reach %v only, want all of %v; pools, %v:\n%s", sent, address, reached, want, err, pools)
		}
	}
}

// inZone gives the places of the app's ready endpoints of a zone, of the address's family; of all zones when it is empty.
func inZone(a *kube.App, address netip.AddrPort, zone string) []netip.AddrPort {
	var found []netip.AddrPort
	for _, e := range a.Endpoints() {
		if e.Ready && e.Address.Is4() == address.Addr().Is4() && (zone == "" || e.Zone == zone) {
			found = append(found, netip.AddrPortFrom(e.Address, kube.PodPort))
		}
	}
	return found
}

// liveAgent is an agent on the node zone-a-0, where no kube-proxy runs. It follows the hints of kube-controller-manager.
type liveAgent struct {
	*nodeClient
	c       *kube.Cluster
	process *kube.Process
}

func startLiveAgent(t *testing.T, app *kube.App) *liveAgent {
	t.Helper()
	c := app.Cluster
	node := c.Bare("zone-a-0")
	for _, address := range app.Addresses() {
		node.Own(address.Addr())
	}
	a := &liveAgent{nodeClient: newNodeClient(t, node), c: c}
	a.process = node.Weir("agent", "agent", "--node=zone-a-0", "--serve=all", "--kubeconfig="+agentKubeconfig(c))
	a.awaitReady()
	return a
}

func (a *liveAgent) awaitReady() {
	a.t.Helper()
	a.c.Until("the agent is ready", func() error {
		if err := a.process.Running(); err != nil {
			a.t.Fatal(err)
		}
		_, err := a.get(agentAdmin + "/readyz")
		return err
	})
}

// awaitChosen waits until the agent says that it uses just these endpoints for an address.
func (a *liveAgent) awaitChosen(address netip.AddrPort, want []netip.AddrPort) {
	a.t.Helper()
	a.c.UntilWithin(2*time.Minute, fmt.Sprintf("the agent chooses %v for %s", want, address), func() error {
		text, err := a.get(agentAdmin + "/services")
		if err != nil {
			return err
		}
		answers, err := answersOf([]byte(text))
		if err == nil && !slices.Equal(want, answers[address].Chosen) {
			err = fmt.Errorf("it chooses %v, because %s", answers[address].Chosen, answers[address].Reason)
		}
		return err
	})
}

func TestAnAgentKeepsRequestsWhereTheBuiltInHintsSay(t *testing.T) {
	c := kube.Start(t, kube.Options{})
	c.Nodes(1, "zone-a", "zone-b", "zone-c")
	app := c.Deploy(kube.AppOptions{
		Namespace: "shop", Name: "web", Distribution: corev1.ServiceTrafficDistributionPreferSameZone,
		Families: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
		Pods:     map[string]int{"zone-a": 2, "zone-b": 2, "zone-c": 2},
	})
	settledHints(t, app, 12)
	agent := startLiveAgent(t, app)
	for _, address := range app.Addresses() {
		local := inZone(app, address, "zone-a")
		agent.awaitChosen(address, local)
		agent.wantReached(address, local)
	}
	agent.followsHints(app)
	agent.outlivesTheAPIServer(app)
}

// followsHints sees how soon the agent follows hints that kube-controller-manager takes off and puts back. Requests stay in
// the zone all the time: the zone is preferred without hints, too.
func (a *liveAgent) followsHints(app *kube.App) {
	a.t.Helper()
	address := app.Addresses()[0]
	local, all := inZone(app, address, "zone-a"), inZone(app, address, "")
	zone := corev1.ServiceTrafficDistributionPreferSameZone
	for _, step := range []struct {
		field *string
		want  []netip.AddrPort
	}{{nil, all}, {&zone, local}, {nil, all}, {&zone, local}} {
		before := len(a.c.Writes())
		app.Change(func(s *corev1.Service) { s.Spec.TrafficDistribution = step.field })
		a.awaitChosen(address, step.want)
		followed := time.Now()
		a.wantReached(address, local)
		var written time.Time
		for _, w := range a.c.Writes()[before:] {
			if w.User == kube.BuiltIn && w.Resource == "endpointslices" && w.Code == http.StatusOK && w.At.After(written) {
				written = w.At
			}
		}
		if written.IsZero() {
			a.t.Fatal("kube-controller-manager wrote no slice")
		}
		took := followed.Sub(written)
		a.t.Logf("measured: new hints of kube-controller-manager are followed after %d ms", took.Milliseconds())
		if took > followLimit {
			a.t.Errorf("new hints were followed after %s, want at most %s", took, followLimit)
		}
	}
}

// outlivesTheAPIServer sees that every request is answered as before while the API server is gone and when it comes back, and
// that the agent then follows what changed.
func (a *liveAgent) outlivesTheAPIServer(app *kube.App) {
	a.t.Helper()
	address := app.Addresses()[0]
	local := inZone(app, address, "zone-a")
	requests := 0
	request := func() {
		a.t.Helper()
		requests++
		if one, err := a.reached(address); err != nil || !slices.Contains(local, one) {
			a.t.Fatalf("request %d reaches %s, %v; want one of %v", requests, one, err, local)
		}
		if _, err := a.get(agentAdmin + "/readyz"); err != nil {
			a.t.Fatalf("the agent is not ready: %v", err)
		}
	}
	a.c.StopAPIServer()
	for started := time.Now(); time.Since(started) < agentOutage; time.Sleep(20 * time.Millisecond) {
		request()
	}
	if _, err := a.c.Fetch(a.c.URL()+"/readyz", ""); err == nil || !strings.Contains(err.Error(), "refused") {
		a.t.Fatalf("the API server was to be gone all the time: %v", err)
	}
	a.c.StartAPIServer()
	back := time.Now()
	request()
	a.c.StopControllerManager()
	a.c.StartControllerManager() // which tries again only after up to a minute, as all clients do
	app.Scale("zone-a", 3)
	settledHints(a.t, app, 14)
	local = inZone(app, address, "zone-a")
	a.awaitChosen(address, local)
	a.t.Logf("measured: %d requests in %s without an API server, none failed or reached another zone; a change is followed %.1f s after its return",
		requests, agentOutage, time.Since(back).Seconds())
	a.wantReached(address, local)
}
