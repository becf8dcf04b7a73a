package status

import (
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/plans"
)

// collector counts the managed services when metrics are gathered, from the newest decisions: their numbers change more
// often than that. It counts only while it is open: replicas that do not lead have the same services, and sums
// over replicas would count each of them twice.
type collector struct {
	decisions func() []*plans.Decision
	isOpen    atomic.Bool

	services     *prometheus.Desc
	distribution *prometheus.Desc
	warnings     *prometheus.Desc
	overload     *prometheus.Desc
	inZone       *prometheus.Desc
}

func newCollector(decisions func() []*plans.Decision) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &collector{
		decisions: decisions,
		services: desc("weir_services",
			"Managed services, by mode and by what their plan says first.", "mode", "reason"),
		distribution: desc(upstream+"services_count_by_traffic_distribution",
			"Managed services, by the distribution that they ask for.", "traffic_distribution"),
		warnings: desc("weir_service_warnings",
			"Services with warnings, by reason: a setting that is not followed, or a plan that cannot be good.", "reason"),
		overload: desc("weir_service_expected_overload",
			"Expected overload of the most loaded endpoint of all services of a mode: 0.2 is 20 % above its fair part.", "mode"),
		inZone: desc("weir_in_zone_share",
			"Share of requests that plans expect to stay in their zone, mean of the services of a mode with endpoints.", "mode"),
	}
}

func (c *collector) open() { c.isOpen.Store(true) }

func (c *collector) close() { c.isOpen.Store(false) }

// Describe implements prometheus.Collector.
func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.services, c.distribution, c.warnings, c.overload, c.inZone} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	if c.decisions == nil || !c.isOpen.Load() {
		return
	}
	t := newTally()
	for _, d := range c.decisions() {
		t.add(d)
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for k, n := range t.services {
		gauge(c.services, float64(n), string(k.mode), string(k.code))
	}
	for code, n := range t.warnings {
		gauge(c.warnings, float64(n), code)
	}
	for mode, s := range t.modes {
		gauge(c.distribution, float64(s.services), string(mode))
		if s.served > 0 {
			gauge(c.overload, s.overload, string(mode))
			gauge(c.inZone, s.inZone/float64(s.served), string(mode))
		}
	}
}

// tally is what a collector finds.
type tally struct {
	services map[modeReason]int
	warnings map[string]int // services, by the reason of a warning
	modes    map[topology.Mode]*sum
}

type modeReason struct {
	mode topology.Mode
	code reason.Code
}

// sum is of the services of one mode.
type sum struct {
	services int
	served   int     // those with endpoints that get requests
	overload float64 // the highest
	inZone   float64 // summed over those that are served
}

func newTally() *tally {
	return &tally{
		services: make(map[modeReason]int),
		warnings: make(map[string]int),
		modes:    make(map[topology.Mode]*sum),
	}
}

func (t *tally) add(d *plans.Decision) {
	t.warn(d)
	if !d.Record.Managed || d.Record.Service == nil {
		return
	}
	mode := modeOf(d)
	t.services[modeReason{mode, headline(d)}]++
	s := t.modes[mode]
	if s == nil {
		s = new(sum)
		t.modes[mode] = s
	}
	s.services++
	served, inZone := 0, 0.0
	for i := range d.Plans {
		p := &d.Plans[i]
		if isEmpty(p) {
			continue
		}
		served, inZone = served+1, inZone+float64(p.InZone)
		s.overload = max(s.overload, overloadOf(p))
	}
	if served > 0 {
		s.served, s.inZone = s.served+1, s.inZone+inZone/float64(served)
	}
}

// warn counts a service once for each reason to warn of it. A service whose setting is refused may not be managed at all.
func (t *tally) warn(d *plans.Decision) {
	if d.Record.Service == nil || !d.Record.Managed && !asked(d) {
		return
	}
	var reasons []string
	for _, w := range warningsOf(d, Outcome{}) { // what others do to its hints has a metric of its own
		reasons = append(reasons, w.reason)
	}
	slices.Sort(reasons)
	for _, r := range slices.Compact(reasons) {
		t.warnings[r]++
	}
}

// headline is the code that stands for the whole service: why the first family with endpoints that has no hints has none,
// else what the hints are like.
func headline(d *plans.Decision) reason.Code {
	used := inUse(d)
	for _, p := range used {
		if !p.Hinted {
			return obstacle(p).Code
		}
	}
	if len(used) == 0 {
		return nothingThere(d)
	}
	return used[0].Reasons[0].Code
}

// overloadOf is the highest of the plan's zones.
func overloadOf(p *plan.Plan) float64 {
	highest := 0.0
	for i := range p.Zones {
		highest = max(highest, p.Zones[i].Overload)
	}
	return highest
}
