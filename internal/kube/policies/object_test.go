package policies_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/policies"
)

// only writes rules as the one policy that they should become.
func only(t *testing.T, rules []policy.Rule) *v1alpha1.LoadBalancingPolicy {
	t.Helper()
	list, problems := policies.Documents(rules)
	if len(list) != 1 || problems != nil {
		t.Fatalf("%d policies, problems %v", len(list), problems)
	}
	return list[0]
}

func TestTheExamplesComeBackAsTheyWere(t *testing.T) {
	for name, p := range examples(t) {
		t.Run(name, func(t *testing.T) {
			before, _ := policies.Rules(p)
			text, err := yaml.Marshal(only(t, before))
			if err != nil {
				t.Fatal(err)
			}
			after, problems := policies.Rules(parse(t, string(text)))
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("%s%v\n%s", diff, problems, text)
			}
		})
	}
}

func TestWhatIsWrittenIsReadAsTheSameRules(t *testing.T) {
	for seed := range uint64(500) {
		rules := someRules(rand.New(rand.NewPCG(seed, 1)))
		if !valid(rules) {
			continue
		}
		list, problems := policies.Documents(rules)
		if problems != nil {
			t.Fatalf("seed %d: %v", seed, problems)
		}
		var read []policy.Rule
		for _, p := range list {
			text, err := yaml.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			more, problems := policies.Rules(parse(t, string(text)))
			for _, problem := range problems {
				if problem.IsRefused() {
					t.Fatalf("seed %d: %s\n%s", seed, problem.String(), text)
				}
			}
			read = append(read, more...)
		}
		// Rules of equal Conf meet in one policy, so that their order may change.
		order := func(list []policy.Rule) { slices.SortStableFunc(list, byTarget) }
		order(rules)
		order(read)
		ignore := cmpopts.IgnoreFields(policy.Origin{}, "Entry", "Name")
		if diff := cmp.Diff(rules, read, ignore); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

func byTarget(a, b policy.Rule) int {
	key := func(r policy.Rule) string {
		return strings.Join([]string{string(r.Target.Kind), r.Target.Namespace, r.Target.Name, r.Target.Section, r.Clients.Namespace}, "/")
	}
	return strings.Compare(key(a), key(b))
}

// valid tells whether the validator takes all rules.
func valid(rules []policy.Rule) bool {
	for i := range rules {
		for _, f := range rules[i].Validate() {
			if f.Severity == reason.Refused {
				return false
			}
		}
	}
	return true
}

func TestRulesOfOneDocumentThatDifferBecomeSeveralPolicies(t *testing.T) {
	rule := func(entry int, name string, a policy.Algorithm) policy.Rule {
		return policy.Rule{
			Origin: policy.Origin{Dialect: policy.DialectMeshLoadBalancing, Name: "LB_1", Entry: entry},
			Target: policy.Target{Kind: policy.TargetService, Namespace: "shop", Name: name},
			Conf:   policy.Conf{LoadBalancer: &policy.LoadBalancer{Type: a}},
		}
	}
	list, problems := policies.Documents([]policy.Rule{rule(0, "a", policy.Random), rule(1, "b", policy.RoundRobin), rule(2, "c", policy.Random)})
	if problems != nil {
		t.Fatal(problems)
	}
	var got []string
	for _, p := range list {
		line := p.Namespace + "/" + p.Name + " " + string(p.Spec.LoadBalancer.Type)
		for _, target := range p.Spec.TargetRefs {
			line += " " + target.Name
		}
		got = append(got, line)
	}
	if diff := cmp.Diff([]string{"shop/lb-1 Random a c", "shop/lb-1-2 RoundRobin b"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestClientsOfANamespaceThatThePolicyIsNotInAreSelectedByItsName(t *testing.T) {
	p := only(t, []policy.Rule{{
		Clients: policy.Clients{Namespace: "batch"}, Target: policy.Target{Kind: policy.TargetMesh},
	}})
	want := &v1alpha1.Clients{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "batch"}}}
	if diff := cmp.Diff(want, p.Spec.Clients); diff != "" || p.Namespace != policy.RootNamespace {
		t.Errorf("%s in %s", diff, p.Namespace)
	}
}

func TestAServiceOfEveryNamespaceIsAProblem(t *testing.T) {
	list, problems := policies.Documents([]policy.Rule{{
		Origin: policy.Origin{Dialect: policy.DialectMeshLoadBalancing, Name: "lb-1", Source: reason.Position{File: "a.yaml", Line: 1}},
		Target: policy.Target{Kind: policy.TargetService, Name: "backend"},
	}})
	if len(list) != 1 || list[0].Namespace != "" || len(problems) != 1 {
		t.Fatalf("%v, problems %v", list, problems)
	}
	const want = "a.yaml:1: MeshLoadBalancing lb-1: is about Service backend in every namespace; the policy will be about that of its own"
	if got := problems[0].String(); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

// FuzzRules reads anything that is JSON of a policy, and writes and reads again what it takes.
func FuzzRules(f *testing.F) {
	for _, p := range examples(f) {
		text, err := yaml.Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, c := range badPolicies() {
		f.Add([]byte("metadata: {name: bad, namespace: shop}\nspec: {" + c.spec + "}"))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p := new(v1alpha1.LoadBalancingPolicy)
		if len(text) > 1<<14 || yaml.UnmarshalStrict(text, p) != nil {
			return
		}
		rules, problems := policies.Rules(p)
		if refused := reason.AnyRefused(problems); refused == (len(rules) > 0) {
			t.Fatalf("%d rules, problems %v", len(rules), problems)
		}
		if len(rules) == 0 || p.Namespace == "" {
			return
		}
		read, problems := policies.Rules(only(t, rules))
		ignore := cmpopts.IgnoreFields(policy.Origin{}, "Name")
		if diff := cmp.Diff(rules, read, ignore, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s%v", diff, problems)
		}
	})
}

// someRules makes the rules of a document with some of everything.
func someRules(r *rand.Rand) []policy.Rule {
	created := time.Unix(1_700_000_000, 0)
	rules := make([]policy.Rule, 0, 4)
	for i := range 1 + r.IntN(4) {
		rule := policy.Rule{
			Origin: policy.Origin{Dialect: policy.DialectCRD, Namespace: "shop", Name: "one", Entry: i, Created: created},
			Target: policy.Target{Kind: policy.TargetService, Namespace: "shop", Name: string(rune('a' + i))},
			Conf:   someConf(r),
		}
		if r.IntN(2) == 0 {
			rule.Target.Section = "http"
		}
		if r.IntN(3) == 0 {
			rule.Target.Namespace, rule.Clients.Namespace = "web", "shop"
		}
		if r.IntN(2) == 0 {
			rule.Clients.Zones = []topology.Zone{"z1", "z2"}
		}
		if r.IntN(3) == 0 {
			rule.Clients.Pods = policy.Selector{
				{Key: "b", Operator: policy.In, Values: []string{"1"}},
				{Key: "a", Operator: policy.In, Values: []string{"1"}},
				{Key: "c", Operator: policy.DoesNotExist},
			}
		}
		rules = append(rules, rule)
	}
	return rules
}

// maybe gives a value or nothing.
func maybe[T any](r *rand.Rand, values ...T) *T {
	if n := r.IntN(len(values) + 1); n < len(values) {
		return &values[n]
	}
	return nil
}

func someConf(r *rand.Rand) policy.Conf {
	c := policy.Conf{
		LoadBalancer: maybe(r,
			policy.LoadBalancer{Type: policy.RoundRobin},
			policy.LoadBalancer{Type: policy.LeastRequest, LeastRequest: &policy.LeastRequestConf{
				ChoiceCount: maybe[int32](r, 2, 8), ActiveRequestBias: maybe[policy.Number](r, 0, 1.5),
			}},
			policy.LoadBalancer{Type: policy.RingHash, RingHash: &policy.RingHashConf{
				HashFunction: new(policy.MurmurHash2), MinRingSize: maybe(r, int64(64)), MaxRingSize: maybe(r, int64(policy.MaxRingSize)),
			}},
			policy.LoadBalancer{Type: policy.Maglev, Maglev: &policy.MaglevConf{TableSize: maybe(r, int64(65537))}},
		),
		EndpointHashKey: maybe(r,
			policy.EndpointHashKey{Type: policy.HashKeyPodName}, policy.EndpointHashKey{Type: policy.HashKeyLabel, Key: new("a/b")}),
		PanicThreshold: maybe[policy.Number](r, 0, 12.5, 100),
		Locality: policy.Locality{
			ZoneKey: maybe(r, "topology.kubernetes.io/region"), FailoverThreshold: maybe[policy.Number](r, 70, 33.3),
			Overflow: policy.Overflow{Mode: maybe(r, policy.OverflowLoadBand), LoadBand: maybe(r, policy.LoadBand{Low: 0.8, High: 2})},
		},
		OutlierDetection: maybe(r, policy.OutlierDetection{
			Interval: maybe(r, policy.Duration(10*time.Second), policy.Duration(1500*time.Millisecond)), MaxEjectionPercent: maybe[policy.Number](r, 30),
			Consecutive:       maybe(r, policy.Consecutive{ServerErrors: maybe[int32](r, 5)}),
			SuccessRate:       maybe(r, policy.SuccessRate{Stdev: maybe[policy.Number](r, 1.9), MinimumHosts: maybe[int32](r, 3)}),
			FailurePercentage: maybe(r, policy.FailurePercentage{Threshold: maybe[policy.Number](r, 85), RequestVolume: maybe[int32](r, 50)}),
		}),
	}
	if r.IntN(2) == 0 {
		c.HashPolicies = []policy.HashPolicy{
			{Type: policy.HashHeader, Header: &policy.HeaderKey{Name: "x-a"}, Terminal: new(true)},
			{Type: policy.HashCookie, Cookie: &policy.CookieKey{Name: "sid", TTL: maybe(r, policy.Duration(time.Hour), 0), Path: new("/")}},
			{Type: policy.HashSourceIP},
			{Type: policy.HashQueryParameter, QueryParameter: &policy.QueryParameterKey{Name: "q"}},
		}[:r.IntN(5)]
	}
	if r.IntN(2) == 0 {
		c.Locality.Affinity = []policy.Affinity{{Key: "kubernetes.io/hostname", Weight: new(int64(900))}, {Key: "rack", Weight: new(int64(90))}}
		c.Locality.Failover = []policy.Failover{
			{From: &policy.FailoverFrom{Zones: []string{"z1"}}, To: policy.FailoverTo{Type: policy.FailoverOnly, Zones: []string{"z2"}}}, {To: policy.FailoverTo{Type: policy.FailoverNone}},
		}
		c.Locality.Costs = []policy.Cost{{From: "z1", To: "z2", Cost: 2.5}}
	}
	if c.LoadBalancer == nil || c.LoadBalancer.Type == policy.RoundRobin {
		c.SlowStart = maybe(r, policy.SlowStart{Window: policy.Duration(30 * time.Second), Aggression: maybe[policy.Number](r, 1.5)})
	}
	return c
}
