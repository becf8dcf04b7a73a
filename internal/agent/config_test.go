package agent_test

import (
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/l7"
)

func TestMappingsAreReadAndPrinted(t *testing.T) {
	web := topology.ServiceName{Namespace: "shop", Name: "web"}
	for text, want := range map[string]agent.Mapping{
		"shop/web=127.0.10.1":         {Service: web, To: netip.MustParseAddrPort("127.0.10.1:0")},
		"shop/web:80=127.0.10.1":      {Service: web, Port: 80, To: netip.MustParseAddrPort("127.0.10.1:0")},
		"shop/web:80=127.0.10.1:8080": {Service: web, Port: 80, To: netip.MustParseAddrPort("127.0.10.1:8080")},
		"shop/web=[::1]:8080":         {Service: web, To: netip.MustParseAddrPort("[::1]:8080")},
		"shop/web=::1":                {Service: web, To: netip.AddrPortFrom(netip.MustParseAddr("::1"), 0)},
	} {
		got, err := agent.ParseMapping(text)
		if err != nil {
			t.Errorf("ParseMapping(%q): %v", text, err)
		}
		if got != want {
			t.Errorf("ParseMapping(%q) = %+v, want %+v", text, got, want)
		}
		if got.String() != text {
			t.Errorf("ParseMapping(%q).String() = %q", text, got)
		}
	}
	got, err := agent.ParseMapping("web=::ffff:127.0.0.1")
	if err != nil || got.String() != "default/web=127.0.0.1" {
		t.Errorf("a short name and a mapped address: %v, %v", got, err)
	}
}

func TestMappingsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, text := range []string{
		"", "web", "web=", "=127.0.0.1", "a/b/c=127.0.0.1", "/web=127.0.0.1", "web:0=127.0.0.1", "web:x=127.0.0.1",
		"web:70000=127.0.0.1", "web=localhost", "web=127.0.0.1:0", "web=127.0.0.1:x", "web=::1:80x",
	} {
		if got, err := agent.ParseMapping(text); err == nil {
			t.Errorf("ParseMapping(%q) = %v, want an error", text, got)
		}
	}
}

func FuzzMappingsThatAreReadPrintWhatReadsTheSame(f *testing.F) {
	f.Add("shop/web:80=127.0.10.1:8080")
	f.Add("web=::1")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := agent.ParseMapping(text)
		if err != nil {
			return
		}
		again, err := agent.ParseMapping(m.String())
		if err != nil || again != m {
			t.Errorf("%q reads as %+v, prints as %q, reads as %+v, %v", text, m, m, again, err)
		}
	})
}

func TestAConfigIsCheckedAsAWhole(t *testing.T) {
	m := agent.Mapping{Service: topology.ServiceName{Namespace: "shop", Name: "web"}, To: netip.MustParseAddrPort("127.0.0.1:80")}
	err := agent.Config{
		Mode: "Fair", Hints: "mine", Strategy: "Luck", Algorithm: "Dice", Drain: -1, Map: []agent.Mapping{m, m},
		Retry: l7.Retry{Attempts: 9, BudgetRatio: math.NaN()},
	}.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"node's name", `"Fair"`, `"mine"`, `"Luck"`, `"Dice"`, "drain limit", "there twice", "attempts", "budget"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s:\n%v", want, err)
		}
	}
	err = agent.Config{Node: "a", OneNode: true}.Validate()
	if err == nil || !strings.Contains(err.Error(), "all nodes") {
		t.Errorf("a plan of one node is not refused: %v", err)
	}
	if err := (agent.Config{Node: "a", OneNode: true, Hints: agent.HintsNative}).Validate(); err != nil {
		t.Errorf("native hints are refused for one node: %v", err)
	}
	if err := (agent.Config{Node: "a"}).Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

func preview(t *testing.T, text string, c agent.Config) agent.Status {
	t.Helper()
	s, err := topology.ParseSnapshot(text)
	if err != nil {
		t.Fatal(err)
	}
	status, err := agent.Preview(c, &s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// lines puts a status into few words: a line for each address with what may be used, and one for each problem.
func lines(s agent.Status) []string {
	var all []string
	for _, svc := range s.Services {
		for _, p := range svc.Ports {
			for _, a := range p.Addresses {
				all = append(all, strings.Join([]string{
					svc.Service, p.Protocol, a.Address.String(), p.Family, digits(p.Home) + " of " + digits(p.Endpoints),
				}, " "))
			}
		}
	}
	for _, p := range s.Problems {
		all = append(all, strings.TrimSpace(p.Service+" "+string(p.Reason.Code)))
	}
	return all
}

func digits(n int) string { return string(rune('0' + n)) }

func TestWhatANodeServesFollowsFromTheSnapshot(t *testing.T) {
	const nodes = "nodes n1=a:4 n2=b:4 n3=c:4 bare=-:4; "
	mapped := func(texts ...string) []agent.Mapping {
		var all []agent.Mapping
		for _, text := range texts {
			m, err := agent.ParseMapping(text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, m)
		}
		return all
	}
	for name, c := range map[string]struct {
		text   string
		config agent.Config
		want   []string
	}{
		"home is the zone's and the rest is there to spill to": {
			text: nodes + "service web ip=10.0.0.9 mode=PreferSameZone; endpoints a:2 b:1 c:1",
			want: []string{"default/web detect 10.0.0.9:80 IPv4 2 of 4"},
		},
		"without hints everything is home": {
			text: nodes + "service web ip=10.0.0.9 mode=Disabled; endpoints a:2 b:1",
			want: []string{"default/web detect 10.0.0.9:80 IPv4 3 of 3"},
		},
		"native hints decide where they are asked for": {
			text:   nodes + "service web ip=10.0.0.9 mode=Disabled; endpoints a:2>b b:1>a",
			config: agent.Config{Hints: agent.HintsNative},
			want:   []string{"default/web detect 10.0.0.9:80 IPv4 1 of 3"},
		},
		"unready endpoints are not spilled to": {
			text: nodes + "service web ip=10.0.0.9 mode=PreferSameZone; endpoints a:1 b:1! c:1~ c:1",
			want: []string{"default/web detect 10.0.0.9:80 IPv4 1 of 2"},
		},
		"the policy Local allows the node's own endpoints and no spill": {
			text: nodes + "service web ip=10.0.0.9 internal=Local; endpoints a:1@n1 a:1@n2 b:1@n2",
			want: []string{"default/web detect 10.0.0.9:80 IPv4 1 of 1"},
		},
		"both families have a pool each": {
			text: nodes + "service web ip=10.0.0.9,fd01::9 mode=PreferSameZone; endpoints a:1 v6=a:2 v6=b:1",
			want: []string{"default/web detect 10.0.0.9:80 IPv4 1 of 1", "default/web detect [fd01::9]:80 IPv6 2 of 3"},
		},
		"a mapped address takes the place of the cluster IP": {
			text:   nodes + "service web ip=10.0.0.9 port=http:80@http port=raw:81@tcp; endpoints a:1",
			config: agent.Config{Map: mapped("web=127.0.0.9", "web:81=127.0.0.8:8181")},
			want: []string{
				"default/web http 127.0.0.9:80 IPv4 1 of 1",
				"default/web tcp 127.0.0.9:81 IPv4 1 of 1",
				"default/web tcp 127.0.0.8:8181 IPv4 1 of 1",
			},
		},
		"a mapped address of the other family stands in for the cluster IP": {
			text:   nodes + "service web ip=fd01::9; endpoints v6=a:1",
			config: agent.Config{Map: mapped("web=127.0.0.9")},
			want:   []string{"default/web detect 127.0.0.9:80 IPv6 1 of 1"},
		},
		"a headless service is served where it is mapped to": {
			text:   nodes + "service web headless; endpoints a:1",
			config: agent.Config{Map: mapped("web=127.0.0.9")},
			want:   []string{"default/web detect 127.0.0.9:80 IPv4 1 of 1"},
		},
		"a mapped port that the service does not have is a problem": {
			text:   nodes + "service web ip=10.0.0.9; endpoints a:1",
			config: agent.Config{Map: mapped("web:99=127.0.0.9")},
			want:   []string{"default/web detect 10.0.0.9:80 IPv4 1 of 1", "default/web MappedPortAbsent"},
		},
		"one mapped address for two ports serves the first": {
			text:   nodes + "service web ip=10.0.0.9 port=a:80 port=b:81; endpoints a:1",
			config: agent.Config{Map: mapped("web=127.0.0.9:8080")},
			want:   []string{"default/web detect 127.0.0.9:8080 IPv4 1 of 1", "default/web AddressTaken"},
		},
		"a node without a zone is served every endpoint, and reported": {
			text:   nodes + "service web ip=10.0.0.9 mode=PreferSameZone; endpoints a:1 b:1",
			config: agent.Config{Node: "bare"},
			want:   []string{"default/web detect 10.0.0.9:80 IPv4 2 of 2", "NodeWithoutZone"},
		},
		"a zone that is given takes the place of the node's": {
			text:   nodes + "service web ip=10.0.0.9 mode=PreferSameZone; endpoints a:1 b:2",
			config: agent.Config{Node: "elsewhere", Zone: "b"},
			want:   []string{"default/web detect 10.0.0.9:80 IPv4 2 of 3"},
		},
		"a service without endpoints listens all the same": {
			text: nodes + "service web ip=10.0.0.9",
			want: []string{"default/web detect 10.0.0.9:80 IPv4 0 of 0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.config.Node == "" {
				c.config.Node = "n1"
			}
			if diff := cmp.Diff(c.want, lines(preview(t, c.text, c.config))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWhatIsChosenForANodeIsWhatAKubeProxyWouldUse(t *testing.T) {
	const nodes = "nodes n1=a:4 n2=b:4; "
	for name, c := range map[string]struct {
		text     string
		strategy string
		want     []int // endpoints by their number
		home     int
	}{
		"lent endpoints are chosen and not home":           {"service web ip=10.0.0.9; endpoints a:1>a b:1>a b:1>b", "", []int{1, 2}, 1},
		"lent endpoints are home where nothing is spilled": {"service web ip=10.0.0.9; endpoints a:1>a b:1>a b:1>b", "Static", []int{1, 2}, 2},
		"without hints all, home is the own zone":          {"service web ip=10.0.0.9; endpoints a:1 b:1 b:1!", "", []int{1, 2}, 1},
		"without hints or spilling all":                    {"service web ip=10.0.0.9; endpoints a:1 b:1 b:1!", "Static", []int{1, 2}, 2},
		"without hints in mode Disabled all":               {"service web mode=Disabled ip=10.0.0.9; endpoints a:1 b:1 b:1!", "", []int{1, 2}, 2},
		"without hints and own endpoints all":              {"service web ip=10.0.0.9; endpoints b:1 b:1", "", []int{1, 2}, 2},
		"the terminating one when no other is left":        {"service web ip=10.0.0.9; endpoints a:1! b:1~", "", []int{2}, 1},
		"the node's own under policy Local":                {"service web ip=10.0.0.9 internal=Local; endpoints a:1@n1 b:1@n2", "", []int{1}, 1},
		"nothing":                                          {"service web ip=10.0.0.9; endpoints a:1!", "", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := topology.ParseSnapshot(nodes + c.text)
			if err != nil {
				t.Fatal(err)
			}
			status, err := agent.Preview(agent.Config{Node: "n1", Hints: agent.HintsNative, Strategy: c.strategy}, &s, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := []netip.AddrPort{}
			for _, number := range c.want {
				e := &s.Services[0].Endpoints[number-1]
				want = append(want, netip.AddrPortFrom(e.Addr, e.Ports[0].Port))
			}
			port := status.Services[0].Ports[0]
			if diff := cmp.Diff(want, port.Chosen, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
				t.Errorf("chosen (-want +got)\n%s", diff)
			}
			if port.Home != c.home {
				t.Errorf("%d endpoints are home, want %d", port.Home, c.home)
			}
		})
	}
}
