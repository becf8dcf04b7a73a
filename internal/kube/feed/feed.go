package feed

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
	"github.com/weir-lb/weir/internal/latest"
)

// DefaultDelay is how long changes are gathered: short against the second within which a change should be
// followed, long against the milliseconds over which the slices of one rollout step arrive.
const DefaultDelay = 50 * time.Millisecond

// Options say what a feed watches and how it reads that. The zero value works.
type Options struct {
	// Convert says how Services are read.
	Convert convert.Options
	// Costs are passed on in each Snapshot.
	Costs topology.Costs
	// Node is the only node to watch; empty: all. A state then has that node alone, and endpoints that do not name their
	// zone have none.
	Node string
	// Clusters gives services the endpoints of other clusters, too: of slices of the Multi-Cluster Services API, and of what
	// SetImports and SetClusters tell. Hints are never written for those.
	Clusters bool
	// Delay is how long changes are gathered before a state is made of them; 0: 50 ms.
	Delay time.Duration
	// Logger takes problems of nodes and watches that break; nil: none.
	Logger *slog.Logger
	// Registerer takes the feed's metrics; nil: they are not exported.
	Registerer prometheus.Registerer
}

// withDefaults fills what is empty.
func (o Options) withDefaults() Options {
	o.Delay = cmp.Or(o.Delay, DefaultDelay)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// Feed follows a cluster. It is safe for concurrent use; Run may be called once.
type Feed struct {
	options  Options
	store    *store
	watches  []toolscache.ResourceEventHandlerRegistration
	builder  builder
	metrics  *metrics
	problems map[string]bool // of nodes, that were logged and are still there

	states *latest.Value[*State]
	synced chan struct{} // closes when states has the first one
}

// New makes a feed of what c watches. It starts nothing: c must be started, and Run called, for states to appear.
//
// Errors: a kind that c cannot watch; metrics that are registered already.
func New(c cache.Cache, o Options) (*Feed, error) {
	o = o.withDefaults()
	f := &Feed{
		options: o,
		store:   newStore(),
		builder: newBuilder(&o),
		metrics: newMetrics(),
		states:  latest.New[*State](nil),
		synced:  make(chan struct{}),
	}
	f.store.hasClusters = o.Clusters
	if o.Registerer != nil {
		for _, collector := range f.metrics.collectors() {
			if err := o.Registerer.Register(collector); err != nil {
				return nil, fmt.Errorf("register the feed's metrics: %w", err)
			}
		}
	}
	handlers := []struct {
		object  client.Object
		handler toolscache.ResourceEventHandler
	}{
		{&corev1.Node{}, Handler(f.store.setNode, f.store.dropNode)},
		{&corev1.Service{}, Handler(f.store.setService, f.store.dropService)},
		{&discoveryv1.EndpointSlice{}, Handler(f.store.setSlice, f.store.dropSlice)},
	}
	for _, h := range handlers {
		// Nothing is asked of the API server yet: the informer starts with the cache.
		informer, err := c.GetInformer(context.Background(), h.object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", h.object, err)
		}
		watch, err := informer.AddEventHandler(h.handler)
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", h.object, err)
		}
		f.watches = append(f.watches, watch)
	}
	return f, nil
}

// Handler calls set for objects that are there, new or changed, and drop for those that are gone.
func Handler[T any](set, drop func(T)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if o, ok := object.(T); ok {
				set(o)
			}
		},
		UpdateFunc: func(_, object any) {
			if o, ok := object.(T); ok {
				set(o)
			}
		},
		DeleteFunc: func(object any) {
			// An object whose deletion went unseen, as while the API server was away, comes as its last known state.
			if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			if o, ok := object.(T); ok {
				drop(o)
			}
		},
	}
}

// Run publishes states until ctx is done, and then returns nil. What the API server no longer tells stays as it was.
func (f *Feed) Run(ctx context.Context) error {
	for _, w := range f.watches {
		select {
		case <-w.HasSyncedChecker().Done():
		case <-ctx.Done():
			return nil
		}
	}
	f.publish()
	close(f.synced)
	for {
		select {
		case <-f.store.changed:
		case <-ctx.Done():
			return nil
		}
		delay := time.NewTimer(f.options.Delay)
		select {
		case <-delay.C:
		case <-ctx.Done():
			delay.Stop()
			return nil
		}
		f.publish()
	}
}

// States holds the newest state; nil until all kinds were listed.
func (f *Feed) States() *latest.Value[*State] { return f.states }

// Synced closes when States has the first state.
func (f *Feed) Synced() <-chan struct{} { return f.synced }

// publish makes a state of what changed, if that makes a difference.
func (f *Feed) publish() {
	c := f.store.take()
	next, ok := f.builder.next(c)
	if !ok {
		return
	}
	f.warn()
	f.metrics.update(next, len(f.builder.nodeProblems))
	f.states.Store(next)
}

// warn logs each problem of a node, and of a service with endpoints in other clusters, once for as long as it is there.
func (f *Feed) warn() {
	now := make(map[string]bool, len(f.builder.nodeProblems))
	problems := slices.Clone(f.builder.nodeProblems)
	for _, r := range f.builder.joined() {
		problems = append(problems, r.Problems...)
	}
	for _, p := range problems {
		text := p.String()
		now[text] = true
		if !f.problems[text] {
			f.options.Logger.Warn("problem of an object", "kind", p.Object.Kind, "problem", text)
		}
	}
	f.problems = now
}
