package agent_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/latest"
)

// oneTick is within which a running agent follows what its pools are told.
const oneTick = 100 * time.Millisecond

// virtual is an agent that runs in virtual time. Its address belongs to no machine (RFC 5737), so that it has pools and
// opens no socket, which would stop the clock.
type virtual struct {
	*agent.Agent
	t         *testing.T
	snapshots *latest.Value[topology.Snapshot]
	policies  *latest.Value[*policy.Set]
	drains    []topology.Drain
}

// inVirtualTime runs an agent on node-a, whose zone has one of three endpoints, for the length of a test.
func inVirtualTime(t *testing.T, test func(v *virtual)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		v := &virtual{t: t, policies: latest.New[*policy.Set](nil)}
		v.snapshots = latest.New(v.snapshot())
		var err error
		if v.Agent, err = agent.New(agent.Config{Node: "node-a"}, v.snapshots, agent.Deps{Policies: v.policies}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- v.Run(ctx) }()
		synctest.Wait()
		test(v)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (v *virtual) snapshot() topology.Snapshot {
	svc := &topology.Service{
		ServiceName: topology.ServiceName{Namespace: "shop", Name: "web"}, Mode: topology.ModePreferSameZone,
		Ports:          []topology.Port{{Name: "http", Protocol: topology.TCP, AppProtocol: "http", Port: 80}},
		ClusterIPs:     []netip.Addr{netip.MustParseAddr("192.0.2.1")},
		InternalPolicy: topology.PolicyCluster,
		Overflow:       topology.OverflowSettings{Drains: v.drains},
	}
	var nodes []topology.Node
	for i, z := range []topology.Zone{"a", "b", "c"} {
		nodes = append(nodes, topology.Node{Name: "node-" + string(z), Zone: z, CPU: 4000, Ready: true})
		svc.Endpoints = append(svc.Endpoints, topology.Endpoint{
			Addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + i)}), Zone: z, Node: "node-" + string(z),
			Ports: []topology.EndpointPort{{Name: "http", Protocol: topology.TCP, Port: 80}},
		})
	}
	return topology.NewSnapshot(nodes, []*topology.Service{svc}, topology.Costs{})
}

// share gives what zone a gets of the requests.
func (v *virtual) share() float64 {
	v.t.Helper()
	mux := http.NewServeMux()
	for pattern, h := range v.Pages() {
		mux.Handle(pattern, h)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(v.t.Context(), http.MethodGet, "/pools/shop/web", http.NoBody))
	var pools []poolPage
	if err := json.Unmarshal(w.Body.Bytes(), &pools); err != nil || len(pools) != 1 {
		v.t.Fatalf("/pools/shop/web: %d pools, %v", len(pools), err)
	}
	for _, g := range pools[0].Groups {
		if g.Zone == "a" {
			return g.Share
		}
	}
	return 0
}

// pass lets time pass, and what is due happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestADrainIsFollowedWithTheNextTickAndLastsUntilItsEnd(t *testing.T) {
	const lasts = 20 * time.Second
	inVirtualTime(t, func(v *virtual) {
		pass(time.Second)
		if got := v.share(); got != 1 {
			t.Fatalf("before the drain zone a gets %v of the requests, want all", got)
		}
		v.drains = []topology.Drain{{Zone: "a", Until: time.Now().Add(lasts)}}
		began := time.Now()
		v.snapshots.Store(v.snapshot())
		pass(oneTick)
		for ; time.Since(began) < lasts; pass(oneTick / 2) {
			if got := v.share(); got != 0 {
				t.Fatalf("%v after the drain began zone a gets %v of the requests, want none", time.Since(began), got)
			}
		}
		pass(oneTick)
		if got := v.share(); got == 0 {
			t.Errorf("%v after the drain began zone a still gets nothing, want its return after %v", time.Since(began), lasts)
		}
	})
}

func TestADrainThatIsTakenBackEndsWithTheNextTick(t *testing.T) {
	inVirtualTime(t, func(v *virtual) {
		v.drains = []topology.Drain{{Zone: "a", Until: time.Now().Add(time.Hour)}}
		v.snapshots.Store(v.snapshot())
		pass(time.Second)
		if got := v.share(); got != 0 {
			t.Fatalf("in the drain zone a gets %v of the requests, want none", got)
		}
		v.drains = nil
		v.snapshots.Store(v.snapshot())
		pass(oneTick)
		if got := v.share(); got == 0 {
			t.Error("zone a still gets nothing")
		}
	})
}

func TestPoliciesAndSnapshotsAreFollowedAtOnce(t *testing.T) {
	inVirtualTime(t, func(v *virtual) {
		pass(oneTick / 3)
		algorithm := func() string { return v.Status().Services[0].Ports[0].Policy.Algorithm }
		for _, want := range []policy.Algorithm{policy.Maglev, policy.RoundRobin, policy.RingHash} {
			began := time.Now()
			v.policies.Store(policy.NewSet(policy.Set{Rules: []policy.Rule{ruleFor(string(want), policy.Conf{LoadBalancer: balancer(want)})}}))
			synctest.Wait()
			if got := algorithm(); got != string(want) || time.Since(began) > 0 {
				t.Errorf("%v after a policy asked for %s there is %s", time.Since(began), want, got)
			}
			pass(time.Minute)
			if got := algorithm(); got != string(want) {
				t.Errorf("a minute after a policy asked for %s there is %s", want, got)
			}
		}
		s := v.snapshot()
		s.Services[0].Endpoints = s.Services[0].Endpoints[1:]
		v.snapshots.Store(s)
		synctest.Wait()
		if got := v.Status().Services[0].Ports[0].Endpoints; got != 2 {
			t.Errorf("%d endpoints after one of three has gone", got)
		}
		v.policies.Store(nil)
		synctest.Wait()
		if got := algorithm(); got != "PowerOfTwo" {
			t.Errorf("without policies there is %s, want PowerOfTwo", got)
		}
	})
}
