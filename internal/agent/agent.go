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

// Deps are what an agent is given by its surroundings.
type Deps struct {
	Logger     *slog.Logger          // nil: none
	Registerer prometheus.Registerer // nil: metrics are counted and shown to nobody
	// Policies are what load-balancing policies say, and what they need to know of pods, namespaces and nodes. Nil, here
	// or as a value: no policies.
	Policies *latest.Value[*policy.Set]
}

// Agent is the data plane of one node. Its methods are safe for concurrent use; Run may be called once.
type Agent struct {
	config    Config
	snapshots *latest.Value[topology.Snapshot]
	logger    *slog.Logger
	metrics   *metrics
	policies  *latest.Value[*policy.Set]
	planner   planner
	clock     func() time.Duration // since New, monotonic: the one origin of all pools

	ready    chan struct{}         // closes when the first snapshot is served
	draining atomic.Bool           // Run was told to end
	ticked   atomic.Int64          // when the owner of pools and listeners last came round, on the clock
	state    atomic.Pointer[state] // what runs; nil before Ready
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
	started := time.Now()
	a := &Agent{
		config:    config,
		snapshots: snapshots,
		logger:    cmp.Or(deps.Logger, slog.New(slog.DiscardHandler)),
		metrics:   newMetrics(),
		policies:  deps.Policies,
		planner:   planner{config: config},
		clock:     func() time.Duration { return time.Since(started) },
		ready:     make(chan struct{}),
	}
	if deps.Registerer == nil {
		return a, nil
	}
	for _, c := range append(a.metrics.collectors(), newStateCollector(a)) {
		if err := deps.Registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register the agent's metrics: %w", err)
		}
	}
	return a, nil
}

// Run serves until ctx is done, then closes every listener, lets requests in flight finish within Config.Drain, and
// returns nil when all is over.
func (a *Agent) Run(ctx context.Context) error {
	worlds := latest.New[*world](nil)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { a.plan(ctx, worlds); return nil })
	group.Go(func() error { newRunning(a).serve(ctx, worlds); return nil })
	return group.Wait()
}

// Serving is nil while the agent takes requests: from the first snapshot until it is told to end.
func (a *Agent) Serving() error {
	switch {
	case a.draining.Load():
		return errors.New("draining")
	case a.state.Load() == nil:
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

// plan turns each new snapshot, and each new set of policies, into a world. It has a goroutine of its own, so that
// planning a large cluster and building large tables keep no pool waiting for its tick; what is overtaken meanwhile is
// never planned.
func (a *Agent) plan(ctx context.Context, worlds *latest.Value[*world]) {
	for {
		snapshot, changed := a.snapshots.Load()
		policies, changedPolicies := a.policies.Load()
		worlds.Store(a.planner.next(&snapshot, policies))
		select {
		case <-changed:
		case <-changedPolicies:
		case <-ctx.Done():
			return
		}
	}
}
