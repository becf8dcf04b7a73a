package plan_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// servingFor reads a service's policies: "iTP" and "eTP" for policy Local of internal and external traffic, "NP" for one
// that is accessible from outside.
func servingFor(t *testing.T, text string) *topology.Service {
	t.Helper()
	svc := &topology.Service{InternalPolicy: topology.PolicyCluster, ExternalPolicy: topology.PolicyCluster}
	for word := range strings.FieldsSeq(text) {
		switch word {
		case "iTP":
			svc.InternalPolicy = topology.PolicyLocal
		case "eTP":
			svc.ExternalPolicy = topology.PolicyLocal
		case "NP":
			svc.ExternallyAccessible = true
		default:
			t.Fatalf("unknown word %q in %q", word, text)
		}
	}
	return svc
}

// clientAt reads a client: "a" is zone a on node-1, "a@2" on node-2, "-" has no zone.
func clientAt(text string) plan.Client {
	zone, node, ok := strings.Cut(text, "@")
	if !ok {
		node = "1"
	}
	return plan.Client{Node: "node-" + node, Zone: topology.Zone(strings.TrimPrefix(zone, "-"))}
}

// endpointList reads endpoints separated by blanks. Each is a list of the zones that it names (letters) and the nodes
// (digits), then its state: "!" unready, "~" terminating but serving, "x" terminating and not serving either, "?" of
// unknown conditions, "L" on the client's node. "." names nothing.
func endpointList(t *testing.T, text string) []topology.Endpoint {
	t.Helper()
	var endpoints []topology.Endpoint
	for n, word := range strings.Fields(text) {
		e := topology.Endpoint{
			Addr:       netip.AddrFrom4([4]byte{10, 0, 0, byte(n + 1)}),
			Ports:      []topology.EndpointPort{{Name: "http", Protocol: topology.TCP, Port: 8080}},
			Node:       "elsewhere",
			Conditions: topology.Conditions{Ready: topology.True, Serving: topology.True, Terminating: topology.False},
		}
		for _, c := range word {
			switch {
			case c >= 'a' && c <= 'd':
				e.Hints.Zones = append(e.Hints.Zones, topology.Zone(string(c)))
			case c >= '0' && c <= '9':
				e.Hints.Nodes = append(e.Hints.Nodes, "node-"+string(c))
			case c == 'L':
				e.Node = "node-1"
			case c == '!':
				e.Ready, e.Serving = topology.False, topology.False
			case c == '~':
				e.Ready, e.Terminating = topology.False, topology.True
			case c == 'x':
				e.Ready, e.Serving, e.Terminating = topology.False, topology.False, topology.True
			case c == '?':
				e.Conditions = topology.Conditions{}
			case c != '.':
				t.Fatalf("unknown letter %q in %q", c, text)
			}
		}
		endpoints = append(endpoints, e)
	}
	return endpoints
}

// numbers prints a list as endpoints count: from 1; "-" for none.
func numbers(list []int) string {
	if len(list) == 0 {
		return "-"
	}
	var b strings.Builder
	for _, i := range list {
		fmt.Fprint(&b, i+1)
	}
	return b.String()
}

// The cases of kube-proxy's own test of CategorizeEndpoints, by their number. Case 11 is that of a gate turned off which
// no longer exists; what it gave, zone hints although every endpoint names nodes, is asked for by a client elsewhere.
func TestChooseAsKubeProxyDoes(t *testing.T) {
	for _, c := range []struct {
		name      string
		service   string
		client    string
		endpoints string
		want      string // cluster, local, all, has any
		because   string // the codes of cluster and local
	}{
		{"1 hints filter by zone", "", "a", "a b c a", "14 - 14 some", "HintedToZone"},
		{"2 external policy Local keeps hints for cluster traffic", "eTP NP", "a", "aL bL c a", "14 12 124 some", "HintedToZone OnNode"},
		{"3 internal policy Local keeps hints for outside traffic", "iTP NP", "a", "aL bL c a", "14 12 124 some", "HintedToZone OnNode"},
		{"4 a node without a zone label uses all", "", "-", "a b c a", "1234 - 1234 some", "ClientWithoutZone"},
		{"5 a node with an empty zone label uses all", "", "", "a b c a", "1234 - 1234 some", "ClientWithoutZone"},
		{"6 a zone that no hint names uses all", "", "b", "a", "1 - 1 some", "ZoneNotHinted"},
		{"7 an unready endpoint is filtered out", "", "a", "a b c a!", "1 - 1 some", "HintedToZone"},
		{"8 unready endpoints do not represent their zone", "", "a", "a! b c a!", "23 - 23 some", "ZoneNotHinted"},
		{"9 one missing hint and all are used", "", "a", "a b . a", "1234 - 1234 some", "HintMissing"},
		{"10 an endpoint may be hinted to several zones", "", "c", "abc bc bd c", "124 - 124 some", "HintedToZone"},
		{"11 node hints of other nodes only: by zone", "", "a@9", "a1 b2 c3 a4", "14 - 14 some", "HintedToZone"},
		{"12 node hints win over zone hints", "", "a", "a1 b2 c3 a4", "1 - 1 some", "HintedToNode"},
		{"13 one endpoint without any hint and all are used", "", "a", "a1 . c3 a4", "1234 - 1234 some", "HintMissing"},
		{"14 no endpoint for this node: by zone", "", "a@0", "a1 b2 c3 a4", "14 - 14 some", "HintedToZone"},
		{"15 local endpoints of other zones join the union", "eTP NP", "a", "aL bL a b", "13 12 123 some", "HintedToZone OnNode"},
		{"16 internal policy Local, no endpoints", "iTP", "a", "", "- - - none", "LocalTrafficOnly NoneOnNode"},
		{"17 internal policy Local, none on the node", "iTP", "a", ". .", "- - - some", "LocalTrafficOnly NoneOnNode"},
		{"18 internal policy Local, all on the node", "iTP", "a", ".L .L", "- 12 12 some", "LocalTrafficOnly OnNode"},
		{"19 internal policy Local, one on the node", "iTP", "a", ".L .", "- 1 1 some", "LocalTrafficOnly OnNode"},
		{"20 policy Cluster, all unready", "", "a", ".! .!", "- - - none", "NoEndpoints"},
		{"21 policy Cluster, one unready", "", "a", ".! .", "2 - 2 some", "NoHints"},
		{"22 policy Cluster, all terminating but serving", "", "a", ".~L .~", "12 - 12 some", "OnlyTerminating"},
		{"23 internal Local, external Cluster", "iTP NP", "a", ".L .", "12 1 12 some", "NoHints OnNode"},
		{"24 internal Cluster, external Local", "eTP NP", "a", ".L .", "12 1 12 some", "NoHints OnNode"},
		{"25 both Local", "iTP eTP NP", "a", ".L .", "12 1 12 some", "NoHints OnNode"},
		{"26 both Local, none on the node", "iTP eTP NP", "a", ". .", "12 - 12 some", "NoHints NoneOnNode"},
		{"27 both Local, all terminating elsewhere", "iTP eTP NP", "a", ".~ .~", "12 - 12 some", "OnlyTerminating NoneOnNode"},
		{"28 external Local, the node's own endpoint terminates", "eTP NP", "a", ". .!L .~L .~", "1 3 13 some", "NoHints OnlyTerminatingOnNode"},
		{"29 external Local, not accessible from outside", "eTP", "a", ". .L", "12 - 12 some", "NoHints"},
		{"30 internal Local, not accessible from outside", "iTP", "a", ". .L", "- 2 2 some", "LocalTrafficOnly OnNode"},
		{"31 no endpoints", "", "a", "", "- - - none", "NoEndpoints"},
		{"32 an endpoint that neither serves nor is ready", "", "a", "ax", "- - - none", "NoEndpoints"},
		{"unknown conditions count as ready", "", "a", "a? b?", "1 - 1 some", "HintedToZone"},
		{"terminating endpoints neither block nor satisfy a row", "", "b", "a b~ .~", "1 - 1 some", "ZoneNotHinted"},
		{"node hints without zone hints, for another node: all", "", "a@9", "1 2", "12 - 12 some", "HintMissing"},
		{"a terminating endpoint on the node yields to a ready one there", "eTP NP", "a", ".L .~L", "1 1 1 some", "NoHints OnNode"},
	} {
		t.Run(c.name, func(t *testing.T) {
			port := topology.Port{Name: "http", Protocol: topology.TCP}
			got := plan.Choose(servingFor(t, c.service), endpointList(t, c.endpoints), port, clientAt(c.client))
			has := "none"
			if got.HasAny {
				has = "some"
			}
			text := fmt.Sprintf("%s %s %s %s", numbers(got.Cluster), numbers(got.Local), numbers(got.All), has)
			if diff := cmp.Diff(c.want, text); diff != "" {
				t.Errorf("want, got:\n%s", diff)
			}
			because := strings.TrimSpace(string(got.Reason.Code) + " " + string(got.LocalReason.Code))
			if diff := cmp.Diff(c.because, because); diff != "" {
				t.Errorf("reasons, want, got:\n%s", diff)
			}
		})
	}
}

func TestChooseLooksAtEndpointsOfThePortOnly(t *testing.T) {
	endpoints := endpointList(t, "a . b")
	endpoints[1].Ports = []topology.EndpointPort{{Name: "metrics", Protocol: topology.TCP, Port: 9090}}
	choose := func(port topology.Port, zone topology.Zone) plan.Choice {
		return plan.Choose(&topology.Service{}, endpoints, port, plan.Client{Node: "node-1", Zone: zone})
	}
	if got := choose(topology.Port{Name: "http", Protocol: topology.TCP}, "a"); numbers(got.All) != "1" {
		t.Errorf("the endpoint of another port blocks the hints: %s because %s", numbers(got.All), got.Reason)
	}
	if got := choose(topology.Port{Name: "metrics", Protocol: topology.TCP}, "a"); numbers(got.All) != "2" {
		t.Errorf("port metrics is answered by %s, want 2", numbers(got.All))
	}
	if got := choose(topology.Port{Name: "http", Protocol: topology.UDP}, "a"); got.HasAny {
		t.Errorf("no endpoint answers UDP, got %s", numbers(got.All))
	}
}

func TestAnEndpointOfAnotherClusterIsNeverLocal(t *testing.T) {
	endpoints := endpointList(t, ".L .L")
	endpoints[0].Cluster = "east"
	got := plan.Choose(servingFor(t, "iTP"), endpoints, topology.Port{Name: "http", Protocol: topology.TCP}, clientAt("a"))
	if numbers(got.Local) != "2" {
		t.Errorf("local: %s, want 2", numbers(got.Local))
	}
}

func TestUnhintedEndpointsOfOtherClustersDoNotAnnulHints(t *testing.T) {
	for text, want := range map[string]string{
		"a b .w":   "1",  // as without it
		"a . .w":   "12", // a missing hint of this cluster annuls them
		". . .w":   "123",
		"a! b! .w": "3", // nothing of this cluster is ready
		"a b aw":   "13",
	} {
		endpoints := endpointList(t, strings.ReplaceAll(text, "w", ""))
		endpoints[2].Cluster = "west"
		got := plan.Choose(servingFor(t, ""), endpoints, topology.Port{Name: "http", Protocol: topology.TCP}, clientAt("a"))
		if numbers(got.Cluster) != want {
			t.Errorf("%s: %s, want %s", text, numbers(got.Cluster), want)
		}
	}
}

// A twin of the decision table, written row after row as sentences.
func TestChooseAgreesWithItsDumbTwin(t *testing.T) {
	port := topology.Port{Name: "http", Protocol: topology.TCP}
	random := newRandom(t)
	words := []string{"a", "b", "ab", ".", "a1", "b2", "1", "a!", "b~", ".~", "ax", "aL", "a1L", ".L", ".~L", "b?", "?"}
	for range 20_000 {
		var text []string
		for range random.IntN(6) {
			text = append(text, words[random.IntN(len(words))])
		}
		endpoints := endpointList(t, strings.Join(text, " "))
		client := clientAt([]string{"a", "b", "c", "-", "a@2", "b@9"}[random.IntN(6)])
		got := plan.Choose(&topology.Service{}, endpoints, port, client)
		if want := dumbCluster(endpoints, client); !slices.Equal(want, got.Cluster) {
			t.Fatalf("%v for %v: want %s, got %s because %s", text, client, numbers(want), numbers(got.Cluster), got.Reason)
		}
	}
}

func dumbCluster(endpoints []topology.Endpoint, c plan.Client) []int {
	var ready, leaving, forNode, forZone []int
	everyNode, everyZone := true, true
	for i, e := range endpoints {
		if e.Ready == topology.False {
			if e.Serving != topology.False && e.Terminating == topology.True {
				leaving = append(leaving, i)
			}
			continue
		}
		ready = append(ready, i)
		everyNode = everyNode && e.Hints.Nodes != nil
		everyZone = everyZone && e.Hints.Zones != nil
		if slices.Contains(e.Hints.Nodes, c.Node) {
			forNode = append(forNode, i)
		}
		if slices.Contains(e.Hints.Zones, c.Zone) {
			forZone = append(forZone, i)
		}
	}
	switch {
	case ready == nil:
		return leaving
	case everyNode && forNode != nil:
		return forNode
	case everyZone && forZone != nil:
		return forZone
	default:
		return ready
	}
}

// Each code that Choose gives has a text of its own.
func TestEveryReasonOfAChoiceIsASentence(t *testing.T) {
	for _, code := range []reason.Code{
		reason.NoEndpoints, reason.OnlyTerminating, reason.HintedToNode, reason.HintedToZone, reason.NoHints, reason.HintMissing,
		reason.ClientWithoutZone, reason.ZoneNotHinted, reason.LocalTrafficOnly, reason.OnNode, reason.OnlyTerminatingOnNode,
		reason.NoneOnNode,
	} {
		if text := reason.New(code, "x").String(); strings.HasPrefix(text, string(code)) {
			t.Errorf("%s has no text", code)
		}
	}
}
