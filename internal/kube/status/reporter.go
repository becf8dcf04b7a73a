package status

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
	"github.com/weir-lb/weir/internal/kube/events"
	"github.com/weir-lb/weir/internal/kube/plans"
)

// Options are what a Reporter works with.
type Options struct {
	// Services is where conditions are written. Nil: none are, as in a dry run.
	Services corev1client.ServicesGetter
	// Events takes the events. Nil: none are sent.
	Events EventSink
	// Decisions gives all decisions when metrics are gathered, as (*plans.Store).All does. Nil: the services are not counted.
	Decisions func() []*plans.Decision
	// Registerer takes the metrics. Nil: they are not exported.
	Registerer prometheus.Registerer
	// Now tells the time, by the same clock as Decision.Changed. Nil: time.Now.
	Now func() time.Time
}

// EventSink takes events, as an events.Recorder does.
type EventSink interface{ Send(e events.Event) }

// Outcome is what became of one decision.
type Outcome struct {
	Slices  int   // EndpointSlices of the service
	Pending int   // those that do not say the plan yet
	Written int   // those that were written this time
	Undone  bool  // another writer keeps removing what is written, so that it is written less and less often
	Err     error // why some are pending; nil when nothing went wrong
}

// done tells whether the slices say the plan.
func (o Outcome) done() bool { return o.Pending == 0 && o.Err == nil }

// Reporter publishes what became of services. It is safe for concurrent use for different services; reports of
// one service come one after the other. Of several replicas only one reports: the leader.
type Reporter struct {
	services  corev1client.ServicesGetter
	events    EventSink
	now       func() time.Time
	metrics   *metrics
	collector *collector

	mu       sync.Mutex
	memories map[topology.ServiceName]*memory
}

// memory is what was said of a service. The goroutine that reports the service owns it.
type memory struct {
	uid      types.UID       // of the Service that it speaks of: one that is made anew is another one
	families [2]state        // by family
	warned   map[string]bool // by key
	asked    bool            // whether it asked for a distribution

	failure  kind      // the kind of the last error that was reported; none when all is well
	failures int       // reports in a row with an error
	late     time.Time // when the slices were first seen not to say the plan; zero: they say it
	changed  time.Time // when the change that they do not say was seen

	written written // the conditions as they were last written
}

// New makes a Reporter and registers its metrics.
func New(o Options) (*Reporter, error) {
	r := &Reporter{
		services: o.Services, events: o.Events, now: o.Now,
		metrics: newMetrics(), collector: newCollector(o.Decisions), memories: make(map[topology.ServiceName]*memory),
	}
	if r.now == nil {
		r.now = time.Now
	}
	if o.Registerer == nil {
		return r, nil
	}
	for _, c := range append(r.metrics.collectors(), r.collector) {
		if err := o.Registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics of the controller: %w", err)
		}
	}
	return r, nil
}

// Report tells what became of a decision. It sends events about what changed since the report before, and writes the
// conditions where they differ in status or reason from what the Service has. It costs nothing to repeat.
//
// Errors: when the conditions could not be written. They are written at the next report.
func (r *Reporter) Report(ctx context.Context, d *plans.Decision, o Outcome) error {
	r.collector.open()
	if d.Record.Managed {
		r.metrics.sync(modeOf(d), o)
	}
	if d.Record.Object == nil {
		r.Forget(d.Record.Name)
		return nil
	}
	m, first := r.recall(d, o)
	if m == nil {
		return nil
	}
	v := judge(d, o, r.time(m, d, o))
	if first {
		m.begin(d.Record, v, o)
	}
	for _, n := range m.notices(d.Record, v, o) {
		r.send(d.Record.Object, n)
	}
	return r.write(ctx, d.Record.Object, m, v.conditions)
}

// Wrote counts one patch of an EndpointSlice.
func (r *Reporter) Wrote(took time.Duration, err error) { r.metrics.wrote(took, err) }

// Undone counts that another writer removed the hints of a service, which are written again after wait.
func (r *Reporter) Undone(wait time.Duration) { r.metrics.undone(wait) }

// Forget drops what is remembered of a service that is gone.
func (r *Reporter) Forget(name topology.ServiceName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memories, name)
}

// EndTerm ends a term: another replica may report from now on. Everything that is remembered is dropped, for what the Services
// say is newer by the next report, and no services are counted until then. No Report may run meanwhile.
func (r *Reporter) EndTerm() {
	r.collector.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.memories)
}

// Clear takes weir's conditions off a Service, for a clean-up.
func (r *Reporter) Clear(ctx context.Context, s *corev1.Service) error {
	return r.write(ctx, s, new(memory), nil)
}

// recall gives the memory of a service, and whether it is a new one. It is nil for a service that weir has nothing to do
// with and never had.
func (r *Reporter) recall(d *plans.Decision, o Outcome) (*memory, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.memories[d.Record.Name]
	if m != nil && m.uid == d.Record.Object.UID {
		return m, false
	}
	if !d.Record.Managed && !asked(d) && o.done() && len(ours(d.Record.Object.Status.Conditions)) == 0 {
		delete(r.memories, d.Record.Name)
		return nil, false
	}
	m = &memory{uid: d.Record.Object.UID}
	r.memories[d.Record.Name] = m
	return m, true
}

// patience is how long slices may fail to say the plan, for reasons that pass, before the condition says so: each
// change of the endpoints would show otherwise, and a conflict with another writer is no failure.
const patience = 30 * time.Second

// time gives how long the slices have not said the plan, and counts how long it took once they do, unless another writer keeps
// removing what is written: the time is that of the damping then, and not of the work.
func (r *Reporter) time(m *memory, d *plans.Decision, o Outcome) time.Duration {
	now := r.now()
	if !o.done() {
		if m.late.IsZero() {
			m.late, m.changed = now, d.Changed
		}
		return now.Sub(m.late)
	}
	since := d.Changed
	if !m.late.IsZero() && m.changed.Before(since) {
		since = m.changed
	}
	if !o.Undone && (o.Written > 0 || !m.late.IsZero()) {
		r.metrics.programming.Observe(max(0, now.Sub(since).Seconds()))
	}
	m.late, m.changed = time.Time{}, time.Time{}
	return 0
}

// asked tells whether the Service itself chose a mode, so that conditions are written to it.
func asked(d *plans.Decision) bool { return d.Record.Asked != convert.AskedByNothing }

func modeOf(d *plans.Decision) topology.Mode {
	if d.Record.Service == nil {
		return topology.ModeUnset
	}
	return d.Record.Service.Mode
}
