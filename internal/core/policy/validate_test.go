package policy_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/api/conf"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// findings gives what is found in a conf about a service, one line each: the path, with ? before it if it is a warning.
func findings(found []reason.Finding) string {
	var lines []string
	for _, f := range found {
		mark := ""
		if f.Severity == reason.Warning {
			mark = "?"
		}
		lines = append(lines, mark+f.Field)
	}
	return strings.Join(lines, " ")
}

func balancer(b policy.LoadBalancer) policy.Conf { return policy.Conf{LoadBalancer: &b} }

func locality(l policy.Locality) policy.Conf { return policy.Conf{Locality: l} }

func failover(rules ...policy.Failover) policy.Conf {
	return locality(policy.Locality{Failover: rules})
}

func affinity(entries ...policy.Affinity) policy.Conf {
	return locality(policy.Locality{Affinity: entries})
}

func hashes(h ...policy.HashPolicy) policy.Conf { return policy.Conf{HashPolicies: h} }

func ring(least, most *int64) policy.Conf {
	return balancer(policy.LoadBalancer{Type: policy.RingHash, RingHash: &policy.RingHashConf{MinRingSize: least, MaxRingSize: most}})
}

func table(size int64) policy.Conf {
	return balancer(policy.LoadBalancer{Type: policy.Maglev, Maglev: &policy.MaglevConf{TableSize: &size}})
}

func least(choices *int32, bias *policy.Number) policy.Conf {
	return balancer(policy.LoadBalancer{
		Type: policy.LeastRequest, LeastRequest: &policy.LeastRequestConf{ChoiceCount: choices, ActiveRequestBias: bias},
	})
}

func outliers(o policy.OutlierDetection) policy.Conf { return policy.Conf{OutlierDetection: &o} }

func slow(s policy.SlowStart) policy.Conf { return policy.Conf{SlowStart: &s} }

// and lays the fields of one conf over another.
func and(confs ...policy.Conf) policy.Conf {
	var c policy.Conf
	for _, next := range confs {
		c = policy.Merge(c, next)
	}
	return c
}

type validation struct {
	name string
	conf policy.Conf
	want string
}

// shared are the rows that hold in all dialects; own those of the CRD alone.
func shared() []validation {
	nan, infinite := policy.Number(math.NaN()), policy.Number(math.Inf(1))
	source := policy.HashPolicy{Type: policy.HashSourceIP}
	cookie := func(change func(*conf.CookieKey)) policy.Conf {
		c := conf.CookieKey{Name: "sid", TTL: new(policy.Duration(time.Hour)), Path: new("/")}
		change(&c)
		return hashes(policy.HashPolicy{Type: policy.HashCookie, Cookie: &c})
	}
	band := func(low, high policy.Number) policy.Conf {
		return locality(policy.Locality{Overflow: policy.Overflow{LoadBand: &policy.LoadBand{Low: low, High: high}}})
	}
	return []validation{
		{"nothing", policy.Conf{}, ""},
		{"S-10 a type that is not known", balancer(policy.LoadBalancer{Type: "Fastest"}), "loadBalancer.type"},
		{"S-10 no type", balancer(policy.LoadBalancer{}), "loadBalancer.type"},
		{"S-11 RoundRobin", algorithm(policy.RoundRobin), ""},
		{"S-12 Random", algorithm(policy.Random), ""},
		{"S-13 eight choices", least(new(int32(8)), nil), ""},
		{"K-05 one choice", least(new(int32(1)), nil), "loadBalancer.leastRequest.choiceCount"},
		{"K-05 very many choices", least(new(int32(101)), nil), "loadBalancer.leastRequest.choiceCount"},
		{"K-25 a negative bias", least(nil, new(policy.Number(-0.1))), "loadBalancer.leastRequest.activeRequestBias"},
		{"K-25 no bias", least(nil, new(policy.Number(0.0))), ""},
		{"K-25 a bias that is no number", least(nil, &nan), "loadBalancer.leastRequest.activeRequestBias"},
		{"K-25 an infinite bias", least(nil, &infinite), "loadBalancer.leastRequest.activeRequestBias"},
		{
			"S-14 a hash function that is not known",
			balancer(policy.LoadBalancer{Type: policy.RingHash, RingHash: &policy.RingHashConf{HashFunction: new(policy.HashFunction("MD5"))}}),
			"loadBalancer.ringHash.hashFunction",
		},
		{"S-15 S-16 the specification's sizes", ring(new(int64(64)), new(int64(1024))), ""},
		{"K-07 no entries", ring(new(int64(0)), nil), "loadBalancer.ringHash.minRingSize"},
		{"K-07 too many entries", ring(nil, new(int64(policy.MaxRingSize+1))), "loadBalancer.ringHash.maxRingSize"},
		{"K-07 as many as Envoy takes", ring(nil, new(int64(policy.MaxRingSize))), ""},
		{"K-30 min above max", ring(new(int64(65)), new(int64(64))), "loadBalancer.ringHash.minRingSize"},
		{"K-30 max below the default min", ring(nil, new(int64(64))), ""},
		{"S-18 K-08 K-30 a size that is not prime", table(100), "loadBalancer.maglev.tableSize"},
		{"K-08 a table of one", table(1), "loadBalancer.maglev.tableSize"},
		{"S-18 the largest size", table(policy.MaxTableSize), ""},
		{"S-18 beyond the largest", table(5_000_077), "loadBalancer.maglev.tableSize"},
		{
			"K-30 blocks of other types", balancer(policy.LoadBalancer{
				Type: policy.Maglev, LeastRequest: &policy.LeastRequestConf{}, RingHash: &policy.RingHashConf{}, Maglev: &policy.MaglevConf{},
			}), "loadBalancer.leastRequest loadBalancer.ringHash",
		},

		{"S-20 every type", hashes(
			hashOf(policy.HashHeader, "header-name"), hashOf(policy.HashHeader, ":authority"),
			hashOf(policy.HashCookie, "session"), source,
			hashOf(policy.HashQueryParameter, "param"),
			hashOf(policy.HashFilterState, "objectNameInFilterState"),
		), ""},
		{"K-26 a header without a name", hashes(hashOf(policy.HashHeader, "")), "hashPolicies[0].header.name"},
		{"K-26 a cookie without a name", cookie(func(c *conf.CookieKey) { c.Name = "" }), "hashPolicies[0].cookie.name"},
		{"K-26 a query without a name", hashes(source, hashOf(policy.HashQueryParameter, "")), "hashPolicies[1].queryParameter.name"},
		{"K-26 a filter state without a key", hashes(hashOf(policy.HashFilterState, "")), "hashPolicies[0].filterState.key"},
		{"K-26 a path that is not absolute", cookie(func(c *conf.CookieKey) { c.Path = new("a") }), "hashPolicies[0].cookie.path"},
		{"a path that would end the attribute", cookie(func(c *conf.CookieKey) { c.Path = new("/; Domain=x") }), "hashPolicies[0].cookie.path"},
		{"a path with a line break", cookie(func(c *conf.CookieKey) { c.Path = new("/\r\nX: y") }), "hashPolicies[0].cookie.path"},
		{"a very long path", cookie(func(c *conf.CookieKey) { c.Path = new("/" + strings.Repeat("a", 1024)) }), "hashPolicies[0].cookie.path"},
		{"a path of no cookie", cookie(func(c *conf.CookieKey) { c.TTL = nil }), "?hashPolicies[0].cookie.path"},
		{"a session cookie", cookie(func(c *conf.CookieKey) { c.TTL = new(policy.Duration(0)) }), ""},
		{"a negative ttl", cookie(func(c *conf.CookieKey) { c.TTL = new(policy.Duration(-time.Second)) }), "hashPolicies[0].cookie.ttl"},
		{"a ttl that is too long", cookie(func(c *conf.CookieKey) { c.TTL = new(policy.Duration(math.MaxInt64)) }), "hashPolicies[0].cookie.ttl"},
		{"a ttl of a part of a second", cookie(func(c *conf.CookieKey) { c.TTL = new(policy.Duration(1500 * time.Millisecond)) }), "?hashPolicies[0].cookie.ttl"},
		{"a cookie's name that is none", cookie(func(c *conf.CookieKey) { c.Name = "a=b" }), "hashPolicies[0].cookie.name"},
		{"a header's name that is none", hashes(hashOf(policy.HashHeader, "a b")), "hashPolicies[0].header.name"},
		{"a name of 257 bytes", hashes(hashOf(policy.HashQueryParameter, strings.Repeat("q", 257))), "hashPolicies[0].queryParameter.name"},
		{"K-30 a cookie of a header", hashes(policy.HashPolicy{Type: policy.HashHeader, Header: &conf.HeaderKey{Name: "a"}, Cookie: &conf.CookieKey{Name: "a"}}), "hashPolicies[0].cookie"},
		{"K-30 a name of a source", hashes(policy.HashPolicy{Type: policy.HashSourceIP, Header: &conf.HeaderKey{Name: "a"}}), "hashPolicies[0].header"},
		{"K-26 a header without its block", hashes(policy.HashPolicy{Type: policy.HashHeader}), "hashPolicies[0].header"},
		{"K-09 a type that is not known", hashes(policy.HashPolicy{Type: "Body"}, policy.HashPolicy{}), "hashPolicies[0].type hashPolicies[1].type"},
		{"what comes after a hash that is final", hashes(policy.HashPolicy{Type: policy.HashSourceIP, Terminal: new(true)}, source), "?hashPolicies[1]"},
		{"too many", hashes(slices.Repeat([]policy.HashPolicy{source}, 17)...), "hashPolicies"},
		{"hash policies of a balancer that does not hash", and(algorithm(policy.Random), hashes(source)), "?hashPolicies"},
		{"hash policies of whatever holds", hashes(source), ""},
		{"hash policies of one that hashes", and(algorithm(policy.Maglev), hashes(source)), ""},

		{"S-30 S-31 hash keys", policy.Conf{EndpointHashKey: &policy.EndpointHashKey{Type: policy.HashKeyLabel, Key: new("kuma.io/hash")}}, ""},
		{"a label without a key", policy.Conf{EndpointHashKey: &policy.EndpointHashKey{Type: policy.HashKeyLabel}}, "endpointHashKey.key"},
		{"an address with a key", policy.Conf{EndpointHashKey: &policy.EndpointHashKey{Key: new("a"), Type: policy.HashKeyAddress}}, "endpointHashKey.key"},
		{"a hash key that is not known", policy.Conf{EndpointHashKey: &policy.EndpointHashKey{Type: "IP"}}, "endpointHashKey.type"},
		{
			"a hash key that nothing hashes", and(algorithm(policy.Random), policy.Conf{EndpointHashKey: &policy.EndpointHashKey{Type: policy.HashKeyPodName}}),
			"?endpointHashKey",
		},

		{"K-20 zones of Any", failover(to(policy.FailoverAny, "a")), "locality.failover[0].to.zones"},
		{"K-20 zones of None", failover(to(policy.FailoverNone, "a")), "locality.failover[0].to.zones"},
		{"K-20 Only without zones", failover(to(policy.FailoverOnly)), "locality.failover[0].to.zones"},
		{"K-20 AnyExcept without zones", failover(to(policy.FailoverAnyExcept)), "locality.failover[0].to.zones"},
		{"K-20 a type that is not known", failover(to("Some")), "locality.failover[0].to.type"},
		{"K-20 no type", failover(to("")), "locality.failover[0].to.type"},
		{"K-21 from nowhere", failover(from(to(policy.FailoverAny))), "locality.failover[0].from.zones"},
		{"K-21 from a zone without a name", failover(from(to(policy.FailoverAny), "a", "")), "locality.failover[0].from.zones[1]"},
		{"to a zone without a name", failover(to(policy.FailoverOnly, "")), "locality.failover[0].to.zones[0]"},
		{"K-53 after an unconditional None", failover(to(policy.FailoverNone), to(policy.FailoverAny)), "?locality.failover[1]"},
		{"K-53 after an unconditional Any", failover(to(policy.FailoverAny), from(to(policy.FailoverNone), "a")), "?locality.failover[1]"},
		{
			"K-53 after a None for the same clients", failover(from(to(policy.FailoverNone), "a", "b"), from(to(policy.FailoverAny), "b"), from(to(policy.FailoverAny), "b", "c")),
			"?locality.failover[1]",
		},
		{"too many rules", failover(slices.Repeat([]policy.Failover{to(policy.FailoverOnly, "a")}, 33)...), "locality.failover"},
		{"too many zones", failover(to(policy.FailoverOnly, slices.Repeat([]string{"a"}, 65)...)), "locality.failover[0].to.zones"},

		{"K-22 no key", affinity(policy.Affinity{}), "locality.affinity[0].key"},
		{"K-22 a weight of 0", affinity(policy.Affinity{Key: "a", Weight: new(int64(0))}), "locality.affinity[0].weight"},
		{"K-22 a weight in one of two", affinity(policy.Affinity{Key: "a", Weight: new(int64(1))}, policy.Affinity{Key: "b"}), "locality.affinity"},
		{"K-22 weights that do not fit", affinity(policy.Affinity{Key: "a", Weight: new(int64(math.MaxUint32))}, policy.Affinity{Key: "b", Weight: new(int64(1))}), "locality.affinity"},
		{"K-30 too many affinities", affinity(slices.Repeat([]policy.Affinity{{Key: "a"}}, 9)...), "locality.affinity" + strings.Repeat(" ?locality.affinity[#]", 7)},
		{"S-42 matchers", locality(policy.Locality{Weights: []policy.Weight{{Key: "kuma.io/zone", Value: "us-west", Weight: 1}}}), ""},
		{"S-42 a weight of nothing", locality(policy.Locality{Weights: []policy.Weight{{}}}), "locality.weights[0].key locality.weights[0].value locality.weights[0].weight"},
		{
			"weights beside affinity", and(affinity(policy.Affinity{Key: "a"}), locality(policy.Locality{Weights: []policy.Weight{{Key: "a", Value: "b", Weight: 1}}})),
			"locality.weights",
		},
		{"K-23 a threshold of 0", locality(policy.Locality{FailoverThreshold: new(policy.Number(0.0))}), "locality.failoverThreshold"},
		{"K-23 a threshold of 100", locality(policy.Locality{FailoverThreshold: new(policy.Number(100.0))}), ""},
		{"K-23 a threshold above 100", locality(policy.Locality{FailoverThreshold: new(policy.Number(100.1))}), "locality.failoverThreshold"},
		{"K-23 a threshold that is no number", locality(policy.Locality{FailoverThreshold: &nan}), "locality.failoverThreshold"},

		{"a cap of nothing more", locality(policy.Locality{MaxSkew: new(policy.Number(1))}), ""},
		{"a cap below the mean", locality(policy.Locality{MaxSkew: new(policy.Number(0.9))}), "locality.maxSkew"},
		{"a cap that is no number", locality(policy.Locality{MaxSkew: &nan}), "locality.maxSkew"},
		{"a cap without an end", locality(policy.Locality{MaxSkew: &infinite}), "locality.maxSkew"},

		{"a band", band(0.8, 2), ""},
		{"a band from 0", band(0, 2), "locality.overflow.loadBand.low"},
		{"a band upside down", band(2, 2), "locality.overflow.loadBand"},
		{"a band without an end", band(1, infinite), "locality.overflow.loadBand.high"},
		{"a mode that is not known", locality(policy.Locality{Overflow: policy.Overflow{Mode: new(policy.OverflowMode("Off"))}}), "locality.overflow.mode"},
		{"a band of another mode", and(band(1, 2), locality(policy.Locality{Overflow: policy.Overflow{Mode: new(policy.OverflowDisabled)}})), "locality.overflow.loadBand"},
		{"a cost", locality(policy.Locality{Costs: []policy.Cost{{From: "a", To: "b", Cost: 0}}}), ""},
		{"a cost below 0", locality(policy.Locality{Costs: []policy.Cost{{From: "a", To: "", Cost: -1}}}), "locality.costs[0].to locality.costs[0].cost"},
		{"two costs of one way", locality(policy.Locality{Costs: []policy.Cost{{From: "a", To: "b"}, {From: "b", To: "a"}, {From: "a", To: "b"}}}), "locality.costs[2]"},
		{"disabled beside a zone key", locality(policy.Locality{Disabled: new(true), ZoneKey: new("a")}), "?locality.zoneKey"},
		{"not disabled", and(failover(to(policy.FailoverNone)), locality(policy.Locality{Disabled: new(false)})), ""},

		{"detectors", outliers(policy.OutlierDetection{
			Interval: new(policy.Duration(time.Second)), BaseEjectionTime: new(policy.Duration(time.Second)), MaxEjectionTime: new(policy.Duration(time.Second)), MaxEjectionPercent: new(policy.Number(0.0)),
			Consecutive: &policy.Consecutive{ServerErrors: new(int32(0))}, SuccessRate: &policy.SuccessRate{Stdev: new(policy.Number(1.9))},
			FailurePercentage: &policy.FailurePercentage{Threshold: new(policy.Number(100.0))},
		}), ""},
		{"times of 0", outliers(policy.OutlierDetection{Interval: new(policy.Duration(0)), BaseEjectionTime: new(policy.Duration(-time.Second))}), "outlierDetection.interval outlierDetection.baseEjectionTime"},
		{"a longest pause below the first", outliers(policy.OutlierDetection{BaseEjectionTime: new(policy.Duration(time.Minute)), MaxEjectionTime: new(policy.Duration(time.Second))}), "outlierDetection.maxEjectionTime"},
		{"more than all", outliers(policy.OutlierDetection{MaxEjectionPercent: new(policy.Number(101.0))}), "outlierDetection.maxEjectionPercent"},
		{"counts below 0", outliers(policy.OutlierDetection{Consecutive: &policy.Consecutive{GatewayErrors: new(int32(-1)), LocalErrors: new(int32(-1))}}), "outlierDetection.consecutive.gatewayErrors outlierDetection.consecutive.localErrors"},
		{"a deviation of 0", outliers(policy.OutlierDetection{SuccessRate: &policy.SuccessRate{Stdev: new(policy.Number(0.0)), MinimumHosts: new(int32(-1))}}), "outlierDetection.successRate.stdev outlierDetection.successRate.minimumHosts"},
		{"failures below 0", outliers(policy.OutlierDetection{FailurePercentage: &policy.FailurePercentage{Threshold: new(policy.Number(-1.0)), RequestVolume: new(int32(-1))}}), "outlierDetection.failurePercentage.threshold outlierDetection.failurePercentage.requestVolume"},

		{"a slow start", and(algorithm(policy.LeastRequest), slow(policy.SlowStart{Window: policy.Duration(time.Second)})), ""},
		{"a slow start of whatever holds", slow(policy.SlowStart{Window: policy.Duration(time.Second)}), ""},
		{"a slow start of a ring", and(algorithm(policy.RingHash), slow(policy.SlowStart{Window: policy.Duration(time.Second)})), "slowStart"},
		{"a slow start of nothing", slow(policy.SlowStart{MinWeightPercent: new(policy.Number(101.0)), Aggression: new(policy.Number(0.0))}), "slowStart.window slowStart.minWeightPercent slowStart.aggression"},
		{"no panic", policy.Conf{PanicThreshold: new(policy.Number(0.0))}, ""},
		{"a panic above 100", policy.Conf{PanicThreshold: new(policy.Number(100.5))}, "panicThreshold"},
	}
}

func own() []validation {
	off := policy.Locality{Disabled: new(true)}
	with := func(c policy.Conf) policy.Conf { return and(c, locality(off)) }
	return []validation{
		{"disabled and affinity", with(affinity(policy.Affinity{Key: "a"})), "locality.affinity"},
		{"disabled and failover", with(failover(to(policy.FailoverAny))), "locality.failover"},
		{"disabled and overflow", with(locality(policy.Locality{Overflow: policy.Overflow{Mode: new(policy.OverflowAdaptive)}})), "locality.overflow"},
		{"disabled and a threshold", with(locality(policy.Locality{FailoverThreshold: new(policy.Number(50.0))})), "locality.failoverThreshold"},
		{"disabled and a cap", with(locality(policy.Locality{MaxSkew: new(policy.Number(2))})), "locality.maxSkew"},
		{"a threshold below 1", locality(policy.Locality{FailoverThreshold: new(policy.Number(0.5))}), "locality.failoverThreshold"},
		{"a key that no label has", affinity(policy.Affinity{Key: "a/b/c"}), "locality.affinity[0].key"},
		{"a zone that none can be", failover(to(policy.FailoverOnly, "a b")), "locality.failover[0].to.zones[0]"},
	}
}

func meshOnly() []validation {
	off := policy.Locality{Disabled: new(true)}
	return []validation{
		{"K-43 disabled beside what wins over it", and(affinity(policy.Affinity{Key: "a"}), failover(to(policy.FailoverAny)), locality(off)), "?locality.disabled ?locality.disabled"},
		{"K-23 a threshold below 1", locality(policy.Locality{FailoverThreshold: new(policy.Number(0.5))}), ""},
		{"a tag that no label could be", affinity(policy.Affinity{Key: "a/b:c"}), ""},
	}
}

func TestValidateRows(t *testing.T) {
	service := policy.Target{Kind: policy.TargetService, Namespace: "shop", Name: "web"}
	check := func(t *testing.T, d policy.Dialect, rows []validation) {
		t.Helper()
		for _, c := range rows {
			t.Run(string(d)+" "+c.name, func(t *testing.T) {
				found := policy.Validate(&c.conf, policy.Context{Target: service, Dialect: d})
				got := findings(found)
				if strings.Contains(c.want, "#") { // entries 1 to 7
					for i := range 8 {
						got = strings.Replace(got, "["+string(rune('0'+i))+"]", "[#]", 1)
					}
				}
				if got != c.want {
					t.Errorf("want %q, got %q: %v", c.want, got, found)
				}
				for _, f := range found {
					if f.Message == "" || len(f.Message) > 500 {
						t.Errorf("%s: message %q", f.Field, f.Message)
					}
				}
			})
		}
	}
	check(t, policy.DialectCRD, append(shared(), own()...))
	check(t, policy.DialectMeshLoadBalancing, append(shared(), meshOnly()...))
	check(t, policy.DialectMeshLoadBalancingStrategy, append(shared(), meshOnly()...))
}

func TestK28RouteTargetsTakeHashPoliciesOnly(t *testing.T) {
	all := and(algorithm(policy.RingHash), hashes(policy.HashPolicy{Type: policy.HashSourceIP}), failover(to(policy.FailoverAny)),
		outliers(policy.OutlierDetection{}), policy.Conf{SlowStart: &policy.SlowStart{}, PanicThreshold: new(policy.Number(1.0)), EndpointHashKey: &policy.EndpointHashKey{}})
	for kind, want := range map[policy.TargetKind]string{
		policy.TargetHTTPRoute: "loadBalancer endpointHashKey locality outlierDetection slowStart panicThreshold",
		policy.TargetGRPCRoute: "loadBalancer endpointHashKey locality outlierDetection slowStart panicThreshold",
	} {
		if got := findings(policy.Validate(&all, policy.Context{Target: policy.Target{Kind: kind}})); got != want {
			t.Errorf("%s: want %q, got %q", kind, want, got)
		}
	}
	route := policy.Context{Target: policy.Target{Kind: policy.TargetHTTPRoute}}
	silent, sound := policy.Conf{}, hashes(policy.HashPolicy{Type: policy.HashSourceIP})
	if got := findings(policy.Validate(&silent, route)) + ";" + findings(policy.Validate(&sound, route)); got != "?hashPolicies;" {
		t.Errorf("got %q", got)
	}
}

func TestValidateRules(t *testing.T) {
	rule := func(change func(*policy.Rule)) policy.Rule {
		r := aboutWeb("p", policy.Conf{})
		change(&r)
		return r
	}
	target := func(t policy.Target) policy.Rule { return rule(func(r *policy.Rule) { r.Target = t }) }
	clients := func(c policy.Clients) policy.Rule { return rule(func(r *policy.Rule) { r.Clients = c }) }
	require := func(q policy.Requirement) policy.Rule { return clients(policy.Clients{Pods: policy.Selector{q}}) }
	meshDoc := policy.Origin{Dialect: policy.DialectMeshLoadBalancing, Name: "m"}
	for name, c := range map[string]struct {
		rule policy.Rule
		want string
	}{
		"sound":                       {rule(func(*policy.Rule) {}), ""},
		"the conf is judged, too":     {rule(func(r *policy.Rule) { r.Conf = table(100) }), "loadBalancer.maglev.tableSize"},
		"the mesh":                    {meshWide("p", policy.Conf{}), ""},
		"the mesh, from elsewhere":    {target(policy.Target{Kind: policy.TargetMesh}), "targetRefs[0]"},
		"the mesh, from its document": {rule(func(r *policy.Rule) { r.Origin, r.Target = meshDoc, policy.Target{Kind: policy.TargetMesh} }), ""},
		"a section of the mesh": {rule(func(r *policy.Rule) {
			r.Origin, r.Target = meshDoc, policy.Target{Kind: policy.TargetMesh, Section: "x"}
		}), "targetRefs[0].sectionName"},
		"its own namespace":              {target(policy.Target{Kind: policy.TargetNamespace, Namespace: "shop", Name: "shop"}), ""},
		"another namespace":              {target(policy.Target{Kind: policy.TargetNamespace, Namespace: "bank", Name: "bank"}), "targetRefs[0].name"},
		"a service without a name":       {target(policy.Target{Kind: policy.TargetService, Namespace: "shop"}), "targetRefs[0].name"},
		"a service without a namespace":  {target(policy.Target{Kind: policy.TargetService, Name: "web"}), "targetRefs[0].namespace"},
		"one of the mesh's documents":    {rule(func(r *policy.Rule) { r.Origin, r.Target.Namespace = meshDoc, "" }), ""},
		"a kind that is not known":       {target(policy.Target{Kind: "Pod"}), "targetRefs[0].kind"},
		"no kind":                        {rule(func(r *policy.Rule) { r.Origin.Entry, r.Target = 3, policy.Target{} }), "targetRefs[3].kind"},
		"a consumer's":                   {rule(func(r *policy.Rule) { r.Origin.Namespace, r.Clients.Namespace = "zoo", "zoo" }), ""},
		"a consumer's, for all":          {rule(func(r *policy.Rule) { r.Origin.Namespace = "zoo" }), "clients"},
		"an operator's, for all":         {rule(func(r *policy.Rule) { r.Origin.Namespace = policy.RootNamespace }), ""},
		"a route of another namespace":   {target(policy.Target{Kind: policy.TargetHTTPRoute, Namespace: "bank", Name: "r"}), "targetRefs[0].namespace ?hashPolicies"},
		"a zone without a name":          {clients(policy.Clients{Zones: []topology.Zone{"a", ""}}), "clients.zones[1]"},
		"a service of clients, unnamed":  {clients(policy.Clients{Service: &topology.ServiceName{}}), "clients.service"},
		"In without values":              {require(policy.Requirement{Key: "a", Operator: policy.In}), "clients.podSelector"},
		"Exists with values":             {require(policy.Requirement{Key: "a", Operator: policy.Exists, Values: []string{"b"}}), "clients.podSelector"},
		"an operator that is not known":  {require(policy.Requirement{Key: "a", Operator: "Gt"}), "clients.podSelector"},
		"a requirement without a key":    {require(policy.Requirement{Operator: policy.Exists}), "clients.podSelector"},
		"a value that no label has":      {require(policy.Requirement{Key: "a", Operator: policy.In, Values: []string{"a b"}}), "clients.podSelector"},
		"too many requirements":          {clients(policy.Clients{Namespaces: slices.Repeat(policy.Selector{{Key: "a", Operator: policy.Exists}}, 33)}), "clients.namespaceSelector"},
		"a key with a prefix":            {require(policy.Requirement{Key: "app.kubernetes.io/name", Operator: policy.Exists}), ""},
		"a key with a prefix that is no": {require(policy.Requirement{Key: "App_x/name", Operator: policy.Exists}), "clients.podSelector"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := findings(c.rule.Validate()); got != c.want {
				t.Errorf("want %q, got %q", c.want, got)
			}
		})
	}
}

func TestPrimes(t *testing.T) {
	sieve := make([]bool, 10_000) // true: composite
	for n := 2; n < len(sieve); n++ {
		for m := 2 * n; m < len(sieve); m += n {
			sieve[m] = true
		}
	}
	for n, composite := range sieve {
		if want := n >= 2 && !composite; policy.IsPrime(int64(n)) != want {
			t.Errorf("IsPrime(%d) = %t", n, !want)
		}
	}
	for n, want := range map[int64]int64{100: 101, 0: 2, 2: 2, 65_537: 65_537, 5_000_000: 5_000_011} {
		if got, ok := policy.NextPrime(n); got != want || !ok {
			t.Errorf("NextPrime(%d) = %d, %t", n, got, ok)
		}
	}
	if got, ok := policy.NextPrime(policy.MaxTableSize + 1); ok {
		t.Errorf("a table of %d", got)
	}
	if !policy.IsPrime(math.MaxUint32-4) || policy.IsPrime(math.MaxInt64-1) {
		t.Error("large numbers")
	}
}

// FuzzValidate fills a rule with whatever fits its types. What is found sound resolves to settings that are, alone and with
// all else that was sound.
func FuzzValidate(f *testing.F) {
	f.Add(uint64(1), "a", int64(5), 0.5)
	f.Add(uint64(2), "/;\x00", int64(-1), math.NaN())
	f.Fuzz(func(t *testing.T, seed uint64, text string, whole int64, number float64) {
		filler := filler{rand.New(rand.NewPCG(seed, 1)), text, whole, number}
		var r policy.Rule
		filler.fill(reflect.ValueOf(&r).Elem())
		first, second := r.Validate(), r.Validate()
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("findings differ from time to time\n%s", diff)
		}
		for _, f := range first {
			if f.Field == "" || f.Message == "" || f.Severity != reason.Refused && f.Severity != reason.Warning {
				t.Fatalf("finding %+v", f)
			}
		}
		r.Target = policy.Target{Kind: policy.TargetMesh}
		if reason.AnyRefused(policy.Validate(&r.Conf, policy.Context{Target: r.Target, Dialect: r.Origin.Dialect})) {
			r.Conf = policy.Conf{}
		}
		got := policy.NewSet(policy.Set{Rules: []policy.Rule{r}}).Resolve(policy.Client{}, web)
		checkSane(t, seed, &got)
		got.Place(policy.Spot{Zone: "a"}, policy.Spot{Zone: "b"})
	})
}

// filler fills values with a text, numbers, words that weir knows, and nothing.
type filler struct {
	random *rand.Rand
	text   string
	whole  int64
	number float64
}

func (f filler) fill(v reflect.Value) {
	if f.random.IntN(3) == 0 && v.Kind() != reflect.Struct {
		return
	}
	words := []string{
		f.text, "", "Maglev", "RingHash", "LeastRequest", "Header", "Cookie", "SourceIP", "Any", "None", "Only", "In", "Label",
		"LoadBand", "Mesh", "Service", "HTTPRoute", "LoadBalancingPolicy", "MeshLoadBalancing", "weir-system",
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(words[f.random.IntN(len(words))])
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(f.whole)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(uint32(f.whole)))
	case reflect.Float64:
		v.SetFloat(f.number)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), f.random.IntN(4), 4))
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for _, field := range v.Fields() {
			f.fill(field)
		}
	default:
		panic("a kind that the model did not have: " + v.Kind().String())
	}
}
