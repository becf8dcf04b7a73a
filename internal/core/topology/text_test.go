package topology_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-lb/weir/internal/core/topology"
)

// same compares whole values. A list that is empty equals one that is missing; a cost table of nothing but zeros does
// not equal one that is not set.
func same() cmp.Options {
	return cmp.Options{
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b topology.Costs) bool {
			unset := func(c topology.Costs) bool { return c.Pairs == nil && c.Between(place("a"), place("b")) != 0 }
			return a.String() == b.String() && unset(a) == unset(b)
		}),
		cmpopts.EquateEmpty(),
	}
}

func place(z topology.Zone) topology.Place { return topology.Place{Zone: z} }

func TestCanonicalTextComesBackLetterForLetter(t *testing.T) {
	for _, text := range []string{
		"",
		"nodes a:4 b:4x2 c:2",
		"nodes a:4 a:2x2 a:4",
		"nodes a:0.25!^ b:? eu/c:1.5x3!",
		"nodes n1=-:4 n2=eu/-:? z=a:1^",
		"nodes a:1x2 a-4=a:1",
		"costs same-region=1 other-region=4 other-cluster=2",
		"costs same-region=0 other-region=0 other-cluster=0",
		"costs a>b=3 b>a=0.5",
		"costs other-cluster=0 a>a=1",
		"service web",
		"service web port=-",
		"service web port=81",
		"service shop/web port=80->8080 port=http:81+30081->8081/UDP@kubernetes.io/h2c\nendpoints a:3",
		"service web\nendpoints a:3 b:1! c:1? a:1~ a:1~! a:1(f?t)",
		"service web\nendpoints a:3>a b:1!>a,b,@n1 c:1@n1>@n1 -:1",
		"service web\nendpoints a:3 10.0.1.0=b:2 fd00::1=a:2 v6=a:2",
		"service web\nendpoints a:2{cluster=west} a:1{pod=shop/web-0,ports=-} a:1{ports=dns:53/UDP@dns|http:80}",
		"service web ip=10.96.0.1,fd00::1 mode=Auto internal=Local external=- exposed headless sticky proxy=other strategy=Hazl prefer=cost " +
			"shed drain=a@2026-11-20T12:00:00Z drain=b@2026-11-20T12:00:00.5Z overload-limit=0.2 demand=a:0.7,b:0.3",
		"costs a>b=3\nnodes a:4\nservice a/b\nservice a/c\nendpoints a:1\nservice web",
	} {
		s, err := topology.ParseSnapshot(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if diff := cmp.Diff(text, s.String()); diff != "" {
			t.Errorf("%q changed on its way (-want +got):\n%s", text, diff)
		}
	}
}

func TestTextMeansWhatItSays(t *testing.T) {
	got, err := topology.ParseSnapshot(`
		# One line per thing; this one is a comment.
		nodes eu/a:4; nodes n1=-:0.5!^   # two statements, one list
		service shop/web port=http:80->8080@http ip=10.96.0.1 mode=Auto external=Local exposed
		endpoints a:1@n1>a,b b:1!
		endpoints v6=-:1?
		costs a>b=3`)
	if err != nil {
		t.Fatal(err)
	}
	ports := []topology.EndpointPort{{Name: "http", Protocol: topology.TCP, AppProtocol: "http", Port: 8080}}
	want := topology.Snapshot{
		Nodes: []topology.Node{
			{Name: "a-1", Zone: "a", Region: "eu", CPU: 4000, Ready: true},
			{Name: "n1", CPU: 500, ControlPlane: true},
		},
		Services: []*topology.Service{{
			ServiceName:          topology.ServiceName{Namespace: "shop", Name: "web"},
			Mode:                 topology.ModeAuto,
			Ports:                []topology.Port{{Name: "http", Protocol: topology.TCP, AppProtocol: "http", Port: 80}},
			ClusterIPs:           []netip.Addr{netip.MustParseAddr("10.96.0.1")},
			InternalPolicy:       topology.PolicyCluster,
			ExternalPolicy:       topology.PolicyLocal,
			ExternallyAccessible: true,
			Endpoints: []topology.Endpoint{
				{
					Addr: netip.MustParseAddr("10.0.0.1"), Ports: ports, Zone: "a", Node: "n1",
					Conditions: topology.Conditions{Ready: topology.True, Serving: topology.True, Terminating: topology.False},
					Hints:      topology.Hints{Zones: []topology.Zone{"a", "b"}},
				},
				{
					Addr: netip.MustParseAddr("10.0.0.2"), Ports: ports, Zone: "b",
					Conditions: topology.Conditions{Ready: topology.False, Serving: topology.False, Terminating: topology.False},
				},
				{Addr: netip.MustParseAddr("fd00::3"), Ports: ports},
			},
		}},
		Costs: topology.Costs{
			SameRegion: 1, OtherRegion: 4, OtherCluster: 2,
			Pairs: map[topology.ZonePair]topology.Cost{{From: "a", To: "b"}: 3},
		},
	}
	if diff := cmp.Diff(want, got, same()); diff != "" {
		t.Errorf("wrong snapshot (-want +got):\n%s", diff)
	}
}

func TestBrokenTextIsRefusedWithItsPlaceAndAWayOut(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"nods a:4", `1:1 unknown statement "nods": want costs, nodes, service or endpoints`},
		{"nodes a:4\nnodes b", `2:7 bad node "b": want ZONE:CPU, as in a:4, a:4x2, a:? or n1=-:4`},
		{"nodes a:4 -:4", `1:11 a node without zone needs a name: write it as in n1=-:4`},
		{"nodes n=a:4x2", `1:7 2 nodes with one name: leave the name out or write each`},
		{"nodes a:-1", `1:9 bad CPU "-1": want cores, as in 4 or 0.25, or ? when not reported`},
		{"nodes a:1.0001", `1:9 bad CPU "1.0001": want cores, as in 4 or 0.25, or ? when not reported`},
		{"nodes a:4x0", `1:11 bad number of nodes "0": want a whole number from 1 to 10000`},
		{"nodes n=a:4 n=b:4", `1:13 node n is there already: give this one another name`},
		{"nodes é/a:4", `1:7 bad region name "é": want letters, digits and, inside, any of "-_."`},
		{"nodes a.:4", `1:7 bad zone name "a.": want letters, digits and, inside, any of "-_."`},
		{"nodes " + strings.Repeat("a", 64) + ":4", `1:7 bad zone name "aaaaaaaaaaaaaaaaaaaa"…: ` +
			`it has 64 characters, 63 is the most`},
		{"costs", `1:1 costs without an entry: write one, as in same-region=1, or leave the statement out`},
		{"costs same-region", `1:7 bad cost "same-region": want KEY=COST, as in same-region=1 or a>b=3`},
		{"costs near=1", `1:7 unknown cost "near": want same-region, other-region, other-cluster or a pair of zones, a>b`},
		{"costs a>b=-1", `1:11 bad cost "-1": want a finite number of at least 0`},
		{"costs a>b=NaN", `1:11 bad cost "NaN": want a finite number of at least 0`},
		{"costs a>b=1 a>b=2", `1:13 cost a>b is there already: remove one`},
		{"costs a>b=1; costs a>c=2", `1:14 a second costs statement: write all costs into one`},
		{"service", `1:1 service without a name: write service NAMESPACE/NAME`},
		{"service a/b; service a/b", `1:22 service a/b is there already: give this one another name`},
		{"service a/b mode=Autos", `1:18 unknown distribution mode "Autos": want one of ` +
			`[Auto Balanced Disabled PreferClose PreferSameNode PreferSameZone]`},
		{"service web port=http:0", `1:23 bad port number "0": want a whole number from 1 to 65535`},
		{"service web port=80/tcp", `1:21 bad protocol "tcp": want TCP, UDP or SCTP`},
		{"service web ip=10.96", `1:16 bad address "10.96": want IPv4 or IPv6, as in 10.0.0.1 or fd00::1`},
		{"service web external=No", `1:22 bad traffic policy "No": want Cluster or Local`},
		{"service web drain=a", `1:19 bad drain "a": want ZONE@TIME, as in a@2026-11-20T12:00:00Z`},
		{"service web drain=a@noon", `1:21 bad time "noon": want RFC 3339, as in 2026-11-20T12:00:00Z`},
		{"service web demand=a:1,a:2", `1:24 the demand of zone a is there already: remove one`},
		{"service web shed shed", `1:18 shed is there already: remove one`},
		{"service web shy", `1:13 unknown word "shy" of a service: want exposed, headless, shed, sticky or FIELD=VALUE`},
		{"service web size=1", `1:13 unknown field "size" of a service: want port, ip, mode, internal, external, ` +
			`proxy, plane, strategy, prefer, drain, overload-limit or demand`},
		{"endpoints a:3", `1:1 endpoints of no service: write a service statement before`},
		{"service web; endpoints a", `1:24 bad endpoint "a": want ZONE:COUNT, as in a:3, b:1! or -:1`},
		{"service web; endpoints a:", `1:26 bad number of endpoints "": want a whole number from 1 to 10000`},
		{"service web; endpoints a:1*", `1:27 unknown mark "*": want !, ?, ~, ~! or (RST), each letter of t, f and ?`},
		{"service web; endpoints a:1>", `1:28 a zone name is missing`},
		{"service web; endpoints a:1{pod=x", `1:24 "a:1{pod=x" has no closing brace at its end: write {KEY=VALUE,…}`},
		{"service web; endpoints a:1{x=1}", `1:28 unknown detail "x": want cluster=, pod= or ports=`},
		{"service web; endpoints a:2 10.0.0.2=b:1", `1:28 endpoint 10.0.0.2 is there already: give this one another address`},
		{"service web; endpoints 255.255.255.255=a:2", "" +
			`1:24 2 addresses from the first do not exist: write a smaller number`},
		{"service web; endpoints fe80::1%eth0=a:2", "" +
			`1:24 bad address "fe80::1%eth0": want IPv4 or IPv6, as in 10.0.0.1 or fd00::1`},
		{"nodes \xff:1", `1:1 the text is not UTF-8: save it as UTF-8`},
	} {
		_, err := topology.ParseSnapshot(c.text)
		if err == nil {
			t.Errorf("%q was accepted", c.text)
			continue
		}
		var syntax *topology.SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%q: the error %v has no place", c.text, err)
			continue
		}
		got := fmt.Sprintf("%d:%d %s", syntax.Line, syntax.Column, syntax.Message)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestTextCannotFillTheMemory(t *testing.T) {
	nodes := "nodes" + strings.Repeat(" a:1x10000", 21)
	if _, err := topology.ParseSnapshot(nodes); err == nil || !strings.Contains(err.Error(), "more than 200000 nodes") {
		t.Errorf("210,000 nodes: got %v", err)
	}
	endpoints := "service web; endpoints" + strings.Repeat(" a:10000", 21)
	if _, err := topology.ParseSnapshot(endpoints); err == nil || !strings.Contains(err.Error(), "more than 200000") {
		t.Errorf("210,000 endpoints: got %v", err)
	}
}

func TestParseAndPrintAreInverse(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		want := randomSnapshot(random)
		text := want.String()
		got, err := topology.ParseSnapshot(text)
		if err != nil {
			t.Fatalf("own text is refused: %v\n%s", err, text)
		}
		if diff := cmp.Diff(want, got, same()); diff != "" {
			t.Fatalf("snapshot changed on its way (-want +got):\n%s\n%s", diff, text)
		}
		if again := got.String(); again != text {
			t.Fatalf("text changed on its way (-want +got):\n%s", cmp.Diff(text, again))
		}
	}
}

func TestFormattedEndpointsAreReadBack(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		for _, svc := range randomSnapshot(random).Services {
			text := "service web; endpoints " + topology.FormatEndpoints(svc.Endpoints)
			got, err := topology.ParseSnapshot(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if diff := cmp.Diff(svc.Endpoints, got.Services[0].Endpoints, same()); diff != "" {
				t.Fatalf("endpoints changed (-want +got):\n%s", diff)
			}
		}
	}
}

func FuzzSnapshotText(f *testing.F) {
	f.Add("nodes a:4 eu/b:0.5x2!^ n=-:?; costs a>b=3; service x/y port=http:80+3->8080/UDP@h ip=10.96.0.1 mode=Auto")
	f.Add("service web drain=a@2026-11-20T12:00:00Z demand=a:1\n" +
		"endpoints a:3 b:1!>a,@n v6=-:1(t?f)@n{cluster=w,pod=a/b,ports=-}")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := topology.ParseSnapshot(text)
		if err != nil {
			return
		}
		printed := s.String()
		again, err := topology.ParseSnapshot(printed)
		if err != nil {
			t.Fatalf("%q printed as %q, which is refused: %v", text, printed, err)
		}
		if diff := cmp.Diff(s, again, same()); diff != "" {
			t.Fatalf("%q changed on its way (-want +got):\n%s", text, diff)
		}
		if second := again.String(); second != printed {
			t.Fatalf("%q printed as %q, then as %q", text, printed, second)
		}
	})
}

// generator makes random values that are valid, with few distinct names so that runs and repetitions are frequent.
type generator struct{ *rand.Rand }

func randomSnapshot(random *rand.Rand) topology.Snapshot {
	g := generator{random}
	var nodes []topology.Node
	for name := range g.names("a-1", "a-2", "a-3", "b-1", "b-2", "n1", "n-2", "x.y") {
		nodes = append(nodes, topology.Node{
			Name: name, Zone: g.zone(), Region: one(g, "", "", "eu", "us-1"),
			CPU: one(g, topology.MilliCPU(0), 4000, 4000, 250, 1001), Ready: !g.rarely(), ControlPlane: g.rarely(),
		})
	}
	var services []*topology.Service
	for name := range g.names("web", "cart", "db") {
		services = append(services, g.service(topology.ServiceName{Namespace: one(g, "default", "shop"), Name: name}))
	}
	return topology.NewSnapshot(nodes, services, g.costs())
}

func (g generator) rarely() bool { return g.IntN(5) == 0 }

func one[T any](g generator, values ...T) T { return values[g.IntN(len(values))] }

func (g generator) names(all ...string) map[string]bool {
	names := make(map[string]bool)
	for _, name := range all {
		if g.IntN(2) == 0 {
			names[name] = true
		}
	}
	return names
}

func (g generator) zone() topology.Zone { return one[topology.Zone](g, "", "a", "a", "b", "a-1") }

func (g generator) costs() topology.Costs {
	costs := one(g, topology.Costs{}, topology.DefaultCosts(), topology.Costs{SameRegion: 0.1, OtherCluster: 7})
	if g.rarely() {
		costs.Pairs = map[topology.ZonePair]topology.Cost{
			{From: "a", To: "b"}: topology.Cost(g.Float64()),
			{From: "b", To: "b"}: 1e30,
		}
	}
	return costs
}

func (g generator) service(name topology.ServiceName) *topology.Service {
	s := &topology.Service{
		ServiceName:          name,
		Mode:                 one(g, append(topology.Modes(), topology.ModeUnset)...),
		InternalPolicy:       one(g, topology.PolicyCluster, topology.PolicyLocal, ""),
		ExternalPolicy:       one(g, topology.PolicyCluster, topology.PolicyLocal, ""),
		ExternallyAccessible: g.rarely(),
		Headless:             g.rarely(),
		Proxy:                one(g, "", "", "other", topology.ProxyWeir),
		OverloadLimit:        one(g, 0, 0.2),
		Overflow: topology.OverflowSettings{
			Strategy: one(g, "", "Hazl"), Prefer: one(g, "", "cost"), Shed: g.rarely(),
		},
	}
	if g.rarely() {
		s.Overflow.Drains = []topology.Drain{{Zone: "b", Until: time.Unix(g.Int64N(1e10), g.Int64N(1e9)).UTC()}}
		s.Demand = []topology.ZoneDemand{{Zone: "a", Share: g.Float64()}, {Zone: "b"}}
		s.ClusterIPs = []netip.Addr{netip.MustParseAddr("fd00::7"), netip.MustParseAddr("::ffff:1.2.3.4")}
	}
	for i := range g.IntN(3) {
		s.Ports = append(s.Ports, topology.Port{
			Name: one(g, "", "http", "80"), Protocol: one(g, topology.TCP, topology.UDP),
			AppProtocol: one(g, "", "kubernetes.io/h2c"), Port: uint16(80 + i), NodePort: one[uint16](g, 0, 30000),
		})
	}
	for i := range g.IntN(12) {
		s.Endpoints = append(s.Endpoints, g.endpoint(s, i+1))
	}
	return s
}

func (g generator) endpoint(s *topology.Service, ordinal int) topology.Endpoint {
	base := one(g, "10.0.0.0", "10.0.0.0", "10.0.0.20", "fd00::", "fd00::7:0")
	addr := netip.MustParseAddr(base)
	for range ordinal {
		addr = addr.Next()
	}
	e := topology.Endpoint{
		Addr: addr, Zone: g.zone(), Node: one(g, "", "", "n1"), Cluster: one(g, "", "", "west"),
		Pod: one(g, "", "", "shop/web-0"),
	}
	if !g.rarely() {
		e.Conditions = topology.Conditions{Ready: topology.True, Serving: topology.True, Terminating: topology.False}
	} else {
		value := func() topology.Condition { return topology.Condition(g.IntN(3)) }
		e.Conditions = topology.Conditions{Ready: value(), Serving: value(), Terminating: value()}
	}
	if g.rarely() {
		e.Hints = topology.Hints{Zones: []topology.Zone{"b", "a"}, Nodes: []string{"n2", "n1"}}
	}
	for _, p := range s.Ports {
		e.Ports = append(e.Ports, topology.EndpointPort{
			Name: p.Name, Protocol: p.Protocol, AppProtocol: p.AppProtocol, Port: one(g, p.Port, 8080),
		})
	}
	if g.rarely() {
		e.Ports = nil
	}
	return e
}
