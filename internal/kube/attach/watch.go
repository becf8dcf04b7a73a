package attach

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
)

// resource is one that may not be installed.
type resource struct {
	kind schema.GroupVersionKind
	name string // plural
}

func policyResource() resource {
	return resource{v1alpha1.GroupVersion().WithKind(v1alpha1.Kind), v1alpha1.Resource}
}

// routeResources are those of Gateway API that a policy may name.
func routeResources() []resource {
	v1 := schema.GroupVersion{Group: "gateway.networking.k8s.io", Version: "v1"}
	return []resource{
		{v1.WithKind(string(policy.TargetHTTPRoute)), "httproutes"}, {v1.WithKind(string(policy.TargetGRPCRoute)), "grpcroutes"},
	}
}

// watch follows policies, and routes where they are installed, for one term.
type watch struct {
	changed chan struct{} // has a value when something changed

	discovery *discovery.DiscoveryClient
	cache     cache.Cache
	logger    *slog.Logger
	informers map[string]cache.Informer // by kind
	end       context.CancelFunc        // nil: the cache was not started
	running   sync.WaitGroup
}

func newWatch(o Options) (*watch, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, r := range append(routeResources(), policyResource()) {
		mapper.Add(r.kind, meta.RESTScopeNamespace)
	}
	c, err := cache.New(o.Config, cache.Options{
		Scheme: scheme, Mapper: mapper, DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("prepare to watch policies: %w", err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(o.Config)
	if err != nil {
		return nil, err
	}
	return &watch{
		changed: make(chan struct{}, 1), discovery: d, cache: c, logger: o.Logger, informers: make(map[string]cache.Informer),
	}, nil
}

// follow watches a resource if it is installed, and tells whether it is.
func (w *watch) follow(ctx context.Context, r resource) bool {
	if w.informers[r.kind.Kind] != nil {
		return true
	}
	if !w.isInstalled(r) {
		return false
	}
	informer, err := w.cache.GetInformer(ctx, empty(r), cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { w.wake() },
			UpdateFunc: func(any, any) { w.wake() },
			DeleteFunc: func(any) { w.wake() },
		})
	}
	if err != nil {
		w.logger.Warn("a resource cannot be watched", "resource", r.name, "error", err)
		return false
	}
	w.informers[r.kind.Kind] = informer
	w.start(ctx)
	w.running.Go(func() {
		if toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			w.wake()
		}
	})
	return true
}

// follows tells whether anything is watched.
func (w *watch) follows() bool { return w.end != nil }

// start runs the cache, once.
func (w *watch) start(ctx context.Context) {
	if w.follows() {
		return
	}
	ctx, w.end = context.WithCancel(ctx)
	w.running.Go(func() {
		if err := w.cache.Start(ctx); err != nil {
			w.logger.Warn("policies cannot be watched", "error", err)
		}
	})
}

// stop waits until the watching has ended, which it does with the context that it began with.
func (w *watch) stop() {
	w.end()
	w.running.Wait()
}

// followRoutes watches routes that could not be watched before.
func (w *watch) followRoutes(ctx context.Context) {
	for _, r := range routeResources() {
		w.follow(ctx, r)
	}
}

// isInstalled asks the API server for a resource. One that cannot be asked for is taken not to be there, and asked for again.
func (w *watch) isInstalled(r resource) bool {
	list, err := w.discovery.ServerResourcesForGroupVersion(r.kind.GroupVersion().String())
	if err != nil {
		return false
	}
	for _, found := range list.APIResources {
		if found.Name == r.name {
			return true
		}
	}
	return false
}

func (w *watch) wake() {
	select {
	case w.changed <- struct{}{}:
	default: // it has a value already
	}
}

// isSynced tells whether all policies are known.
func (w *watch) isSynced() bool { return w.informers[v1alpha1.Kind].HasSynced() }

// isKnown tells whether all routes are known that a policy may be about. Those that may not be read are left out.
func (w *watch) isKnown(p *v1alpha1.LoadBalancingPolicy) bool {
	for _, t := range p.Spec.TargetRefs {
		if i := w.informers[t.Kind]; i != nil && !i.HasSynced() {
			return false
		}
	}
	return true
}

// policies lists the policies. They are the cache's own: not to be changed.
func (w *watch) policies(ctx context.Context) ([]*v1alpha1.LoadBalancingPolicy, error) {
	var list v1alpha1.LoadBalancingPolicyList
	if err := w.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list policies: %w", err)
	}
	all := make([]*v1alpha1.LoadBalancingPolicy, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, nil
}

// route finds routes; where they are not installed there is none.
func (w *watch) route(ctx context.Context) func(policy.TargetKind, topology.ServiceName) ([]string, bool) {
	return func(kind policy.TargetKind, name topology.ServiceName) ([]string, bool) {
		if w.informers[string(kind)] == nil {
			return nil, false
		}
		route := new(unstructured.Unstructured)
		route.SetGroupVersionKind(schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: string(kind)})
		if err := w.cache.Get(ctx, client.ObjectKey{Namespace: name.Namespace, Name: name.Name}, route); err != nil {
			return nil, false
		}
		rules, _, _ := unstructured.NestedSlice(route.Object, "spec", "rules") // of any other shape: none
		var names []string
		for _, r := range rules {
			if fields, ok := r.(map[string]any); ok {
				if n, ok := fields["name"].(string); ok {
					names = append(names, n)
				}
			}
		}
		return names, true
	}
}

// empty gives an object of a resource's kind.
func empty(r resource) client.Object {
	if r.kind.Kind == v1alpha1.Kind {
		return new(v1alpha1.LoadBalancingPolicy)
	}
	u := new(unstructured.Unstructured)
	u.SetGroupVersionKind(r.kind)
	return u
}

// NewClient makes a client that knows policies and does not ask which resources there are.
func NewClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(policyResource().kind, meta.RESTScopeNamespace)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme, Mapper: mapper, HTTPClient: http})
}
