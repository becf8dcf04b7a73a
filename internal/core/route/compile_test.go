package route_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
)

// usual are the defaults of an agent.
func usual() route.Options {
	return route.Options{Defaults: route.Defaults{Mode: topology.ModeBalanced, Algorithm: "PowerOfTwo", Strategy: "Weir"}}
}

func snapshotOf(tb testing.TB, text string) *topology.Snapshot {
	tb.Helper()
	s, err := topology.ParseSnapshot(text)
	if err != nil {
		tb.Fatal(err)
	}
	return &s
}

// input asks for the table of node a-1, by the hints that endpoints carry.
func input(tb testing.TB, text string, rules ...policy.Rule) route.Input {
	tb.Helper()
	return route.Input{
		Snapshot: snapshotOf(tb, text), Policies: policy.NewSet(policy.Set{Rules: rules}),
		Client: policy.Client{Node: "a-1", Zone: "a"},
	}
}

// told lists the problems of some codes.
func told(t *route.Table, codes ...reason.Code) []string {
	var all []string
	for _, p := range t.Problems {
		if slices.Contains(codes, p.Reason.Code) {
			all = append(all, strings.TrimSpace(p.Service+" "+string(p.Reason.Code)+" "+strings.Join(p.Reason.Objects, " ")))
		}
	}
	return all
}

func TestDefaultsServicesAndPoliciesMakeAnEntry(t *testing.T) {
	const text = "nodes a-1=a:4 b-1=b:4 c-1=c:4; service web ip=10.9.0.1; endpoints a:1@a-1 b:1 c:1"
	static, disabled := usual(), usual()
	static.Strategy, disabled.Mode = "Static", topology.ModeDisabled
	for name, c := range map[string]struct {
		options route.Options
		rules   []policy.Rule
		want    string
	}{
		"defaults alone":                {usual(), nil, "a home, b tier 0 $1, c tier 0 $1"},
		"a strategy that stays":         {static, nil, "a home, b home $1, c home $1"},
		"a default mode without a home": {disabled, nil, "a home, b home $1, c home $1"},
		"a policy": {
			usual(), ruled(policy.Locality{Failover: []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverOnly, Zones: []string{"c"}}}}}),
			"a home, c tier 1 $1",
		},
		"labels of nodes": {
			usual(), ruled(policy.Locality{Affinity: []policy.Affinity{{Key: "rack"}}}),
			"a home rack=7*9, b tier 1 $1, c tier 1 $1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, text)
			in.Policies = policy.NewSet(policy.Set{Rules: c.rules, Nodes: map[string]policy.Labels{"a-1": {"rack": "7"}}})
			if d := diff.Diff(c.want, words(route.Compile(in, c.options).Entries[0].Endpoints)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestEndpointsAreHashedByWhatThePolicyNames(t *testing.T) {
	for _, c := range []struct {
		key  policy.EndpointHashKey
		want [2]string
	}{
		{policy.EndpointHashKey{Type: policy.HashKeyAddress}, [2]string{"", ""}},
		{policy.EndpointHashKey{Type: policy.HashKeyPodName}, [2]string{"db-0", "db-1"}},
		{policy.EndpointHashKey{Type: policy.HashKeyLabel, Key: new("shard")}, [2]string{"x", ""}},
		{policy.EndpointHashKey{Type: policy.HashKeyAnnotation, Key: new("key")}, [2]string{"y", ""}},
		{policy.EndpointHashKey{Type: policy.HashKeyAnnotation, Key: new("long")}, [2]string{"", ""}},
	} {
		rules := ruled(policy.Locality{})
		rules[0].Conf.LoadBalancer = &policy.LoadBalancer{Type: policy.RingHash}
		rules[0].Conf.EndpointHashKey = &c.key
		in := input(t, "nodes a:4; service web ip=10.9.0.1; endpoints a:1 a:1")
		svc := in.Snapshot.Services[0]
		svc.Endpoints[0].Pod, svc.Endpoints[1].Pod = "default/db-0", "default/db-1"
		in.Policies = policy.NewSet(policy.Set{Rules: rules, Pods: []policy.Pod{{
			Namespace: "default", Name: "db-0", Labels: policy.Labels{"shard": "x"},
			Annotations: policy.Labels{"key": "y", "long": strings.Repeat("y", 257)},
		}}})
		endpoints := route.Compile(in, usual()).Entries[0].Endpoints
		if got := [2]string{endpoints[0].HashKey, endpoints[1].HashKey}; got != c.want {
			t.Errorf("%v: keys %q, want %q", c.key, got, c.want)
		}
	}
}

func TestASettingWithoutEffectInAPolicyForManyIsReportedOnce(t *testing.T) {
	rules := ruled(policy.Locality{})
	rules[0].Conf.HashPolicies = []policy.HashPolicy{{Type: policy.HashSourceIP}}
	for target, want := range map[policy.TargetKind]string{policy.TargetNamespace: "", policy.TargetService: "default/web"} {
		rules[0].Target = policy.Target{Kind: target, Namespace: "default", Name: "web"}
		in := input(t, "nodes a:4; service one ip=10.9.0.1; endpoints a:1; service web ip=10.9.0.2; endpoints a:1", rules...)
		var got []string
		for _, p := range route.Compile(in, usual()).Problems {
			if p.Reason.Code == reason.PolicyWithoutEffect {
				got = append(got, p.Service)
			}
		}
		if d := diff.Diff([]string{want}, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", target, d)
		}
	}
}

func TestOverflowIsAskedForByPolicyThenServiceThenDefault(t *testing.T) {
	const text = "nodes a:4; service web ip=10.9.0.1 strategy=%s; endpoints a:1"
	mode := func(m policy.OverflowMode) []policy.Rule {
		return ruled(policy.Locality{Overflow: policy.Overflow{Mode: &m}})
	}
	band := ruled(policy.Locality{Overflow: policy.Overflow{LoadBand: &policy.LoadBand{Low: 2, High: 8}}})
	for _, c := range []struct {
		service string
		rules   []policy.Rule
		want    string
		config  overflow.Config
	}{
		{service: "Static", want: "Static"},
		{service: "Static", rules: mode(policy.OverflowAdaptive), want: "Weir"},
		{service: "Static", rules: mode(policy.OverflowDisabled), want: route.OverflowDisabled},
		{service: "Static", rules: band, want: "Hazl", config: overflow.Config{Low: 2, High: 8}},
		{service: "Nonsense", want: "Weir"},
	} {
		table := route.Compile(input(t, fmt.Sprintf(text, c.service), c.rules...), usual())
		got := table.Entries[0].Settings.Overflow
		if want := (route.Overflow{Strategy: c.want, Config: c.config}); got != want {
			t.Errorf("%s and %v: %+v, want %+v", c.service, c.rules, got, want)
		}
		if _, err := got.New(); err != nil {
			t.Errorf("the table has a strategy that is refused: %v", err)
		}
		if refused := told(table, reason.StrategyRefused); (len(refused) == 1) != (c.service == "Nonsense") {
			t.Errorf("%s: refused %q", c.service, refused)
		}
	}
}

func TestOneAddressServesThePortThatClaimsItFirst(t *testing.T) {
	const text = "nodes a:4; service one ip=10.9.0.1; endpoints a:1; service two ip=%s; endpoints a:1; service web ip=10.9.0.3; endpoints a:1"
	options := usual()
	options.Mappings = []route.Mapping{
		{Service: topology.ServiceName{Namespace: "default", Name: "web"}, To: netip.MustParseAddrPort("127.0.0.1:0")},
		{Service: topology.ServiceName{Namespace: "default", Name: "web"}, Port: 81, To: netip.MustParseAddrPort("127.0.0.2:0")},
		{Service: topology.ServiceName{Namespace: "default", Name: "gone"}, To: netip.MustParseAddrPort("127.0.0.3:80")},
	}
	served := func(t *route.Table) []string {
		var all []string
		for _, e := range t.Entries {
			all = append(all, fmt.Sprint(e.PortName(), " ", e.Addresses))
		}
		return all
	}
	c := route.NewCompiler(options)
	apart := c.Compile(input(t, fmt.Sprintf(text, "10.9.0.2")))
	if d := diff.Diff([]string{
		"default/one 80/TCP [10.9.0.1:80]", "default/two 80/TCP [10.9.0.2:80]", "default/web 80/TCP [127.0.0.1:80]",
	}, served(apart)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if d := diff.Diff([]string{
		"default/gone MappedServiceAbsent default/gone=127.0.0.3:80", "default/web MappedPortAbsent default/web:81=127.0.0.2",
	}, told(apart, reason.MappedServiceAbsent, reason.MappedPortAbsent, reason.AddressTaken)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	both := c.Compile(input(t, fmt.Sprintf(text, "10.9.0.1")))
	if d := diff.Diff([]string{"default/one 80/TCP [10.9.0.1:80]", "default/web 80/TCP [127.0.0.1:80]"}, served(both)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if d := diff.Diff([]string{"default/two AddressTaken 10.9.0.1:80 default/one"}, told(both, reason.AddressTaken)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestPlansStandInForTheHintsOfEndpoints(t *testing.T) {
	in := input(t, "nodes a:4 b:4; service web ip=10.9.0.1; endpoints a:1>a b:1>b")
	svc := in.Snapshot.Services[0]
	planned := plan.Plan{Endpoints: slices.Clone(svc.Endpoints)}
	for i := range planned.Endpoints {
		planned.Endpoints[i].Hints = topology.Hints{}
	}
	for want, plans := range map[reason.Code][]route.Plans{
		reason.HintedToZone: nil,
		reason.NoHints:      {{topology.IPv4: &planned}},
	} {
		in.Plans = plans
		if got := route.Compile(in, usual()).Entries[0].Choice.Code; got != want {
			t.Errorf("with plans %v: %s, want %s", plans != nil, got, want)
		}
	}
}

// A policy tells pods apart, nearness is measured by a label of some pods, and one pod serves.
func withPods(in route.Input, rules ...policy.Rule) route.Input {
	in.Policies = policy.NewSet(policy.Set{Rules: rules, Pods: []policy.Pod{
		{Namespace: "default", Name: "front", Node: "a-1", IPs: []string{"10.1.0.3", "fd00::3"}, Labels: policy.Labels{"app": "front"}},
		{Namespace: "default", Name: "racked", Node: "a-1", IPs: []string{"10.1.0.5"}, Labels: policy.Labels{"rack": "7"}},
		{Namespace: "default", Name: "far", Node: "b-1", IPs: []string{"10.1.0.4"}, Labels: policy.Labels{"app": "front"}},
		{Namespace: "default", Name: "host", Node: "a-1"},
	}})
	return in
}

func apart() []policy.Rule {
	rules := ruled(policy.Locality{Affinity: []policy.Affinity{{Key: "rack"}}})
	front := ruled(policy.Locality{Failover: []policy.Failover{{To: policy.FailoverTo{Type: policy.FailoverNone}}}})[0]
	front.Origin.Name = "front"
	front.Clients.Pods = policy.Selector{{Key: "app", Operator: policy.In, Values: []string{"front"}}}
	served := ruled(policy.Locality{})[0]
	served.Origin.Name, served.Conf.LoadBalancer = "served", &policy.LoadBalancer{Type: policy.Random}
	served.Clients.Service = &topology.ServiceName{Namespace: "default", Name: "web"}
	return append(rules, front, served)
}

func TestANodeHasAnEntryForEachClassOfItsClients(t *testing.T) {
	const text = "nodes a-1=a:4 b-1=b:4; service web ip=10.9.0.1; endpoints 10.1.0.1=a:1@a-1 10.1.0.2=b:1@b-1"
	list := func(t *route.Table) []string {
		var all []string
		for _, e := range t.Entries {
			all = append(all, fmt.Sprint(e.Key.Class, " ", e.Clients, " ", len(e.Addresses), " ", len(e.Endpoints)))
		}
		return all
	}
	in := withPods(input(t, text), apart()...)
	if d := diff.Diff([]string{
		" [] 1 2", ";rack=7 [10.1.0.5] 0 2", "default/front#0 [10.1.0.3 fd00::3] 0 1", "default/served#0 [10.1.0.1] 0 2",
	}, list(route.Compile(in, usual()))); d != "" {
		t.Errorf("a node (-want +got)\n%s", d)
	}
	in.Client.Namespace, in.Client.Pod = "default", policy.Labels{"app": "front"}
	if d := diff.Diff([]string{" [] 1 1"}, list(route.Compile(in, usual()))); d != "" {
		t.Errorf("a pod (-want +got)\n%s", d)
	}
	in.Client = policy.Client{Zone: "b"}
	table := route.Compile(in, usual())
	if d := diff.Diff([]string{" [] 1 2"}, list(table)); d != "" || table.Entries[0].Endpoints[0].Zone != "b" {
		t.Errorf("a zone (-want +got)\n%s", d)
	}
}

func TestWhatDidNotChangeIsTheSamePointer(t *testing.T) {
	text := "nodes a:4 b:4; service one ip=10.9.0.1; endpoints a:1 b:1; service web ip=10.9.0.2; endpoints a:1 b:1"
	in := input(t, text)
	c := route.NewCompiler(usual())
	first := c.Compile(in)
	if c.Compile(in) != first {
		t.Error("the same input makes another table")
	}
	if !slices.Equal(c.Compile(input(t, text)).Entries, first.Entries) {
		t.Error("an equal input makes other entries")
	}
	c.Compile(in)
	next := *in.Snapshot
	next.Services = slices.Clone(next.Services)
	next.Services[1] = snapshotOf(t, text+" b:1").Services[1]
	in.Snapshot = &next
	second := c.Compile(in)
	if second == first || second.Entries[0] != first.Entries[0] || second.Entries[1] == first.Entries[1] {
		t.Error("want another table, and in it another entry for the service that changed alone")
	}
	in.Policies = policy.NewSet(policy.Set{Rules: ruled(policy.Locality{Disabled: new(true)})})
	third := c.Compile(in)
	if third.Entries[0] != second.Entries[0] || third.Entries[1] == second.Entries[1] {
		t.Error("want another entry for the service that the policy is about alone")
	}
}

// cluster makes snapshots that have most of their services in common.
type cluster struct {
	random   *rand.Rand
	services map[string]*topology.Service
	nodes    []topology.Node
	policies *policy.Set
	costs    topology.Costs
	client   policy.Client
}

// change changes one thing.
func (c *cluster) change() {
	pick := func(of ...string) string { return of[c.random.IntN(len(of))] }
	name := pick("one", "two", "web")
	switch c.random.IntN(12) {
	case 0:
		delete(c.services, name)
	case 1:
		c.policies = nil
	case 2:
		c.policies = withPods(route.Input{}, apart()...).Policies
	case 3:
		c.policies = withPods(route.Input{}, ruled(policy.Locality{Failover: []policy.Failover{
			{To: policy.FailoverTo{Type: policy.FailoverOnly, Zones: []string{pick("a", "z")}}},
		}})...).Policies
	case 4:
		c.nodes[0].Region, c.nodes[1].CPU = pick("", "eu"), topology.MilliCPU(1+c.random.IntN(2))
	case 5:
		c.costs.OtherRegion = topology.Cost(c.random.IntN(2))
	case 6:
		c.client.Zone = topology.Zone(pick("a", "a", "b"))
	default:
		c.services[name] = c.service(name, pick)
	}
}

func (c *cluster) service(name string, pick func(...string) string) *topology.Service {
	text := "nodes a-1=a:4; service " + name + " ip=10.9.0." + pick("1", "1", "2", "3") + pick("", " mode=Auto", " strategy=Nonsense", " proxy=other") + ";endpoints"
	for i := range c.random.IntN(4) {
		text += fmt.Sprintf(" 10.1.%d.%d=%s:1%s", len(name), i, pick("a", "b", "c"), pick("", ">a", "@a-1", "!"))
	}
	s, err := topology.ParseSnapshot(strings.TrimSuffix(text, ";endpoints"))
	if err != nil {
		panic(err)
	}
	s.Services[0].Ports[0].Port = uint16(80 + c.random.IntN(2)) //nolint:gosec // 80 or 81.
	return s.Services[0]
}

func (c *cluster) input() route.Input {
	var services []*topology.Service
	for _, name := range []string{"one", "two", "web"} {
		if c.services[name] != nil {
			services = append(services, c.services[name])
		}
	}
	s := topology.Snapshot{Nodes: slices.Clone(c.nodes), Services: services, Costs: c.costs}
	return route.Input{Snapshot: &s, Policies: c.policies, Client: c.client}
}

func TestACompilerAnswersAsIfItHadCompiledNothingBefore(t *testing.T) {
	for seed := range uint64(40) {
		c := cluster{
			random: rand.New(rand.NewPCG(seed, 1)), services: make(map[string]*topology.Service),
			nodes:  []topology.Node{{Name: "a-1", Zone: "a", Ready: true}, {Name: "b-1", Zone: "b", Ready: true}},
			client: policy.Client{Node: "a-1", Zone: "a"},
		}
		compiler := route.NewCompiler(usual())
		before := &route.Table{}
		for step := range 100 {
			c.change()
			want, got := route.Compile(c.input(), usual()), compiler.Compile(c.input())
			if !reflect.DeepEqual(want, got) {
				t.Fatalf("seed %d, step %d (-one shot +incremental)\n%s", seed, step, diff.Diff(want, got, comparers()...))
			}
			for _, e := range got.Entries {
				for _, o := range before.Entries {
					if e != o && e.Key == o.Key && reflect.DeepEqual(e, o) {
						t.Fatalf("seed %d, step %d: %v is another pointer for nothing", seed, step, e.Key)
					}
				}
			}
			before = got
		}
	}
}

func comparers() diff.Options {
	return diff.Options{
		diff.Comparer(func(a, b netip.Addr) bool { return a == b }),
		diff.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
	}
}

// large gives an input of n services of 15 endpoints each.
func large(tb testing.TB, n int) route.Input {
	tb.Helper()
	var text strings.Builder
	text.WriteString("nodes a:4 b:4 c:4\n")
	for i := range n {
		fmt.Fprintf(&text, "service s%d ip=10.%d.%d.%d\nendpoints a:5 b:5 c:5\n", i, 100+i>>16, i>>8&255, i&255)
	}
	return input(tb, text.String())
}

// changed gives an input in which one endpoint of one service is another one.
func changed(in route.Input) route.Input {
	next, at := *in.Snapshot, len(in.Snapshot.Services)/2
	next.Services = slices.Clone(next.Services)
	svc := *next.Services[at]
	svc.Endpoints = slices.Clone(svc.Endpoints)
	svc.Endpoints[0].Ready = topology.False
	next.Services[at] = &svc
	in.Snapshot = &next
	return in
}

func BenchmarkCompileTenThousandServices(b *testing.B) {
	in := large(b, 10_000)
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := heap()
	c := route.NewCompiler(usual())
	c.Compile(in)
	retained := heap() - before
	runtime.KeepAlive(c)
	b.ReportAllocs()
	for b.Loop() {
		route.Compile(in, usual())
	}
	b.ReportMetric(retained/10_000, "retained-B/service")
}

func BenchmarkCompileOneChangedEndpointOfTenThousandServices(b *testing.B) {
	for name, rules := range map[string][]policy.Rule{"no-policies": nil, "policies": apart()} {
		b.Run(name, func(b *testing.B) {
			in := withPods(large(b, 10_000), rules...)
			other := changed(in)
			c := route.NewCompiler(usual())
			c.Compile(in)
			b.ReportAllocs()
			for b.Loop() {
				in, other = other, in
				c.Compile(in)
			}
		})
	}
}

func BenchmarkCompileTenThousandServicesUnderAnotherPolicy(b *testing.B) {
	one := large(b, 10_000)
	other := one
	one.Policies = policy.NewSet(policy.Set{Rules: ruled(policy.Locality{Disabled: new(true)})})
	other.Policies = policy.NewSet(policy.Set{Rules: ruled(policy.Locality{Disabled: new(false)})})
	c := route.NewCompiler(usual())
	c.Compile(one)
	b.ReportAllocs()
	for b.Loop() {
		one, other = other, one
		c.Compile(one)
	}
}

// Session affinity is kube-proxy's: no algorithm that a policy or flag names may drop it, and load must not move sessions.
func TestSessionAffinityOfAServiceIsServed(t *testing.T) {
	algorithm := func(a policy.Algorithm) []policy.Rule {
		rules := ruled(policy.Locality{})
		rules[0].Conf.LoadBalancer = &policy.LoadBalancer{Type: a}
		return rules
	}
	for _, c := range []struct {
		service  string
		rules    []policy.Rule
		want     policy.Algorithm
		hashes   int
		overflow string
	}{
		{"", nil, usual().Algorithm, 0, "Weir"},
		{"sticky", nil, policy.Maglev, 1, route.OverflowDisabled},
		{"sticky strategy=Weir", nil, policy.Maglev, 1, "Weir"},
		{"sticky", algorithm(policy.RoundRobin), policy.Maglev, 1, route.OverflowDisabled},
		{"sticky", algorithm(policy.RingHash), policy.RingHash, 0, route.OverflowDisabled},
	} {
		in := input(t, "nodes a:4; service web ip=10.9.0.1 "+c.service+"; endpoints a:2", c.rules...)
		got := route.Compile(in, usual()).Entries[0].Settings
		if got.Algorithm != c.want || len(got.Policy.HashPolicies) != c.hashes || got.Overflow.Strategy != c.overflow {
			t.Errorf("%q: %s with %d hash policies, overflow %s; want %s, %d, %s", c.service,
				got.Algorithm, len(got.Policy.HashPolicies), got.Overflow.Strategy, c.want, c.hashes, c.overflow)
		}
	}
}

// kube-proxy leaves a service that was given to weir alone, so that its node ports would be served by nothing.
func TestAddressesThatWeirDoesNotServeAreReported(t *testing.T) {
	for text, want := range map[string]int{"exposed": 0, "proxy=weir": 0, "exposed proxy=weir": 1} {
		in := input(t, "nodes a:4; service web ip=10.9.0.1 "+text+"; endpoints a:2")
		if got := told(route.Compile(in, usual()), reason.OutsideNotServed); len(got) != want {
			t.Errorf("%s: %q, want %d problems", text, got, want)
		}
	}
}
