package agent

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// ruled is a policy for default/web with that locality.
func ruled(l policy.Locality) []policy.Rule {
	return []policy.Rule{{
		Origin: policy.Origin{Dialect: policy.DialectCRD, Namespace: "default", Name: "web"},
		Target: policy.Target{Kind: policy.TargetService, Namespace: "default", Name: "web"},
		Conf:   policy.Conf{Locality: l},
	}}
}

func TestAPoolIsAimedByFlagsSettingsAndPolicies(t *testing.T) {
	const world = "nodes a-1=a:4 b-1=b:4 c-1=c:4; service web ip=10.9.0.1; endpoints a:1@a-1 b:1 c:1"
	for name, c := range map[string]struct {
		config Config
		rules  []policy.Rule
		want   string
	}{
		"flags alone":           {want: "a home, b tier 0, c tier 0"},
		"a strategy that stays": {config: Config{Strategy: "Static"}, want: "a home, b home, c home"},
		"a default mode that keeps nobody": {
			config: Config{Mode: topology.ModeDisabled}, want: "a home, b home, c home",
		},
		"a policy": {
			rules: ruled(policy.Locality{Failover: []policy.Failover{{To: policy.FailoverOnly, Zone: []topology.Zone{"c"}}}}),
			want:  "a home, c tier 1",
		},
		"labels of nodes": {
			rules: ruled(policy.Locality{Affinity: []policy.Affinity{{Key: "rack"}}}), want: "a home rack=7, b tier 1, c tier 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.Node, c.config.Hints = "a-1", HintsNative
			p := planner{config: c.config.withDefaults()}
			policies := policy.NewSet(policy.Set{Rules: c.rules, Nodes: map[string]policy.Labels{"a-1": {"rack": "7"}}})
			w := p.next(parse(t, world), policies).pools[0]
			var got []string
			for _, t := range w.targets {
				part := fmt.Sprint("tier ", t.Tier)
				if t.Home {
					part = strings.TrimSpace("home " + t.Affinity)
				}
				got = append(got, string(t.Zone)+" "+part)
			}
			if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWhatNoChangeTouchesIsNotPreparedAgain(t *testing.T) {
	p := newPlanner()
	s := parse(t, "nodes a:4 b:4; service one ip=10.9.0.1; endpoints a:1 b:1; service web ip=10.9.0.2; endpoints a:1 b:1")
	rules := ruled(policy.Locality{})
	rules[0].Conf.LoadBalancer = &policy.LoadBalancer{Type: policy.Maglev}
	rules[0].Conf.HashPolicies = []policy.HashPolicy{{Type: policy.HashSourceIP}}
	first := p.next(s, policy.NewSet(policy.Set{Rules: rules}))
	again := p.next(s, policy.NewSet(policy.Set{Rules: rules}))
	rules = ruled(policy.Locality{})
	rules[0].Conf.LoadBalancer = &policy.LoadBalancer{Type: policy.Maglev}
	rules[0].Conf.HashPolicies = []policy.HashPolicy{{Type: policy.HashHeader, Name: "x"}}
	hashed := p.next(s, policy.NewSet(policy.Set{Rules: rules}))
	for i := range first.pools {
		if first.pools[i].mixture != again.pools[i].mixture || first.pools[i].hashing != again.pools[i].hashing {
			t.Errorf("%v was prepared again for nothing", first.pools[i].key)
		}
		if again.pools[i].mixture != hashed.pools[i].mixture {
			t.Errorf("%v: another hash policy builds another table", first.pools[i].key)
		}
	}
	if again.pools[1].hashing == hashed.pools[1].hashing {
		t.Error("another hash policy is not followed")
	}
	if &first.services[0].plan.Endpoints[0] != &hashed.services[0].plan.Endpoints[0] {
		t.Error("a change of policies planned again")
	}
}

func TestEndpointsAreHashedByWhatThePolicyNames(t *testing.T) {
	s := parse(t, "nodes a:4; service web ip=10.9.0.1; endpoints a:1 a:1")
	svc := s.Services[0]
	svc.Endpoints[0].Pod, svc.Endpoints[1].Pod = "default/db-0", "default/db-1"
	pods := []policy.Pod{{
		Namespace: "default", Name: "db-0", Labels: policy.Labels{"shard": "x"}, Annotations: policy.Labels{"key": "y", "long": strings.Repeat("y", 257)},
	}}
	for _, c := range []struct {
		key  policy.EndpointHashKey
		want [2]string
	}{
		{policy.EndpointHashKey{Type: policy.HashKeyAddress}, [2]string{"", ""}},
		{policy.EndpointHashKey{Type: policy.HashKeyPodName}, [2]string{"db-0", "db-1"}},
		{policy.EndpointHashKey{Type: policy.HashKeyLabel, Key: "shard"}, [2]string{"x", ""}},
		{policy.EndpointHashKey{Type: policy.HashKeyAnnotation, Key: "key"}, [2]string{"y", ""}},
		{policy.EndpointHashKey{Type: policy.HashKeyAnnotation, Key: "long"}, [2]string{"", ""}},
	} {
		rules := ruled(policy.Locality{})
		rules[0].Conf.LoadBalancer = &policy.LoadBalancer{Type: policy.RingHash}
		rules[0].Conf.EndpointHashKey = &c.key
		p := newPlanner()
		targets := p.next(s, policy.NewSet(policy.Set{Rules: rules, Pods: pods})).pools[0].targets
		if got := [2]string{targets[0].HashKey, targets[1].HashKey}; got != c.want {
			t.Errorf("%v: keys %q, want %q", c.key, got, c.want)
		}
	}
}

func TestHashPoliciesThatTCPHasNoUseForAreReported(t *testing.T) {
	rules := ruled(policy.Locality{})
	rules[0].Conf.LoadBalancer = &policy.LoadBalancer{Type: policy.Maglev}
	rules[0].Conf.HashPolicies = []policy.HashPolicy{
		{Type: policy.HashSourceIP},
		{Type: policy.HashFilterState, Name: "weir.client.port"},
		{Type: policy.HashFilterState, Name: "weir.request.path"},
		{Type: policy.HashHeader, Name: "x-user"},
	}
	s := parse(t, "nodes a:4; service web ip=10.9.0.1; endpoints a:1")
	s.Services[0].Ports[0].AppProtocol = "tcp"
	p := newPlanner()
	var got [][]string
	for _, problem := range p.next(s, policy.NewSet(policy.Set{Rules: rules})).problems {
		if problem.Reason.Code == reason.HashNeedsHTTP {
			got = append(got, problem.Reason.Objects)
		}
	}
	want := [][]string{{"FilterState weir.request.path", "default/web 80/TCP"}, {"Header x-user", "default/web 80/TCP"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWhatAPolicyForManySaysInVainIsReportedOnce(t *testing.T) {
	rules := ruled(policy.Locality{})
	rules[0].Target = policy.Target{Kind: policy.TargetNamespace, Namespace: "default"}
	rules[0].Conf.HashPolicies = []policy.HashPolicy{{Type: policy.HashSourceIP}}
	s := parse(t, "nodes a:4; service one ip=10.9.0.1; endpoints a:1; service web ip=10.9.0.2; endpoints a:1")
	p := newPlanner()
	for target, want := range map[policy.TargetKind][]string{policy.TargetNamespace: {""}, policy.TargetService: {"default/web"}} {
		rules[0].Target.Kind, rules[0].Target.Name = target, "web"
		var got []string
		for _, problem := range p.next(s, policy.NewSet(policy.Set{Rules: rules})).problems {
			if problem.Reason.Code == reason.PolicyWithoutEffect {
				got = append(got, problem.Service)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", target, diff)
		}
	}
}

func TestSettingsBecomeAPoolsConfig(t *testing.T) {
	rules := ruled(policy.Locality{
		FailoverThreshold: new(70.0),
		Overflow:          policy.Overflow{LoadBand: &policy.LoadBand{Low: 2, High: 8}},
	})
	conf := &rules[0].Conf
	conf.LoadBalancer = &policy.LoadBalancer{Type: policy.LeastRequest, LeastRequest: &policy.LeastRequestConf{
		ChoiceCount: new(8), ActiveRequestBias: new(0.0),
	}}
	conf.SlowStart = &policy.SlowStart{Window: 30 * time.Second}
	conf.PanicThreshold = new(0.0)
	conf.OutlierDetection = &policy.OutlierDetection{
		MaxEjectionPercent: new(30.0), Consecutive: &policy.Consecutive{GatewayErrors: new(3)},
	}
	p := newPlanner()
	s := parse(t, "nodes a:4; service web ip=10.9.0.1 strategy=Static; endpoints a:1")
	w := p.next(s, policy.NewSet(policy.Set{Rules: rules})).pools[0]
	got := w.tuning
	switch {
	case got.Algorithm != pick.LeastRequest, got.Choices != 8, got.Bias == nil || *got.Bias != 0:
		t.Errorf("least request: %+v", got)
	case got.SlowStart == nil || *got.SlowStart != pick.SlowStart{Window: 30 * time.Second, MinWeight: 0.1, Aggression: 1}:
		t.Errorf("slow start: %+v", got.SlowStart)
	case got.Threshold < 0.699 || got.Threshold > 0.701, got.Panic == nil || *got.Panic != 0:
		t.Errorf("threshold %v, panic %v", got.Threshold, got.Panic)
	case got.Health.Outliers == nil || got.Health.Outliers.GatewayErrors != 3 || *got.Health.Outliers.MaxOut != 0.3:
		t.Errorf("outliers: %+v", got.Health.Outliers)
	}
	if want := (spilling{strategy: "Hazl", band: policy.LoadBand{Low: 2, High: 8}}); w.spilling != want {
		t.Errorf("the policy's overflow does not win over the annotation: %+v", w.spilling)
	}
	w = p.next(s, nil).pools[0]
	if w.tuning.Algorithm != pick.PowerOfTwo || w.spilling.strategy != "Static" || w.tuning.Panic != nil {
		t.Errorf("without policies: %+v, %+v", w.tuning, w.spilling)
	}
}

func TestAClientIsKnownByItsPodAndByWhatItServes(t *testing.T) {
	s := parse(t, "nodes a-1=a:4 b-1=b:4; service web ip=10.9.0.1; endpoints 10.1.0.1=a:1@a-1 10.1.0.2=b:1@b-1")
	b := builder{
		snapshot: s, policies: policy.NewSet(policy.Set{Pods: []policy.Pod{
			{Namespace: "default", Name: "front", Node: "a-1", IPs: []string{"10.1.0.3", "fd00::3"}},
			{Namespace: "default", Name: "far", Node: "b-1", IPs: []string{"10.1.0.4"}},
			{Namespace: "default", Name: "host", Node: "a-1"},
		}}),
	}
	b.client.Node, b.client.Zone = "a-1", "a"
	var got []string
	for _, c := range b.clients() {
		got = append(got, fmt.Sprint(c.addr, " ", c.Namespace, " ", c.Serves))
	}
	want := []string{"10.1.0.1  [default/web]", "10.1.0.3 default []", "fd00::3 default []"}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
