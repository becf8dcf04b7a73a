package agent_test

import (
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/explain"
	"github.com/weir-lb/weir/internal/latest"
	"github.com/weir-lb/weir/internal/patience"
)

// ruleFor is a policy for shop/web.
func ruleFor(name string, conf policy.Conf) policy.Rule {
	return policy.Rule{
		Origin: policy.Origin{Dialect: policy.DialectCRD, Namespace: "shop", Name: name, Source: reason.Position{File: name + ".yaml", Line: 1}},
		Target: policy.Target{Kind: policy.TargetService, Namespace: "shop", Name: "web"},
		Conf:   conf,
	}
}

// follow replaces the policies.
func (w *cluster) follow(rules ...policy.Rule) {
	w.policies.Store(policy.NewSet(policy.Set{Rules: rules}))
}

func balancer(a policy.Algorithm) *policy.LoadBalancer { return &policy.LoadBalancer{Type: a} }

// applied asserts that the agent serves by a policy of this name within the second that is promised for changes.
func (r *running) applied(name string) {
	r.t.Helper()
	patience.Within(r.t, time.Second, "policy "+name+" holds", func() bool {
		return slices.ContainsFunc(r.Status().Services[0].Ports[0].Policy.Fields, func(f explain.Field) bool {
			return f.Policy == "LoadBalancingPolicy shop/"+name
		})
	})
}

// as gives a client whose connections come from that address.
func (r *running) as(t *testing.T, ip string) *http.Client {
	t.Helper()
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 0))}
	transport := &http.Transport{DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: limit}
}

// ask gives the zone that answers a client.
func (r *running) ask(t *testing.T, c *http.Client) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestAPolicyTakesEffectWhileRequestsFlowAndFailsNone(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 2)
	r := w.start(agent.Config{Node: "node-a"})
	stop := r.load(8)
	defer stop()
	patience.Until(t, "a normal latency is learned", func() bool { return r.pool(t).Baseline > 0 })
	asked := hits(w.endpoints)
	// Nothing may spill: on a busy machine zones are slow now and then.
	only := func(z topology.Zone) policy.Locality {
		return policy.Locality{
			Weights:  []policy.Weight{{Key: policy.DefaultZoneKey, Value: string(z), Weight: 1}},
			Failover: []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverNone}}},
		}
	}
	local := policy.Locality{Failover: []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverNone}}}}
	for _, step := range []struct {
		name string
		conf policy.Conf
		zone topology.Zone // that answers
	}{
		{"round", policy.Conf{LoadBalancer: balancer(policy.RoundRobin), Locality: local}, "a"},
		{"least", policy.Conf{LoadBalancer: balancer(policy.LeastRequest), Locality: only("b")}, "b"},
		{"ring", policy.Conf{
			LoadBalancer: balancer(policy.RingHash), HashPolicies: []policy.HashPolicy{{Type: policy.HashHeader, Header: &policy.HeaderKey{Name: "x-user"}}},
			Locality: local,
		}, "a"},
		{"maglev", policy.Conf{
			LoadBalancer: balancer(policy.Maglev), HashPolicies: []policy.HashPolicy{{Type: policy.HashSourceIP}}, Locality: only("c"),
		}, "c"},
		{"random", policy.Conf{LoadBalancer: balancer(policy.Random), Locality: local}, "a"},
	} {
		w.follow(ruleFor(step.name, step.conf))
		before := hits(w.in(step.zone))
		took := patience.Within(t, time.Second, "zone "+string(step.zone)+" answers under "+step.name, func() bool {
			return hits(w.in(step.zone)) > before+20
		})
		r.applied(step.name)
		t.Logf("%s took %v", step.name, took)
		if pool := r.pool(t); pool.Baseline == 0 || len(pool.Groups) == 0 {
			t.Errorf("%s: the pool forgot what is normal: %+v", step.name, pool)
		}
		settled := hits(w.endpoints) - hits(w.in(step.zone))
		before = hits(w.in(step.zone))
		patience.Until(t, "more requests flow", func() bool { return hits(w.in(step.zone)) > before+200 })
		if strays := hits(w.endpoints) - hits(w.in(step.zone)) - settled; strays > 20 {
			t.Errorf("%s: %d requests went elsewhere after it held", step.name, strays)
		}
	}
	if failed := stop(); failed > 0 {
		t.Errorf("%d requests failed while policies changed", failed)
	}
	if now := hits(w.endpoints); now <= asked {
		t.Errorf("no requests flowed: %d, %d", asked, now)
	}
}

func TestAPolicyThatGoesLeavesWhatHeldBefore(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	w.follow(ruleFor("away", policy.Conf{LoadBalancer: balancer(policy.RoundRobin), Locality: policy.Locality{
		Weights: []policy.Weight{{Key: policy.DefaultZoneKey, Value: "c", Weight: 1}},
	}}))
	r := w.start(agent.Config{Node: "node-a", Algorithm: "Random"})
	if diff := cmp.Diff(map[string]int{"c": 10}, r.zones(10)); diff != "" {
		t.Errorf("answers by endpoint (-want +got)\n%s", diff)
	}
	w.policies.Store(nil)
	patience.Within(t, time.Second, "the flag holds", func() bool {
		return r.Status().Services[0].Ports[0].Policy.Algorithm == "Random"
	})
	patience.Stays(t, someTicks, "zone a answers alone", func() bool { return r.zones(5)["a"] == 5 })
}

func TestFailoverGoesWhereThePolicyAllowsAndNowhereElse(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	w.follow(ruleFor("c-then-none", policy.Conf{Locality: policy.Locality{Failover: []policy.Failover{
		{To: policy.FailoverTo{Type: policy.FailoverOnly, Zones: []string{"c"}}}, {To: policy.FailoverTo{Type: policy.FailoverNone}},
	}}}))
	r := w.start(agent.Config{Node: "node-a"})
	if diff := cmp.Diff(map[string]int{"a": 10}, r.zones(10)); diff != "" {
		t.Errorf("answers by endpoint (-want +got)\n%s", diff)
	}
	w.in("a")[0].stop()
	patience.Until(t, "zone c answers alone", func() bool { return r.zones(5)["c"] == 5 })
	patience.Stays(t, someTicks, "zone c answers alone", func() bool { return r.zones(5)["c"] == 5 })
	w.in("c")[0].stop()
	patience.Stays(t, someTicks, "the excluded zone gets nothing", func() bool {
		r.zones(5)
		return hits(w.in("b")) == 0
	})
}

func TestWithoutFailoverAnOutageStaysInTheZone(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	disabled := policy.OverflowDisabled
	w.follow(ruleFor("resident", policy.Conf{Locality: policy.Locality{
		Failover: []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverNone}}}, Overflow: policy.Overflow{Mode: &disabled},
	}}))
	r := w.start(agent.Config{Node: "node-a"})
	w.in("a")[0].stop()
	patience.Stays(t, someTicks, "other zones get nothing", func() bool {
		r.zones(5)
		return hits(w.outsideA()) == 0
	})
	port := r.Status().Services[0].Ports[0]
	if port.Endpoints != 1 || port.Policy.Overflow != "Disabled" {
		t.Errorf("%d endpoints, overflow %s; want 1, Disabled", port.Endpoints, port.Policy.Overflow)
	}
}

func TestDisabledOverflowFailsOverOnHealth(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	disabled := policy.OverflowDisabled
	w.follow(ruleFor("health", policy.Conf{Locality: policy.Locality{Overflow: policy.Overflow{Mode: &disabled}}}))
	r := w.start(agent.Config{Node: "node-a"})
	elsewhere := func() bool {
		counts := r.zones(5)
		return counts["b"]+counts["c"] == 5
	}
	if diff := cmp.Diff(map[string]int{"a": 10}, r.zones(10)); diff != "" {
		t.Errorf("answers by endpoint (-want +got)\n%s", diff)
	}
	w.in("a")[0].stop()
	patience.Until(t, "other zones answer alone", elsewhere)
	patience.Stays(t, someTicks, "other zones answer alone", elsewhere)
}

func TestClientsOfAClassHaveTheirOwnSettings(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	offline := ruleFor("offline", policy.Conf{
		LoadBalancer: balancer(policy.RoundRobin),
		Locality:     policy.Locality{Weights: []policy.Weight{{Key: policy.DefaultZoneKey, Value: "c", Weight: 1}}},
	})
	offline.Clients.Pods = policy.Selector{{Key: "tier", Operator: policy.In, Values: []string{"offline"}}}
	peers := ruleFor("peers", policy.Conf{
		Locality: policy.Locality{Weights: []policy.Weight{{Key: policy.DefaultZoneKey, Value: "b", Weight: 1}}},
	})
	peers.Clients.Service = &topology.ServiceName{Namespace: "shop", Name: "web"}
	set := policy.Set{Rules: []policy.Rule{offline, peers}, Pods: []policy.Pod{
		{Namespace: "batch", Name: "job", Node: "node-a", IPs: []string{"127.77.9.1"}, Labels: policy.Labels{"tier": "offline"}},
		{Namespace: "batch", Name: "far", Node: "node-b", IPs: []string{"127.77.9.3"}, Labels: policy.Labels{"tier": "offline"}},
		{Namespace: "shop", Name: "front", Node: "node-a", IPs: []string{"127.77.9.2"}, Labels: policy.Labels{"tier": "online"}},
	}}
	w.policies.Store(policy.NewSet(set))
	r := w.start(agent.Config{Node: "node-a"})
	peer := w.in("a")[0].addr.Addr().String()
	clients := map[string]*http.Client{}
	for _, ip := range []string{"127.77.9.1", "127.77.9.2", "127.77.9.3", peer} {
		clients[ip] = r.as(t, ip)
	}
	for ip, want := range map[string]string{"127.77.9.1": "c", "127.77.9.2": "a", "127.77.9.3": "a", peer: "b"} {
		for range 5 {
			if got := r.ask(t, clients[ip]); got != want {
				t.Errorf("%s is answered by zone %s, want %s", ip, got, want)
			}
		}
	}
	classes := r.Status().Services[0].Ports[0].Classes
	if len(classes) != 2 || len(classes[0].Clients) != 1 || len(classes[1].Clients) != 1 {
		t.Errorf("want two classes of a client each, got %+v", classes)
	}
	if services := r.Status().Services; len(services) != 1 || len(services[0].Ports) != 1 {
		t.Errorf("classes are shown as ports: %+v", services)
	}
	if n := r.gauge(t, "weir_pool_state", "state", "calm"); n != 3 {
		t.Errorf("%v pools are calm, want 3", n)
	}

	set.Pods = slices.Clone(set.Pods)
	set.Pods[0].Labels = policy.Labels{"tier": "online"}
	w.policies.Store(policy.NewSet(set))
	atHome := func() bool { return r.ask(t, clients["127.77.9.1"]) == "a" }
	patience.Within(t, time.Second, "the kept connection follows the pod's new label", atHome)
	patience.Stays(t, someTicks, "the kept connection follows the pod's new label", atHome)
}

func TestStatusTellsWhichPolicyEachFieldComesFrom(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	weak := ruleFor("weak", policy.Conf{LoadBalancer: balancer(policy.Random), SlowStart: &policy.SlowStart{Window: policy.Duration(time.Minute)}})
	weak.Target = policy.Target{Kind: policy.TargetNamespace, Namespace: "shop"}
	gone := ruleFor("gone", policy.Conf{LoadBalancer: balancer(policy.Random)})
	gone.Target.Name = "nowhere"
	lost := ruleFor("lost", policy.Conf{
		LoadBalancer: balancer(policy.LeastRequest),
		HashPolicies: []policy.HashPolicy{{Type: policy.HashSourceIP}},
		Locality: policy.Locality{
			Affinity: []policy.Affinity{{Key: "no/such"}},
			Failover: []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverOnly, Zones: []string{"mars"}}}},
		},
	})
	w.follow(weak, gone, lost)
	r := w.start(agent.Config{Node: "node-a"})
	var status agent.Status
	if code := r.page(t, "/services", &status); code != http.StatusOK {
		t.Fatalf("/services: %d", code)
	}
	want := map[string]string{
		"loadBalancer.type": "LoadBalancingPolicy shop/lost", "locality.affinity": "LoadBalancingPolicy shop/lost",
		"locality.failover": "LoadBalancingPolicy shop/lost", "slowStart": "LoadBalancingPolicy shop/weak",
	}
	got := map[string]string{}
	for _, f := range status.Services[0].Ports[0].Policy.Fields {
		got[f.Path] = f.Policy
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got)\n%s", diff)
	}
	wanted := []reason.Code{
		reason.PolicyWithoutEffect, reason.PolicyNamesNoZone, reason.PolicyNamesNoLabel, reason.PolicyForNoService,
	}
	for _, code := range wanted {
		if !slices.Contains(r.codes(), code) {
			t.Errorf("%s is not reported: %v", code, r.codes())
		}
	}
	var page agent.PoliciesStatus
	if code := r.page(t, "/policies", &page); code != http.StatusOK {
		t.Fatalf("/policies: %d", code)
	}
	var serving []string
	for _, p := range page.Policies {
		serving = append(serving, p.Policy+" for "+p.Target+" has "+string(rune('0'+len(p.Serving))))
	}
	wantPage := []string{
		"LoadBalancingPolicy shop/gone for Service shop/nowhere has 0",
		"LoadBalancingPolicy shop/lost for Service shop/web has 1",
		"LoadBalancingPolicy shop/weak for Namespace shop has 1",
	}
	if diff := cmp.Diff(wantPage, serving); diff != "" || len(page.Problems) < len(wanted) {
		t.Errorf("%d problems; (-want +got)\n%s", len(page.Problems), diff)
	}
}

func TestAnAgentWithoutPoliciesNeedsNone(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 1)
	a, err := agent.New(agent.Config{Node: "node-a"}, w.snapshots, agent.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	await(t, a.Ready(), "the agent to be ready")
	if got := a.Status().Services[0].Ports[0].Policy.Algorithm; got != "PowerOfTwo" {
		t.Errorf("algorithm %q, want PowerOfTwo", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	var none *latest.Value[*policy.Set]
	if _, err := agent.New(agent.Config{Node: "node-a"}, w.snapshots, agent.Deps{Policies: none}); err != nil {
		t.Error(err)
	}
}

// Zone a makes half of the requests and has a third of the endpoints. A cap of 1.2 is 40 % of all requests, 80 % of those of zone
// a, though its endpoint copes with all of them.
func TestACapOnTheSkewMovesWhatHomeCopesWith(t *testing.T) {
	const requests, share = 1000, 0.8
	w := newCluster(t, topology.ModeDisabled, 1)
	s := w.snapshot(w.endpoints...)
	svc := *s.Services[0]
	svc.Demand = []topology.ZoneDemand{{Zone: "a", Share: 0.5}, {Zone: "b", Share: 0.25}, {Zone: "c", Share: 0.25}}
	s.Services = []*topology.Service{&svc}
	w.snapshots.Store(s)
	w.follow(ruleFor("capped", policy.Conf{Locality: policy.Locality{MaxSkew: new(policy.Number(1.2))}}))
	r := w.start(agent.Config{Node: "node-a"})
	patience.Until(t, "the cap is kept", func() bool { return r.zones(20)["a"] < 20 })
	counts := r.zones(requests)
	fiveSigma := 5 * math.Sqrt(share*(1-share)*requests)
	if got := float64(counts["a"]); math.Abs(got-share*requests) > fiveSigma || counts["a"]+counts["b"]+counts["c"] != requests {
		t.Errorf("%v, want %.0f ± %.0f at home and the rest in other zones", counts, share*requests, fiveSigma)
	}
}
