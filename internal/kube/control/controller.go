package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/meta"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-lb/weir/internal/kube/attach"
	"github.com/weir-lb/weir/internal/kube/events"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/plans"
	"github.com/weir-lb/weir/internal/kube/policyset"
	"github.com/weir-lb/weir/internal/kube/status"
	"github.com/weir-lb/weir/internal/kube/webhook"
	"github.com/weir-lb/weir/internal/latest"
	"github.com/weir-lb/weir/internal/ops"
)

// What is written each second, and at once after a rest, where the config of the client does not say: what
// kube-controller-manager takes.
const (
	defaultPerSecond = 20
	defaultBurst     = 30
)

// Controller is one replica of the control plane. Use New. Run may be called once; the rest is safe for concurrent use.
type Controller struct {
	cache    cache.Cache
	feed     *feed.Feed
	policies *policyset.Follower // nil: they are not followed
	store    *plans.Store
	planner  *planner
	election *election
	events   *events.Recorder
	webhook  *webhook.Webhook // nil: none
}

// New makes a controller of the cluster that config reaches. Slices are written with config's rate and burst, Services
// with as much again.
//
// It asks the cluster nothing, so that a controller can be started while the API server is away.
//
// Errors: what makes no sense in o.
func New(config *rest.Config, o Options) (*Controller, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	c := &Controller{store: plans.NewStore(time.Now)}
	if err := c.build(config, &o); err != nil {
		return nil, fmt.Errorf("prepare the controller: %w", err)
	}
	return c, nil
}

// build makes the parts.
func (c *Controller) build(config *rest.Config, o *Options) (err error) {
	if c.cache, err = feed.NewCache(config, o.Feed); err != nil {
		return err
	}
	if c.feed, err = feed.New(c.cache, o.Feed); err != nil {
		return err
	}
	c.planner = newPlanner(c.feed.States(), c.store)
	if o.Policies {
		if c.policies, err = policyset.NewFollower(config, policyset.Options{RulesOnly: true, Logger: o.Logger}); err != nil {
			return err
		}
		c.planner.policies = c.policies.Sets()
	}
	client, err := eventsv1client.NewForConfig(config)
	if err != nil {
		return err
	}
	c.events = events.New(client, o.LeaderElection.Identity, o.Logger)
	if c.election, err = newElection(config, o); err != nil {
		return err
	}
	reconciler, err := c.newReconciler(config, o)
	if err != nil {
		return err
	}
	w := &work{reconciler: reconciler, planner: c.planner, workers: o.Workers, logger: o.Logger}
	c.election.duties = append(c.election.duties, w.run)
	if o.Policies {
		a, err := c.newAttacher(config, o)
		if err != nil {
			return err
		}
		c.election.duties = append(c.election.duties, a.Start)
	}
	if o.Webhook == nil {
		return nil
	}
	if c.webhook, err = webhook.New(config, c.store, *o.Webhook); err != nil {
		return err
	}
	c.election.duties = append(c.election.duties, c.webhook.Lead)
	return nil
}

// Run controls the cluster until ctx is done, then ends what it is writing and hands over to another replica.
//
// Errors: those of the parts; the webhook's address is taken.
func (c *Controller) Run(ctx context.Context) error {
	parts := []ops.Part{
		{Name: "events", Run: c.events.Run},
		{Name: "watch", Run: c.cache.Start},
		{Name: "feed", Run: c.feed.Run},
		{Name: "plans", Run: c.plan},
	}
	if c.policies != nil {
		parts = append(parts, ops.Part{Name: "policies", Run: c.policies.Run})
	}
	if c.webhook != nil {
		parts = append(parts, ops.Part{Name: "webhook", Run: c.webhook.Run})
	}
	return ops.Run(ctx, append(parts, ops.Part{Name: "election", Run: c.stand})...)
}

// plan plans once the policies are read, or as soon as they are not waited for any longer: hints that ignore them would be
// written twice.
func (c *Controller) plan(ctx context.Context) error {
	if c.policies != nil {
		select {
		case <-c.policies.Ready():
		case <-ctx.Done():
			return nil
		}
	}
	return c.planner.run(ctx)
}

// stand stands for election once the cluster is read: a replica that cannot read it must not lead.
func (c *Controller) stand(ctx context.Context) error {
	select {
	case <-c.planner.planned:
		return c.election.run(ctx)
	case <-ctx.Done():
		return nil
	}
}

// States holds what was last seen of the cluster; nil before the first time.
func (c *Controller) States() *latest.Value[*feed.State] { return c.feed.States() }

// Decisions lists what was decided last, sorted by name.
func (c *Controller) Decisions() []*plans.Decision { return c.store.All() }

// Ready lists the conditions under which this replica does its part: the cluster is planned, and the webhook answers.
func (c *Controller) Ready() []ops.Check {
	checks := []ops.Check{{Name: "plans", Probe: c.Planned}}
	if c.webhook != nil {
		checks = append(checks, ops.Check{Name: "webhook", Probe: c.webhook.Ready})
	}
	return checks
}

// Planned gives nil once the first state is planned.
func (c *Controller) Planned() error {
	if c.planner.isReady() {
		return nil
	}
	return errors.New("the cluster is not read and planned yet")
}

// IsLeader tells whether this replica writes.
func (c *Controller) IsLeader() bool { return c.election.leads.Load() }

func (c *Controller) newReconciler(config *rest.Config, o *Options) (*reconciler, error) {
	services, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	reporter, err := status.New(status.Options{
		Services: services, Events: c.events, Decisions: c.store.All, Registerer: o.Registerer,
	})
	if err != nil {
		return nil, err
	}
	perSecond, burst := config.QPS, config.Burst
	if perSecond == 0 {
		perSecond, burst = defaultPerSecond, defaultBurst
	}
	bucket := rate.NewLimiter(rate.Limit(perSecond), max(burst, 1))
	if perSecond < 0 { // as client-go has it
		bucket.SetLimit(rate.Inf)
	}
	direct, err := newClient(config, feed.Kinds())
	if err != nil {
		return nil, err
	}
	return &reconciler{writer: newWriter(direct, c.store, bucket, reporter), reporter: reporter}, nil
}

// newClient makes a client that asks the API server each time, as fast as it is told to.
func newClient(config *rest.Config, kinds meta.RESTMapper) (client.Client, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return client.New(config, client.Options{Mapper: kinds})
}

// newAttacher makes what tells what becomes of policies. It writes with a rate of its own, as large as the slices'.
func (c *Controller) newAttacher(config *rest.Config, o *Options) (*attach.Attacher, error) {
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS, config.Burst = defaultPerSecond, defaultBurst
	}
	return attach.New(attach.Options{
		Config: config, States: c.feed.States(), Events: c.events, Logger: o.Logger, Registerer: o.Registerer,
	})
}
