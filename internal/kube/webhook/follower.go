package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// errNoCertificate is what a handshake ends with before the first certificate is there.
var errNoCertificate = errors.New("the webhook has no certificate yet")

// follower holds the certificate of the Secret in memory, on every replica, as soon as the API server sends it: no
// volume, no kubelet in between, no restart. It writes nothing. It is safe for concurrent use.
type follower struct {
	clients clients
	options *Options
	metrics *metrics
	current atomic.Pointer[tls.Certificate]
	// changed has an element when the Secret may have changed since it was last received from.
	changed chan struct{}
}

func newFollower(c clients, o *Options, m *metrics) *follower {
	return &follower{clients: c, options: o, metrics: m, changed: make(chan struct{}, 1)}
}

// run follows the Secret until ctx ends.
func (f *follower) run(ctx context.Context) error {
	secret := object[*corev1.SecretList]{f.options.Secret, f.clients.secrets.Secrets(f.options.Namespace), new(corev1.Secret)}
	follow(ctx, secret, toolscache.ResourceEventHandlerFuncs{
		AddFunc:    f.see,
		UpdateFunc: func(_, object any) { f.see(object) },
		DeleteFunc: func(any) { signal(f.changed) },
	})
	return nil
}

// see takes the certificate of a Secret. One that is of no use leaves the one before in place.
func (f *follower) see(object any) {
	secret, ok := object.(*corev1.Secret)
	if !ok || secret.Name != f.options.Secret {
		return
	}
	defer signal(f.changed)
	c, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err == nil && !c.Leaf.NotAfter.After(f.options.Now()) {
		err = fmt.Errorf("it has ended at %s", c.Leaf.NotAfter.Format(time.RFC3339))
	}
	if err != nil {
		f.options.Logger.Warn("certificate is of no use", "secret", secret.Namespace+"/"+secret.Name, "error", err)
		return
	}
	f.metrics.expiry.Set(float64(c.Leaf.NotAfter.Unix()))
	if last := f.current.Swap(&c); last != nil && last.Leaf.Equal(c.Leaf) {
		return
	}
	f.options.Logger.Info("webhook serves with a new certificate",
		slog.String("secret", secret.Namespace+"/"+secret.Name), slog.Time("ends", c.Leaf.NotAfter))
}

// certificate gives the current certificate.
func (f *follower) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := f.current.Load(); c != nil {
		return c, nil
	}
	return nil, errNoCertificate
}

// listWatcher is a client of one kind of objects.
type listWatcher[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// object is one object to follow, with the client of its kind and a value of its type.
type object[L runtime.Object] struct {
	name   string
	client listWatcher[L]
	kind   runtime.Object
}

// follow calls a handler for one object, asked for by name, which a role can allow by name, until ctx ends.
func follow[L runtime.Object](ctx context.Context, o object[L], h toolscache.ResourceEventHandler) {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, o.name).String()
	_, informer := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, list metav1.ListOptions) (runtime.Object, error) {
				list.FieldSelector = selector
				return o.client.List(ctx, list)
			},
			WatchFuncWithContext: func(ctx context.Context, list metav1.ListOptions) (watch.Interface, error) {
				list.FieldSelector = selector
				return o.client.Watch(ctx, list)
			},
		}, o.client),
		ObjectType: o.kind, Handler: h,
	})
	informer.RunWithContext(ctx)
}

// signal leaves a sign, unless there is one.
func signal(sign chan<- struct{}) {
	select {
	case sign <- struct{}{}:
	default:
	}
}
