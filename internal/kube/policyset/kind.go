package policyset

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/ops"
)

// resource is a kind that a cluster may not have, may get and may lose. One goroutine follows it.
type resource struct {
	kind    kind
	object  client.Object
	list    func() client.ObjectList
	handler func(run int) toolscache.ResourceEventHandler // stores what that watching tells

	gone   chan struct{} // has a value when the API server said that it does not know the kind
	listed chan struct{} // closes when what there is was told for the first time, be it nothing
}

// resources are the kinds that CRDs define, policies first.
func resources(s *store) []*resource {
	kinds := []*resource{
		{
			kind: kindPolicy, object: &v1alpha1.LoadBalancingPolicy{},
			list:    func() client.ObjectList { return &v1alpha1.LoadBalancingPolicyList{} },
			handler: documentHandler(s, policyDocument),
		},
		{
			kind: kindHTTPRoute, object: &gatewayv1.HTTPRoute{},
			list:    func() client.ObjectList { return &gatewayv1.HTTPRouteList{} },
			handler: documentHandler(s, httpRouteDocument),
		},
		{
			kind: kindGRPCRoute, object: &gatewayv1.GRPCRoute{},
			list:    func() client.ObjectList { return &gatewayv1.GRPCRouteList{} },
			handler: documentHandler(s, grpcRouteDocument),
		},
	}
	for _, k := range kinds {
		k.gone, k.listed = make(chan struct{}, 1), make(chan struct{})
	}
	return kinds
}

// documentHandler converts what is told once, where it is told.
func documentHandler[T client.Object](s *store, read func(T) *document) func(run int) toolscache.ResourceEventHandler {
	return func(run int) toolscache.ResourceEventHandler {
		return feed.Handler(
			func(o T) { s.setDocument(run, read(o)) },
			func(o T) { s.dropDocument(run, read(o).documentKey) },
		)
	}
}

func (k *resource) typeName() string { return fmt.Sprintf("%T", k.object) }

// setListed says that what there is was told.
func (k *resource) setListed() {
	select {
	case <-k.listed:
	default:
		close(k.listed)
	}
}

// followKind watches a kind while the cluster has it, and asks for it while not, until ctx is done.
func (f *Follower) followKind(ctx context.Context, k *resource) error {
	for {
		if !f.awaitKind(ctx, k) {
			return nil
		}
		if err := f.watchKind(ctx, k); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// awaitKind asks until the cluster has the kind; false when ctx is done first. Only the API server's own word that it has
// no such kind counts as none: while it is away or refuses an answer, the last state stays.
func (f *Follower) awaitKind(ctx context.Context, k *resource) bool {
	const first = time.Second // then twice as long each time: an outage ends for all agents at once
	retry, isAbsent, level := first, false, slog.LevelInfo
	if f.options.RulesOnly {
		level = slog.LevelDebug // another part says it
	}
	for {
		err := f.source.reader.List(ctx, k.list(), client.Limit(1))
		switch {
		case err == nil:
			if isAbsent {
				f.options.Logger.Log(ctx, level, "the cluster has a kind now", "kind", string(k.kind))
			}
			return true
		case ctx.Err() != nil:
			return false
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
			if !isAbsent {
				f.options.Logger.Log(ctx, level, "the cluster does not have a kind, it is asked for again and again",
					"kind", string(k.kind), "every", f.options.AskAgain)
				f.store.clear(k.kind)
				k.setListed()
			}
			isAbsent, retry = true, f.options.AskAgain
		default:
			f.options.Logger.Warn("a kind cannot be read, the last state stays until it can", "kind", string(k.kind), "error", err)
			retry = min(retry, f.options.AskAgain)
		}
		if !ops.Sleep(ctx, jitter(retry)) {
			return false
		}
		retry = min(2*retry, f.options.AskAgain)
	}
}

// watchKind watches a kind until the API server says that it has no such kind, or ctx is done.
func (f *Follower) watchKind(ctx context.Context, k *resource) error {
	select {
	case <-k.gone: // said of an earlier watching
	default:
	}
	informer, err := f.source.cache.GetInformer(ctx, k.object, cache.BlockUntilSynced(false))
	if err != nil {
		return unlessDone(ctx, fmt.Errorf("watch %s: %w", k.kind, err))
	}
	run := f.store.begin(k.kind)
	registration, err := informer.AddEventHandler(k.handler(run))
	if err != nil {
		return unlessDone(ctx, fmt.Errorf("watch %s: %w", k.kind, err))
	}
	synced := registration.HasSyncedChecker().Done()
	for {
		select {
		case <-synced:
			f.store.sweep(k.kind, run)
			k.setListed()
			synced = nil
		case <-k.gone:
			if err := f.source.cache.RemoveInformer(ctx, k.object); err != nil {
				return unlessDone(ctx, fmt.Errorf("end the watch of %s: %w", k.kind, err))
			}
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// unlessDone gives an error, unless that came of the end.
func unlessDone(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}
