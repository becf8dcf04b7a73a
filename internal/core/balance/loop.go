package balance

import (
	"math"
	"net/netip"
	"time"

	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
)

// Options configure a Loop.
type Options struct {
	Zone     topology.Zone     // the client's
	Strategy overflow.Strategy // of this loop alone; nil: all requests go home, or while home has no usable endpoint to the next group
	Random   func() uint64     // for the length of pauses; nil: they do not vary
	Rotate   uint64            // see route.Groups
}

// Loop is the control loop. One goroutine at a time.
type Loop struct {
	options  Options
	config   Config
	rules    health.Config // those of config, with defaults
	decision Decision
	drains   map[topology.Zone]time.Duration

	at       time.Duration // of the last step
	busy     time.Duration // when a request was last under way
	lastID   int           // of groups
	compared time.Duration // when outliers were last looked for by rates
	out      int           // ejected endpoints
	warming  bool          // an endpoint starts slowly
	draining bool          // at the last step

	decay     decay
	reference reference
	counters  overflow.Counters // of the strategy; reused, as are the ones below
	suspects  []int             // indexes of endpoints that outlier detection has to look at
	tallies   []health.Tally
	levels    []level
	shares    []float64
}

const (
	// defaultCap is the largest slowdown of one request when the strategy names none: that of the overflow law.
	defaultCap = 8.0
	// unknownLimit is the longest latency that counts, and half of the age at which a request is overdue, while there is
	// no baseline: longer than what a service's answer usually takes, short enough for sums to hold.
	unknownLimit = time.Minute
	// restAfter is how long steps are needed after the last request: five times the slowdown's memory, and a new
	// endpoint's whole slow start.
	restAfter = 10 * time.Second
	// unwindAfter is the same while the strategy is not calm; without requests it has nothing to learn, so this only
	// bounds what an unused loop costs.
	unwindAfter = time.Minute
	// longAgo is when the first endpoints joined: before any slow start.
	longAgo = time.Duration(math.MinInt64 / 4)
)

// New makes a loop without endpoints.
func New(o Options, c Config) *Loop {
	l := &Loop{options: o, drains: make(map[topology.Zone]time.Duration)}
	if o.Strategy == nil {
		static, _ := overflow.New("Static", overflow.Config{})
		l.options.Strategy = overflow.Unconfined(static)
	}
	if o.Random == nil {
		l.options.Random = func() uint64 { return 1 << 63 }
	}
	l.Configure(c)
	return l
}

// Configure replaces the Config. What is known of endpoints and groups stays.
func (l *Loop) Configure(c Config) {
	l.config, l.rules = c, c.Health.WithDefaults()
	if l.rules.Outliers == nil {
		for i := range l.decision.Endpoints { // failures counted for the policy before do not count for this one
			l.decision.Endpoints[i].interval = health.Tally{}
		}
	}
	l.limit()
}

// limit computes how many endpoints may be ejected at once.
func (l *Loop) limit() {
	ready := 0
	for i := range l.decision.Groups {
		ready += len(l.decision.Groups[i].Ready)
	}
	l.decision.Allowed = l.rules.Allowed(ready)
}

// Inherited says which endpoints and groups an Apply kept: for each of them the index that it had before, -1 where it is
// new. A data plane keeps its counters by that.
type Inherited struct{ Endpoints, Groups []int }

// Apply replaces the endpoints, each address once (see route.Distinct). What is known of an endpoint stays as long as its
// address, zone, cluster and cost do; what is known of a group stays as long as there is one of its cluster and zone. The
// strategy is told of the groups even if they are the same: it may be another one behind the one that the loop knows. The
// decision's routes are those of before until the next Step.
func (l *Loop) Apply(now time.Duration, endpoints []route.Endpoint) Inherited {
	d := &l.decision
	before := make(map[netip.AddrPort]int, len(d.Endpoints))
	for i := range d.Endpoints {
		before[d.Endpoints[i].Addr] = i
	}
	joined := now
	if len(d.Endpoints) == 0 {
		joined = longAgo // none of the first endpoints is new to the service
	}
	kept := make([]int, len(endpoints))
	next := make([]Endpoint, len(endpoints))
	for i, e := range endpoints {
		if at, ok := before[e.Addr]; ok && same(&d.Endpoints[at].Endpoint, &e) {
			kept[i], next[i] = at, d.Endpoints[at]
			next[i].change(e, now)
			continue
		}
		kept[i], next[i] = -1, Endpoint{Endpoint: e, Standing: Serving, Slowdown: 1, Ramp: 1, joined: joined}
	}
	d.Endpoints = next
	groups := l.regroup()
	l.limit()
	l.options.Strategy.Reset(now, l.layout())
	return Inherited{kept, groups}
}

// same tells whether both describe the same endpoint.
func same(a, b *route.Endpoint) bool {
	return a.Addr == b.Addr && a.Zone == b.Zone && a.Cluster == b.Cluster && a.Cost == b.Cost
}

// change takes over what may change of an endpoint while it stays the same.
func (e *Endpoint) change(to route.Endpoint, now time.Duration) {
	switch {
	case e.Unready && !to.Unready:
		e.joined = now
	case to.Unready && !e.Unready: // the number of ejected endpoints is bounded, and this one gets no requests anyway
		e.Standing, e.row = Serving, 0
		e.reconcile(now)
	}
	e.Endpoint = to
}

// Step takes what was counted since the step before and decides until the next one. The Decision is always the same
// object.
func (l *Loop) Step(now time.Duration, c *Counters) *Decision {
	l.decay.over(max(0, now-l.at), &l.rules)
	l.at = now
	l.count(now, c)
	l.detect(now, c, l.observe(now, c))
	l.mark(now)
	l.warm(now)
	l.decision.Decision = l.options.Strategy.Step(now, &l.counters)
	l.follow()
	l.grade()
	l.bound()
	for i := range min(len(l.decision.Groups), len(l.decision.Decision.Groups)) {
		l.decision.Groups[i].GroupStatus = l.decision.Decision.Groups[i]
	}
	idle := now - l.busy
	l.decision.Active = idle < restAfter || l.decision.State != overflow.Calm && idle < unwindAfter || len(l.drains) > 0 || l.warming
	return &l.decision
}

// Decision gives the last decision, with the groups and endpoints of the last Apply.
func (l *Loop) Decision() *Decision { return &l.decision }

// decay is what the time since the step before leaves of what is remembered. Simulated steps are nearly all of one length.
type decay struct {
	elapsed, memory             time.Duration
	slowdown, delivered, health float64
	peak                        float64
}

func (d *decay) over(elapsed time.Duration, rules *health.Config) {
	if d.elapsed == elapsed && d.memory == rules.Memory {
		return
	}
	*d = decay{
		elapsed: elapsed, memory: rules.Memory, health: rules.Keep(elapsed),
		slowdown:  math.Exp(-elapsed.Seconds() / slowdownTau),
		delivered: math.Exp(-elapsed.Seconds() / deliveredTau),
		peak:      math.Exp(-elapsed.Seconds() / peakTau),
	}
}

// follow takes over the strategy's baseline: how long a latency counts, and how old a request may be.
func (l *Loop) follow() {
	d := &l.decision
	if d.Cap <= 0 {
		d.Cap = defaultCap
	}
	l.reference.baseline, l.reference.cap = d.Baseline, d.Cap
	limit := unknownLimit
	if d.Baseline > 0 {
		limit = time.Duration(d.Cap * float64(d.Baseline))
	}
	d.Horizon = 2 * limit
	for i := range d.Groups {
		g := &d.Groups[i]
		g.ExtraRTT = 0
		if home := d.Groups[0].RTT; g.RTT > 0 && home > 0 {
			g.ExtraRTT = g.RTT - home
		}
		g.Limit = limit + max(0, g.ExtraRTT)
		g.Failing = g.fails()
	}
}
