package agent

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/route"
)

// ruled is a policy for default/web with that locality.
func ruled(l policy.Locality) []policy.Rule {
	return []policy.Rule{{
		Origin: policy.Origin{Dialect: policy.DialectCRD, Namespace: "default", Name: "web"},
		Target: policy.Target{Kind: policy.TargetService, Namespace: "default", Name: "web"},
		Conf:   policy.Conf{Locality: l},
	}}
}

func TestWhatNoChangeTouchesIsNotPreparedAgain(t *testing.T) {
	p := planning()
	s := parse(t, "nodes a:4 b:4; service one ip=10.9.0.1; endpoints a:1 b:1; service web ip=10.9.0.2; endpoints a:1 b:1")
	rules := ruled(policy.Locality{})
	rules[0].Conf.LoadBalancer = &policy.LoadBalancer{Type: policy.Maglev}
	rules[0].Conf.HashPolicies = []policy.HashPolicy{{Type: policy.HashSourceIP}}
	specs := func(t *route.Table, before []*spec) []*spec {
		var all []*spec
		for i, e := range t.Entries {
			all = append(all, newSpec(e, before[i]))
		}
		return all
	}
	table := p.next(s, policy.NewSet(policy.Set{Rules: rules}))
	first := specs(table.table, []*spec{{}, {}})
	again := specs(p.next(s, policy.NewSet(policy.Set{Rules: rules})).table, first)
	rules = ruled(policy.Locality{})
	rules[0].Conf.LoadBalancer = &policy.LoadBalancer{Type: policy.Maglev}
	rules[0].Conf.HashPolicies = []policy.HashPolicy{{Type: policy.HashHeader, Header: &policy.HeaderKey{Name: "x"}}}
	other := p.next(s, policy.NewSet(policy.Set{Rules: rules}))
	hashed := specs(other.table, again)
	for i := range first {
		if first[i].prepared != again[i].prepared || first[i].hashing != again[i].hashing {
			t.Errorf("entry %d was prepared again for nothing", i)
		}
		if again[i].prepared != hashed[i].prepared {
			t.Errorf("entry %d: another hash policy builds another table", i)
		}
	}
	if again[1].hashing == hashed[1].hashing {
		t.Error("another hash policy is not followed")
	}
	if planOf(table, 0) != planOf(other, 0) {
		t.Error("a change of policies planned again")
	}
}

func TestHashPoliciesThatTCPHasNoUseForAreReported(t *testing.T) {
	rules := ruled(policy.Locality{})
	rules[0].Conf.LoadBalancer = &policy.LoadBalancer{Type: policy.Maglev}
	rules[0].Conf.HashPolicies = []policy.HashPolicy{
		{Type: policy.HashSourceIP},
		{Type: policy.HashFilterState, FilterState: &policy.FilterStateKey{Key: "weir.client.port"}},
		{Type: policy.HashFilterState, FilterState: &policy.FilterStateKey{Key: "weir.request.path"}},
		{Type: policy.HashHeader, Header: &policy.HeaderKey{Name: "x-user"}},
	}
	s := parse(t, "nodes a:4; service web ip=10.9.0.1; endpoints a:1")
	s.Services[0].Ports[0].AppProtocol = "tcp"
	p := planning()
	var got [][]string
	for _, problem := range p.next(s, policy.NewSet(policy.Set{Rules: rules})).table.Problems {
		if problem.Reason.Code == reason.HashNeedsHTTP {
			got = append(got, problem.Reason.Objects)
		}
	}
	want := [][]string{{"FilterState weir.request.path", "default/web 80/TCP"}, {"Header x-user", "default/web 80/TCP"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestFilterStateThatNoFilterMayGiveIsReported(t *testing.T) {
	rules := ruled(policy.Locality{})
	rules[0].Conf.LoadBalancer = &policy.LoadBalancer{Type: policy.Maglev}
	rules[0].Conf.HashPolicies = []policy.HashPolicy{
		{Type: policy.HashFilterState, FilterState: &policy.FilterStateKey{Key: "weir.client.port"}},
		{Type: policy.HashFilterState, FilterState: &policy.FilterStateKey{Key: "tenant"}},
	}
	s := parse(t, "nodes a:4; service web ip=10.9.0.1; endpoints a:1")
	for _, filters := range [][]netip.Prefix{nil, {netip.MustParsePrefix("10.0.0.0/8")}} {
		p := newPlanner(Config{Node: "a-1", TrustedFilters: filters}.withDefaults())
		var got [][]string
		for _, problem := range p.next(s, policy.NewSet(policy.Set{Rules: rules})).table.Problems {
			if problem.Reason.Code == reason.FilterNotTrusted && isPolicyCode(problem.Reason.Code) {
				got = append(got, problem.Reason.Objects)
			}
		}
		var want [][]string
		if filters == nil {
			want = [][]string{{"tenant", "default/web 80/TCP"}}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got)\n%s", filters, diff)
		}
	}
}

func TestSettingsBecomeAPoolsConfig(t *testing.T) {
	rules := ruled(policy.Locality{
		FailoverThreshold: new(policy.Number(70.0)),
		Overflow:          policy.Overflow{LoadBand: &policy.LoadBand{Low: 2, High: 8}},
	})
	conf := &rules[0].Conf
	conf.LoadBalancer = &policy.LoadBalancer{Type: policy.LeastRequest, LeastRequest: &policy.LeastRequestConf{
		ChoiceCount: new(int32(8)), ActiveRequestBias: new(policy.Number(0.0)),
	}}
	conf.SlowStart = &policy.SlowStart{Window: policy.Duration(30 * time.Second)}
	conf.PanicThreshold = new(policy.Number(0.0))
	conf.OutlierDetection = &policy.OutlierDetection{
		MaxEjectionPercent: new(policy.Number(30.0)), Consecutive: &policy.Consecutive{GatewayErrors: new(int32(3))},
	}
	p := planning()
	s := parse(t, "nodes a:4; service web ip=10.9.0.1 strategy=Static; endpoints a:1")
	got := algorithm(&p.next(s, policy.NewSet(policy.Set{Rules: rules})).table.Entries[0].Settings)
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
	got = algorithm(&p.next(s, nil).table.Entries[0].Settings)
	if got.Algorithm != pick.PowerOfTwo || got.Panic != nil {
		t.Errorf("without policies: %+v", got)
	}
}
