package agent

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
)

// stateCollector shows plans and pools as metrics. It reads them when it is asked, so that what nobody scrapes costs
// nothing and what is gone leaves no series behind.
type stateCollector struct {
	agent *Agent
	descs descs
}

// descs are the collector's metrics.
type descs struct {
	poolState, poolReason, poolShare, poolSlowdown, spill, shed, ejections *prometheus.Desc
	endpoints, planOverload, planInZone, planReasons                       *prometheus.Desc
	listeners, problems                                                    *prometheus.Desc
}

func newStateCollector(a *Agent) *stateCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &stateCollector{agent: a, descs: descs{
		poolState: desc("weir_pool_state",
			"1 for the state that the pool is in, 0 for the others.",
			"service", "port", "family", "class", "state"),
		poolReason: desc("weir_pool_reason",
			"1 for the reason of the pool's last change of state.",
			"service", "port", "family", "class", "reason"),
		poolShare: desc("weir_pool_share",
			"Share of requests that goes to a group of endpoints, as decided.",
			"service", "port", "family", "class", "client_zone", "endpoint_zone", "group"),
		poolSlowdown: desc("weir_pool_slowdown",
			"Recent latency of a group of endpoints as a multiple of the learned normal; failures count, too.",
			"service", "port", "family", "class", "client_zone", "endpoint_zone", "group"),
		spill: desc("weir_spill_ratio",
			"Share of requests that leaves the home group, as decided.",
			"service", "port", "family", "class"),
		shed: desc("weir_shed_ratio",
			"Share of requests that is rejected because no zone can take them.",
			"service", "port", "family", "class"),
		ejections: desc("weir_endpoint_ejections_total",
			"How often present endpoints were put out of use because they kept failing.",
			"service", "port", "family", "class"),
		endpoints: desc("weir_endpoints",
			"Endpoints by zone and condition, as the cluster has them.",
			"service", "family", "zone", "condition"),
		planOverload: desc("weir_plan_overload_ratio",
			"Expected overload of the most loaded endpoint of a zone; 0.2 is 20 % above its fair part.",
			"service", "family", "zone"),
		planInZone: desc("weir_plan_in_zone_ratio",
			"Share of requests that the plan expects to stay in their zone.",
			"service", "family"),
		planReasons: desc("weir_plan_reasons",
			"1 for each reason that the plan gives.",
			"service", "family", "reason"),
		listeners: desc("weir_listeners",
			"Addresses to listen on, by whether they are open or failing.",
			"state"),
		problems: desc("weir_problems",
			"What the agent was asked to serve and cannot, or not as asked.",
			"reason"),
	}}
}

// Describe lists the metrics.
func (c *stateCollector) Describe(ch chan<- *prometheus.Desc) {
	d := &c.descs
	for _, desc := range []*prometheus.Desc{
		d.poolState, d.poolReason, d.poolShare, d.poolSlowdown, d.spill, d.shed, d.ejections,
		d.endpoints, d.planOverload, d.planInZone, d.planReasons, d.listeners, d.problems,
	} {
		ch <- desc
	}
}

// Collect reads plans and pools.
func (c *stateCollector) Collect(ch chan<- prometheus.Metric) {
	r := c.agent.plane.Read()
	if r == nil {
		return
	}
	out, addresses := gauges{ch}, 0
	for i, e := range r.table.Entries {
		c.pool(out, e, r.pools[i].Status())
		addresses += len(e.Addresses)
	}
	for _, s := range c.agent.desired.Load().services {
		for _, p := range s.plans {
			if p != nil {
				c.plan(out, p)
			}
		}
	}
	out.gauge(c.descs.listeners, float64(len(r.open)), "open")
	out.gauge(c.descs.listeners, float64(addresses-len(r.open)), "failing")
	problems := make(map[reason.Code]int)
	for _, p := range r.problems {
		problems[p.Reason.Code]++
	}
	for code, n := range problems {
		out.gauge(c.descs.problems, float64(n), string(code))
	}
}

// gauges sends metrics.
type gauges struct{ ch chan<- prometheus.Metric }

func (g gauges) gauge(d *prometheus.Desc, value float64, labels ...string) {
	g.ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

// groupKey is what tells the series of a pool's groups apart. Groups of one zone in different clusters share one.
type groupKey struct{ zone, group string }

// pool sends the metrics of one pool.
func (c *stateCollector) pool(out gauges, e *route.Entry, status pick.Status) {
	labels := []string{e.Key.Service.String(), strconv.Itoa(int(e.Key.Port)), e.Key.Family.String(), e.Key.Class}
	for state := overflow.Calm; state <= overflow.NoHelp; state++ {
		value := 0.0
		if state == status.State {
			value = 1
		}
		out.gauge(c.descs.poolState, value, append(labels[:4:4], state.String())...)
	}
	out.gauge(c.descs.poolReason, 1, append(labels[:4:4], string(status.Reason.Code))...)
	spill := 0.0
	shares, slowdowns := make(map[groupKey]float64), make(map[groupKey]float64)
	for _, g := range status.Groups {
		k := groupKey{zoneLabel(g.Zone), groupName(&g)}
		shares[k] += g.Share
		slowdowns[k] = max(slowdowns[k], g.Slowdown)
		if !g.Home {
			spill += g.Share
		}
	}
	for k, share := range shares {
		group := append(labels[:4:4], zoneLabel(e.Key.Zone), k.zone, k.group)
		out.gauge(c.descs.poolShare, share, group...)
		out.gauge(c.descs.poolSlowdown, slowdowns[k], group...)
	}
	out.gauge(c.descs.spill, spill, labels...)
	out.gauge(c.descs.shed, status.Shed, labels...)
	var ejections int64
	for i := range status.Endpoints {
		ejections += status.Endpoints[i].Ejections
	}
	out.ch <- prometheus.MustNewConstMetric(c.descs.ejections, prometheus.CounterValue, float64(ejections), labels...)
}

func groupName(g *pick.GroupStatus) string {
	if g.Home {
		return "home"
	}
	return "spill"
}

// plan sends the metrics of one plan.
func (c *stateCollector) plan(out gauges, p *plan.Plan) {
	service, family := p.Service.String(), p.Family.String()
	for _, z := range p.Zones {
		out.gauge(c.descs.planOverload, z.Overload, service, family, zoneLabel(z.Zone))
	}
	if !c.agent.config.OneNode {
		out.gauge(c.descs.planInZone, float64(p.InZone), service, family)
	}
	seen := make(map[reason.Code]bool)
	for _, r := range p.Reasons {
		if !seen[r.Code] {
			seen[r.Code] = true
			out.gauge(c.descs.planReasons, 1, service, family, string(r.Code))
		}
	}
	counts := make(map[[2]string]int)
	for i := range p.Endpoints {
		e := &p.Endpoints[i]
		counts[[2]string{zoneLabel(e.Zone), condition(e)}]++
	}
	for k, n := range counts {
		out.gauge(c.descs.endpoints, float64(n), service, family, k[0], k[1])
	}
}

// condition names what an endpoint is good for: it takes requests, it only ends those it has, or neither.
func condition(e *topology.Endpoint) string {
	switch {
	case e.IsReady():
		return "ready"
	case e.IsServing() && e.IsTerminating():
		return "terminating"
	default:
		return "unready"
	}
}
