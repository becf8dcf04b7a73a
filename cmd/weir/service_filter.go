package main

import (
	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/topology"
)

// serviceFilter selects the services that an agent serves.
type serviceFilter struct {
	all    bool
	mapped map[topology.ServiceName]bool
}

// filter makes the filter of a config whose scope is known.
func (f *agentFlags) filter(c *agent.Config) serviceFilter {
	o := serviceFilter{all: f.serves == servesAll, mapped: make(map[topology.ServiceName]bool)}
	for _, m := range c.Map {
		o.mapped[m.Service] = true
	}
	return o
}

// apply returns a snapshot of the selected services alone: an agent need not plan what it does not serve.
func (o serviceFilter) apply(s *topology.Snapshot) topology.Snapshot {
	if o.all {
		return *s
	}
	selected := *s
	selected.Services = nil
	for _, svc := range s.Services {
		if svc.Proxy == topology.ProxyWeir || svc.DataPlane != topology.DataPlaneProxy || o.mapped[svc.ServiceName] {
			selected.Services = append(selected.Services, svc)
		}
	}
	return selected
}
