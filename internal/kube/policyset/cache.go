package policyset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/policy"
)

// keptPod is what an informer keeps of a pod: some hundred bytes in the place of some thousand.
type keptPod struct {
	metav1.ObjectMeta // only what identifies it, and its version

	pod        policy.Pod
	isFinished bool
}

// source is where a cluster's objects come from: a cache of informers for what is watched, and a reader for the question
// whether a kind is there.
type source struct {
	cache  cache.Cache
	reader client.Reader
}

// scheme knows the kinds that are followed.
func scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), gatewayv1.Install(s), v1alpha1.AddToScheme(s)); err != nil {
		return nil, fmt.Errorf("make a scheme of the kinds that are followed: %w", err)
	}
	return s, nil
}

// mapper knows where the kinds are, so that an API server which is away need not be asked.
func mapper() meta.RESTMapper {
	groups := []schema.GroupVersion{corev1.SchemeGroupVersion, v1alpha1.GroupVersion(), schema.GroupVersion(gatewayv1.GroupVersion)}
	m := meta.NewDefaultRESTMapper(groups)
	for _, kind := range []string{"Node", "Namespace"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	m.Add(v1alpha1.GroupVersion().WithKind(string(kindPolicy)), meta.RESTScopeNamespace)
	for _, kind := range []kind{kindHTTPRoute, kindGRPCRoute} {
		m.Add(schema.GroupVersion(gatewayv1.GroupVersion).WithKind(string(kind)), meta.RESTScopeNamespace)
	}
	return m
}

// newSource makes a source that asks the API server nothing yet. lost is told of a kind whose watch ended because the API
// server does not know the kind.
func newSource(config *rest.Config, o *Options, lost func(typeName string)) (source, error) {
	s, err := scheme()
	if err != nil {
		return source{}, err
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return source{}, fmt.Errorf("make a client of %s: %w", config.Host, err)
	}
	c, err := cache.New(config, cacheOptions(o, s, httpClient, lost))
	if err != nil {
		return source{}, fmt.Errorf("watch the policies of %s: %w", config.Host, err)
	}
	r, err := client.New(config, client.Options{HTTPClient: httpClient, Scheme: s, Mapper: mapper()})
	if err != nil {
		return source{}, fmt.Errorf("make a client of %s: %w", config.Host, err)
	}
	return source{cache: c, reader: r}, nil
}

func cacheOptions(o *Options, s *runtime.Scheme, httpClient *http.Client, lost func(string)) cache.Options {
	var shared sharer
	pods := cache.ByObject{Transform: shared.trimPod}
	if o.Pods == Own {
		pods.Field = fields.OneTermEqualSelector("spec.nodeName", o.Node)
	}
	nodes := cache.ByObject{Transform: shared.trimLabelled}
	if o.Nodes == Own {
		nodes.Field = fields.OneTermEqualSelector("metadata.name", o.Node)
	}
	return cache.Options{
		HTTPClient: httpClient, Scheme: s, Mapper: mapper(),
		DefaultTransform: trimDocument,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:       pods,
			&corev1.Node{}:      nodes,
			&corev1.Namespace{}: {Transform: shared.trimLabelled},
		},
		DefaultWatchErrorHandler: watchErrors(o.Logger, lost),
	}
}

// identity keeps of an object's metadata what names it and its version.
func identity(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion}
}

// trimPod makes a keptPod of a Pod. It may be given what it made.
func (s *sharer) trimPod(object any) (any, error) {
	p, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	pod, isAlive := s.pod(p)
	if !isAlive {
		pod = policy.Pod{Namespace: p.Namespace, Name: p.Name}
	}
	kept := &keptPod{ObjectMeta: identity(&p.ObjectMeta), pod: pod, isFinished: !isAlive}
	kept.Name, kept.Namespace = pod.Name, pod.Namespace // the same text in memory
	return kept, nil
}

// trimLabelled leaves a node or namespace its labels. It may be given what it made.
func (s *sharer) trimLabelled(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Node:
		labels := s.labels(o.Labels)
		*o = corev1.Node{ObjectMeta: identity(&o.ObjectMeta)}
		o.Labels = labels
	case *corev1.Namespace:
		labels := s.labels(o.Labels)
		*o = corev1.Namespace{ObjectMeta: identity(&o.ObjectMeta)}
		o.Labels = labels
	}
	return object, nil
}

// trimDocument takes from policies and routes what is not read here.
func trimDocument(object any) (any, error) {
	o, ok := object.(client.Object)
	if !ok {
		return object, nil
	}
	o.SetManagedFields(nil)
	o.SetAnnotations(nil)
	switch o := o.(type) {
	case *gatewayv1.HTTPRoute:
		o.Status = gatewayv1.HTTPRouteStatus{}
	case *gatewayv1.GRPCRoute:
		o.Status = gatewayv1.GRPCRouteStatus{}
	case *v1alpha1.LoadBalancingPolicy:
		o.Status = v1alpha1.LoadBalancingPolicy{}.Status
	}
	return object, nil
}

// watchErrors logs a watch that broke, and passes on that a kind is not there. The informer tries again, waiting up to a
// minute in between; until then the last state stays.
func watchErrors(logger *slog.Logger, lost func(string)) toolscache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, r *toolscache.Reflector, err error) {
		level := slog.LevelWarn
		switch {
		case apierrors.IsNotFound(err):
			level = slog.LevelDebug
			lost(r.TypeDescription())
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), // API servers end watches after a while
			apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			level = slog.LevelDebug
		}
		logger.Log(ctx, level, "the watch broke, the last state stays until it is back", "kind", r.TypeDescription(), "error", err)
	}
}
