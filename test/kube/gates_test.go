//go:build e2e

package kube_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/test/kube"
)

// Settings of the gates under test: all open, as without the flag, and each of them closed.
const (
	gatesOpen      = "--feature-gates="
	noAuto         = "--feature-gates=TopologyAwareHints=false"
	noDistribution = "--feature-gates=ServiceTrafficDistribution=false"
	noPreferSame   = "--feature-gates=PreferSameTrafficDistribution=false"
	allGatesClosed = "--feature-gates=TopologyAwareHints=false,ServiceTrafficDistribution=false,PreferSameTrafficDistribution=false"
)

// gated is a Service that asks for a mode which a gate can take away.
type gated struct {
	app  *kube.App
	on   func(*kube.Endpoint) bool // what its hints say while the gate is open
	gate []string                  // the settings that take its mode away
}

// TestAGateOffIsAsIfTheFieldWasNeverSet restarts a controller of all Services, of which those that ask for nothing get no
// hints, with gates open, closed and open again. Objects stay in place.
func TestAGateOffIsAsIfTheFieldWasNeverSet(t *testing.T) {
	t.Parallel()
	c := kube.Start(t, kube.Options{})
	c.Nodes(2, "zone-a", "zone-b", "zone-c")
	w := newControllersByChart(t, c, "controller.manage=all", "controller.defaultDistribution=Disabled")
	deploy := func(name, distribution string, annotations map[string]string) *kube.App {
		return c.Deploy(kube.AppOptions{
			Namespace: "shop", Name: name, Distribution: distribution, Annotations: annotations,
			Pods: map[string]int{"zone-a": 4, "zone-b": 1, "zone-c": 1},
		})
	}
	auto := map[string]string{corev1.AnnotationTopologyMode: "Auto"}
	services := []gated{
		{deploy("auto", "", auto), anyZone, []string{noAuto, allGatesClosed}},
		{deploy("close", "PreferClose", nil), ownZoneOnly, []string{noDistribution, allGatesClosed}},
		{deploy("zone", "PreferSameZone", nil), ownZoneOnly, []string{noDistribution, noPreferSame, allGatesClosed}},
		{deploy("node", "PreferSameNode", nil), ownNode, []string{noDistribution, noPreferSame, allGatesClosed}},
	}
	never := deploy("never", "", nil)
	// The annotation counts before the field: Auto evens out the endpoints, the field would give each its own zone. Without
	// the gate of Auto the field counts.
	both := deploy("both", "PreferSameZone", auto)
	for _, setting := range []string{gatesOpen, noAuto, noDistribution, noPreferSame, allGatesClosed, gatesOpen} {
		m := w.start("weir", setting)
		hinted(never, "nothing, by "+setting, noHint)
		for _, s := range services {
			if slices.Contains(s.gate, setting) {
				hinted(s.app, "nothing, by "+setting, noHint)
			} else {
				hinted(s.app, "what it asks for, by "+setting, s.on)
			}
		}
		switch setting {
		case noAuto:
			hinted(both, "what its field says, by "+setting, ownZoneOnly)
		case allGatesClosed:
			hinted(both, "nothing, by "+setting, noHint)
		default:
			even(both, setting)
		}
		w.stop(m)
	}
	m := w.start("weir", "--default-distribution=PreferSameZone")
	hinted(never, "the default", ownZoneOnly)
	w.stop(m)
	t.Logf("measured: %d Services said what each of 6 settings of the gates means", len(services)+2)
}

// even waits until each of three zones is hinted for as many endpoints, which is what Auto does for equal zones.
func even(a *kube.App, setting string) {
	a.Cluster.Until("the endpoints of "+a.Name+" are spread evenly over the zones, by "+setting, func() error {
		counts := make(map[string]int)
		for _, e := range a.Endpoints() {
			for _, z := range e.ForZones {
				counts[z]++
			}
		}
		if len(counts) != 3 || counts["zone-a"] != counts["zone-b"] || counts["zone-b"] != counts["zone-c"] {
			return fmt.Errorf("endpoints by zone: %v", counts)
		}
		return nil
	})
}

// TestTheBuiltInHintsReturnWhenAGateTakesALabelAway has Services that ask both weir, by its label, and the built-in
// controller, by the field. A gate that takes weir's mode away leaves them to the built-in controller.
func TestTheBuiltInHintsReturnWhenAGateTakesALabelAway(t *testing.T) {
	t.Parallel()
	c := kube.Start(t, kube.Options{})
	c.Nodes(2, "zone-a", "zone-b", "zone-c")
	w := newControllers(t, c)
	deploy := func(name, distribution string) *kube.App {
		return c.Deploy(kube.AppOptions{
			Namespace: "shop", Name: name, Labels: labelled("PreferSameNode"), Distribution: distribution,
			Pods: map[string]int{"zone-a": 2, "zone-b": 1, "zone-c": 1},
		})
	}
	weirs, both := deploy("weirs", ""), deploy("both", "PreferSameZone")
	zoneNotNode := func(e *kube.Endpoint) bool { return ownZoneOnly(e) && len(e.ForNodes) == 0 }
	for _, setting := range []string{gatesOpen, noPreferSame, gatesOpen} {
		m := w.start("weir", setting)
		if setting == gatesOpen {
			hinted(weirs, "nodes, by "+setting, ownNode)
			hinted(both, "nodes, by "+setting, ownNode)
		} else {
			hinted(weirs, "nothing, by "+setting, noHint)
			c.Until("weir's mark is gone", func() error {
				for _, s := range slices.Concat(weirs.Slices(), both.Slices()) {
					if mark, ok := s.Annotations[api.AnnotationHints]; ok {
						return fmt.Errorf("%s is marked %s", s.Name, mark)
					}
				}
				return nil
			})
			hinted(both, "zones by the built-in controller, by "+setting, zoneNotNode)
			w.quiet()
			hinted(weirs, "nothing, by "+setting, noHint)
			hinted(both, "zones by the built-in controller, by "+setting, zoneNotNode)
		}
		w.stop(m)
	}
}
