package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	admissionv1client "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-lb/weir/api"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/attach"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/hints"
	"github.com/weir-lb/weir/internal/kube/plans"
	"github.com/weir-lb/weir/internal/kube/status"
	"github.com/weir-lb/weir/internal/kube/webhook"
	"github.com/weir-lb/weir/internal/ops"
)

const (
	// cleanupPasses is how often everything is gone through at most. The last one that is needed finds nothing; what
	// changed under our hands takes one more, and what is still there after four attempts does not want to go.
	cleanupPasses = 5
	// cleanupPause lets other writers finish.
	cleanupPause = time.Second
	// cleanupPage is how many objects are listed at once: of slices with 1,000 endpoints some 100 MB.
	cleanupPage = 250
)

// CleanupOptions say what to take back. The zero value is right for the standard deployment.
type CleanupOptions struct {
	// Namespace and Lease name the Lease of the controllers, which the cleanup takes; empty: DefaultNamespace, DefaultLease.
	Namespace, Lease string
	// Webhook is the MutatingWebhookConfiguration to disarm; empty: that of the standard deployment.
	Webhook string
	// DryRun finds everything and writes nothing.
	DryRun bool
	// Progress is called for each removal that was made, or would be; nil: no calls.
	Progress func(Removal)
}

// Removal is one thing that was taken back, or was not.
type Removal struct {
	Object string // kind and name
	What   string // what of it
	Err    error  // why it is still there; nil: it is gone
}

// Cleaned is what a cleanup did.
type Cleaned struct {
	Slices, Services, Policies, Webhooks int
}

// Cleanup takes everything back that weir wrote to a cluster: hints and marks on EndpointSlices, conditions on Services, and
// its entries in the status of load-balancing policies. The webhook is disarmed first, because it would put the hints back. Nothing is deleted. It goes on after an
// error, and repeats until it finds nothing.
//
// Errors: a controller that still leads; what is left after several attempts.
func Cleanup(ctx context.Context, config *rest.Config, o CleanupOptions) (Cleaned, error) {
	c, err := newCleaner(config, o)
	if err != nil {
		return Cleaned{}, fmt.Errorf("prepare the cleanup: %w", err)
	}
	if o.DryRun {
		_, err := c.pass(ctx)
		return c.cleaned, err
	}
	err = c.whileLeading(ctx, cleanupWait, c.untilNothingIsLeft)
	return c.cleaned, err
}

// cleaner is one cleanup. It is for one goroutine.
type cleaner struct {
	options  CleanupOptions
	client   client.Client
	leases   coordinationv1client.LeasesGetter
	webhooks admissionv1client.MutatingWebhookConfigurationsGetter
	reporter *status.Reporter
	attached *attach.Clearer
	cleaned  Cleaned
}

func newCleaner(config *rest.Config, o CleanupOptions) (*cleaner, error) {
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	o.Webhook = cmp.Or(o.Webhook, webhook.DefaultConfiguration)
	if o.Progress == nil {
		o.Progress = func(Removal) {}
	}
	services, errServices := corev1client.NewForConfig(config)
	leases, errLeases := coordinationv1client.NewForConfig(config)
	webhooks, errWebhooks := admissionv1client.NewForConfig(config)
	if err := errors.Join(errServices, errLeases, errWebhooks); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, err
	}
	reporter, err := status.New(status.Options{Services: services})
	if err != nil {
		return nil, err
	}
	policies, err := attach.NewClient(config)
	if err != nil {
		return nil, err
	}
	return &cleaner{
		options: o, client: c, leases: leases, webhooks: webhooks,
		reporter: reporter, attached: attach.NewClearer(policies, services),
	}, nil
}

// untilNothingIsLeft goes through everything until a pass finds nothing.
func (c *cleaner) untilNothingIsLeft(ctx context.Context) error {
	for n := 1; ; n++ {
		found, err := c.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && found == 0:
			return nil
		case err == nil && n == cleanupPasses:
			return fmt.Errorf("%d objects still carried something after %d attempts: does a controller run without leader election?",
				found, n)
		case n == cleanupPasses:
			return fmt.Errorf("not everything is gone after %d attempts: %w", n, err)
		case err != nil:
			ops.Sleep(ctx, cleanupPause)
		}
	}
}

// pass goes through everything once, and gives how many things of weir's it found.
func (c *cleaner) pass(ctx context.Context) (found int, err error) {
	var errs []error
	for _, step := range []func(context.Context) (int, error){c.disarm, c.stripSlices, c.clearServices, c.clearPolicies} {
		n, err := step(ctx)
		found += n
		errs = append(errs, err)
	}
	return found, errors.Join(errs...)
}

// disarm takes all webhooks out of weir's configuration, which stays: the deployment owns it. Without the right to read it the cleanup
// goes on: should the webhook put something back, it is found in the next pass.
func (c *cleaner) disarm(ctx context.Context) (int, error) {
	configurations := c.webhooks.MutatingWebhookConfigurations()
	found, err := configurations.Get(ctx, c.options.Webhook, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return 0, nil
	case apierrors.IsForbidden(err):
		c.options.Progress(Removal{Object: "MutatingWebhookConfiguration " + c.options.Webhook, What: "webhooks", Err: err})
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read MutatingWebhookConfiguration %s: %w", c.options.Webhook, err)
	case len(found.Webhooks) == 0:
		return 0, nil
	}
	err = c.remove(Removal{Object: "MutatingWebhookConfiguration " + found.Name, What: "webhooks"}, &c.cleaned.Webhooks, func() error {
		patch, err := json.Marshal([]hints.Op{
			{Op: "replace", Path: "/metadata/resourceVersion", Value: found.ResourceVersion},
			{Op: "remove", Path: "/webhooks"},
		})
		if err != nil {
			return err
		}
		_, err = configurations.Patch(ctx, found.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: api.FieldManager})
		return err
	})
	return 1, err
}

// stripSlices takes hints and mark off every slice that carries the mark.
func (c *cleaner) stripSlices(ctx context.Context) (found int, err error) {
	var errs []error
	err = paged(ctx, c.client, new(discoveryv1.EndpointSliceList), func(list *discoveryv1.EndpointSliceList) {
		for i := range list.Items {
			s := &list.Items[i]
			name := topology.ServiceName{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
			nothing := &plans.Decision{Record: &feed.Record{Name: name}} // of a service that is not managed
			e := edit{slice: s, ops: hints.Edit(s, nothing)}
			if len(e.ops) == 0 {
				continue
			}
			found++
			r := Removal{Object: "EndpointSlice " + s.Namespace + "/" + s.Name, What: "hints and the annotation " + api.AnnotationHints}
			errs = append(errs, c.remove(r, &c.cleaned.Slices, func() error {
				_, err := e.apply(ctx, c.client)
				return err
			}))
		}
	})
	return found, errors.Join(append(errs, err)...)
}

// clearServices takes weir's conditions off every Service.
func (c *cleaner) clearServices(ctx context.Context) (found int, err error) {
	var errs []error
	err = paged(ctx, c.client, new(corev1.ServiceList), func(list *corev1.ServiceList) {
		for i := range list.Items {
			s := &list.Items[i]
			isReported := meta.FindStatusCondition(s.Status.Conditions, api.ConditionAccepted) != nil ||
				meta.FindStatusCondition(s.Status.Conditions, api.ConditionProgrammed) != nil
			isMarked := c.attached.IsMarked(s)
			if !isReported && !isMarked {
				continue
			}
			found++
			r := Removal{Object: "Service " + s.Namespace + "/" + s.Name, What: "weir's conditions"}
			errs = append(errs, c.remove(r, &c.cleaned.Services, func() error {
				var one, other error
				if isReported {
					one = c.reporter.Clear(ctx, s)
				}
				if isMarked {
					other = c.attached.Service(ctx, s)
				}
				return errors.Join(one, other)
			}))
		}
	})
	return found, errors.Join(append(errs, err)...)
}

// clearPolicies takes weir's entries out of the status of every policy.
func (c *cleaner) clearPolicies(ctx context.Context) (found int, err error) {
	list, err := c.attached.Policies(ctx)
	if err != nil {
		return 0, fmt.Errorf("list policies: %w", err)
	}
	var errs []error
	for _, p := range list {
		r := Removal{Object: "LoadBalancingPolicy " + p.Namespace + "/" + p.Name, What: "weir's part of the status"}
		errs = append(errs, c.remove(r, &c.cleaned.Policies, func() error { return c.attached.Policy(ctx, p) }))
	}
	return len(list), errors.Join(errs...)
}

// remove does one removal, counts it and tells of it. An object that is gone needs none.
func (c *cleaner) remove(r Removal, count *int, do func() error) error {
	if !c.options.DryRun {
		if r.Err = do(); apierrors.IsNotFound(r.Err) {
			return nil
		}
	}
	if r.Err == nil {
		*count++
	}
	c.options.Progress(r)
	return r.Err
}

// paged lists all objects of a kind, page by page. A list that took so long that the API server has forgotten its version
// goes on with a newer one: what changed in between is found in the next pass.
func paged[L client.ObjectList](ctx context.Context, c client.Client, list L, each func(L)) error {
	for {
		err := c.List(ctx, list, client.Limit(cleanupPage), client.Continue(list.GetContinue()))
		if apierrors.IsResourceExpired(err) {
			if next := inconsistent(err); next != "" {
				list.SetContinue(next)
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
		each(list)
		if list.GetContinue() == "" {
			return nil
		}
	}
}

// inconsistent gives the token that the API server offers to go on with at its newest version.
func inconsistent(err error) string {
	var told apierrors.APIStatus
	if !errors.As(err, &told) {
		return ""
	}
	return told.Status().Continue
}
