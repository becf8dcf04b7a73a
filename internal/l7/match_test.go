package l7_test

import (
	"testing"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/l7"
)

// decides tells whether a route's match takes a request from the service's own policies.
func decides(t *testing.T, route policy.RouteHash, lines ...string) bool {
	t.Helper()
	route.HashPolicies = []policy.HashPolicy{sourceIP()}
	rules, err := l7.CompileHash([]policy.HashPolicy{header(":method")}, []policy.RouteHash{route})
	if err != nil {
		t.Fatal(err)
	}
	r := asked(t, lines...)
	got, _, _ := l7.HashedBy(&rules, someone(), r)
	switch got {
	case of("10.0.0.1"):
		return true
	case of(r.Method):
		return false
	default:
		t.Fatalf("a key of neither: %d", got)
		return false
	}
}

func TestRoutesMatchByPath(t *testing.T) {
	for _, c := range []struct {
		match  policy.MatchType
		value  string
		target string
		want   bool
	}{
		{policy.MatchExact, "/a", "/a", true},
		{policy.MatchExact, "/a", "/a?b", true},
		{policy.MatchExact, "/a", "/a/", false},
		{policy.MatchExact, "/a", "/A", false},
		{policy.MatchExact, "/a", "http://other.example/a", true},
		{policy.MatchExact, "/a", "/%61", false},
		{policy.MatchPrefix, "/", "/", true},
		{policy.MatchPrefix, "/", "/x/y", true},
		{policy.MatchPrefix, "/a", "/a", true},
		{policy.MatchPrefix, "/a", "/a/", true},
		{policy.MatchPrefix, "/a", "/a/b", true},
		{policy.MatchPrefix, "/a", "/ab", false},
		{policy.MatchPrefix, "/a/", "/a", true},
		{policy.MatchPrefix, "/a/", "/ab", false},
		{policy.MatchPrefix, "/a", "/", false},
		{policy.MatchRegex, "/a/[0-9]+", "/a/12?x", true},
		{policy.MatchRegex, "/a/[0-9]+", "/a/12/", false},
		{policy.MatchRegex, "/a/[0-9]+", "/b/a/12", false},
		{policy.MatchRegex, "/a|/b", "/b", true},
		{policy.MatchRegex, "/a|/b", "/bc", false},
	} {
		route := policy.RouteHash{Match: policy.Match{Path: &policy.PathMatch{Type: c.match, Value: c.value}}}
		if got := decides(t, route, "GET "+c.target+" HTTP/1.1"); got != c.want {
			t.Errorf("%s %q, asked for %s: got %v", c.match, c.value, c.target, got)
		}
	}
	asterisk := policy.RouteHash{Match: policy.Match{Path: &policy.PathMatch{Type: policy.MatchPrefix, Value: "/"}}}
	if decides(t, asterisk, "OPTIONS * HTTP/1.1") {
		t.Error("* is below /")
	}
}

func TestRoutesMatchByHost(t *testing.T) {
	for _, c := range []struct {
		hosts []string
		asked string
		want  bool
	}{
		{nil, "any", true},
		{[]string{"shop.example"}, "shop.example", true},
		{[]string{"shop.example"}, "Shop.Example:8080", true},
		{[]string{"shop.example"}, "shop.example.", true},
		{[]string{"shop.example"}, "a.shop.example", false},
		{[]string{"*.shop.example"}, "a.shop.example:80", true},
		{[]string{"*.shop.example"}, "b.a.shop.example", true},
		{[]string{"*.shop.example"}, "shop.example", false},
		{[]string{"*.shop.example"}, ".shop.example", false},
		{[]string{"*.shop.example"}, "ashop.example", false},
		{[]string{"x", "shop.example"}, "shop.example", true},
		{[]string{"*"}, "any", true},
		{[]string{"[::1]"}, "[::1]:80", true},
		{[]string{"[::1]"}, "[::1]", true},
	} {
		rules, err := l7.CompileHash(nil, []policy.RouteHash{{Hosts: c.hosts, HashPolicies: []policy.HashPolicy{sourceIP()}}})
		if err != nil {
			t.Fatal(err)
		}
		r := asked(t, "GET / HTTP/1.1")
		r.Host = c.asked
		if _, got, _ := l7.HashedBy(&rules, someone(), r); got != c.want {
			t.Errorf("%v, asked for %s: got %v", c.hosts, c.asked, got)
		}
	}
}

func TestRoutesMatchByMethodHeadersAndQuery(t *testing.T) {
	exact := func(name, value string) []policy.ValueMatch {
		return []policy.ValueMatch{{Type: policy.MatchExact, Name: name, Value: value}}
	}
	regex := func(name, value string) []policy.ValueMatch {
		return []policy.ValueMatch{{Type: policy.MatchRegex, Name: name, Value: value}}
	}
	for name, c := range map[string]struct {
		match policy.Match
		want  bool
	}{
		"everything":                     {policy.Match{}, true},
		"method":                         {policy.Match{Method: "POST"}, true},
		"another method":                 {policy.Match{Method: "GET"}, false},
		"header in any letter case":      {policy.Match{Headers: exact("x-kind", "big")}, true},
		"header's value in its own case": {policy.Match{Headers: exact("x-kind", "Big")}, false},
		"header that is not there":       {policy.Match{Headers: exact("x-none", "")}, false},
		"header twice is a list":         {policy.Match{Headers: exact("two", "a,b")}, true},
		"header by expression, whole":    {policy.Match{Headers: regex("x-kind", "b.g")}, true},
		"header by a part":               {policy.Match{Headers: regex("x-kind", "b")}, false},
		"host as a header":               {policy.Match{Headers: exact("Host", "shop.example:80")}, true},
		"both headers":                   {policy.Match{Headers: append(exact("x-kind", "big"), exact("two", "x")...)}, false},
		"query":                          {policy.Match{Query: exact("q", "1")}, true},
		"query, the first counts":        {policy.Match{Query: exact("q", "2")}, false},
		"query, decoded":                 {policy.Match{Query: exact("a b", "c d")}, true},
		"query, not decodable":           {policy.Match{Query: exact("z", "%zz")}, true},
		"query without a value":          {policy.Match{Query: exact("empty", "")}, true},
		"query that is not there":        {policy.Match{Query: exact("Q", "1")}, false},
		"query by expression":            {policy.Match{Query: regex("q", "[0-9]")}, true},
		"everything at once":             {policy.Match{Method: "POST", Headers: exact("x-kind", "big"), Query: exact("q", "1")}, true},
	} {
		got := decides(t, policy.RouteHash{Match: c.match}, "POST /?q=1&q=2&a%20b=c+d&z=%zz&empty HTTP/1.1", "X-Kind: big", "Two: a", "Two: b")
		if got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestTheFirstRouteThatMatchesCounts(t *testing.T) {
	path := func(value string) policy.Match {
		return policy.Match{Path: &policy.PathMatch{Type: policy.MatchPrefix, Value: value}}
	}
	rules, err := l7.CompileHash([]policy.HashPolicy{header("a")}, []policy.RouteHash{
		{Match: path("/x/y"), HashPolicies: []policy.HashPolicy{header("b")}},
		{Match: path("/x"), HashPolicies: []policy.HashPolicy{header("c")}},
		{Match: path("/x/y/z"), HashPolicies: []policy.HashPolicy{header("a")}},
		{Match: path("/none")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{"/": "1", "/x": "3", "/x/y": "2", "/x/y/z": "2", "/none": ""} {
		got, ok, _ := l7.HashedBy(&rules, someone(), asked(t, "GET "+target+" HTTP/1.1", "A: 1", "B: 2", "C: 3"))
		if ok != (want != "") || ok && got != of(want) {
			t.Errorf("%s: got %d %v, want the key of %q", target, got, ok, want)
		}
	}
}
