package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/weir-lb/weir/internal/kube/attach"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/plans"
	"github.com/weir-lb/weir/internal/kube/status"
	"github.com/weir-lb/weir/internal/kube/webhook"
	"github.com/weir-lb/weir/internal/latest"
)

// What is written each second, and at once after a rest, where the config of the client does not say: what
// kube-controller-manager takes.
const (
	defaultPerSecond = 20
	defaultBurst     = 30
)

// stopTimeout is how long the parts may take to stop: below the 30 s that a pod is given by default.
const stopTimeout = 25 * time.Second

// Controller is one replica of the control plane. Use New. Run may be called once; the rest is safe for concurrent use.
type Controller struct {
	manager  elected
	election *election
	feed     *feed.Feed
	book     *plans.Book
	planner  *planner
}

// New makes a controller of the cluster that config reaches. Slices are written with config's rate and burst, Services
// with as much again.
//
// It asks the cluster nothing, so that a controller can be started while the API server is away.
//
// Errors: what makes no sense in o, an address that is taken.
func New(config *rest.Config, o Options) (*Controller, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	m, err := manager.New(config, managerOptions(o))
	if err != nil {
		return nil, fmt.Errorf("prepare the controller: %w", err)
	}
	c := &Controller{book: plans.NewBook(time.Now)}
	if c.election, err = newElection(config, o.LeaderElection, o.Logger); err != nil {
		return nil, fmt.Errorf("prepare the controller: %w", err)
	}
	c.manager = elected{m, c.election}
	if c.feed, err = feed.New(m.GetCache(), o.Feed); err != nil {
		return nil, err
	}
	c.planner = newPlanner(c.feed.States(), c.book)
	reconciler, err := newReconciler(m, c.book, o)
	if err != nil {
		return nil, err
	}
	if err := c.add(reconciler, o); err != nil {
		return nil, fmt.Errorf("prepare the controller: %w", err)
	}
	return c, nil
}

// Run controls the cluster until ctx is done, then ends what it is writing and hands over to another replica.
//
// Errors: a part that could not start, or not stop in time.
func (c *Controller) Run(ctx context.Context) error { return c.manager.Start(ctx) }

// States holds what was last seen of the cluster; nil before the first time.
func (c *Controller) States() *latest.Value[*feed.State] { return c.feed.States() }

// Decisions lists what was decided last, sorted by name.
func (c *Controller) Decisions() []*plans.Decision { return c.book.All() }

// Ready gives nil once the first state is planned.
func (c *Controller) Ready() error {
	if c.planner.isReady() {
		return nil
	}
	return errors.New("the cluster is not read and planned yet")
}

// IsLeader tells whether this replica writes.
func (c *Controller) IsLeader() bool { return c.election.leads.Load() }

func managerOptions(o Options) manager.Options {
	timeout := stopTimeout
	return manager.Options{
		Cache:                   feed.CacheOptions(o.Feed),
		MapperProvider:          kinds,
		Logger:                  logr.FromSlogHandler(o.Logger.Handler()),
		GracefulShutdownTimeout: &timeout,
		Metrics:                 metricsOptions(o.MetricsAddress),
		HealthProbeBindAddress:  o.HealthAddress,
		ReadinessEndpointName:   "/readyz",
		LivenessEndpointName:    "/livez",
	}
}

// kinds knows the kinds that weir reads and writes, so that nobody needs to ask the API server which there are.
func kinds(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
	m.Add(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), meta.RESTScopeNamespace)
	return m, nil
}

// metricsOptions serve metrics as Kubernetes' own components do: over TLS, to whom the API server knows and lets read
// them.
func metricsOptions(address string) metricsserver.Options {
	if address == "" {
		return metricsserver.Options{BindAddress: "0"}
	}
	return metricsserver.Options{
		BindAddress:    address,
		SecureServing:  true,
		FilterProvider: newAccessFilter,
	}
}

func newReconciler(m manager.Manager, b *plans.Book, o Options) (*reconciler, error) {
	services, err := corev1client.NewForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	reporter, err := status.New(status.Options{
		Services: services, Events: m.GetEventRecorder("weir"), Decisions: b.All, Registerer: o.Registerer,
	})
	if err != nil {
		return nil, err
	}
	perSecond, burst := m.GetConfig().QPS, m.GetConfig().Burst
	if perSecond == 0 {
		perSecond, burst = defaultPerSecond, defaultBurst
	}
	bucket := rate.NewLimiter(rate.Limit(perSecond), max(burst, 1))
	if perSecond < 0 { // as client-go has it
		bucket.SetLimit(rate.Inf)
	}
	c, err := direct(m)
	if err != nil {
		return nil, err
	}
	return &reconciler{writer: newWriter(c, b, bucket, reporter), reporter: reporter}, nil
}

// direct makes a client that asks the API server each time, as fast as it is told to.
func direct(m manager.Manager) (client.Client, error) {
	config := rest.CopyConfig(m.GetConfig())
	config.QPS = -1
	return client.New(config, client.Options{HTTPClient: m.GetHTTPClient(), Mapper: m.GetRESTMapper()})
}

// add gives the parts to the manager.
func (c *Controller) add(r *reconciler, o Options) error {
	err := errors.Join(
		c.manager.Add(c.feed),
		c.manager.Add(c.planner),
		c.manager.Add(&work{reconciler: r, planner: c.planner, workers: o.Workers, logger: c.manager.GetLogger()}),
		c.manager.Add(c.election),
		c.manager.AddReadyzCheck("plans", func(*http.Request) error { return c.Ready() }),
		c.manager.AddHealthzCheck("ping", healthz.Ping),
	)
	if err == nil && o.Policies {
		err = c.addAttacher(o)
	}
	if err != nil || o.Webhook == nil {
		return err
	}
	return webhook.Add(c.manager, c.book, *o.Webhook)
}

// addAttacher has the leader tell what becomes of policies. It writes with a rate of its own, as large as the slices'.
func (c *Controller) addAttacher(o Options) error {
	config := rest.CopyConfig(c.manager.GetConfig())
	if config.QPS == 0 {
		config.QPS, config.Burst = defaultPerSecond, defaultBurst
	}
	a, err := attach.New(attach.Options{
		Config: config, States: c.feed.States(), Events: c.manager.GetEventRecorder("weir"), Logger: o.Logger,
		Registerer: o.Registerer,
	})
	if err != nil {
		return err
	}
	return c.manager.Add(a)
}
