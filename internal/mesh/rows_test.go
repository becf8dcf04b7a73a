package mesh_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/mesh"
)

const hour = time.Hour

func TestS40AndK10LocalityIsSwitchedOff(t *testing.T) {
	wantLocality(t, "localityAwareness: {disabled: true}", "", policy.Locality{Disabled: new(true)})
}

func TestK41LocalityIsOnWhereNothingIsSaid(t *testing.T) {
	for body, want := range map[string]policy.Locality{
		"localityAwareness: {}":                {},
		"localityAwareness: null":              {},
		"{}":                                   {},
		"localityAwareness: {disabled: false}": {Disabled: new(false)},
	} {
		wantLocality(t, body, "", want)
	}
}

func TestK43LocalZoneAndCrossZoneWinOverDisabled(t *testing.T) {
	const warning = "warning spec.to[0].default.localityAwareness.disabled: " +
		"is not followed: localZone, crossZone and matchers win over it"
	wantLocality(t, "localityAwareness: {disabled: true, localZone: {affinityTags: [{key: rack}]}}", warning, policy.Locality{
		Disabled: new(false), Affinity: []policy.Affinity{{Key: "rack"}}, Failover: []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverNone}}},
	})
	wantLocality(t, "localityAwareness: {disabled: true, crossZone: {failover: [{to: {type: Any}}]}}", warning, policy.Locality{
		Disabled: new(false), Failover: []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverAny}}}, FailoverThreshold: new(policy.Number(50.0)),
	})
}

func TestK44LocalZoneWithoutCrossZoneStaysInTheZone(t *testing.T) {
	none := []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverNone}}}
	wantLocality(t, "localityAwareness: {localZone: {}}", "", policy.Locality{Disabled: new(false), Failover: none})
	wantLocality(t, "localityAwareness: {localZone: {affinityTags: [{key: k8s.io/node, weight: 9000}, {key: kuma.io/zone, weight: 9}]}}",
		"", policy.Locality{
			Disabled: new(false), Failover: none,
			Affinity: []policy.Affinity{
				{Key: "k8s.io/node", Weight: new(int64(9000))}, {Key: "topology.kubernetes.io/zone", Weight: new(int64(9))},
			},
		})
}

func TestK12AndK50FailoverRulesKeepTheirOrder(t *testing.T) {
	wantLocality(t, `
localityAwareness:
  crossZone:
    failover:
    - {from: {zones: [us-1, us-2]}, to: {type: Only, zones: [us-1, us-2]}}
    - {to: {type: AnyExcept, zones: [lab]}}
    - {from: {zones: [lab]}, to: {type: None}}
    failoverThreshold: {percentage: 70}
`, "", policy.Locality{
		Disabled: new(false), FailoverThreshold: new(policy.Number(70.0)),
		Failover: []policy.Failover{
			{From: &policy.FailoverFrom{Zones: []string{"us-1", "us-2"}}, To: policy.FailoverTo{Type: policy.FailoverOnly, Zones: []string{"us-1", "us-2"}}},
			{To: policy.FailoverTo{Type: policy.FailoverAnyExcept, Zones: []string{"lab"}}},
			{From: &policy.FailoverFrom{Zones: []string{"lab"}}, To: policy.FailoverTo{Type: policy.FailoverNone}},
		},
	})
}

func TestK50CrossZoneWithoutRulesNamesNoZone(t *testing.T) {
	for _, body := range []string{"localityAwareness: {crossZone: {}}", "localityAwareness: {crossZone: {failover: []}}"} {
		wantLocality(t, body, "", policy.Locality{
			Disabled: new(false), Failover: []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverNone}}}, FailoverThreshold: new(policy.Number(50.0)),
		})
	}
}

func TestK13TheThresholdIsANumberOrText(t *testing.T) {
	for text, want := range map[string]policy.Number{"70": 70, `"33.3"`: 33.3, "12.5": 12.5, `"100"`: 100} {
		got, _ := said(t, "localityAwareness: {crossZone: {failover: [{to: {type: Any}}], failoverThreshold: {percentage: "+text+"}}}")
		if p := got.Locality.FailoverThreshold; p == nil || *p != want {
			t.Errorf("%s: want %v, got %v", text, want, p)
		}
	}
}

func TestK04ToK08TheLoadBalancers(t *testing.T) {
	key := &policy.EndpointHashKey{Type: policy.HashKeyLabel, Key: new("kuma.io/hash")}
	for body, want := range map[string]policy.Conf{
		"loadBalancer: {type: RoundRobin}": {LoadBalancer: &policy.LoadBalancer{Type: policy.RoundRobin}},
		"loadBalancer: {type: Random}":     {LoadBalancer: &policy.LoadBalancer{Type: policy.Random}},
		`loadBalancer: {type: LeastRequest, leastRequest: {choiceCount: 4, activeRequestBias: "1.3"}}`: {
			LoadBalancer: &policy.LoadBalancer{
				Type:         policy.LeastRequest,
				LeastRequest: &policy.LeastRequestConf{ChoiceCount: new(int32(4)), ActiveRequestBias: new(policy.Number(1.3))},
			},
		},
		"loadBalancer: {type: LeastRequest, leastRequest: {activeRequestBias: 0}}": {
			LoadBalancer: &policy.LoadBalancer{
				Type: policy.LeastRequest, LeastRequest: &policy.LeastRequestConf{ActiveRequestBias: new(policy.Number(0.0))},
			},
		},
		"loadBalancer: {type: RingHash, ringHash: {hashFunction: XXHash}}": {
			LoadBalancer: &policy.LoadBalancer{
				Type: policy.RingHash, RingHash: &policy.RingHashConf{HashFunction: new(policy.XXHash)},
			},
			EndpointHashKey: key,
		},
		"loadBalancer: {type: Maglev, maglev: {tableSize: 65537}}": {
			LoadBalancer: &policy.LoadBalancer{
				Type: policy.Maglev, Maglev: &policy.MaglevConf{TableSize: new(int64(65537))},
			},
			EndpointHashKey: key,
		},
	} {
		t.Run(body, func(t *testing.T) { wantConf(t, body, want) })
	}
}

func TestK06BothSpellingsOfTheHashFunction(t *testing.T) {
	for name, want := range map[string]policy.HashFunction{
		"XX_HASH": policy.XXHash, "XXHash": policy.XXHash,
		"MURMUR_HASH_2": policy.MurmurHash2, "MurmurHash2": policy.MurmurHash2,
	} {
		got, _ := said(t, "loadBalancer: {type: RingHash, ringHash: {hashFunction: "+name+"}}")
		if got := got.LoadBalancer.RingHash.HashFunction; got == nil || *got != want {
			t.Errorf("%s: want %s, got %v", name, want, got)
		}
	}
}

func TestK09BothSpellingsOfHashPolicies(t *testing.T) {
	got, warnings := said(t, `
loadBalancer: {type: Maglev}
hashPolicies:
- {type: Header, terminal: true, header: {name: x-user}}
- {type: Cookie, cookie: {name: sid}}
- {type: Cookie, cookie: {name: sid, ttl: 0s, path: /shop}}
- {type: SourceIP}
- {type: SourceIP, connection: {sourceIP: true}}
- {type: SourceIP, connection: {sourceIP: false}}
- {type: Connection, connection: {sourceIP: true}}
- {type: Connection, connection: {sourceIP: false}}
- {type: Query, query: {name: a}}
- {type: QueryParameter, queryParameter: {name: b}}
- {type: FilterState, filterState: {key: k}}
`)
	want := []policy.HashPolicy{
		{Type: policy.HashHeader, Header: &policy.HeaderKey{Name: "x-user"}, Terminal: new(true)},
		{Type: policy.HashCookie, Cookie: &policy.CookieKey{Name: "sid"}},
		{Type: policy.HashCookie, Cookie: &policy.CookieKey{Name: "sid", TTL: new(policy.Duration(0)), Path: new("/shop")}},
		{Type: policy.HashSourceIP},
		{Type: policy.HashSourceIP},
		{Type: policy.HashSourceIP},
		{Type: policy.HashQueryParameter, QueryParameter: &policy.QueryParameterKey{Name: "a"}},
		{Type: policy.HashQueryParameter, QueryParameter: &policy.QueryParameterKey{Name: "b"}},
		{Type: policy.HashFilterState, FilterState: &policy.FilterStateKey{Key: "k"}},
	}
	if diff := cmp.Diff(want, got.HashPolicies); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const dropped = `warning spec.to[0].default.hashPolicies[5].connection.sourceIP: a policy that hashes nothing is left out
warning spec.to[0].default.hashPolicies[7].connection.sourceIP: a policy that hashes nothing is left out`
	if diff := cmp.Diff(dropped, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestK27HashPoliciesAreInOnePlace(t *testing.T) {
	const list = "hashPolicies: [{type: SourceIP}]"
	for _, kind := range []string{"ringHash", "maglev"} {
		body := "loadBalancer: {type: " + strings.ToUpper(kind[:1]) + kind[1:] + ", " + kind + ": {" + list + "}}\n"
		got, _ := said(t, body)
		if diff := cmp.Diff([]policy.HashPolicy{{Type: policy.HashSourceIP}}, got.HashPolicies); diff != "" {
			t.Errorf("nested (-want +got):\n%s", diff)
		}
		want := "refused spec.to[0].default.loadBalancer." + kind + ".hashPolicies: " +
			"hashPolicies are in two places: leave those beside loadBalancer"
		if diff := cmp.Diff(want, findings(t, body+list)); diff != "" {
			t.Errorf("both (-want +got):\n%s", diff)
		}
	}
}

func TestAnEmptyListIsSaid(t *testing.T) {
	wantConf(t, "hashPolicies: []", policy.Conf{HashPolicies: []policy.HashPolicy{}})
}

func TestS42AppendedMatchersComeAfterTheOthers(t *testing.T) {
	wantLocality(t, `
localityAwareness: {matchers: [{tagEqual: {name: kuma.io/zone, value: a}, weight: 3}]}
appendLocalityAwareness: {matchers: [{tagEqual: {name: tier, value: gold}, weight: 5}]}
`, "", policy.Locality{
		Disabled: new(false),
		Weights: []policy.Weight{
			{Key: "topology.kubernetes.io/zone", Value: "a", Weight: 3}, {Key: "tier", Value: "gold", Weight: 5},
		},
	})
}

// ruleOf reads a document of type MeshLoadBalancingStrategy with these references, and one entry that says nothing.
func ruleOf(t *testing.T, top, to string) (policy.Rule, string) {
	t.Helper()
	d := parse(t, "type: MeshLoadBalancingStrategy\nname: a\nspec:\n  targetRef: "+top+"\n  to: [{targetRef: "+to+
		", default: {hashPolicies: []}}]", mesh.Options{})
	if len(d.Rules) == 0 {
		return policy.Rule{}, render(d.Findings)
	}
	return d.Rules[0], render(d.Findings)
}

func TestS05AndK01WhoseRequestsADocumentIsAbout(t *testing.T) {
	in := func(key string, values ...string) policy.Requirement {
		return policy.Requirement{Key: key, Operator: policy.In, Values: values}
	}
	for top, want := range map[string]policy.Clients{
		"null":                                 {},
		"{kind: Mesh}":                         {},
		"{kind: Mesh, name: default}":          {},
		"{kind: MeshSubset}":                   {},
		"{kind: MeshService, name: web}":       {Service: &topology.ServiceName{Namespace: "default", Name: "web"}},
		"{kind: MeshService, name: w_s_svc_8}": {Service: &topology.ServiceName{Namespace: "s", Name: "w"}},
		"{kind: MeshService, name: web, namespace: shop}": {
			Service: &topology.ServiceName{Namespace: "shop", Name: "web"},
		},
		"{kind: MeshSubset, tags: {kuma.io/zone: a, tier: web}}": {
			Zones: []topology.Zone{"a"}, Pods: policy.Selector{in("tier", "web")},
		},
		"{kind: MeshSubset, tags: {kuma.io/zone: '*', version: '*'}}": {
			Pods: policy.Selector{{Key: "version", Operator: policy.Exists}},
		},
		"{kind: MeshSubset, tags: {k8s.kuma.io/namespace: shop, kuma.io/service: web_shop_svc_80}}": {
			Namespaces: policy.Selector{in("kubernetes.io/metadata.name", "shop")},
			Service:    &topology.ServiceName{Namespace: "shop", Name: "web"},
		},
		"{kind: MeshServiceSubset, name: web, tags: {version: v1}}": {
			Service: &topology.ServiceName{Namespace: "default", Name: "web"}, Pods: policy.Selector{in("version", "v1")},
		},
	} {
		got, warnings := ruleOf(t, top, "{kind: Mesh}")
		if diff := cmp.Diff(want, got.Clients); diff != "" || warnings != "" {
			t.Errorf("%s: %s\n(-want +got):\n%s", top, warnings, diff)
		}
	}
	if got, _ := ruleOf(t, "{kind: Mesh}", "{kind: Mesh}"); got.Target != (policy.Target{Kind: policy.TargetMesh}) {
		t.Errorf("want the mesh, got %v", got.Target)
	}
}

func TestS06AndK02WhatAnEntryIsAbout(t *testing.T) {
	for to, want := range map[string]policy.Target{
		"{kind: Mesh}":                       {Kind: policy.TargetMesh},
		"{kind: MeshService, name: backend}": {Kind: policy.TargetService, Name: "backend"},
		"{kind: MeshHTTPRoute, name: route}": {Kind: policy.TargetHTTPRoute, Namespace: "default", Name: "route"},
		"{kind: MeshService, name: backend_ns_svc_80}": {
			Kind: policy.TargetService, Namespace: "ns", Name: "backend", Section: "80",
		},
		"{kind: MeshService, name: backend_ns_svc}": {Kind: policy.TargetService, Namespace: "ns", Name: "backend"},
		"{kind: MeshService, name: backend, namespace: ns, sectionName: http}": {
			Kind: policy.TargetService, Namespace: "ns", Name: "backend", Section: "http",
		},
		"{kind: MeshMultiZoneService, name: backend, namespace: ns}": {
			Kind: policy.TargetServiceImport, Namespace: "ns", Name: "backend",
		},
		"{kind: MeshHTTPRoute, name: route.v1, namespace: ns, sectionName: by-query}": {
			Kind: policy.TargetHTTPRoute, Namespace: "ns", Name: "route.v1", Section: "by-query",
		},
	} {
		got, warnings := ruleOf(t, "{kind: Mesh}", to)
		if diff := cmp.Diff(want, got.Target); diff != "" || warnings != "" {
			t.Errorf("%s: %s\n(-want +got):\n%s", to, warnings, diff)
		}
	}
}

// Differs from the mesh, where the endpoints of such a service are of one zone: in Kubernetes they are of all.
func TestK24CrossZoneIsForServicesOfOnePort(t *testing.T) {
	d := parse(t, `
type: MeshLoadBalancingStrategy
name: a
spec:
  to:
  - targetRef: {kind: MeshService, name: backend, namespace: ns, sectionName: http}
    default: {localityAwareness: {crossZone: {failover: [{to: {type: Any}}]}}}
`, mesh.Options{})
	if d.Refused() {
		t.Error(render(d.Findings))
	}
}

func TestOneRuleForEachEntryInTheirOrder(t *testing.T) {
	d := parse(t, `
type: MeshLoadBalancing
name: a
to:
- {targetRef: {kind: Mesh}, default: {loadBalancer: {type: Random}}}
- {targetRef: {kind: MeshService, name: b}, default: {loadBalancer: {type: RoundRobin}}}
`, mesh.Options{Namespace: "shop"})
	if len(d.Rules) != 2 || d.Findings != nil {
		t.Fatalf("want two rules of a document without spec, got %d and %s", len(d.Rules), render(d.Findings))
	}
	for i, r := range d.Rules {
		if r.Origin.Entry != i || r.Origin.Name != "a" {
			t.Errorf("rule %d is of %v", i, r.Origin)
		}
	}
	if got := d.Rules[1].Target; got != (policy.Target{Kind: policy.TargetService, Namespace: "shop", Name: "b"}) {
		t.Errorf("want the namespace that was asked for, got %v", got)
	}
}

func TestWhatOthersWriteOnADocumentIsPassedOver(t *testing.T) {
	d := parse(t, `
type: MeshLoadBalancingStrategy
name: a
mesh: other
labels: {kuma.io/origin: zone}
creationTime: 2024-01-01T00:00:00Z
modificationTime: 2024-01-01T00:00:00Z
spec: {to: [{targetRef: {kind: Mesh}, default: {}}]}
`, mesh.Options{})
	const want = "warning mesh: weir knows one mesh: the document counts as if it were of mesh default"
	if diff := cmp.Diff(want, render(d.Findings)); diff != "" || len(d.Rules) != 1 {
		t.Errorf("%d rules (-want +got):\n%s", len(d.Rules), diff)
	}
}
