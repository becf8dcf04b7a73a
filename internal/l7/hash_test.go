package l7_test

import (
	"bufio"
	"bytes"
	"math/bits"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/hash"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/l7"
)

// asked parses a request: its first line, then a line for each field.
func asked(tb testing.TB, lines ...string) *http.Request {
	tb.Helper()
	raw := strings.Join(append(lines[:1:1], append([]string{"Host: shop.example:80"}, lines[1:]...)...), "\r\n")
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw + "\r\n\r\n")))
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func compiled(tb testing.TB, policies ...policy.HashPolicy) l7.HashRules {
	tb.Helper()
	rules, err := l7.CompileHash(policies, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return rules
}

// The policies of the tests; a terminal one is made by end.
func header(name string) policy.HashPolicy {
	return policy.HashPolicy{Type: policy.HashHeader, Header: &policy.HeaderKey{Name: name}}
}

func query(name string) policy.HashPolicy {
	return policy.HashPolicy{Type: policy.HashQueryParameter, QueryParameter: &policy.QueryParameterKey{Name: name}}
}

func state(key string) policy.HashPolicy {
	return policy.HashPolicy{Type: policy.HashFilterState, FilterState: &policy.FilterStateKey{Key: key}}
}

func sourceIP() policy.HashPolicy { return policy.HashPolicy{Type: policy.HashSourceIP} }

func cookie(name string) policy.HashPolicy {
	return policy.HashPolicy{Type: policy.HashCookie, Cookie: &policy.CookieKey{Name: name}}
}

func made(name string, ttl time.Duration, path string) policy.HashPolicy {
	p := cookie(name)
	p.Cookie.TTL, p.Cookie.Path = new(policy.Duration(ttl)), &path
	return p
}

func end(p policy.HashPolicy) policy.HashPolicy {
	p.Terminal = new(true)
	return p
}

func of(text string) uint64 { return hash.XXH64String(0, text) }

// someone is a client as of the vectors.
func someone() l7.HashClient {
	return l7.HashClient{Number: 7, Remote: netip.MustParseAddrPort("10.0.0.1:5678"), Local: netip.MustParseAddrPort("127.0.0.1:80")}
}

func TestRequestHashes(t *testing.T) {
	const nothing = 0
	people := asked(t, "GET /a/b?q=1&Q=2&q=3&e&f=a%20b HTTP/1.1", "A: alice", "B: bob", "Two: foo", "Two: bar", "Values: value2",
		"Values: value1", "List: foo,bar", "Empty:", "Data-Bin: AAEC", "Cookie: x=1; sid=alice; sid=bob", `Cookie: quoted="bob"; none=; bad`,
		"X-Weir-Filter-State: tenant=alice, team = bob", "X-Weir-Filter-State: tenant=carol,weir.client.port=1")
	filter := someone()
	filter.IsFilter = true
	mapped := someone()
	mapped.Remote = netip.MustParseAddrPort("[2001:db8::1]:5678")
	for _, c := range []struct {
		name     string
		policies []policy.HashPolicy
		client   l7.HashClient
		want     uint64 // nothing: no key
	}{
		{"A-01 two policies", []policy.HashPolicy{header("a"), header("b")}, someone(), 8484885790741369001},
		{"A-01 in the other order", []policy.HashPolicy{header("b"), header("a")}, someone(), 6245646329160908862},
		{"A-01 the same twice does not cancel", []policy.HashPolicy{header("a"), header("a")}, someone(), 0x94e43ed8e172a0db},
		{"A-01 three sources", []policy.HashPolicy{header("a"), header("b"), sourceIP()}, someone(), 474696824734270085},
		{"A-01 what brings nothing is passed over", []policy.HashPolicy{header("a"), header("z"), header("b")}, someone(), 8484885790741369001},
		{"A-02 terminal with a hash", []policy.HashPolicy{end(header("a")), header("b")}, someone(), 8332761332120969289},
		{"A-02 terminal without one", []policy.HashPolicy{end(header("z")), header("b")}, someone(), 10558559838520660027},
		{"A-02 terminal that brings nothing after one that did", []policy.HashPolicy{header("a"), end(header("z")), header("b")}, someone(), 8332761332120969289},
		{"A-03 no hash at all", []policy.HashPolicy{header("z"), cookie("z"), query("z"), state("z")}, someone(), nothing},
		{"A-03 no policy", nil, someone(), nothing},
		{"A-04 one value", []policy.HashPolicy{header("a")}, someone(), of("alice")},
		{"A-04 values foo and bar, sorted", []policy.HashPolicy{header("two")}, someone(), 6648465492906218751},
		{"A-04 values value2 and value1, sorted", []policy.HashPolicy{header("Values")}, someone(), 9193721384592083371},
		{"A-04 an empty value is one", []policy.HashPolicy{header("empty")}, someone(), 17241709254077376921},
		{"A-04 the host", []policy.HashPolicy{header("host")}, someone(), of("shop.example:80")},
		{"A-04 Envoy's name of the host", []policy.HashPolicy{header(":authority")}, someone(), of("shop.example:80")},
		{"A-04 Envoy's path has the query", []policy.HashPolicy{header(":path")}, someone(), of("/a/b?q=1&Q=2&q=3&e&f=a%20b")},
		{"A-04 Envoy's method", []policy.HashPolicy{header(":method")}, someone(), of("GET")},
		{"A-05 a list in one field is one value, as gRPC joins them", []policy.HashPolicy{header("list")}, someone(), 0x3647fa00d72ffcc3},
		{"A-05 -bin as it is on the wire", []policy.HashPolicy{header("data-bin")}, someone(), of("AAEC")},
		{"A-06 a cookie, the first of its name", []policy.HashPolicy{cookie("sid")}, someone(), of("alice")},
		{"A-06 a quoted cookie", []policy.HashPolicy{cookie("quoted")}, someone(), of("bob")},
		{"A-06 an empty cookie", []policy.HashPolicy{cookie("none")}, someone(), nothing},
		{"A-06 what is no cookie", []policy.HashPolicy{cookie("bad")}, someone(), nothing},
		{"A-06 letter case counts", []policy.HashPolicy{cookie("SID")}, someone(), nothing},
		{"A-06 a cookie that is there needs no ttl", []policy.HashPolicy{made("sid", time.Hour, "/")}, someone(), of("alice")},
		{"A-08 source IP", []policy.HashPolicy{sourceIP()}, someone(), 17084065887361098711},
		{"A-08 source IPv6", []policy.HashPolicy{sourceIP()}, mapped, of("2001:db8::1")},
		{"A-08 no address", []policy.HashPolicy{sourceIP()}, l7.HashClient{}, nothing},
		{"A-09 the first value", []policy.HashPolicy{query("q")}, someone(), of("1")},
		{"A-09 letter case counts", []policy.HashPolicy{query("Q")}, someone(), of("2")},
		{"A-09 a parameter without a value", []policy.HashPolicy{query("e")}, someone(), of("")},
		{"A-09 as it was sent", []policy.HashPolicy{query("f")}, someone(), of("a%20b")},
		{"A-10 client address", []policy.HashPolicy{state("weir.client.address")}, someone(), 17084065887361098711},
		{"A-10 client port", []policy.HashPolicy{state("weir.client.port")}, filter, of("5678")},
		{"A-10 listener address", []policy.HashPolicy{state("weir.listener.address")}, someone(), of("127.0.0.1")},
		{"A-10 listener port", []policy.HashPolicy{state("weir.listener.port")}, someone(), of("80")},
		{"A-10 connection", []policy.HashPolicy{state("weir.connection.id")}, someone(), of("7")},
		{"A-10 gRPC's channel", []policy.HashPolicy{state("io.grpc.channel_id")}, someone(), of("7")},
		{"A-10 protocol", []policy.HashPolicy{state("weir.request.protocol")}, someone(), of("HTTP/1.1")},
		{"A-10 host", []policy.HashPolicy{state("weir.request.host")}, someone(), of("shop.example:80")},
		{"A-10 path", []policy.HashPolicy{state("weir.request.path")}, someone(), of("/a/b")},
		{"A-10 method", []policy.HashPolicy{state("weir.request.method")}, someone(), of("GET")},
		{"A-10 told by a filter, the first time", []policy.HashPolicy{state("tenant")}, filter, of("alice")},
		{"A-10 told with white space", []policy.HashPolicy{state("team")}, filter, of("bob")},
		{"A-10 told by somebody", []policy.HashPolicy{state("tenant")}, someone(), nothing},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules := compiled(t, c.policies...)
			got, ok, cookies := l7.HashedBy(&rules, c.client, people)
			if got != c.want || ok != (c.want != nothing) || cookies != nil {
				t.Errorf("got %d %v %v, want %d", got, ok, cookies, c.want)
			}
		})
	}
	if diff := cmp.Diff([]string{"foo", "bar"}, people.Header["Two"]); diff != "" {
		t.Errorf("hashing changed what the endpoint hears (-want +got)\n%s", diff)
	}
}

func TestGeneratedCookies(t *testing.T) {
	const key = 7024633302307657791
	from := someone()
	from.Remote = netip.MustParseAddrPort("1.2.3.4:5678")
	for _, c := range []struct {
		name     string
		policies []policy.HashPolicy
		fields   []string
		want     uint64
		cookies  []string
	}{
		{"A-06 ttl and path", []policy.HashPolicy{made("sid", time.Hour, "/")}, nil, key, []string{`sid="77375ce2227114a2"; Max-Age=3600; Path=/; HttpOnly`}},
		{"A-06 no path", []policy.HashPolicy{made("sid", time.Hour, "")}, nil, key, []string{`sid="77375ce2227114a2"; Max-Age=3600; HttpOnly`}},
		{"A-06 a session", []policy.HashPolicy{made("sid", 0, "/a")}, nil, key, []string{`sid="77375ce2227114a2"; Path=/a; HttpOnly`}},
		{"A-06 whole seconds", []policy.HashPolicy{made("sid", 2900*time.Millisecond, "")}, nil, key, []string{`sid="77375ce2227114a2"; Max-Age=2; HttpOnly`}},
		{"A-06 less than a second", []policy.HashPolicy{made("sid", 900*time.Millisecond, "")}, nil, key, []string{`sid="77375ce2227114a2"; HttpOnly`}},
		{"A-06 an empty one is none", []policy.HashPolicy{made("sid", 0, "")}, []string{"Cookie: sid="}, key, []string{`sid="77375ce2227114a2"; HttpOnly`}},
		{"A-06 without a ttl", []policy.HashPolicy{cookie("sid")}, nil, 0, nil},
		{"A-06 named twice", []policy.HashPolicy{made("sid", 0, ""), made("sid", 0, "")}, nil, bits.RotateLeft64(key, 1) ^ key, []string{`sid="77375ce2227114a2"; HttpOnly`}},
		{"A-02 terminal before", []policy.HashPolicy{end(header("a")), made("sid", 0, "")}, []string{"A: alice"}, of("alice"), nil},
		{"A-01 a hash before", []policy.HashPolicy{header("a"), made("sid", 0, "")}, []string{"A: alice"}, bits.RotateLeft64(of("alice"), 1) ^ key, []string{`sid="77375ce2227114a2"; HttpOnly`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules := compiled(t, c.policies...)
			got, ok, cookies := l7.HashedBy(&rules, from, asked(t, append([]string{"GET / HTTP/1.1"}, c.fields...)...))
			if got != c.want || ok != (c.want != 0) {
				t.Errorf("got %d %v, want %d", got, ok, c.want)
			}
			if diff := cmp.Diff(c.cookies, cookies); diff != "" {
				t.Errorf("cookies (-want +got)\n%s", diff)
			}
		})
	}
}

func TestA11TCPHasWhatConnectionsHave(t *testing.T) {
	with, err := l7.CompileHash([]policy.HashPolicy{
		header("a"), cookie("a"), made("b", 0, ""), query("a"), state("weir.request.path"), state("tenant"), sourceIP(),
	}, []policy.RouteHash{{HashPolicies: []policy.HashPolicy{header("b")}}})
	if err != nil {
		t.Fatal(err)
	}
	from := someone()
	from.IsFilter = true
	if got, ok, cookies := l7.HashedBy(&with, from, nil); got != of("10.0.0.1") || !ok || cookies != nil {
		t.Errorf("got %d %v %v, want the source alone", got, ok, cookies)
	}
	policies := []policy.HashPolicy{header("a"), made("b", 0, ""), query("a"), state("tenant"), sourceIP()}
	for _, key := range l7.FilterStateKeys() {
		policies = append(policies, state(key.Name))
	}
	for _, p := range policies {
		rules := compiled(t, p)
		if _, ok, _ := l7.HashedBy(&rules, from, nil); ok != l7.HashesConnections(p) {
			t.Errorf("%v: got a key %v", p, ok)
		}
	}
}

// TestChainedSeedsAreEnvoys holds the vector that A-04 is made of: foo and bar, not sorted.
func TestChainedSeedsAreEnvoys(t *testing.T) {
	if got := hash.XXH64String(hash.XXH64String(0, "foo"), "bar"); got != 17745830980996999794 {
		t.Errorf("got %d", got)
	}
}

// TestPoliciesAgreeWithTheirTwin compares random lists of policies with what the rules say word for word.
func TestPoliciesAgreeWithTheirTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	r := asked(t, "GET /?q=v HTTP/1.1", "A: alice", "B: bob", "C:", "Cookie: a=alice")
	all := []policy.HashPolicy{header("a"), header("b"), header("c"), header("z"), cookie("a"), cookie("z"), query("q"), query("z"), sourceIP()}
	brings := []uint64{of("alice"), of("bob"), of(""), 0, of("alice"), 0, of("v"), 0, of("10.0.0.1")}
	for range 5_000 {
		var list []policy.HashPolicy
		var have []uint64
		isOver := false
		for range random.IntN(8) {
			i := random.IntN(len(all))
			next := all[i]
			next.Terminal = new(random.IntN(3) == 0)
			list = append(list, next)
			if brings[i] != 0 && !isOver {
				have = append(have, brings[i])
			}
			isOver = isOver || *next.Terminal && len(have) > 0
		}
		var want uint64
		for i, h := range have {
			if i == 0 {
				want = h
				continue
			}
			want = (want<<1 | want>>63) ^ h
		}
		rules := compiled(t, list...)
		if got, ok, _ := l7.HashedBy(&rules, someone(), r); got != want || ok != (len(have) > 0) {
			t.Fatalf("%v: got %d %v, want %d", list, got, ok, want)
		}
	}
}

func TestRulesThatCannotBeCompiled(t *testing.T) {
	route := func(m policy.Match) []policy.RouteHash {
		return []policy.RouteHash{{Route: "HTTPRoute shop/r", Match: m}}
	}
	for _, c := range []struct {
		policies []policy.HashPolicy
		routes   []policy.RouteHash
		want     string
	}{
		{[]policy.HashPolicy{sourceIP(), {Type: "Moon", Header: &policy.HeaderKey{Name: "x"}}}, nil, `hash policy 1: type "Moon": want Header, Cookie, SourceIP, QueryParameter or FilterState`},
		{[]policy.HashPolicy{header("")}, nil, "hash policy 0: Header without a name"},
		{[]policy.HashPolicy{made("a b", 0, "")}, nil, `hash policy 0: cookie name "a b": want a token`},
		{[]policy.HashPolicy{made("a", 0, "/;x")}, nil, `hash policy 0: path "/;x" of cookie a: want no semicolon and no control character`},
		{[]policy.HashPolicy{made("a", -1, "")}, nil, "hash policy 0: ttl -1ns of cookie a: want 0 or more"},
		{nil, route(policy.Match{Path: &policy.PathMatch{Type: policy.MatchRegex, Value: "("}}), "route HTTPRoute shop/r: path: error parsing regexp: missing closing ): `(`"},
		{nil, route(policy.Match{Path: &policy.PathMatch{Type: policy.MatchRegex, Value: "a)(b"}}), "route HTTPRoute shop/r: path: error parsing regexp: unexpected ): `a)(b`"},
		{nil, route(policy.Match{Headers: []policy.ValueMatch{{Type: policy.MatchPrefix, Name: "a"}}}), `route HTTPRoute shop/r: header a: match type "PathPrefix" is not for this`},
		{nil, route(policy.Match{Query: []policy.ValueMatch{{Type: policy.MatchRegex, Name: "a", Value: "*"}}}), "route HTTPRoute shop/r: query parameter a: error parsing regexp: missing argument to repetition operator: `*`"},
		{nil, []policy.RouteHash{{Route: "r", HashPolicies: []policy.HashPolicy{query("")}}}, "route r: hash policy 0: QueryParameter without a name"},
	} {
		if rules, err := l7.CompileHash(c.policies, c.routes); err == nil || err.Error() != c.want || !rules.IsEmpty() {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// TestHashingMakesNoGarbage: what is generated for a client without a cookie is all that is allocated.
func TestHashingMakesNoGarbage(t *testing.T) {
	r := asked(t, "GET /a/b?q=1 HTTP/1.1", "A: alice", "Two: foo", "Two: bar", "Cookie: x=1; sid=alice", "X-Weir-Filter-State: a=1,tenant=x")
	four, six := someone(), someone()
	four.IsFilter, six.Remote = true, netip.MustParseAddrPort("[2001:db8:1:2:3:4:5:6]:5678")
	for _, c := range []struct {
		name     string
		client   l7.HashClient
		policies []policy.HashPolicy
		want     float64
	}{
		{"header", four, []policy.HashPolicy{header("a")}, 0},
		{"header of two values", four, []policy.HashPolicy{header("two")}, 0},
		{"host", four, []policy.HashPolicy{header("host")}, 0},
		{"source", four, []policy.HashPolicy{sourceIP()}, 0},
		{"source, IPv6", six, []policy.HashPolicy{sourceIP()}, 0},
		{"cookie", four, []policy.HashPolicy{made("sid", time.Hour, "/")}, 0},
		{"query", four, []policy.HashPolicy{query("q")}, 0},
		{"filter state", four, []policy.HashPolicy{state("tenant"), state("weir.connection.id"), state("weir.request.path")}, 0},
		{"generated cookie: its text, and the list of one", four, []policy.HashPolicy{made("new", time.Hour, "/")}, 2},
	} {
		rules, err := l7.CompileHash(c.policies, []policy.RouteHash{{Hosts: []string{"*.example"}, Match: policy.Match{
			Method: "GET", Path: &policy.PathMatch{Type: policy.MatchPrefix, Value: "/a"},
			Headers: []policy.ValueMatch{{Type: policy.MatchExact, Name: "A", Value: "bob"}},
			Query:   []policy.ValueMatch{{Type: policy.MatchExact, Name: "q", Value: "1"}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		list := l7.ListOf(r)
		if got := testing.AllocsPerRun(100, func() { l7.HashedByList(&rules, c.client, list) }); got != c.want {
			t.Errorf("%s: %v allocations want %v", c.name, got, c.want)
		}
	}
}

// TestTheGuideListsEveryFilterStateKey keeps the guide's table the same as the program's.
func TestTheGuideListsEveryFilterStateKey(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide/hashing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range l7.FilterStateKeys() {
		tcp := map[bool]string{true: "yes", false: "no"}[key.Connection]
		if row := "| `" + key.Name + "` | " + key.Description + " | " + tcp + " |\n"; !strings.Contains(string(guide), row) {
			t.Errorf("the guide has no row %q", row)
		}
	}
}

func BenchmarkHash(b *testing.B) {
	r := asked(b, "GET /a/b?q=1 HTTP/1.1", "A: alice", "Two: foo", "Two: bar", "Cookie: x=1; sid=alice")
	for name, p := range map[string]policy.HashPolicy{
		"header": header("a"), "two": header("two"), "source": sourceIP(), "cookie": cookie("sid"), "query": query("q"),
		"made": made("new", time.Hour, "/"), "state": state("weir.connection.id"),
	} {
		b.Run("by="+name, func(b *testing.B) {
			rules, from, list := compiled(b, p), someone(), l7.ListOf(r)
			b.ReportAllocs()
			for b.Loop() {
				l7.HashedByList(&rules, from, list)
			}
		})
	}
}

// FuzzHashRules hashes whatever net/http takes for a request: no rule panics, equal requests have equal keys, and what
// weir writes into a response is one line.
func FuzzHashRules(f *testing.F) {
	for _, seed := range []string{
		"GET /a?q=1&q=2 HTTP/1.1\r\nHost: h\r\nA: 1\r\nA: 2\r\nCookie: a=1; b=\"2\"\r\n\r\n",
		"GET http://h:80/a%2Fb?%71=%zz&&=& HTTP/1.1\r\nHost: [::1]:80\r\nCookie: ;;=;a\r\nX-Weir-Filter-State: ,=,tenant=\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: .\r\nX-Weir-Filter-State: tenant=1\r\n\r\n",
		"GET / HTTP/1.0\r\nCookie: a=\"\r\n\r\n",
		"GET //x HTTP/1.1\r\nHost: *.h.\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	policies := []policy.HashPolicy{
		header("a"), header("host"), header(":path"), cookie("a"), made("new", time.Second, "/"), query("q"), sourceIP(), state("tenant"),
		state("weir.request.path"), end(state("weir.request.host")), header("b"),
	}
	rules, err := l7.CompileHash(policies, []policy.RouteHash{
		{Hosts: []string{"*.h", "h"}, Match: policy.Match{Path: &policy.PathMatch{Type: policy.MatchPrefix, Value: "/a"}}, HashPolicies: policies[:3]},
		{Match: policy.Match{Query: []policy.ValueMatch{{Type: policy.MatchRegex, Name: "q", Value: "[0-9]+|a.*"}}}, HashPolicies: policies[3:6]},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		read := func() *http.Request {
			r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
			if err != nil {
				t.Skip("no request")
			}
			return r
		}
		from := someone()
		from.IsFilter = len(raw)%2 == 0
		one, ok, cookies := l7.HashedBy(&rules, from, read())
		two, okToo, _ := l7.HashedByList(&rules, from, l7.ListOf(read())) // as HTTP/2 brings it
		if one != two || ok != okToo {
			t.Fatalf("%d %v, then %d %v", one, ok, two, okToo)
		}
		for _, c := range cookies {
			if strings.ContainsAny(c, "\r\n") {
				t.Fatalf("a cookie of several lines: %q", c)
			}
		}
	})
}
