package sim

import (
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

func TestAPodThatWaitedForANodeHasTheFaultsOfItsZone(t *testing.T) {
	sc, err := scenario.Parse("waiting", []byte(`Pods wait for nodes
-- cluster --
nodes a:4x1 b:4x1
service web
endpoints a:2 b:2
-- run --
clients a:2
rate a:100
autoscale min=8 max=8
nodes pods-per-node=2 max=3 boot=5s
server start=1s
length 40s
-- steps --
12s slow a x10
13s fail b 0.5
14s heal b
`))
	if err != nil {
		t.Fatal(err)
	}
	weir, err := strategy.Named("weir")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Scenario: sc, Strategy: &weir, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	s.Step(18 * time.Second) // pods were made at 15 s, nodes come at 20 s
	if n := len(s.servers); n != 8 || s.servers[7].pod.Zone != "" {
		t.Fatalf("there are %d pods, the last one in zone %q: want 8, and that it waits", n, s.servers[n-1].pod.Zone)
	}
	s.Step(30 * time.Second)
	for id := range s.servers {
		v := &s.servers[id]
		want := scenario.Condition{}
		if v.pod.Zone == "a" {
			want.Slow = 10
		}
		if v.fault != want || v.slower != (v.pod.Zone == "a") {
			t.Errorf("pod %d in zone %q has %+v, slower is %v; want %+v", id, v.pod.Zone, v.fault, v.slower, want)
		}
	}
}
