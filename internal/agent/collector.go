package agent

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kernel"
)

// stateCollector shows plans and pools as metrics. It reads them when it is asked, so that without a scrape it costs
// nothing and what is gone leaves no series behind.
type stateCollector struct {
	agent *Agent
	descs map[string]*prometheus.Desc // by name
}

func newStateCollector(a *Agent) *stateCollector {
	c := &stateCollector{agent: a, descs: make(map[string]*prometheus.Desc)}
	declare := func(name, help string, labels ...string) {
		c.descs[name] = prometheus.NewDesc(name, help, labels, nil)
	}
	pool := func(name, help string, labels ...string) {
		declare(name, help, append([]string{"service", "port", "family", "class"}, labels...)...)
	}
	pool("weir_pool_state", "1 for the pool's state, 0 for the others.", "state")
	pool("weir_pool_reason", "1 for the reason of the last change of state.", "reason")
	pool("weir_pool_share", "Share of requests that goes to a group: home or spill (the rest of a zone).",
		"client_zone", "endpoint_zone", "group")
	pool("weir_pool_slowdown",
		"Recent latency of a group as a multiple of the baseline, with failures; 0: not known.",
		"client_zone", "endpoint_zone", "group")
	pool("weir_pool_latency_seconds", "Recent mean latency of a group's good answers; 0: not known.",
		"client_zone", "endpoint_zone", "group")
	pool("weir_pool_failure_ratio", "Recent part of a group's answers that were failures.",
		"client_zone", "endpoint_zone", "group")
	pool("weir_spill_ratio", "Share of requests that leaves the home group.")
	pool("weir_shed_ratio", "Share of requests that is rejected with 503.")
	pool("weir_endpoint_ejections_total", "Ejections of endpoints that still exist; falls when one is removed.")
	declare("weir_endpoints", "Endpoints of the cluster, by zone and condition: ready, terminating (still serving) or unready.",
		"service", "family", "zone", "condition")
	declare("weir_plan_overload_ratio",
		"Highest expected overload of an endpoint in a zone: 0.2 is 20 %, -1 idle.", "service", "family", "zone")
	declare("weir_plan_in_zone_ratio", "Share of requests that the plan expects to stay in their zone.", "service", "family")
	declare("weir_plan_reasons", "1 for each reason of the plan, with the codes of weir explain -o json.", "service", "family", "reason")
	declare("weir_kernel_connections",
		"Connections that the kernel has placed on the present endpoints, by result; reset ones are established, too.",
		"service", "port", "family", "result")
	declare("weir_kernel_open_connections", "Connections that the kernel has placed and that are open.", "service", "port", "family")
	declare("weir_kernel_flows", "UDP flows that the kernel has placed on the present endpoints.", "service", "port", "family")
	declare("weir_listeners", "Addresses to listen on: open or failing.", "state")
	declare("weir_problems", "What cannot be served as configured; see /services.", "reason")
	return c
}

// Describe lists the metrics.
func (c *stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range c.descs {
		ch <- desc
	}
}

// Collect reads plans and pools.
func (c *stateCollector) Collect(ch chan<- prometheus.Metric) {
	r := c.agent.plane.Read()
	if r == nil {
		return
	}
	out, addresses := samples{c.descs, ch}, 0
	open := len(r.open)
	for i, e := range r.table.Entries {
		out.pool(e, r.pools[i].Status())
		if k, ok := r.pools[i].(*kernelPool); ok {
			out.kernel(e, k.Totals())
			open -= len(k.entry.Addresses)
			continue
		}
		addresses += len(e.Addresses)
	}
	for _, p := range c.agent.desired.Load().plans() {
		out.plan(p)
		if !c.agent.config.OneNode {
			out.gauge("weir_plan_in_zone_ratio", float64(p.InZone), p.Service.String(), p.Family.String())
		}
	}
	out.gauge("weir_listeners", float64(open), "open")
	out.gauge("weir_listeners", float64(addresses-open), "failing")
	problems := make(map[reason.Code]int)
	for _, p := range r.problems {
		problems[p.Reason.Code]++
	}
	for code, n := range problems {
		out.gauge("weir_problems", float64(n), string(code))
	}
}

// samples sends metrics.
type samples struct {
	descs map[string]*prometheus.Desc
	ch    chan<- prometheus.Metric
}

func (s samples) gauge(name string, value float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(s.descs[name], prometheus.GaugeValue, value, labels...)
}

// groupKey is what tells the series of a pool's groups apart. Groups of one zone in different clusters share one.
type groupKey struct{ zone, group string }

// pool sends the metrics of one pool.
func (s samples) pool(e *route.Entry, status pick.Status) {
	labels := []string{e.Key.Service.String(), portLabel(e), e.Key.Family.String(), e.Key.Class}
	for state := overflow.Calm; state <= overflow.NoHelp; state++ {
		value := 0.0
		if state == status.State {
			value = 1
		}
		s.gauge("weir_pool_state", value, append(labels[:4:4], state.String())...)
	}
	s.gauge("weir_pool_reason", 1, append(labels[:4:4], string(status.Reason.Code))...)
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
	answers := answersOf(&status)
	for k, share := range shares {
		group := append(labels[:4:4], zoneLabel(e.Key.Zone), k.zone, k.group)
		s.gauge("weir_pool_share", share, group...)
		s.gauge("weir_pool_slowdown", slowdowns[k], group...)
		a := answers[k]
		s.gauge("weir_pool_latency_seconds", a.Latency().Seconds(), group...)
		s.gauge("weir_pool_failure_ratio", a.FailureRatio(), group...)
	}
	s.gauge("weir_spill_ratio", spill, labels...)
	s.gauge("weir_shed_ratio", status.Shed, labels...)
	var ejections int64
	for i := range status.Endpoints {
		ejections += status.Endpoints[i].Ejections
	}
	s.ch <- prometheus.MustNewConstMetric(s.descs["weir_endpoint_ejections_total"], prometheus.CounterValue,
		float64(ejections), labels...)
}

// answersOf sums up by group what endpoints answered lately.
func answersOf(status *pick.Status) map[groupKey]balance.Answers {
	answers := make(map[groupKey]balance.Answers)
	for i := range status.Endpoints {
		e := &status.Endpoints[i]
		g := &status.Groups[e.Group]
		k := groupKey{zoneLabel(g.Zone), groupName(g)}
		answers[k] = answers[k].Add(e.Answers())
	}
	return answers
}

// portLabel is the port's number, with its protocol unless that is TCP.
func portLabel(e *route.Entry) string {
	port := strconv.Itoa(int(e.Key.Port))
	if e.Key.Protocol != topology.TCP {
		port += "/" + string(e.Key.Protocol)
	}
	return port
}

// kernel sends what the kernel counted of one pool.
func (s samples) kernel(e *route.Entry, t kernel.Totals) {
	labels := []string{e.Key.Service.String(), portLabel(e), e.Key.Family.String()}
	if e.Key.Protocol == topology.UDP {
		s.gauge("weir_kernel_flows", float64(t.Flows), labels...)
		return
	}
	s.gauge("weir_kernel_open_connections", float64(t.Open), labels...)
	for result, n := range map[string]uint64{
		"established": t.Established, "refused": t.Refused, "timed_out": t.TimedOut, "abandoned": t.Abandoned, "reset": t.Reset,
	} {
		s.gauge("weir_kernel_connections", float64(n), append(labels[:3:3], result)...)
	}
}

func groupName(g *pick.GroupStatus) string {
	if g.Home {
		return "home"
	}
	return "spill"
}

// plan sends the metrics of one plan.
func (s samples) plan(p *plan.Plan) {
	service, family := p.Service.String(), p.Family.String()
	for _, z := range p.Zones {
		s.gauge("weir_plan_overload_ratio", z.Overload, service, family, zoneLabel(z.Zone))
	}
	seen := make(map[reason.Code]bool)
	for _, r := range p.Reasons {
		if !seen[r.Code] {
			seen[r.Code] = true
			s.gauge("weir_plan_reasons", 1, service, family, string(r.Code))
		}
	}
	counts := make(map[[2]string]int)
	for i := range p.Endpoints {
		e := &p.Endpoints[i]
		counts[[2]string{zoneLabel(e.Zone), condition(e)}]++
	}
	for k, n := range counts {
		s.gauge("weir_endpoints", float64(n), service, family, k[0], k[1])
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
