package agent_test

import (
	"testing"

	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/topology"
)

func TestAClientOfAServiceWithSessionAffinityStaysWithItsEndpoint(t *testing.T) {
	w := newCluster(t, topology.ModeDisabled, 2)
	w.extra = func(svc *topology.Service) { svc.Sticky = true }
	w.snapshots.Store(w.snapshot(w.endpoints...))
	r := w.start(agent.Config{Node: "node-a"})
	if counts := r.zones(60); len(counts) != 1 {
		t.Errorf("endpoints of several zones answered one client: %v", counts)
	}
	answered := 0
	for _, zone := range []topology.Zone{"a", "b", "c"} {
		for _, e := range w.in(zone) {
			if hits([]*endpoint{e}) > 0 {
				answered++
			}
		}
	}
	if answered != 1 {
		t.Errorf("%d endpoints answered one client, want 1", answered)
	}
}
