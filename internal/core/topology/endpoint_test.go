package topology_test

import (
	"testing"

	"github.com/weir-lb/weir/internal/core/topology"
)

func TestConditionsThatAreMissingMeanWhatKubeProxyTakesThemFor(t *testing.T) {
	all := func(c topology.Condition) topology.Conditions {
		return topology.Conditions{Ready: c, Serving: c, Terminating: c}
	}
	for _, c := range []struct {
		conditions                  topology.Conditions
		ready, serving, terminating bool
	}{
		{topology.Conditions{}, true, true, false},
		{all(topology.True), true, true, true},
		{all(topology.False), false, false, false},
		{topology.Conditions{Ready: topology.False}, false, true, false},
		{topology.Conditions{Serving: topology.False}, true, false, false},
		{topology.Conditions{Terminating: topology.True}, true, true, true},
	} {
		e := topology.Endpoint{Conditions: c.conditions}
		if e.IsReady() != c.ready || e.IsServing() != c.serving || e.IsTerminating() != c.terminating {
			t.Errorf("%v: want ready %t, serving %t, terminating %t; got %t, %t, %t", c.conditions,
				c.ready, c.serving, c.terminating, e.IsReady(), e.IsServing(), e.IsTerminating())
		}
	}
}

func TestEndpointPortIsFoundByNameAndProtocol(t *testing.T) {
	e := topology.Endpoint{Ports: []topology.EndpointPort{
		{Name: "dns", Protocol: topology.TCP, Port: 5353},
		{Name: "dns", Protocol: topology.UDP, Port: 5354},
	}}
	got, ok := e.Port(topology.Port{Name: "dns", Protocol: topology.UDP, Port: 53})
	if !ok || got.Port != 5354 {
		t.Errorf("want port 5354, got %v, %t", got, ok)
	}
	if _, ok := e.Port(topology.Port{Protocol: topology.UDP, Port: 53}); ok {
		t.Error("a port of another name was found")
	}
}
