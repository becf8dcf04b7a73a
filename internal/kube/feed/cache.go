package feed

import (
	"context"
	"errors"
	"io"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewCache makes a cache of what a feed watches. It need not ask the API server which kinds there are, so that it can be
// made, and started, while that is away.
func NewCache(config *rest.Config, o Options) (cache.Cache, error) {
	return cache.New(config, CacheOptions(o))
}

// CacheOptions make a cache keep of each object only what weir reads of it, and watch only what o asks for.
func CacheOptions(o Options) cache.Options {
	o = o.withDefaults()
	t := newTrimmer()
	nodes := cache.ByObject{Transform: transform(t.node)}
	if o.Node != "" {
		nodes.Field = fields.OneTermEqualSelector("metadata.name", o.Node)
	}
	return cache.Options{
		Mapper: Kinds(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}:               nodes,
			&corev1.Service{}:            {Transform: transform(t.service)},
			&discoveryv1.EndpointSlice{}: {Transform: transform(t.slice)},
		},
		DefaultWatchErrorHandler: watchErrors(o.Logger),
	}
}

// Kinds knows the kinds that a feed watches.
func Kinds() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion})
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
	m.Add(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), meta.RESTScopeNamespace)
	return m
}

// transform makes an informer trim objects in place before it keeps them. Trimming twice does no harm.
func transform[T client.Object](trim func(T)) toolscache.TransformFunc {
	return func(object any) (any, error) {
		if o, ok := object.(T); ok {
			trim(o)
		}
		return object, nil
	}
}

// watchErrors logs a watch that broke. The informer tries again, waiting up to a minute in between; until then the
// last state stays.
func watchErrors(logger *slog.Logger) toolscache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, r *toolscache.Reflector, err error) {
		level := slog.LevelWarn
		isOver := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || // API servers end watches after a while
			apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
		if isOver {
			level = slog.LevelDebug
		}
		logger.Log(ctx, level, "the watch broke, the last state stays until it is back", "kind", r.TypeDescription(), "error", err)
	}
}
