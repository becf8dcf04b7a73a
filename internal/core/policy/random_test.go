package policy_test

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/weir-lb/weir/api/conf"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
)

// generator makes random values with few distinct names, so that rules meet.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, 7))} }

func one[T any](g generator, values ...T) T { return values[g.IntN(len(values))] }

// some gives a pointer to a value in one of two cases.
func some[T any](g generator, value T) *T {
	if g.IntN(2) == 0 {
		return nil
	}
	return &value
}

// list gives nil, an empty list or up to three values.
func list[T any](g generator, value func() T) []T {
	if g.IntN(2) == 0 {
		return nil
	}
	values := []T{}
	for range g.IntN(4) {
		values = append(values, value())
	}
	return values
}

func (g generator) zone() topology.Zone { return one[topology.Zone](g, "a", "b", "c") }

func (g generator) conf() policy.Conf {
	return policy.Conf{
		LoadBalancer: some(g, g.loadBalancer()),
		HashPolicies: list(g, g.hashPolicy),
		EndpointHashKey: some(g, policy.EndpointHashKey{
			Type: one(g, policy.HashKeyAddress, policy.HashKeyPodName, policy.HashKeyLabel), Key: one(g, nil, new("k")),
		}),
		Locality:         g.locality(),
		OutlierDetection: some(g, g.outlier()),
		SlowStart:        some(g, policy.SlowStart{Window: g.duration(), MinWeightPercent: some(g, g.number()), Aggression: some(g, g.number())}),
		PanicThreshold:   some(g, g.number()),
	}
}

func (g generator) number() policy.Number { return policy.Number(1 + g.IntN(100)) }
func (g generator) duration() policy.Duration {
	return policy.Duration(time.Duration(1+g.IntN(100)) * time.Second)
}

func (g generator) loadBalancer() policy.LoadBalancer {
	b := policy.LoadBalancer{
		Type: one(g, policy.RoundRobin, policy.LeastRequest, policy.RingHash, policy.Maglev, policy.Random),
	}
	switch b.Type {
	case policy.LeastRequest:
		b.LeastRequest = some(g, policy.LeastRequestConf{ChoiceCount: some(g, int32(2+g.IntN(9))), ActiveRequestBias: some(g, g.number())})
	case policy.RingHash:
		b.RingHash = some(g, policy.RingHashConf{
			HashFunction: one(g, nil, new(policy.XXHash), new(policy.MurmurHash2)),
			MinRingSize:  some(g, int64(1+g.IntN(100))), MaxRingSize: some(g, int64(100+g.IntN(100))),
		})
	case policy.Maglev:
		b.Maglev = some(g, policy.MaglevConf{TableSize: some(g, one[int64](g, 17, 251, 65537))})
	default: // no block
	}
	return b
}

func (g generator) hashPolicy() policy.HashPolicy {
	h := policy.HashPolicy{Type: policy.HashSourceIP}
	switch g.IntN(5) {
	case 0:
		h = hashOf(policy.HashHeader, one(g, "x-user", "x-tenant"))
	case 1:
		h = hashOf(policy.HashCookie, "sid")
		h.Cookie.TTL, h.Cookie.Path = some(g, g.duration()), one(g, nil, new("/"), new("/a"))
	case 2:
		h = hashOf(policy.HashQueryParameter, "q")
	case 3:
		h = hashOf(policy.HashFilterState, "k")
	}
	h.Terminal = some(g, g.IntN(2) == 0)
	return h
}

// hashOf gives a step that hashes what is named.
func hashOf(kind policy.HashPolicyType, name string) policy.HashPolicy {
	h := policy.HashPolicy{Type: kind}
	switch kind {
	case policy.HashHeader:
		h.Header = &conf.HeaderKey{Name: name}
	case policy.HashCookie:
		h.Cookie = &conf.CookieKey{Name: name}
	case policy.HashQueryParameter:
		h.QueryParameter = &conf.QueryParameterKey{Name: name}
	case policy.HashFilterState:
		h.FilterState = &conf.FilterStateKey{Key: name}
	case policy.HashSourceIP:
	}
	return h
}

func (g generator) locality() policy.Locality {
	return policy.Locality{
		Disabled: some(g, g.IntN(3) == 0),
		ZoneKey:  some(g, one(g, policy.DefaultZoneKey, "topology.kubernetes.io/region")),
		Affinity: list(g, func() policy.Affinity {
			return policy.Affinity{Key: one(g, "kubernetes.io/hostname", "rack"), Weight: some(g, int64(1+g.IntN(9)))}
		}),
		Weights: list(g, func() policy.Weight {
			return policy.Weight{Key: "rack", Value: one(g, "r1", "r2"), Weight: int64(1 + g.IntN(9))}
		}),
		Failover:          list(g, g.failover),
		FailoverThreshold: some(g, g.number()),
		MaxSkew:           some(g, g.number()),
		Overflow: policy.Overflow{
			Mode:     some(g, one(g, policy.OverflowAdaptive, policy.OverflowLoadBand, policy.OverflowDisabled)),
			LoadBand: some(g, policy.LoadBand{Low: g.number(), High: 100 + g.number()}),
		},
		Costs: list(g, func() policy.Cost { return policy.Cost{From: string(g.zone()), To: string(g.zone()), Cost: g.number()} }),
	}
}

func (g generator) failover() policy.Failover {
	f := policy.Failover{To: policy.FailoverTo{
		Type: one(g, policy.FailoverAny, policy.FailoverOnly, policy.FailoverOnly, policy.FailoverAnyExcept, policy.FailoverNone),
	}}
	if g.IntN(2) == 0 {
		f = from(f, string(g.zone()))
	}
	if f.To.Type == policy.FailoverOnly || f.To.Type == policy.FailoverAnyExcept {
		f.To.Zones = []string{string(g.zone())}
	}
	return f
}

func (g generator) outlier() policy.OutlierDetection {
	return policy.OutlierDetection{
		Interval: some(g, g.duration()), BaseEjectionTime: some(g, g.duration()), MaxEjectionTime: some(g, g.duration()),
		MaxEjectionPercent: some(g, g.number()),
		Consecutive: some(g, policy.Consecutive{
			ServerErrors: some(g, int32(g.IntN(9))), GatewayErrors: some(g, int32(g.IntN(9))), LocalErrors: some(g, int32(g.IntN(9))),
		}),
		SuccessRate: some(g, policy.SuccessRate{
			Stdev: some(g, g.number()), MinimumHosts: some(g, int32(g.IntN(9))), RequestVolume: some(g, int32(g.IntN(9))),
		}),
		FailurePercentage: some(g, policy.FailurePercentage{
			Threshold: some(g, g.number()), MinimumHosts: some(g, int32(g.IntN(9))), RequestVolume: some(g, int32(g.IntN(9))),
		}),
	}
}

func (g generator) selector() policy.Selector {
	return list(g, func() policy.Requirement {
		q := policy.Requirement{Key: one(g, "app", "tier"), Operator: one(g, policy.In, policy.NotIn, policy.Exists, policy.DoesNotExist)}
		if q.Operator == policy.In || q.Operator == policy.NotIn {
			q.Values = one(g, []string{"x"}, []string{"y", "z"})
		}
		return q
	})
}

func (g generator) labels() policy.Labels {
	labels := policy.Labels{}
	for _, key := range []string{"app", "tier", "rack"} {
		if g.IntN(2) == 0 {
			labels[key] = one(g, "x", "y", "z", "r1")
		}
	}
	return labels
}

func (g generator) clients() policy.Clients {
	if g.IntN(2) == 0 {
		return policy.Clients{}
	}
	return policy.Clients{
		Zones:      one(g, nil, []topology.Zone{g.zone()}),
		Namespace:  one(g, "", "", "shop"),
		Namespaces: one(g, nil, nil, g.selector()),
		Pods:       one(g, nil, g.selector()),
		Service:    one(g, nil, nil, &topology.ServiceName{Namespace: "shop", Name: "web"}),
	}
}

func (g generator) rule(entry int) policy.Rule {
	r := policy.Rule{
		Origin: policy.Origin{
			Dialect:   one(g, policy.DialectCRD, policy.DialectMeshLoadBalancing, policy.DialectMeshLoadBalancingStrategy),
			Namespace: one(g, "shop", "bank", policy.RootNamespace),
			Name:      one(g, "p", "q", "r") + strconv.Itoa(g.IntN(3)), Entry: entry,
			Created: one(g, time.Time{}, time.Unix(1, 0), time.Unix(2, 0)),
		},
		Clients: g.clients(),
		Target: policy.Target{
			Kind: one(g, policy.TargetMesh, policy.TargetNamespace, policy.TargetService, policy.TargetService,
				policy.TargetServiceImport, policy.TargetHTTPRoute),
			Namespace: one(g, "shop", "bank"), Name: one(g, "web", "cart"), Section: one(g, "", "", "http", "80"),
		},
		Conf: g.conf(),
	}
	if r.Origin.Dialect.IsMesh() {
		r.Origin.Namespace = ""
	}
	switch r.Target.Kind {
	case policy.TargetMesh, policy.TargetNamespace:
		r.Target.Name, r.Target.Section = "", ""
	case policy.TargetHTTPRoute:
		r.Target.Section = one(g, "", "first")
		r.Conf = policy.Conf{HashPolicies: r.Conf.HashPolicies}
	case policy.TargetService:
		if r.Origin.Dialect.IsMesh() {
			r.Target.Namespace = one(g, "", "shop")
		}
	default:
	}
	return r
}

func (g generator) set() policy.Set {
	s := policy.Set{
		Namespaces: map[string]policy.Labels{"shop": {"tier": "x"}},
		Nodes:      map[string]policy.Labels{"n1": {"rack": "r1"}},
	}
	for i := range g.IntN(12) {
		s.Rules = append(s.Rules, g.rule(i))
	}
	for _, name := range []string{"web", "cart"} {
		s.Routes = append(s.Routes, policy.Route{
			Kind: policy.TargetHTTPRoute, Namespace: "shop", Name: name,
			Services: []policy.ServicePort{{ServiceName: topology.ServiceName{Namespace: "shop", Name: name}, Port: one[uint16](g, 0, 80)}},
			Rules:    []policy.RouteRule{{Name: "first", Matches: []policy.Match{{Method: "GET"}}}, {}},
		})
	}
	for i := range 4 {
		s.Pods = append(s.Pods, policy.Pod{
			Namespace: one(g, "shop", "bank"), Name: "pod-" + strconv.Itoa(i), IPs: []string{"10.0.0." + strconv.Itoa(i)}, Labels: g.labels(),
		})
	}
	return s
}

func (g generator) client() policy.Client {
	return policy.Client{
		Node: "n1", Zone: one[topology.Zone](g, "", "a", "b"), Namespace: one(g, "", "shop", "bank"), Pod: g.labels(),
		Serves: one(g, nil, []topology.ServiceName{{Namespace: "shop", Name: "web"}}),
	}
}

func (g generator) destination() policy.Destination {
	return policy.Destination{
		Service: topology.ServiceName{Namespace: one(g, "shop", "bank"), Name: one(g, "web", "cart")},
		Port:    one(g, topology.Port{Name: "http", Port: 80}, topology.Port{Name: "grpc", Port: 9000}),
	}
}
