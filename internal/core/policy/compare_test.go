package policy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
)

func TestCompareRows(t *testing.T) {
	rule := func(change func(*policy.Rule)) policy.Rule {
		r := policy.Rule{
			Origin: policy.Origin{Dialect: policy.DialectCRD, Namespace: "shop", Name: "m", Created: time.Unix(100, 0)},
			Target: policy.Target{Kind: policy.TargetService, Namespace: "shop", Name: "web"},
		}
		change(&r)
		return r
	}
	pods := policy.Selector{{Key: "app", Operator: policy.Exists}}
	kind := func(k policy.TargetKind, section string) policy.Rule {
		return rule(func(r *policy.Rule) { r.Target.Kind, r.Target.Section = k, section })
	}
	for name, chain := range map[string][]policy.Rule{
		"K-62 clients": {
			rule(func(*policy.Rule) {}),
			rule(func(r *policy.Rule) { r.Clients.Namespaces = pods }),
			rule(func(r *policy.Rule) { r.Clients.Pods = pods }),
		},
		"K-62 clients by zone and by service": {
			rule(func(r *policy.Rule) { r.Clients.Zones = []topology.Zone{"a"} }),
			rule(func(r *policy.Rule) { r.Clients.Service = &topology.ServiceName{Namespace: "shop", Name: "cart"} }),
		},
		"K-62 role": {
			rule(func(r *policy.Rule) { r.Origin.Namespace = policy.RootNamespace }),
			rule(func(*policy.Rule) {}),
			rule(func(r *policy.Rule) { r.Origin.Namespace, r.Clients.Namespace = "zoo", "zoo" }),
		},
		"K-62 a document of the mesh is the operator's": {
			rule(func(r *policy.Rule) {
				r.Origin.Namespace, r.Origin.Dialect, r.Origin.Name = "", policy.DialectMeshLoadBalancing, "a"
			}),
			rule(func(*policy.Rule) {}),
		},
		"K-62 target": {
			kind(policy.TargetMesh, ""),
			kind(policy.TargetNamespace, ""),
			kind(policy.TargetService, ""),
			kind(policy.TargetServiceImport, "http"),
			kind(policy.TargetHTTPRoute, ""),
			kind(policy.TargetGRPCRoute, "first"),
		},
		"GEP-713 age": {
			rule(func(r *policy.Rule) { r.Origin.Created = time.Time{} }),
			rule(func(r *policy.Rule) { r.Origin.Created = time.Unix(200, 0) }),
			rule(func(*policy.Rule) {}),
		},
		"K-63 name": {
			rule(func(r *policy.Rule) { r.Origin.Namespace, r.Origin.Name = "tea", "a" }),
			rule(func(r *policy.Rule) { r.Origin.Name = "mlbst-2" }),
			rule(func(r *policy.Rule) { r.Origin.Name = "mlbst-1" }),
		},
		"K-61 entries of one document": {
			rule(func(*policy.Rule) {}),
			rule(func(r *policy.Rule) { r.Origin.Entry = 1 }),
			rule(func(r *policy.Rule) { r.Origin.Entry = 2 }),
		},
		"clients decide before role, role before target, target before age": {
			rule(func(r *policy.Rule) { r.Origin.Created = time.Unix(1, 0) }),
			rule(func(r *policy.Rule) { r.Target.Section = "http" }),
			rule(func(r *policy.Rule) {
				r.Origin.Namespace, r.Clients.Namespace, r.Target.Kind = "zoo", "zoo", policy.TargetService
			}),
			rule(func(r *policy.Rule) { r.Clients.Pods, r.Origin.Namespace = pods, policy.RootNamespace }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range chain {
				for j := range chain {
					if got := policy.Compare(&chain[i], &chain[j]); sign(got) != sign(i-j) {
						t.Errorf("Compare(%d, %d) = %d", i, j, got)
					}
				}
			}
		})
	}
}

func sign(n int) int { return max(-1, min(1, n)) }

func TestCompareDocumentsWithoutTimesByName(t *testing.T) {
	weak := policy.Rule{Origin: policy.Origin{Name: "b"}, Target: policy.Target{Kind: policy.TargetMesh}}
	strong := policy.Rule{Origin: policy.Origin{Name: "a"}, Target: policy.Target{Kind: policy.TargetMesh}}
	if policy.Compare(&weak, &strong) >= 0 {
		t.Error("the document that comes first in the alphabet is not the stronger one")
	}
}

func TestCompareIsAStrictWeakOrder(t *testing.T) {
	g := newGenerator(1)
	rules := make([]policy.Rule, 40)
	for i := range rules {
		rules[i] = g.rule(g.IntN(3))
	}
	for i := range rules {
		a := &rules[i]
		if policy.Compare(a, a) != 0 {
			t.Fatal("a rule is not its own equal")
		}
		for j := range rules {
			b := &rules[j]
			ab := sign(policy.Compare(a, b))
			if ab != -sign(policy.Compare(b, a)) {
				t.Fatalf("not antisymmetric: %v, %v", a.Origin, b.Origin)
			}
			for k := range rules {
				c := &rules[k]
				bc, ac := sign(policy.Compare(b, c)), sign(policy.Compare(a, c))
				if ab <= 0 && bc <= 0 && ac > 0 || ab == 0 && bc == 0 && ac != 0 {
					t.Fatalf("not transitive: %v, %v, %v", a.Origin, b.Origin, c.Origin)
				}
			}
		}
	}
}

func TestResolveDoesNotDependOnTheOrderOfRules(t *testing.T) {
	for seed := range uint64(100) {
		g := newGenerator(seed)
		s, c, d := g.set(), g.client(), g.destination()
		want := policy.NewSet(s).Resolve(c, d)
		mixed := s
		mixed.Rules = slices.Clone(s.Rules)
		g.Shuffle(len(mixed.Rules), func(i, j int) { mixed.Rules[i], mixed.Rules[j] = mixed.Rules[j], mixed.Rules[i] })
		equalSettings(t, want, policy.NewSet(mixed).Resolve(c, d))
	}
}
