package policy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

func header(name string) []policy.HashPolicy {
	return []policy.HashPolicy{hashOf(policy.HashHeader, name)}
}

func hashing(name string) policy.Conf {
	c := algorithm(policy.RingHash)
	c.HashPolicies = header(name)
	return c
}

func aboutRoute(name, route, section, hash string) policy.Rule {
	return policy.Rule{
		Origin: origin("shop", name),
		Target: policy.Target{Kind: policy.TargetHTTPRoute, Namespace: "shop", Name: route, Section: section},
		Conf:   policy.Conf{HashPolicies: header(hash)},
	}
}

func match(kind policy.MatchType, path string) policy.Match {
	return policy.Match{Path: &policy.PathMatch{Type: kind, Value: path}}
}

func port(name string, number uint16) policy.ServicePort {
	return policy.ServicePort{ServiceName: topology.ServiceName{Namespace: "shop", Name: name}, Port: number}
}

// search is a route of the service web with three rules.
func search() policy.Route {
	return policy.Route{
		Kind: policy.TargetHTTPRoute, Namespace: "shop", Name: "search", Services: []policy.ServicePort{port("web", 0)},
		Rules: []policy.RouteRule{
			{Name: "all"},
			{Name: "by-query", Matches: []policy.Match{match(policy.MatchPrefix, "/search")}},
			{Matches: []policy.Match{match(policy.MatchExact, "/search/top")}},
		},
	}
}

// routeWords lists the rules with the header that each hashes.
func routeWords(s policy.Settings) string {
	var words []string
	for _, r := range s.Routes {
		name := "none"
		if len(r.HashPolicies) > 0 {
			name = r.HashPolicies[0].Name()
		}
		words = append(words, strings.TrimPrefix(r.Route, "HTTPRoute shop/")+"="+name)
	}
	return strings.Join(words, " ")
}

func TestK58RoutePolicies(t *testing.T) {
	client := policy.Client{Zone: "a", Namespace: "batch", Pod: policy.Labels{"tier": "offline"}}
	picky := aboutWeb("picky", hashing("picky"))
	picky.Clients.Pods = policy.Selector{{Key: "tier", Operator: policy.Exists}}
	others := aboutRoute("others", "search", "", "others")
	others.Clients.Zones = []topology.Zone{"b"}
	silent := aboutRoute("silent", "search", "by-query", "x")
	silent.Conf.HashPolicies = nil
	noHash := aboutRoute("none", "search", "by-query", "x")
	noHash.Conf.HashPolicies = []policy.HashPolicy{}
	gateway := search()
	gateway.Services = nil
	gateway.Rules[1].Backends = []policy.ServicePort{port("web", 80)}
	gateway.Rules[2].Backends = []policy.ServicePort{port("cart", 80)}
	otherPort := search()
	otherPort.Services = []policy.ServicePort{port("web", 9000)}
	for name, c := range map[string]struct {
		route policy.Route
		rules []policy.Rule
		want  string
	}{
		"the route's rule overrides the service": {
			search(),
			[]policy.Rule{aboutWeb("s", hashing("service")), aboutRoute("r", "search", "by-query", "query")},
			"search#2=service search#by-query=query search#all=service",
		},
		"the route overrides all of its rules": {
			search(),
			[]policy.Rule{aboutWeb("s", hashing("service")), aboutRoute("r", "search", "", "query")},
			"search#2=query search#by-query=query search#all=query",
		},
		"a rule's policy overrides the route's": {
			search(),
			[]policy.Rule{aboutWeb("s", hashing("service")), aboutRoute("a", "search", "", "route"), aboutRoute("r", "search", "by-query", "query")},
			"search#2=route search#by-query=query search#all=route",
		},
		"even a service policy for picked clients": {
			search(),
			[]policy.Rule{picky, aboutRoute("r", "search", "by-query", "query")},
			"search#2=picky search#by-query=query search#all=picky",
		},
		"a list that is empty takes the hash away": {
			search(),
			[]policy.Rule{aboutWeb("s", hashing("service")), noHash},
			"search#2=service search#by-query=none search#all=service",
		},
		"no policy about the route":  {search(), []policy.Rule{aboutWeb("s", hashing("service"))}, ""},
		"a policy about another":     {search(), []policy.Rule{aboutWeb("s", hashing("service")), aboutRoute("r", "browse", "", "x")}, ""},
		"a policy for other clients": {search(), []policy.Rule{aboutWeb("s", hashing("service")), others}, ""},
		"a policy that says nothing": {search(), []policy.Rule{aboutWeb("s", hashing("service")), silent}, ""},
		"a route of a gateway: only the rules whose backend it is": {
			gateway, []policy.Rule{aboutWeb("s", hashing("service")), aboutRoute("r", "search", "", "query")}, "search#by-query=query",
		},
		"a route of another port": {otherPort, []policy.Rule{aboutWeb("s", hashing("service")), aboutRoute("r", "search", "", "query")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := policy.NewSet(policy.Set{Rules: c.rules, Routes: []policy.Route{c.route}})
			if got := routeWords(s.Resolve(client, web)); got != c.want {
				t.Errorf("want %s, got %s", c.want, got)
			}
		})
	}
}

func TestARoutePolicyWithoutAHashingBalancerIsNoted(t *testing.T) {
	s := policy.NewSet(policy.Set{Rules: []policy.Rule{aboutRoute("r", "search", "", "q")}, Routes: []policy.Route{search()}})
	got := s.Resolve(policy.Client{}, web)
	want := []reason.Finding{
		origin("shop", "r").Finding("hashPolicies", reason.Unused, "unused: the default algorithm does not hash requests"),
	}
	if diff := cmp.Diff(want, got.Notes); diff != "" || len(got.Routes) != 0 {
		t.Errorf("routes %v (-want +got)\n%s", got.Routes, diff)
	}
}

func TestRouteHashNamesItsAuthor(t *testing.T) {
	s := policy.NewSet(policy.Set{
		Rules:  []policy.Rule{aboutWeb("s", hashing("service")), aboutRoute("r", "search", "by-query", "query")},
		Routes: []policy.Route{search()},
	})
	routes := s.Resolve(policy.Client{}, web).Routes
	if routes[0].Origin != nil || routes[1].Origin == nil || routes[1].Origin.Name != "r" {
		t.Errorf("got %v, %v", routes[0].Origin, routes[1].Origin)
	}
}

func TestRoutesAreAskedInTheOrderOfTheGatewayAPI(t *testing.T) {
	with := func(m policy.Match, change func(*policy.Match)) policy.Match { change(&m); return m }
	value := policy.ValueMatch{Type: policy.MatchExact, Name: "n", Value: "v"}
	long := match(policy.MatchPrefix, "/a/b")
	matches := []policy.Match{ // in the order that is wanted
		match(policy.MatchExact, "/a"),
		match(policy.MatchRegex, "/.*"),
		match(policy.MatchPrefix, "/a/b/c"),
		with(long, func(m *policy.Match) { m.Method = "GET" }),
		with(long, func(m *policy.Match) { m.Headers = []policy.ValueMatch{value, value} }),
		with(long, func(m *policy.Match) { m.Headers, m.Query = []policy.ValueMatch{value}, []policy.ValueMatch{value} }),
		with(long, func(m *policy.Match) { m.Headers = []policy.ValueMatch{value} }),
		with(long, func(m *policy.Match) { m.Query = []policy.ValueMatch{value, value} }),
		with(long, func(m *policy.Match) { m.Query = []policy.ValueMatch{value} }),
		long,
		match(policy.MatchPrefix, "/"),
		{},
	}
	mixed := slices.Clone(matches)
	slices.Reverse(mixed)
	route := search()
	route.Rules = []policy.RouteRule{{Name: "all", Matches: mixed}}
	s := policy.NewSet(policy.Set{
		Rules: []policy.Rule{aboutWeb("s", hashing("x")), aboutRoute("r", "search", "", "q")}, Routes: []policy.Route{route},
	})
	var got []policy.Match
	for _, r := range s.Resolve(policy.Client{}, web).Routes {
		got = append(got, r.Match)
	}
	if diff := cmp.Diff(matches, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestRoutesWithEqualMatchesAreAskedByHostAgeNameAndNumber(t *testing.T) {
	named := func(namespace, name string, created time.Time, hosts ...string) policy.Route {
		r := search()
		r.Namespace, r.Name, r.Created, r.Hosts = namespace, name, created, hosts
		r.Rules = []policy.RouteRule{{Name: "r"}, {}}
		return r
	}
	old, young := time.Unix(1, 0), time.Unix(2, 0)
	routes := []policy.Route{
		named("shop", "undated", time.Time{}), named("shop", "b", young), named("shop", "a", young), named("bank", "z", young),
		named("shop", "old", old), named("shop", "wild", young, "*.example.com", "*.com"),
		named("shop", "host", young, "example.com", "www.example.com"),
	}
	rules := []policy.Rule{aboutWeb("s", hashing("x"))}
	for _, r := range routes {
		about := aboutRoute("r-"+r.Name, r.Name, "", "q")
		about.Target.Namespace = r.Namespace
		rules = append(rules, about)
	}
	s := policy.NewSet(policy.Set{Rules: rules, Routes: routes})
	var got []string
	for _, r := range s.Resolve(policy.Client{}, web).Routes {
		got = append(got, strings.TrimPrefix(r.Route, "HTTPRoute ")+strings.Join(r.Hosts, ","))
	}
	want := []string{
		"shop/host#rwww.example.com", "shop/host#1www.example.com", "shop/host#rexample.com", "shop/host#1example.com",
		"shop/wild#r*.example.com", "shop/wild#1*.example.com", "shop/wild#r*.com", "shop/wild#1*.com",
		"shop/old#r", "shop/old#1", "bank/z#r", "bank/z#1", "shop/a#r", "shop/a#1", "shop/b#r", "shop/b#1",
		"shop/undated#r", "shop/undated#1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
