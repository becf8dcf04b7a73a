package attach

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"maps"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-lb/weir/api/v1alpha1"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/events"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/latest"
	"github.com/weir-lb/weir/internal/ops"
)

// How often the Attacher looks for what it waits for.
const (
	// pollTime is between two looks at which resources the API server has: one small request each.
	pollTime = 10 * time.Second
	// batchTime lets changes that come together be judged together.
	batchTime = 50 * time.Millisecond
	// retryFirst and retryLast bound the time after which what could not be written is tried again; it doubles.
	retryFirst, retryLast = time.Second, 30 * time.Second
)

// Options are what an Attacher works with. All but Logger, Events, Registerer and Poll are needed.
type Options struct {
	// Config reaches the cluster; writes keep to its rate.
	Config *rest.Config
	// States give the Services.
	States *latest.Value[*feed.State]
	// Events takes the events. Nil: none are sent.
	Events *events.Recorder
	Logger *slog.Logger // nil: none
	// Registerer is given the metrics; they are kept from view when nil.
	Registerer prometheus.Registerer
	// Poll is the time between two looks for resources that are not installed; 0: 10 s.
	Poll time.Duration
}

// Attacher writes what becomes of policies for as long as this replica leads. Use New. Start may be called again after it
// has ended, and not twice at a time.
type Attacher struct {
	options  Options
	client   client.Client
	services corev1client.ServicesGetter
	targets  *prometheus.GaugeVec

	// The versions of the objects that were written to: until a newer one is seen there is nothing to do again. Of one term.
	policyVersions  map[types.UID]string
	serviceVersions map[topology.ServiceName]string

	seed      maphash.Seed
	isMissing bool // that the resource is not installed was said
}

// New makes an Attacher. It asks the cluster nothing.
func New(o Options) (*Attacher, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Poll == 0 {
		o.Poll = pollTime
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	c, err := NewClient(o.Config)
	if err != nil {
		return nil, err
	}
	services, err := corev1client.NewForConfig(o.Config)
	if err != nil {
		return nil, err
	}
	targets, err := newTargets(o.Registerer)
	if err != nil {
		return nil, err
	}
	return &Attacher{options: o, client: c, services: services, targets: targets, seed: maphash.MakeSeed()}, nil
}

// Start follows the policies and writes what becomes of them until ctx is done. While the resource is not installed it says so
// once and waits for it.
func (a *Attacher) Start(ctx context.Context) error {
	a.policyVersions, a.serviceVersions = make(map[types.UID]string), make(map[topology.ServiceName]string)
	w, err := newWatch(a.options)
	if err != nil {
		return err
	}
	for ctx.Err() == nil && !w.follow(ctx, policyResource()) {
		if !a.isMissing {
			a.isMissing = true
			a.options.Logger.Info("the resource is not installed, or not to be read: no policy gets a status until it is",
				"resource", v1alpha1.Resource+"."+v1alpha1.Group)
		}
		ops.Sleep(ctx, a.options.Poll)
	}
	if !w.follows() {
		return nil
	}
	if a.isMissing {
		a.isMissing = false
		a.options.Logger.Info("the resource is installed", "resource", v1alpha1.Resource+"."+v1alpha1.Group)
	}
	w.followRoutes(ctx)
	a.run(ctx, w)
	count(a.targets, nil)
	w.stop()
	return nil
}

// run judges and writes whenever something changed that counts.
func (a *Attacher) run(ctx context.Context, w *watch) {
	var seen uint64 // what the Services of the last pass were like
	var wait time.Duration
	var again <-chan time.Time
	poll := time.NewTicker(a.options.Poll)
	defer poll.Stop()
	for dirty := true; ctx.Err() == nil; {
		state, next := a.options.States.Load()
		if print := a.fingerprint(state); print != seen {
			seen, dirty = print, true
		}
		if dirty && state != nil && w.isSynced() {
			dirty = false
			again, wait = a.try(ctx, w, wait)
		}
		select {
		case <-ctx.Done():
		case <-again:
			dirty = true
		case <-w.changed:
			dirty = true
			ops.Sleep(ctx, batchTime)
		case <-next:
			ops.Sleep(ctx, batchTime)
		case <-poll.C:
			w.followRoutes(ctx)
		}
	}
}

// try does a pass, and says when to try again what went wrong.
func (a *Attacher) try(ctx context.Context, w *watch, before time.Duration) (again <-chan time.Time, wait time.Duration) {
	state, _ := a.options.States.Load()
	err := a.pass(ctx, w, state)
	if err == nil || ctx.Err() != nil {
		return nil, 0
	}
	wait = min(max(2*before, retryFirst), retryLast)
	a.options.Logger.Warn("not all of what became of policies is written", "error", err, "again_in", wait)
	return time.After(wait), wait
}

// pass judges everything and writes what is said otherwise.
func (a *Attacher) pass(ctx context.Context, w *watch, state *feed.State) error {
	list, err := w.policies(ctx)
	if err != nil {
		return err
	}
	verdict := Judge(Input{Policies: list, Service: finder(state), Route: w.route(ctx)})
	count(a.targets, verdict.Policies)
	var errs []error
	alive := make(map[types.UID]bool)
	for i, p := range list {
		alive[p.UID] = true
		if w.isKnown(p) {
			errs = append(errs, a.write(ctx, p, verdict.Policies[i]))
		}
	}
	maps.DeleteFunc(a.policyVersions, func(uid types.UID, _ string) bool { return !alive[uid] })
	return errors.Join(append(errs, a.mark(ctx, state, verdict.Services))...)
}

// finder finds Services in a state.
func finder(state *feed.State) func(topology.ServiceName) *corev1.Service {
	return func(n topology.ServiceName) *corev1.Service {
		if r := state.Record(n); r != nil {
			return r.Object
		}
		return nil
	}
}

func now() metav1.Time { return metav1.Now().Rfc3339Copy() } // as the API keeps it
