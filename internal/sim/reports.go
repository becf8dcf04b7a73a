package sim

import "github.com/weir-lb/weir/internal/sim/strategy"

// report lets a client take the utilisation that an endpoint reports with an answer: that of the last second that is over.
// Nothing is no report, as Envoy has it.
func (s *Simulation) report(x *exchange) {
	c := &s.clients[x.client]
	for int(x.server) >= len(c.reports) {
		c.reports = append(c.reports, strategy.Report{})
	}
	if u := s.servers[x.server].utilisation; u > 0 {
		c.reports[x.server] = strategy.Report{Utilisation: u, At: s.now}
	}
}

// reported gives the last report of an endpoint of a client's pool, by its index there; false: there is none.
func (s *Simulation) reported(client, endpoint int) (strategy.Report, bool) {
	c := &s.clients[client]
	targets := s.discovery.all[c.latest].classes[s.classOf(c)].targets
	server, ok := s.byAddr[targets[endpoint].Addr.Addr()]
	if !ok || int(server) >= len(c.reports) || c.reports[server].Utilisation == 0 {
		return strategy.Report{}, false
	}
	return c.reports[server], true
}
