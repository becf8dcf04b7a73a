package policy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

func equalSettings(t *testing.T, want, got policy.Settings) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
}

// web is the destination that most tests ask for.
var web = policy.Destination{
	Service: topology.ServiceName{Namespace: "shop", Name: "web"}, Port: topology.Port{Name: "http", Port: 80},
}

func origin(namespace, name string) policy.Origin {
	return policy.Origin{Dialect: policy.DialectCRD, Namespace: namespace, Name: name}
}

func meshWide(name string, c policy.Conf) policy.Rule {
	return policy.Rule{Origin: origin(policy.RootNamespace, name), Target: policy.Target{Kind: policy.TargetMesh}, Conf: c}
}

func aboutWeb(name string, c policy.Conf) policy.Rule {
	return policy.Rule{
		Origin: origin("shop", name),
		Target: policy.Target{Kind: policy.TargetService, Namespace: "shop", Name: "web"}, Conf: c,
	}
}

func resolve(rules ...policy.Rule) policy.Settings {
	return policy.NewSet(policy.Set{Rules: rules}).Resolve(policy.Client{}, web)
}

func algorithm(a policy.Algorithm) policy.Conf {
	return policy.Conf{LoadBalancer: &policy.LoadBalancer{Type: a}}
}

func TestResolveFillsInEveryDefault(t *testing.T) {
	bare := policy.Settings{
		Conf: policy.Conf{
			LoadBalancer: &policy.LoadBalancer{
				LeastRequest: &policy.LeastRequestConf{ChoiceCount: new(int32(2)), ActiveRequestBias: new(policy.Number(1))},
				RingHash: &policy.RingHashConf{
					HashFunction: new(policy.XXHash), MinRingSize: new(int64(1024)), MaxRingSize: new(int64(8_388_608)),
				},
				Maglev: &policy.MaglevConf{TableSize: new(int64(65_537))},
			},
			EndpointHashKey: &policy.EndpointHashKey{Type: policy.HashKeyAddress},
			Locality: policy.Locality{
				ZoneKey: new("topology.kubernetes.io/zone"), Failover: []policy.Failover{to(policy.FailoverAny)},
			},
		},
		Fields: []policy.Field{},
	}
	equalSettings(t, bare, resolve())
	equalSettings(t, bare, (*policy.Set)(nil).Resolve(policy.Client{}, web))

	got := resolve(aboutWeb("p", policy.Conf{
		OutlierDetection: &policy.OutlierDetection{
			SuccessRate: &policy.SuccessRate{}, FailurePercentage: &policy.FailurePercentage{}, Consecutive: &policy.Consecutive{},
		},
		SlowStart: &policy.SlowStart{Window: policy.Duration(time.Minute)},
		Locality:  policy.Locality{Overflow: policy.Overflow{Mode: new(policy.OverflowLoadBand)}},
	}))
	want := bare
	want.HasLocality = true
	want.Locality.Overflow = policy.Overflow{Mode: new(policy.OverflowLoadBand), LoadBand: &policy.LoadBand{Low: 0.8, High: 2}}
	want.OutlierDetection = &policy.OutlierDetection{
		Interval: new(policy.Duration(10 * time.Second)), BaseEjectionTime: new(policy.Duration(30 * time.Second)),
		MaxEjectionTime: new(policy.Duration(5 * time.Minute)), MaxEjectionPercent: new(policy.Number(50)),
		Consecutive:       &policy.Consecutive{ServerErrors: new(int32(0)), GatewayErrors: new(int32(0)), LocalErrors: new(int32(0))},
		SuccessRate:       &policy.SuccessRate{Stdev: new(policy.Number(1.9)), MinimumHosts: new(int32(5)), RequestVolume: new(int32(100))},
		FailurePercentage: &policy.FailurePercentage{Threshold: new(policy.Number(85)), MinimumHosts: new(int32(5)), RequestVolume: new(int32(50))},
	}
	want.SlowStart = &policy.SlowStart{
		Window: policy.Duration(time.Minute), MinWeightPercent: new(policy.Number(10)), Aggression: new(policy.Number(1)),
	}
	want.Fields = []policy.Field{
		{Path: "locality.overflow.mode", Value: "LoadBand", Origin: origin("shop", "p")},
		{Path: "outlierDetection.successRate", Value: "on", Origin: origin("shop", "p")},
		{Path: "outlierDetection.failurePercentage", Value: "on", Origin: origin("shop", "p")},
		{Path: "slowStart", Value: "1m", Origin: origin("shop", "p")},
	}
	equalSettings(t, want, got)
}

func TestS41MeshDocumentsMeanRoundRobinOnlyIfNobodyChose(t *testing.T) {
	spec := policy.Rule{
		Origin: policy.Origin{Dialect: policy.DialectMeshLoadBalancing, Name: "lb-1"}, Target: policy.Target{Kind: policy.TargetMesh},
	}
	got := resolve(spec)
	if got.LoadBalancer.Type != policy.RoundRobin {
		t.Errorf("want RoundRobin, got %q", got.LoadBalancer.Type)
	}
	want := []policy.Field{{Path: "loadBalancer.type", Value: "RoundRobin", Origin: spec.Origin}}
	if diff := cmp.Diff(want, got.Fields); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := resolve(spec, meshWide("all", algorithm(policy.Random))); got.LoadBalancer.Type != policy.Random {
		t.Errorf("want Random, got %q", got.LoadBalancer.Type)
	}
}

func TestFieldsTellWhoSaidThem(t *testing.T) {
	ring := func(least, most *int64) policy.Conf {
		return policy.Conf{LoadBalancer: &policy.LoadBalancer{
			Type: policy.RingHash, RingHash: &policy.RingHashConf{MinRingSize: least, MaxRingSize: most},
		}}
	}
	all := ring(new(int64(64)), new(int64(512)))
	all.HashPolicies = []policy.HashPolicy{hashOf(policy.HashHeader, "x-user"), {Type: policy.HashSourceIP}}
	all.HashPolicies[0].Terminal = new(true)
	own := ring(nil, new(int64(1024)))
	own.HashPolicies = []policy.HashPolicy{hashOf(policy.HashCookie, "sid")}
	own.HashPolicies[0].Cookie.TTL, own.HashPolicies[0].Cookie.Path = new(policy.Duration(time.Hour)), new("/")
	own.Locality.Failover = []policy.Failover{from(to(policy.FailoverOnly, "a", "b"), "a"), to(policy.FailoverNone)}
	own.Locality.Costs = []policy.Cost{{From: "a", To: "b", Cost: 2.5}}
	own.Locality.Affinity = []policy.Affinity{{Key: "rack", Weight: new(int64(7))}}
	got := resolve(meshWide("all", all), aboutWeb("own", own))
	system, shop := origin(policy.RootNamespace, "all"), origin("shop", "own")
	want := []policy.Field{
		{Path: "loadBalancer.type", Value: "RingHash", Origin: shop},
		{Path: "loadBalancer.ringHash.minRingSize", Value: "64", Origin: system},
		{Path: "loadBalancer.ringHash.maxRingSize", Value: "1024", Origin: shop},
		{Path: "hashPolicies", Value: "Cookie sid ttl=1h path=/", Origin: shop},
		{Path: "locality.affinity", Value: "rack 7", Origin: shop},
		{Path: "locality.failover", Value: "from a to Only a, b, to None", Origin: shop},
		{Path: "locality.costs", Value: "a>b=2.5", Origin: shop},
	}
	if diff := cmp.Diff(want, got.Fields); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(got.Notes) != 0 {
		t.Errorf("notes: %v", got.Notes)
	}
}

func TestNotesTellWhatHasNoEffect(t *testing.T) {
	note := func(path, message string) reason.Finding {
		code := reason.Unused
		if strings.Contains(message, "as specific") {
			code = reason.Overridden
		}
		return origin("shop", "p").Finding(path, code, message)
	}
	ring := policy.Conf{LoadBalancer: &policy.LoadBalancer{
		Type: policy.RingHash, RingHash: &policy.RingHashConf{MinRingSize: new(int64(4096))},
	}}
	small := policy.Conf{LoadBalancer: &policy.LoadBalancer{
		Type: policy.RingHash, RingHash: &policy.RingHashConf{MaxRingSize: new(int64(100))},
	}}
	hashed := policy.Conf{
		HashPolicies:    []policy.HashPolicy{{Type: policy.HashSourceIP}},
		EndpointHashKey: &policy.EndpointHashKey{Type: policy.HashKeyPodName},
	}
	late := policy.Conf{Locality: policy.Locality{Failover: []policy.Failover{to(policy.FailoverAny), to(policy.FailoverOnly, "b")}}}
	band := policy.Conf{Locality: policy.Locality{Overflow: policy.Overflow{LoadBand: &policy.LoadBand{Low: 1, High: 2}}}}
	adaptive := policy.Conf{Locality: policy.Locality{Overflow: policy.Overflow{Mode: new(policy.OverflowAdaptive)}}}
	racks := policy.Conf{Locality: policy.Locality{Affinity: []policy.Affinity{{Key: "rack"}}}}
	shares := policy.Conf{Locality: policy.Locality{Weights: []policy.Weight{{Key: "rack", Value: "r", Weight: 1}}}}
	slow := policy.Conf{SlowStart: &policy.SlowStart{Window: policy.Duration(time.Minute)}}
	pauses := policy.Conf{OutlierDetection: &policy.OutlierDetection{MaxEjectionTime: new(policy.Duration(time.Second))}}
	second := aboutWeb("p", algorithm(policy.RoundRobin))
	second.Origin.Entry = 1
	for name, c := range map[string]struct {
		rules []policy.Rule
		want  []reason.Finding
	}{
		"hash policies of a balancer that does not hash": {
			[]policy.Rule{aboutWeb("p", hashed), meshWide("all", algorithm(policy.Random))},
			[]reason.Finding{
				note("hashPolicies", "unused: Random does not hash requests"),
				note("endpointHashKey", "unused: Random does not hash requests"),
			},
		},
		"hash policies where nobody chose": {
			[]policy.Rule{aboutWeb("p", policy.Conf{HashPolicies: hashed.HashPolicies})},
			[]reason.Finding{note("hashPolicies", "unused: the default algorithm does not hash requests")},
		},
		"failover rules that nobody asks": {
			[]policy.Rule{aboutWeb("p", late)},
			[]reason.Finding{note("locality.failover[1]", "unreachable: a rule before it goes to Any or None for all of its clients")},
		},
		"a band without its mode":       {[]policy.Rule{aboutWeb("p", band)}, nil},
		"a band of another mode":        {[]policy.Rule{aboutWeb("p", band), meshWide("all", adaptive)}, []reason.Finding{note("locality.overflow.loadBand", "unused: the mode is Adaptive")}},
		"affinity beside fixed weights": {[]policy.Rule{aboutWeb("p", racks), meshWide("all", shares)}, []reason.Finding{note("locality.affinity", "overridden: fixed weights take the place of the zone")}},
		"a slow start of who has none":  {[]policy.Rule{aboutWeb("p", slow), meshWide("all", algorithm(policy.Maglev))}, []reason.Finding{note("slowStart", "unused: Maglev has no slow start")}},
		"two ring sizes that cross":     {[]policy.Rule{aboutWeb("p", ring), meshWide("all", small)}, []reason.Finding{note("loadBalancer.ringHash.minRingSize", "is lowered to the maxRingSize that holds, 100")}},
		"a pause longer than the most":  {[]policy.Rule{aboutWeb("p", pauses)}, []reason.Finding{note("outlierDetection.maxEjectionTime", "is raised to the baseEjectionTime that holds, 30s")}},
		"a default ring above the most": {[]policy.Rule{aboutWeb("p", small)}, nil},
		"equals that contradict": {
			[]policy.Rule{aboutWeb("a", algorithm(policy.Random)), aboutWeb("p", algorithm(policy.RoundRobin))},
			[]reason.Finding{note("loadBalancer.type", "RoundRobin is overridden by LoadBalancingPolicy shop/a, which is as specific and first in the alphabet")},
		},
		"entries of one document that contradict": {[]policy.Rule{aboutWeb("p", algorithm(policy.Random)), second}, nil},
		"equals that agree":                       {[]policy.Rule{aboutWeb("a", algorithm(policy.Random)), aboutWeb("p", algorithm(policy.Random))}, nil},
		"who is overridden by the smaller":        {[]policy.Rule{aboutWeb("a", algorithm(policy.Random)), meshWide("p", algorithm(policy.RoundRobin))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := resolve(c.rules...)
			if diff := cmp.Diff(c.want, got.Notes); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if r := got.LoadBalancer.RingHash; *r.MinRingSize > *r.MaxRingSize {
				t.Errorf("ring sizes from %d to %d", *r.MinRingSize, *r.MaxRingSize)
			}
		})
	}
}

func TestRulesApplyToTheirTargets(t *testing.T) {
	target := func(t policy.Target) policy.Rule {
		return policy.Rule{Origin: origin("shop", "p"), Target: t, Conf: algorithm(policy.Random)}
	}
	mesh := target(policy.Target{Kind: policy.TargetService, Name: "web", Section: "80"})
	mesh.Origin = policy.Origin{Dialect: policy.DialectMeshLoadBalancing, Name: "m"}
	service := policy.Target{Kind: policy.TargetService, Namespace: "shop", Name: "web"}
	with := func(section string) policy.Target { t := service; t.Section = section; return t }
	for name, c := range map[string]struct {
		rule policy.Rule
		want bool
	}{
		"the mesh":                           {meshWide("p", algorithm(policy.Random)), true},
		"its namespace":                      {target(policy.Target{Kind: policy.TargetNamespace, Namespace: "shop"}), true},
		"another namespace":                  {target(policy.Target{Kind: policy.TargetNamespace, Namespace: "bank"}), false},
		"the service":                        {target(service), true},
		"another service":                    {target(policy.Target{Kind: policy.TargetService, Namespace: "shop", Name: "cart"}), false},
		"a namesake elsewhere":               {target(policy.Target{Kind: policy.TargetService, Namespace: "bank", Name: "web"}), false},
		"the import of the service":          {target(policy.Target{Kind: policy.TargetServiceImport, Namespace: "shop", Name: "web"}), true},
		"the port by name":                   {target(with("http")), true},
		"the port by number":                 {target(with("80")), true},
		"another port":                       {target(with("grpc")), false},
		"a service of the mesh, any's":       {mesh, true},
		"a route is not the service":         {target(policy.Target{Kind: policy.TargetHTTPRoute, Namespace: "shop", Name: "web"}), false},
		"a namespace is not the service web": {target(policy.Target{Kind: policy.TargetNamespace, Namespace: "web"}), false},
	} {
		if got := resolve(c.rule).LoadBalancer.Type == policy.Random; got != c.want {
			t.Errorf("%s: want %t, got %t", name, c.want, got)
		}
	}
}

func TestRulesApplyToTheirClients(t *testing.T) {
	offline := policy.Selector{{Key: "tier", Operator: policy.In, Values: []string{"offline"}}}
	notOffline := policy.Selector{{Key: "tier", Operator: policy.NotIn, Values: []string{"offline"}}}
	red := policy.Selector{{Key: "team", Operator: policy.In, Values: []string{"red"}}}
	named := policy.Selector{{Key: "kubernetes.io/metadata.name", Operator: policy.In, Values: []string{"zoo"}}}
	batch := policy.Client{Zone: "a", Namespace: "batch", Pod: policy.Labels{"tier": "offline"}}
	for name, c := range map[string]struct {
		clients policy.Clients
		client  policy.Client
		want    bool
	}{
		"everybody":                           {policy.Clients{}, policy.Client{}, true},
		"a zone":                              {policy.Clients{Zones: []topology.Zone{"b", "a"}}, batch, true},
		"another zone":                        {policy.Clients{Zones: []topology.Zone{"b"}}, batch, false},
		"a zone, of who has none":             {policy.Clients{Zones: []topology.Zone{""}}, policy.Client{}, false},
		"a consumer's own":                    {policy.Clients{Namespace: "batch"}, batch, true},
		"a consumer's, of another":            {policy.Clients{Namespace: "shop"}, batch, false},
		"pods":                                {policy.Clients{Pods: offline}, batch, true},
		"pods without labels":                 {policy.Clients{Pods: notOffline}, policy.Client{Namespace: "batch"}, true},
		"nobody knows the pod":                {policy.Clients{Pods: notOffline}, policy.Client{}, false},
		"namespaces":                          {policy.Clients{Namespaces: red}, batch, true},
		"namespaces by name":                  {policy.Clients{Namespaces: named}, policy.Client{Namespace: "zoo"}, true},
		"namespaces, of who has none":         {policy.Clients{Namespaces: policy.Selector{{Key: "x", Operator: policy.DoesNotExist}}}, policy.Client{}, false},
		"pods in the wrong zone":              {policy.Clients{Pods: offline, Zones: []topology.Zone{"b"}}, batch, false},
		"endpoints of a service":              {policy.Clients{Service: &web.Service}, policy.Client{Serves: []topology.ServiceName{{Name: "x"}, web.Service}}, true},
		"endpoints of a service, but another": {policy.Clients{Service: &web.Service}, batch, false},
	} {
		rule := meshWide("p", algorithm(policy.Random))
		rule.Clients = c.clients
		s := policy.NewSet(policy.Set{Rules: []policy.Rule{rule}, Namespaces: map[string]policy.Labels{"batch": {"team": "red"}}})
		if got := s.Resolve(c.client, web).LoadBalancer.Type == policy.Random; got != c.want {
			t.Errorf("%s: want %t, got %t", name, c.want, got)
		}
	}
}

// applies is a dumb twin of the index: it asks a rule on its own.
func applies(s *policy.Set, r *policy.Rule, c policy.Client, d policy.Destination) bool {
	t := r.Target
	switch t.Kind {
	case policy.TargetMesh:
	case policy.TargetNamespace:
		if t.Namespace != d.Service.Namespace {
			return false
		}
	case policy.TargetService, policy.TargetServiceImport:
		port := t.Section == "" || t.Section == d.Port.Name || t.Section == fmt.Sprint(d.Port.Port)
		if t.Name != d.Service.Name || t.Namespace != "" && t.Namespace != d.Service.Namespace || !port {
			return false
		}
	default:
		return false
	}
	k := r.Clients
	namespace := s.Namespaces[c.Namespace]
	if namespace == nil {
		namespace = policy.Labels{"kubernetes.io/metadata.name": c.Namespace}
	}
	known := c.Namespace != ""
	return (len(k.Zones) == 0 || c.Zone != "" && slices.Contains(k.Zones, c.Zone)) &&
		(k.Namespace == "" || k.Namespace == c.Namespace) &&
		(len(k.Namespaces) == 0 || known && k.Namespaces.Matches(namespace)) &&
		(len(k.Pods) == 0 || known && k.Pods.Matches(c.Pod)) &&
		(k.Service == nil || slices.Contains(c.Serves, *k.Service))
}

// lookup follows a path through a document; a missing block is a missing field.
func lookup(o object, path string) (any, bool) {
	keys := strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		inner, ok := o[key].(object)
		if !ok {
			return nil, false
		}
		o = inner
	}
	value, ok := o[keys[len(keys)-1]]
	return value, ok
}

func resolveTwin(t *testing.T, seed uint64) {
	t.Helper()
	g := newGenerator(seed)
	s, c, d := g.set(), g.client(), g.destination()
	got := policy.NewSet(s).Resolve(c, d)
	equalSettings(t, got, s.Resolve(c, d)) // a set that NewSet did not make

	var rules []*policy.Rule
	for i := range s.Rules {
		if applies(&s, &s.Rules[i], c, d) {
			rules = append(rules, &s.Rules[i])
		}
	}
	slices.SortStableFunc(rules, policy.Compare)
	merged := object{}
	for _, r := range rules {
		merged = mergePatch(merged, document(t, &r.Conf))
	}
	paths := make(map[string]bool)
	for _, f := range got.Fields {
		paths[f.Path] = true
		value, ok := lookup(merged, f.Path)
		meshDefault := f.Path == "loadBalancer.type" && f.Origin.Dialect.IsMesh() && f.Value == "RoundRobin"
		if !ok && !meshDefault {
			t.Fatalf("seed %d: %s is set and nobody said so", seed, f.Path)
		}
		// Of the rules that say the field, the last one is its author.
		var author *policy.Rule
		for _, r := range rules {
			if _, says := lookup(document(t, &r.Conf), f.Path); says || meshDefault && !ok && r.Origin.Dialect.IsMesh() {
				author = r
			}
		}
		if author == nil || author.Origin != f.Origin {
			t.Fatalf("seed %d: %s comes from %v, got %v", seed, f.Path, author, f.Origin)
		}
		text, plain := value.(string)
		if d, err := time.ParseDuration(text); err == nil {
			text = policy.Duration(d).String()
		}
		if plain && text != f.Value {
			t.Fatalf("seed %d: %s is %q, got %q", seed, f.Path, text, f.Value)
		}
	}
	noted := make(map[string]bool)
	for _, n := range got.Notes {
		noted[n.Field] = true
	}
	for path := range leaves(merged, "") {
		if !paths[path] && !noted[path] && path != "slowStart" && path != "endpointHashKey" {
			t.Fatalf("seed %d: %s was said, and is neither a field nor noted", seed, path)
		}
	}
	checkSane(t, seed, &got)
}

// leaves gives the paths of all that is said, down to what the merge takes as one value.
func leaves(o object, prefix string) map[string]bool {
	found := make(map[string]bool)
	for key, value := range o {
		inner, isObject := value.(object)
		switch {
		case !isObject, key == "loadBand", key == "slowStart", key == "endpointHashKey":
			found[prefix+key] = true
		default:
			maps.Copy(found, leaves(inner, prefix+key+"."))
		}
	}
	return found
}

// checkSane checks what holds for all settings.
func checkSane(t *testing.T, seed uint64, s *policy.Settings) {
	t.Helper()
	l, b := &s.Locality, s.LoadBalancer
	isDisabled := l.Disabled != nil && *l.Disabled
	isBand := l.Overflow.Mode != nil && *l.Overflow.Mode == policy.OverflowLoadBand
	switch {
	case len(l.Failover) == 0, *b.RingHash.MinRingSize > *b.RingHash.MaxRingSize, *b.RingHash.MinRingSize == 0,
		*b.LeastRequest.ChoiceCount < 2, l.ZoneKey == nil,
		isDisabled && (len(l.Affinity)+len(l.Weights) > 0 || l.FailoverThreshold != nil || l.Overflow.Mode != nil),
		!b.Type.IsHashing() && (len(s.HashPolicies) > 0 || len(s.Routes) > 0),
		isBand != (l.Overflow.LoadBand != nil),
		len(l.Weights) > 0 && len(l.Affinity) > 0:
		t.Fatalf("seed %d: %+v", seed, s)
	}
}

func TestResolveAgreesWithADumbTwin(t *testing.T) {
	for seed := range uint64(400) {
		resolveTwin(t, seed)
	}
}

func FuzzResolve(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(resolveTwin)
}

func TestTheSmallestCapOfAServicesPortsCountsForItsPlan(t *testing.T) {
	capped := func(name, section string, most policy.Number) policy.Rule {
		r := aboutWeb(name, policy.Conf{Locality: policy.Locality{MaxSkew: &most}})
		r.Target.Section = section
		return r
	}
	svc := &topology.Service{ServiceName: web.Service, Ports: []topology.Port{{Name: "http", Port: 80}, {Name: "grpc", Port: 81}}}
	for name, c := range map[string]struct {
		rules []policy.Rule
		want  float64
	}{
		"nobody says so": {[]policy.Rule{aboutWeb("p", algorithm(policy.Random))}, 0},
		"all ports":      {[]policy.Rule{capped("p", "", 1.5)}, 1.5},
		"one port":       {[]policy.Rule{capped("p", "", 1.5), capped("q", "grpc", 1.2)}, 1.2},
		"locality is off": {
			[]policy.Rule{capped("p", "", 1.5), aboutWeb("a", policy.Conf{Locality: policy.Locality{Disabled: new(true)}})}, 0,
		},
	} {
		if got := policy.NewSet(policy.Set{Rules: c.rules}).MaxSkew(policy.Client{}, svc); got != c.want {
			t.Errorf("%s: want %v, got %v", name, c.want, got)
		}
	}
	if got := (*policy.Set)(nil).MaxSkew(policy.Client{}, svc); got != 0 {
		t.Errorf("without policies: %v", got)
	}
}
