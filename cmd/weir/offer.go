package main

import (
	"github.com/weir-lb/weir/internal/agent"
	"github.com/weir-lb/weir/internal/core/topology"
)

// offer says which services an agent serves.
type offer struct {
	all    bool
	mapped map[topology.ServiceName]bool
}

// offer makes the offer of a config whose scope is known.
func (f *agentFlags) offer(c *agent.Config) offer {
	o := offer{all: f.serves == servesAll, mapped: make(map[topology.ServiceName]bool)}
	for _, m := range c.Map {
		o.mapped[m.Service] = true
	}
	return o
}

// of gives a snapshot of nothing but the services that are served; what an agent does not serve it need not plan.
func (o offer) of(s *topology.Snapshot) topology.Snapshot {
	if o.all {
		return *s
	}
	offered := *s
	offered.Services = nil
	for _, svc := range s.Services {
		if svc.Proxy == topology.ProxyWeir || o.mapped[svc.ServiceName] {
			offered.Services = append(offered.Services, svc)
		}
	}
	return offered
}
