package topology_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/topology"
)

func TestNearNamesComeClosestFirst(t *testing.T) {
	names := []string{"node-c", "web", "node-a", "nodes", "node-b1", "n", "node-z"}
	for name, want := range map[string][]string{
		"node-a": {"node-a", "node-c", "node-z", "node-b1", "nodes"},
		"nod-b1": {"node-b1", "node-a", "node-c", "node-z", "nodes"},
		"we":     {"web", "n", "nodes", "node-a", "node-c"},
	} {
		if diff := cmp.Diff(want, topology.Near(name, names)); diff != "" {
			t.Errorf("Near(%q) (-want +got)\n%s", name, diff)
		}
	}
	if got := topology.Near("a", nil); len(got) != 0 {
		t.Errorf("Near among none: %v", got)
	}
}

func TestTheNearestNameIsOneThatMayHaveBeenMeant(t *testing.T) {
	names := []string{"rate", "server", "slow", "heal"}
	for name, want := range map[string]string{
		"raet": "rate", "sever": "server", "SLOW": "slow", "slwo": "slow", "hael": "heal", "melt": "", "x": "", "": "", "servers": "server",
	} {
		if got, ok := topology.Nearest(name, names); got != want || ok != (want != "") {
			t.Errorf("Nearest(%q) = %q, %v, want %q", name, got, ok, want)
		}
	}
}
