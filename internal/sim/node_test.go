package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// onNodes is a service in mode PreferSameNode with an endpoint on each of three nodes in three zones, and what happens to the
// endpoint on zone a's first node.
func onNodes(t *testing.T, perSecond int, what string) *scenario.Scenario {
	t.Helper()
	var endpoints []string
	for _, zone := range []string{"a", "b", "c"} {
		for node := range 3 {
			endpoints = append(endpoints, fmt.Sprintf("%s:1@%s-%d", zone, zone, node+1))
		}
	}
	sc, err := scenario.Parse("nodes.txtar", fmt.Appendf(nil, `Nodes

One endpoint on each node.
-- cluster --
nodes eu/a:16x3 eu/b:16x3 eu/c:16x3
service shop/web
endpoints %[1]s
-- run --
clients a:3 b:3 c:3
rate a:%[2]d b:%[2]d c:%[2]d
length 120s
stress 20s..60s
affected a
-- steps --
20s %[3]s
60s heal a/1
`, strings.Join(endpoints, " "), perSecond, what))
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

// KEP-4444: the node, then its zone, then all. Before the order was the node, then all.
func TestPreferSameNodeUsesTheZoneBeforeOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what      string
		perSecond int
		inZone    float64 // at least
	}{
		{"slow a/1 x10", 15, 1},
		{"fail a/1 1", 15, 1},
		{"hang a/1", 15, 1},
		{"refuse a/1", 15, 1},
		{"slow a/1 x10", 200, 0.997},
		{"fail a/1 1", 200, 0.991},
		{"hang a/1", 200, 0.994},
		{"refuse a/1", 200, 0.991},
	} {
		t.Run(fmt.Sprint(c.what, " ", c.perSecond), func(t *testing.T) {
			t.Parallel()
			weir := named(t, "weir")
			weir.Mode = topology.ModePreferSameNode
			s, err := sim.New(sim.Options{Scenario: onNodes(t, c.perSecond, c.what), Strategy: weir, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			s.Step(120 * time.Second)
			r := s.Result()
			if r.Affected.InZone < c.inZone || r.Affected.Good < 0.96 {
				t.Errorf("in zone %.4f, good %.4f: want at least %.4f and 0.96", r.Affected.InZone, r.Affected.Good, c.inZone)
			}
			if code := s.Pool(0).Status().Reason.Code; !strings.HasPrefix(string(code), "Node") {
				t.Errorf("the reason is %s: want one that is about the node, such as %s", code, reason.NodeCopes)
			}
		})
	}
}
