package agent_test

import (
	"io"
	"net/http"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

func TestAPodIsToldApartByTheLabelsThatNearnessIsMeasuredWith(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 2)
	var pods []policy.Pod
	w.extra = func(svc *topology.Service) {
		for i := range svc.Endpoints {
			svc.Endpoints[i].Pod = "shop/" + svc.Endpoints[i].Addr.String()
		}
	}
	for i, e := range w.endpoints {
		pods = append(pods, policy.Pod{
			Namespace: "shop", Name: e.addr.Addr().String(), Labels: policy.Labels{"rack": string(rune('0' + i%2))},
		})
	}
	pods = append(pods, policy.Pod{
		Namespace: "shop", Name: "client", Node: "node-a", IPs: []string{"127.77.9.4"}, Labels: policy.Labels{"rack": "1"},
	})
	w.snapshots.Store(w.snapshot(w.endpoints...))
	weight := int64(1000)
	w.policies.Store(policy.NewSet(policy.Set{Pods: pods, Rules: []policy.Rule{ruleFor("rack", policy.Conf{
		LoadBalancer: balancer(policy.RoundRobin),
		Locality:     policy.Locality{Affinity: []policy.Affinity{{Key: "rack", Weight: &weight}}},
	})}}))
	r := w.start(agent.Config{Node: "node-a"})
	client := r.as(t, "127.77.9.4")
	for range 100 {
		r.ask(t, client)
	}
	if near, far := w.in("a")[1].hits.Load(), w.in("a")[0].hits.Load(); near < 90 || near+far != 100 {
		t.Errorf("the endpoint of the client's rack got %d of 100, the other %d", near, far)
	}
	if diff := cmp.Diff(";rack=1", r.Status().Services[0].Ports[0].Classes[0].Class); diff != "" {
		t.Errorf("class (-want +got)\n%s", diff)
	}
}

func TestWeightsOfPodsAreFollowed(t *testing.T) {
	w := newCluster(t, topology.ModeDisabled, 1)
	w.extra = func(svc *topology.Service) {
		for i := range svc.Endpoints {
			svc.Endpoints[i].Pod = "shop/" + string(svc.Endpoints[i].Zone)
		}
	}
	w.snapshots.Store(w.snapshot(w.endpoints...))
	pod := func(name, weight string) policy.Pod {
		return policy.Pod{Namespace: "shop", Name: name, Annotations: policy.Labels{"weir.dev/weight": weight}}
	}
	w.policies.Store(policy.NewSet(policy.Set{
		Pods:  []policy.Pod{pod("a", "6"), pod("b", "3"), pod("c", "many")},
		Rules: []policy.Rule{ruleFor("round", policy.Conf{LoadBalancer: balancer(policy.RoundRobin)})},
	}))
	r := w.start(agent.Config{Node: "node-a"})
	if diff := cmp.Diff(map[string]int{"a": 60, "b": 30, "c": 10}, r.zones(100)); diff != "" {
		t.Errorf("answers by endpoint (-want +got)\n%s", diff)
	}
	if codes := r.codes(); !slices.Contains(codes, reason.WeightRefused) {
		t.Errorf("the bad weight is not reported: %v", codes)
	}
}

func TestRefusedPoliciesAreReported(t *testing.T) {
	w := newCluster(t, topology.ModeDisabled, 1)
	good := policy.NewSet(policy.Set{Rules: []policy.Rule{ruleFor("spoilt", policy.Conf{LoadBalancer: balancer(policy.RoundRobin)})}})
	never := good.Rules[0].Origin
	never.Name = "never-good"
	w.policies.Store(policy.NewSet(policy.Set{}).Keep(good, []policy.Origin{good.Rules[0].Origin, never}))
	r := w.start(agent.Config{Node: "node-a"})
	codes := r.codes()
	if !slices.Contains(codes, reason.PolicyLastGood) || !slices.Contains(codes, reason.PolicyRefused) {
		t.Errorf("got %v", codes)
	}
	if diff := cmp.Diff(map[string]int{"a": 20, "b": 20, "c": 20}, r.zones(60)); diff != "" {
		t.Errorf("the last good policy does not hold (-want +got)\n%s", diff)
	}
}

func TestAClientStaysWithItsEndpointBySource(t *testing.T) {
	w := newCluster(t, topology.ModeDisabled, 3)
	for i, e := range w.endpoints {
		name := string(rune('0' + i))
		e.answers(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })
	}
	for _, algorithm := range []policy.Algorithm{policy.RingHash, policy.Maglev} {
		w.follow(ruleFor("sticky", policy.Conf{
			LoadBalancer: balancer(algorithm), HashPolicies: []policy.HashPolicy{{Type: policy.HashSourceIP}},
			Locality: policy.Locality{Disabled: new(true)},
		}))
		r := w.start(agent.Config{Node: "node-a", Map: []agent.Mapping{{
			Service: topology.ServiceName{Namespace: "shop", Name: "web"},
			To:      netip.AddrPortFrom(netip.MustParseAddr("127.77.0.3"), 0),
		}}})
		seen := map[string]bool{}
		for _, ip := range []string{"127.77.8.1", "127.77.8.2", "127.77.8.3", "127.77.8.4", "127.77.8.5", "127.77.8.6"} {
			c := r.as(t, ip)
			first := r.ask(t, c)
			seen[first] = true
			for range 10 {
				if got := r.ask(t, c); got != first {
					t.Errorf("%s: %s went to %s and to %s", algorithm, ip, first, got)
				}
			}
		}
		if len(seen) < 2 {
			t.Errorf("%s: all clients went to one endpoint", algorithm)
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// Without overflow, as on a busy machine zones are slow now and then, and what is slow is rightly spared; the pool's tests
// follow the weights under the law in virtual time.
func TestFixedWeightsAreFollowedWithinThreePercent(t *testing.T) {
	w := newCluster(t, topology.ModePreferSameZone, 2)
	disabled := policy.OverflowDisabled
	const requests = 5500 // where chance decides, three percent are seven standard deviations
	for _, algorithm := range []policy.Algorithm{policy.RoundRobin, policy.LeastRequest, policy.Random} {
		w.follow(ruleFor("weights", policy.Conf{
			LoadBalancer: balancer(algorithm),
			Locality: policy.Locality{Overflow: policy.Overflow{Mode: &disabled}, Weights: []policy.Weight{
				{Key: policy.DefaultZoneKey, Value: "b", Weight: 1}, {Key: policy.DefaultZoneKey, Value: "c", Weight: 10},
			}},
		}))
		r := w.start(agent.Config{Node: "node-a"})
		counts := r.zones(requests)
		if share := float64(counts["c"]) / requests; share < 10.0/11-0.03 || share > 10.0/11+0.03 || counts["b"]+counts["c"] != requests {
			t.Errorf("%s: want 1 of 11 in b and 10 of 11 in c, got %v", algorithm, counts)
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
}
