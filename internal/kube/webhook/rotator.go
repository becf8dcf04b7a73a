package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/kube/hints"
)

const (
	// recheckInterval is how long the rotator relies on its watches to report changes.
	recheckInterval = time.Hour
	// pauseBetween keeps the rotator from racing with another writer of the same fields.
	pauseBetween = time.Second
	// timeLimit is for one check with its writes: four calls and two keys.
	timeLimit = 30 * time.Second
)

// rotator makes the certificates, keeps them in the Secret, and gives their authorities to the webhook configuration. It
// runs on the leader; where two do for a moment, the second write is refused as a conflict.
type rotator struct {
	clients clients
	options *Options
	issuer  *issuer
	changed chan struct{}
}

// newRotator makes a rotator that checks again whenever changed has an element.
func newRotator(c clients, o *Options, changed chan struct{}) *rotator {
	return &rotator{clients: c, options: o, issuer: newIssuer(o), changed: changed}
}

// run keeps the certificates until ctx ends. What goes wrong is tried again, later each time.
func (r *rotator) run(ctx context.Context) error {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() {
		configuration := object[*admissionregistrationv1.MutatingWebhookConfigurationList]{
			r.options.Configuration, r.clients.configurations.MutatingWebhookConfigurations(),
			new(admissionregistrationv1.MutatingWebhookConfiguration),
		}
		follow(ctx, configuration, toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { signal(r.changed) },
			UpdateFunc: func(_, _ any) { signal(r.changed) },
		})
	})
	backoff := newBackoff()
	for {
		next, err := r.keep(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			next = backoff.Step()
			r.options.Logger.Error("webhook's certificates are not in order", "error", err, "again_in", next)
		} else {
			backoff = newBackoff()
		}
		r.await(ctx, next)
	}
}

// newBackoff tries again after a second, then two, up to a minute.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 7, Cap: time.Minute}
}

// await waits for a change, or at most for next, and for a short while in any case.
func (r *rotator) await(ctx context.Context, next time.Duration) {
	pause := time.NewTimer(pauseBetween)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return
	}
	rest := time.NewTimer(next - pauseBetween)
	defer rest.Stop()
	select {
	case <-r.changed:
	case <-rest.C:
	case <-ctx.Done():
	}
}

// keep puts the Secret and the configuration in order and gives when to check again.
func (r *rotator) keep(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	secrets := r.clients.secrets.Secrets(r.options.Namespace)
	secret, err := secrets.Get(ctx, r.options.Secret, metav1.GetOptions{})
	isNew := apierrors.IsNotFound(err)
	if err != nil && !isNew {
		return 0, fmt.Errorf("get the Secret: %w", err)
	}
	if isNew {
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.options.Namespace, Name: r.options.Secret},
			Type:       corev1.SecretTypeTLS,
		}
	}
	now := r.options.Now()
	step, err := r.issuer.step(secret.Data, now)
	if err != nil {
		return 0, fmt.Errorf("make certificates: %w", err)
	}
	if step.why != "" {
		secret = secret.DeepCopy()
		secret.Data = step.data
		if isNew {
			_, err = secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: api.FieldManager})
		} else {
			_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: api.FieldManager})
		}
		if err != nil {
			return 0, fmt.Errorf("write the Secret: %w", err)
		}
		r.options.Logger.Info("webhook's certificates were made", "secret", secret.Namespace+"/"+secret.Name, "reason", step.why)
	}
	if err := r.publish(ctx, step.data[authorityCert]); err != nil {
		return 0, err
	}
	return min(step.next.Sub(now), recheckInterval), nil
}

// publish gives the authorities to each webhook of the configuration that does not have them. No configuration is no
// error: deleting it turns the webhook off.
func (r *rotator) publish(ctx context.Context, authorities []byte) error {
	configurations := r.clients.configurations.MutatingWebhookConfigurations()
	c, err := configurations.Get(ctx, r.options.Configuration, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get the webhook configuration: %w", err)
	}
	// The API server refuses the patch as a conflict if the configuration is no longer the one that was read, whose
	// indexes are meant.
	ops := []hints.Op{{Op: "replace", Path: "/metadata/resourceVersion", Value: c.ResourceVersion}}
	for i := range c.Webhooks {
		if !bytes.Equal(c.Webhooks[i].ClientConfig.CABundle, authorities) {
			ops = append(ops, hints.Op{Op: "add", Path: "/webhooks/" + strconv.Itoa(i) + "/clientConfig/caBundle", Value: authorities})
		}
	}
	if len(ops) == 1 {
		return nil
	}
	patch, err := json.Marshal(ops)
	if err != nil {
		return fmt.Errorf("write the patch of the webhook configuration: %w", err)
	}
	_, err = configurations.Patch(ctx, c.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: api.FieldManager})
	if err != nil {
		return fmt.Errorf("patch the webhook configuration: %w", err)
	}
	r.options.Logger.Info("webhook's certificate authority was published", "configuration", c.Name)
	return nil
}
