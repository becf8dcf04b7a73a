package agent_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/latest"
	"github.com/weir-lb/weir/internal/patience"
	"github.com/weir-lb/weir/test/local"
)

// limit is how long a test waits for something that has to happen. It is far above what a busy machine needs, so that only
// a hang meets it.
const limit = time.Minute

// someTicks is how long what a test waited for has to last at least: in five ticks a pool decides five times.
const someTicks = 500 * time.Millisecond

// endpoint is a real HTTP server in a fake zone. What it does can be changed while it runs.
type endpoint struct {
	zone   topology.Zone
	addr   netip.AddrPort
	server *http.Server
	hits   atomic.Int64
	answer atomic.Pointer[http.HandlerFunc] // nil: 200 with the zone's name
	done   chan struct{}
}

// newEndpoint serves on a free port of a loopback address for the length of the test.
func newEndpoint(t *testing.T, zone topology.Zone, ip string) *endpoint {
	t.Helper()
	l, err := net.Listen("tcp", ip+":0") //nolint:noctx // binds at once.
	if err != nil {
		t.Fatal(err)
	}
	e := &endpoint{zone: zone, addr: netip.MustParseAddrPort(l.Addr().String()), done: make(chan struct{})}
	e.server = &http.Server{Handler: e, ReadHeaderTimeout: limit}
	go func() {
		defer close(e.done)
		_ = e.server.Serve(l)
	}()
	t.Cleanup(e.stop)
	return e
}

// stop takes the endpoint away as a crash does.
func (e *endpoint) stop() {
	_ = e.server.Close()
	<-e.done
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.hits.Add(1)
	if f := e.answer.Load(); f != nil {
		(*f)(w, r)
		return
	}
	_, _ = io.WriteString(w, string(e.zone))
}

// answers sets what the endpoint does; nil: 200 with the zone's name.
func (e *endpoint) answers(f http.HandlerFunc) { e.answer.Store(&f) }

// behaves goes back to answering with the zone's name.
func (e *endpoint) behaves() { e.answer.Store(nil) }

// cluster is a cluster of three zones with a node in each, one service and real endpoints.
type cluster struct {
	t         *testing.T
	mode      topology.Mode
	endpoints []*endpoint
	serviceIP netip.Addr
	port      uint16
	snapshots *latest.Value[topology.Snapshot]
	policies  *latest.Value[*policy.Set]
	extra     func(*topology.Service)
}

// newCluster makes perZone endpoints in each of the zones a, b and c.
func newCluster(t *testing.T, mode topology.Mode, perZone int) *cluster {
	t.Helper()
	w := &cluster{t: t, mode: mode, serviceIP: netip.MustParseAddr("127.77.0.1"), port: local.FreePort(t, "127.77.0.1")}
	w.policies = latest.New[*policy.Set](nil)
	for i, z := range []topology.Zone{"a", "b", "c"} {
		for j := range perZone {
			w.endpoints = append(w.endpoints, newEndpoint(t, z, fmt.Sprintf("127.77.%d.%d", i+1, j+1)))
		}
	}
	w.snapshots = latest.New(w.snapshot(w.endpoints...))
	return w
}

// snapshot describes the cluster with these endpoints.
func (w *cluster) snapshot(endpoints ...*endpoint) topology.Snapshot {
	var nodes []topology.Node
	for _, z := range []topology.Zone{"a", "b", "c"} {
		nodes = append(nodes, topology.Node{Name: "node-" + string(z), Zone: z, CPU: 4000, Ready: true})
	}
	svc := &topology.Service{
		ServiceName:    topology.ServiceName{Namespace: "shop", Name: "web"},
		Mode:           w.mode,
		Ports:          []topology.Port{{Name: "http", Protocol: topology.TCP, AppProtocol: "http", Port: w.port}},
		ClusterIPs:     []netip.Addr{w.serviceIP},
		InternalPolicy: topology.PolicyCluster,
	}
	for _, e := range endpoints {
		svc.Endpoints = append(svc.Endpoints, topology.Endpoint{
			Addr:  e.addr.Addr(),
			Ports: []topology.EndpointPort{{Name: "http", Protocol: topology.TCP, Port: e.addr.Port()}},
			Zone:  e.zone,
			Node:  "node-" + string(e.zone),
		})
	}
	if w.extra != nil {
		w.extra(svc)
	}
	return topology.NewSnapshot(nodes, []*topology.Service{svc}, topology.Costs{})
}

// in gives the endpoints of a zone.
func (w *cluster) in(z topology.Zone) []*endpoint {
	var here []*endpoint
	for _, e := range w.endpoints {
		if e.zone == z {
			here = append(here, e)
		}
	}
	return here
}

// outsideA gives all endpoints but those of zone a.
func (w *cluster) outsideA() []*endpoint {
	var rest []*endpoint
	for _, e := range w.endpoints {
		if e.zone != "a" {
			rest = append(rest, e)
		}
	}
	return rest
}

// running is an agent that runs, and a client on its node.
type running struct {
	*agent.Agent
	t        *testing.T
	registry *prometheus.Registry
	client   *http.Client
	url      string
	log      *patience.Log
	stop     func() error // once; gives what Run returned
}

// start runs an agent for the length of the test and waits until it serves.
func (w *cluster) start(config agent.Config) *running {
	w.t.Helper()
	r := w.begin(config)
	await(w.t, r.Ready(), "the agent to be ready")
	return r
}

// begin runs an agent without waiting.
func (w *cluster) begin(config agent.Config) *running {
	w.t.Helper()
	r := &running{t: w.t, registry: prometheus.NewRegistry(), log: &patience.Log{}}
	var err error
	r.Agent, err = agent.New(config, w.snapshots, agent.Deps{
		Logger:     slog.New(slog.NewTextHandler(r.log, nil)),
		Registerer: r.registry,
		Policies:   w.policies,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	addr := netip.AddrPortFrom(w.serviceIP, w.port)
	for _, m := range config.Map {
		addr = netip.AddrPortFrom(m.To.Addr(), w.port)
	}
	r.url = "http://" + addr.String()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	r.client = &http.Client{Transport: transport, Timeout: limit}
	r.stop = sync.OnceValue(func() error {
		transport.CloseIdleConnections()
		cancel()
		return <-done
	})
	w.t.Cleanup(func() {
		if err := r.stop(); err != nil {
			w.t.Errorf("Run: %v", err)
		}
		if w.t.Failed() {
			w.t.Logf("log of %s:\n%s", config.Node, r.log)
		}
	})
	return r
}

// get asks the service and gives the status and the body.
func (r *running) get() (int, string, error) {
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// zones asks n times, one after the other, and counts the answers by zone; anything but 200 counts by its status.
func (r *running) zones(n int) map[string]int {
	r.t.Helper()
	counts := make(map[string]int)
	for range n {
		status, body, err := r.get()
		switch {
		case err != nil:
			counts[err.Error()]++
		case status != http.StatusOK:
			counts[fmt.Sprint(status)]++
		default:
			counts[body]++
		}
	}
	return counts
}

// untilHome asks again and again until zone a answers.
func (r *running) untilHome() {
	r.t.Helper()
	patience.Until(r.t, "zone a answers", func() bool { return r.zones(1)["a"] == 1 })
}

// follows asserts that a zone answers within the second that is promised for changes, and that from then on no other does.
func (r *running) follows(zone string) {
	r.t.Helper()
	patience.Within(r.t, time.Second, "zone "+zone+" answers", func() bool { return r.zones(1)[zone] == 1 })
	patience.Stays(r.t, someTicks, "zone "+zone+" answers alone", func() bool { return r.zones(5)[zone] == 5 })
}

// spares asserts that a zone gets no more requests within the second that is promised for changes, and none from then on.
// That a drain takes effect with the next tick is tested in virtual time.
func (r *running) spares(zone string) {
	r.t.Helper()
	patience.Within(r.t, time.Second, "zone "+zone+" gets nothing", func() bool { return r.zones(5)[zone] == 0 })
	patience.Stays(r.t, someTicks, "zone "+zone+" gets nothing", func() bool { return r.zones(5)[zone] == 0 })
}

func await(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("waited in vain for %s", what)
	}
}
