package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/latest"
)

// Deps are an agent's dependencies.
type Deps struct {
	Logger     *slog.Logger          // nil: none
	Registerer prometheus.Registerer // nil: metrics are counted and not shown
	// Policies are what load-balancing policies say, and what they need to know of pods, namespaces and nodes. Nil, here
	// or as a value: no policies.
	Policies *latest.Value[*policy.Set]
}

// Agent is the data plane of one node. Its methods are safe for concurrent use; Run may be called once.
type Agent struct {
	config    Config
	snapshots *latest.Value[topology.Snapshot]
	policies  *latest.Value[*policy.Set]
	planner   *planner
	plane     dataPlane
	clock     func() time.Duration // since New, monotonic: the one origin of all pools
	logger    *slog.Logger

	desired  atomic.Pointer[desired] // nil before the first snapshot
	ready    chan struct{}           // closes when the first snapshot is served
	draining atomic.Bool             // Run was told to end
	ticked   atomic.Int64            // when pools were last ticked, on the clock
}

// New makes an agent that will serve what snapshots holds.
//
// Errors: a config that is not valid; a node that the first snapshot does not have, unless Config.Zone is given; metrics
// that are registered already.
func New(config Config, snapshots *latest.Value[topology.Snapshot], deps Deps) (*Agent, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("agent config: %w", err)
	}
	config = config.withDefaults()
	first, _ := snapshots.Load()
	if err := knows(&first, &config); err != nil {
		return nil, err
	}
	if deps.Policies == nil {
		deps.Policies = latest.New[*policy.Set](nil)
	}
	started, metrics := time.Now(), newMetrics()
	a := &Agent{
		config:    config,
		snapshots: snapshots,
		policies:  deps.Policies,
		planner:   newPlanner(config),
		clock:     func() time.Duration { return time.Since(started) },
		logger:    cmp.Or(deps.Logger, slog.New(slog.DiscardHandler)),
		ready:     make(chan struct{}),
	}
	a.plane = &planes{
		proxy:  newL7Plane(&a.config, a.logger, metrics, a.clock),
		kernel: newKernelPlane(&a.config, a.logger, a.clock),
	}
	if deps.Registerer == nil {
		return a, nil
	}
	collectors := []prometheus.Collector{newStateCollector(a)}
	for _, m := range metrics.all() {
		collectors = append(collectors, m)
	}
	for _, c := range collectors {
		if err := deps.Registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register the agent's metrics: %w", err)
		}
	}
	return a, nil
}

// Run serves until ctx is done, then closes every listener, lets requests in flight finish within Config.Drain, and
// returns nil when all is over.
func (a *Agent) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { a.follow(ctx); return nil })
	group.Go(func() error { a.tick(ctx); return nil })
	return group.Wait()
}

// Serving is nil while the agent takes requests: from the first snapshot until it is told to end.
func (a *Agent) Serving() error {
	switch {
	case a.draining.Load():
		return errors.New("draining")
	case a.plane.Read() == nil:
		return errors.New("no snapshot is served yet")
	default:
		return nil
	}
}

// stuckAfter is far above what the largest change of a cluster takes to apply.
const stuckAfter = 30 * time.Second

// Alive is nil unless pools and listeners were left alone for so long that only a new start helps.
func (a *Agent) Alive() error {
	last := time.Duration(a.ticked.Load())
	if idle := a.clock() - last; idle > stuckAfter && !a.draining.Load() {
		return fmt.Errorf("pools were last ticked %v ago", idle)
	}
	return nil
}

// Ready closes when the first snapshot is served: each of its listeners is open or its failure is reported.
func (a *Agent) Ready() <-chan struct{} { return a.ready }

// follow has each new snapshot, and each new set of policies, planned, compiled and applied. It has a goroutine of its own,
// so that planning a large cluster and building large tables keep no pool waiting for its tick; what is overtaken meanwhile
// is never planned.
func (a *Agent) follow(ctx context.Context) {
	for isFirst := true; ; isFirst = false {
		snapshot, changed := a.snapshots.Load()
		policies, changedPolicies := a.policies.Load()
		d := a.planner.next(&snapshot, policies)
		a.desired.Store(d)
		a.plane.Apply(d.table)
		if isFirst && a.plane.Read() != nil {
			close(a.ready)
		}
		select {
		case <-changed:
		case <-changedPolicies:
		case <-ctx.Done():
			return
		}
	}
}

// tickInterval is how often an active pool takes its counters in and decides anew: the step that the overflow law's own
// tests run with, and a tenth of the second within which a spill has to show.
const tickInterval = 100 * time.Millisecond

// tick steps the data plane until ctx is done, and then stops it.
func (a *Agent) tick(ctx context.Context) {
	tick := time.NewTicker(tickInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.plane.Tick()
			a.ticked.Store(int64(a.clock()))
		case <-ctx.Done():
			a.draining.Store(true)
			a.plane.Stop()
			return
		}
	}
}
