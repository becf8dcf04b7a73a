package route_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
)

// queryOf asks for what a client in zone a may use of a service of one family and port.
func queryOf(svc *topology.Service) route.Query {
	return route.Query{Service: svc, Endpoints: svc.Endpoints, Port: svc.Ports[0], Client: policy.Client{Zone: "a"}}
}

// words puts endpoints into words: a zone and its part, in their order, each once.
func words(targets []route.Endpoint) string {
	var all []string
	for i := range targets {
		t := &targets[i]
		part := fmt.Sprint("tier ", t.Tier)
		if t.Home {
			part = "home"
		}
		if t.AffinityWeight > 0 {
			part += fmt.Sprintf(" %s*%d", t.Affinity, t.AffinityWeight)
		}
		if t.Unready {
			part += " unready"
		}
		if t.Cost > 0 {
			part += fmt.Sprint(" $", t.Cost)
		}
		all = append(all, string(t.Zone)+" "+part)
	}
	return strings.Join(all, ", ")
}

// ruled is a policy for default/web with that locality.
func ruled(l policy.Locality) []policy.Rule {
	return []policy.Rule{{
		Origin: policy.Origin{Dialect: policy.DialectCRD, Namespace: "default", Name: "web"},
		Target: policy.Target{Kind: policy.TargetService, Namespace: "default", Name: "web"},
		Conf:   policy.Conf{Locality: l},
	}}
}

func TestPoliciesAndHintsDecideWhoIsATarget(t *testing.T) {
	const nodes = "nodes a-1=eu/a:4 b-1=eu/b:4 c-1=eu/c:4; "
	for name, c := range map[string]struct {
		service string
		query   route.Query
		rules   []policy.Rule
		want    string
	}{
		"no policy, no hints: the own zone is home": {
			service: "endpoints a:1 b:1 c:1", want: "a home, b tier 0 $1, c tier 0 $1",
		},
		"no policy, no hints, no endpoint in the zone: all are home": {
			service: "endpoints b:1 c:1", want: "b home $1, c home $1",
		},
		"no policy, mode Disabled: all are home": {
			service: "mode=Disabled; endpoints a:1 b:1", want: "a home, b home $1",
		},
		"no policy, a hint is missing: hints are ignored and all are home": {
			service: "endpoints a:1>a b:1", want: "a home, b home $1",
		},
		"no policy, hinted to the node: the zone comes before others": {
			service: "endpoints a:1@a-1>a,@a-1 a:1@a-2>a,@a-2 b:1@b-1>b,@b-1",
			query:   route.Query{Client: policy.Client{Node: "a-1", Zone: "a"}},
			want:    "a home, a tier 0, b tier 1 $1",
		},
		"no policy, Static: nothing would take what the zone lacks": {
			service: "endpoints a:1 b:1", query: route.Query{KeepsHome: true}, want: "a home, b home $1",
		},
		"no policy, lent by hints: the lent one waits": {
			service: "endpoints a:1>a b:1>a b:1>b", want: "a home, b tier 0 $1, b tier 0 $1",
		},
		"locality disabled: all are home, whatever hints say": {
			service: "endpoints a:1>a b:1>b", rules: ruled(policy.Locality{Disabled: new(true)}), want: "a home, b home $1",
		},
		"a policy turns locality on in mode Disabled": {
			service: "mode=Disabled; endpoints a:1 b:1", rules: ruled(policy.Locality{Disabled: new(false)}),
			want: "a home, b tier 1 $1",
		},
		"failover none: other zones are no targets": {
			service: "endpoints a:1 b:1 c:1",
			rules:   ruled(policy.Locality{Failover: []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverNone}}}}),
			want:    "a home",
		},
		"failover chain: tiers in order, the rest excluded": {
			service: "endpoints a:1 b:1 c:1 d:1",
			rules: ruled(policy.Locality{Failover: []policy.Failover{
				{To: policy.FailoverTo{Type: policy.FailoverOnly, Zones: []string{"c"}}},
				{From: &policy.FailoverFrom{Zones: []string{"b"}}, To: policy.FailoverTo{Type: policy.FailoverAny}},
				{To: policy.FailoverTo{Type: policy.FailoverOnly, Zones: []string{"b"}}},
			}}),
			want: "a home, b tier 2 $1, c tier 1 $1",
		},
		"in the mode Balanced an own-zone endpoint that is hinted elsewhere is home": {
			service: "endpoints a:1>a a:1>b b:1>b", rules: ruled(policy.Locality{Failover: []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverNone}}}}),
			want: "a home, a home",
		},
		"hints first: what is lent by a zone that is excluded is never used": {
			service: "endpoints b:1>a c:1>a",
			rules:   ruled(policy.Locality{Failover: []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverAnyExcept, Zones: []string{"c"}}}}}),
			want:    "b home $1",
		},
		"fixed weights": {
			service: "endpoints a:1 b:1 c:1",
			rules: ruled(policy.Locality{Weights: []policy.Weight{
				{Key: policy.DefaultZoneKey, Value: "b", Weight: 1}, {Key: policy.DefaultZoneKey, Value: "c", Weight: 10},
			}}),
			want: "b home topology.kubernetes.io/zone=b*1 $1, c home topology.kubernetes.io/zone=c*10 $1, a tier 1",
		},
		"affinity to the node": {
			service: "endpoints a:1@a-1 a:1@a-2 b:1",
			rules:   ruled(policy.Locality{Affinity: []policy.Affinity{{Key: "kubernetes.io/hostname"}}}),
			want:    "a home kubernetes.io/hostname=a-1*9, a home *1, b tier 1 $1",
		},
		"unready ones count where a threshold is set": {
			service: "endpoints a:1 a:1! b:1!", rules: ruled(policy.Locality{FailoverThreshold: new(policy.Number(70.0))}),
			want: "a home, a home unready, b tier 1 unready $1",
		},
		"unready ones do not count otherwise": {
			service: "endpoints a:1 a:1! b:1!", rules: ruled(policy.Locality{Disabled: new(false)}), want: "a home",
		},
		"costs of the policy come before those of the cluster": {
			service: "endpoints a:1 b:1 c:1",
			rules:   ruled(policy.Locality{Costs: []policy.Cost{{From: "a", To: "c", Cost: 0.5}}}),
			want:    "a home, b tier 1 $1, c tier 1 $0.5",
		},
		"under internal policy Local nothing of this counts": {
			service: "internal=Local; endpoints a:1@a-1 b:1@b-1",
			rules:   ruled(policy.Locality{Failover: []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverAny}}}}), want: "a home",
		},
		"a terminating endpoint is excluded like any other": {
			service: "endpoints b:1~ c:1~", rules: ruled(policy.Locality{Failover: []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverOnly, Zones: []string{"b"}}}}}),
			want: "b tier 1 $1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := topology.ParseSnapshot(nodes + "service web ip=10.9.0.1 " + strings.Replace(c.service, "endpoints", ";endpoints", 1))
			if err != nil {
				t.Fatal(err)
			}
			svc := s.Services[0]
			q := c.query
			q.Service, q.Endpoints, q.Port = svc, svc.Endpoints, svc.Ports[0]
			q.Client = policy.Client{Node: "a-1", Zone: "a"}
			q.Mode, q.Regions = cmp.Or(svc.Mode, topology.ModeBalanced), s.Regions()
			if c.rules != nil {
				q.Policies = policy.NewSet(policy.Set{Rules: c.rules})
				settings := q.Policies.Resolve(q.Client, policy.Destination{Service: svc.ServiceName, Port: svc.Ports[0]})
				q.Settings = &settings
			}
			got := route.Select(q)
			if d := diff.Diff(c.want, words(got.Endpoints)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// parse reads a snapshot of one service.
func parse(t *testing.T, text string) (topology.Snapshot, *topology.Service) {
	t.Helper()
	s, err := topology.ParseSnapshot(text)
	if err != nil {
		t.Fatal(err)
	}
	return s, s.Services[0]
}

func TestWhatTheConsumerRulesGiveIsToldWithItsReasons(t *testing.T) {
	for name, c := range map[string]struct {
		endpoints string
		chosen    int
		choice    reason.Code
		home      reason.Code
	}{
		"hints":                   {"a:1>a a:1>a b:1>b c:1>c", 2, reason.HintedToZone, ""},
		"no hints":                {"a:1 b:1 c:1", 3, reason.NoHints, reason.HomeIsOwnZone},
		"only own ones":           {"a:2", 2, reason.NoHints, ""},
		"no endpoint in the zone": {"b:1 c:1", 2, reason.NoHints, ""},
		"no endpoint at all":      {"a:1!", 0, reason.NoEndpoints, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, svc := parse(t, "nodes a:4 b:4 c:4; service web ip=10.9.0.1; endpoints "+c.endpoints)
			got := route.Select(queryOf(svc))
			if len(got.Chosen) != c.chosen || !slices.IsSortedFunc(got.Chosen, netip.AddrPort.Compare) {
				t.Errorf("chosen %v, want %d of them, sorted", got.Chosen, c.chosen)
			}
			if got.Choice.Code != c.choice || got.Home.Code != c.home {
				t.Errorf("reasons %q and %q, want %q and %q", got.Choice.Code, got.Home.Code, c.choice, c.home)
			}
			if got.Endpoints == nil {
				t.Error("targets are nil")
			}
		})
	}
}

func TestCostsGoByRegionsAndClusters(t *testing.T) {
	s, svc := parse(t, "nodes eu/a:4 eu/b:4 us/c:4; service web ip=10.9.0.1; endpoints a:1 b:1 c:1 a:1{cluster=far}")
	costs := topology.Costs{SameRegion: 1, OtherRegion: 3, OtherCluster: 7}
	q := queryOf(svc)
	q.Costs, q.Regions = costs, s.Regions()
	got := route.Select(q)
	if d := diff.Diff("a home, b tier 0 $1, c tier 0 $3, a tier 0 $7", words(got.Endpoints)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// The order is that of cost: own zone, own cluster, the cheapest other cluster.
func TestHomeIsTheCheapestPlaceThatIsLeft(t *testing.T) {
	const nodes = "nodes eu/a:4 eu/b:4; service web ip=10.9.0.1; endpoints "
	for endpoints, want := range map[string]string{
		"a:1 b:1 a:1{cluster=west} a:1{cluster=east}":               "a home, b tier 0 $1, a tier 0 $2, a tier 0 $6",
		"b:1 c:1 a:1{cluster=west} a:1{cluster=east}":               "b home $1, c home $1, a tier 0 $2, a tier 0 $6",
		"a:1{cluster=west} b:1{cluster=west} a:1{cluster=east}":     "a home $2, b home $3, a tier 0 $6",
		"a:1>a b:1>b a:1{cluster=west}":                             "a home, b tier 0 $1, a tier 0 $2",
		"a:1! b:1>b a:1{cluster=west} b:1{cluster=west}":            "b home $1, a tier 0 $2, b tier 0 $3",
		"-:1{cluster=west} a:1{cluster=east} -:1{cluster=unmarked}": " home $3,  home $3, a tier 0 $6",
	} {
		s, svc := parse(t, nodes+endpoints)
		s.Clusters = []topology.Cluster{{Name: "east", Region: "us"}, {Name: "west", Region: "eu"}}
		q := queryOf(svc)
		q.Regions = s.Regions()
		got := route.Select(q)
		slices.SortStableFunc(got.Endpoints, func(a, b route.Endpoint) int { return cmp.Compare(a.Cost, b.Cost) })
		if d := diff.Diff(want, words(got.Endpoints)); d != "" {
			t.Errorf("%s (-want +got)\n%s", endpoints, d)
		}
	}
}

func TestAStaleClusterIsAProblemAndMovesNothing(t *testing.T) {
	s, _ := parse(t, "nodes a:4; service web ip=10.9.0.1; endpoints a:1 a:1{cluster=west}")
	c := route.NewCompiler(route.Options{})
	in := route.Input{Snapshot: &s, Client: policy.Client{Zone: "a"}}
	before := c.Compile(in)
	stale := s
	stale.Clusters = []topology.Cluster{{Name: "west", Stale: true}}
	in.Snapshot = &stale
	now := c.Compile(in)
	if len(before.Problems) > 0 || len(now.Problems) != 1 || now.Problems[0].Reason.Code != reason.ClusterStale {
		t.Errorf("the problems are %v, then %v", before.Problems, now.Problems)
	}
	if !slices.Equal(before.Entries, now.Entries) {
		t.Error("entries are new although nothing of them changed")
	}
	if c.Compile(route.Input{Snapshot: &s, Client: in.Client}).Problems != nil {
		t.Error("the problem stays")
	}
}

func TestWeightsThatAreRefusedAreToldOfWhateverPoliciesExclude(t *testing.T) {
	_, svc := parse(t, "nodes a:4 b:4 c:4; service web ip=10.9.0.1; endpoints a:1 b:1 b:1! c:1")
	var pods []policy.Pod
	for i, weight := range []string{"5", "0", "none", "1001"} {
		name := fmt.Sprint("p", i)
		svc.Endpoints[i].Pod = "default/" + name
		pods = append(pods, policy.Pod{Namespace: "default", Name: name, Annotations: policy.Labels{"weir.dev/weight": weight}})
	}
	q := queryOf(svc)
	q.Policies = policy.NewSet(policy.Set{
		Pods: pods, Rules: ruled(policy.Locality{Failover: []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverNone}}}}),
	})
	settings := q.Policies.Resolve(q.Client, policy.Destination{Service: svc.ServiceName, Port: svc.Ports[0]})
	q.Settings = &settings
	got := route.Select(q)
	if len(got.Endpoints) != 1 || got.Endpoints[0].Weight != 5 {
		t.Errorf("endpoints %+v, want the one at home with its weight", got.Endpoints)
	}
	var refused []string
	for _, r := range got.Refused {
		refused = append(refused, strings.Join(r.Objects, " "))
	}
	if d := diff.Diff([]string{"default/p1 0", "default/p3 1001"}, refused); d != "" { // p2 is not ready
		t.Errorf("(-want +got)\n%s", d)
	}
}
