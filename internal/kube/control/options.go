package control

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/webhook"
)

// DefaultWorkers is how many services are reconciled in parallel: as many as kube-controller-manager's EndpointSlice
// controller takes. They are written one after the other all the same.
const DefaultWorkers = 5

// Names of the Lease that the leader holds. They are fixed by what is deployed.
const (
	DefaultNamespace = "weir-system"
	DefaultLease     = "weir-controller"
)

// Options say how to control a cluster. Logger and Registerer are handed on to feed and webhook where they have none.
type Options struct {
	Feed           feed.Options
	LeaderElection LeaderElection
	// Webhook puts the plan's hints on slices as they are written by others; nil: nothing does.
	Webhook *webhook.Options
	// Policies has plans keep the maxSkew of load-balancing policies, and the leader write what becomes of them.
	Policies bool
	// Workers is how many services are reconciled in parallel; 0: DefaultWorkers.
	Workers int
	Logger  *slog.Logger // nil: none
	// Registerer takes the metrics; nil: they are kept and shown nowhere.
	Registerer prometheus.Registerer
}

// LeaderElection says how replicas agree on who writes. The zero value turns it off: there must be one replica then.
type LeaderElection struct {
	// On turns the election on.
	On bool
	// Namespace and Name are the Lease's; empty: DefaultNamespace and DefaultLease.
	Namespace, Name string
	// Identity begins the name under which this replica stands, such as its host's; what makes it unique is added.
	Identity string
	// LeaseDuration is how long a leader that went silent still counts (0: 15 s), RenewDeadline how long a leader tries
	// to renew before it gives up (0: 10 s), RetryPeriod the time between tries (0: 400 ms). Each must be above the next, RenewDeadline by more than the
	// jitter that client-go adds to the time between tries.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// Standard times of an election: those of Kubernetes' own components, but for the time between tries.
//
// A replica that waits reads the Lease every 1 to 2.2 retry periods, because the reads are spread. It sees the
// last renewal up to 2.2 of them late, counts the lease from there, and sees its end up to 2.2 late again. So a leader that
// is killed is followed up to 4.4 retry periods after the lease: 8.8 s with the 2 s of Kubernetes' components, 1.8 s with
// 400 ms. That is 2.5 renewals each second in the whole cluster; the kubelets of 25 nodes renew as many leases.
const (
	DefaultLeaseDuration = 15 * time.Second
	DefaultRenewDeadline = 10 * time.Second
	DefaultRetryPeriod   = 400 * time.Millisecond
)

// complete gives the options with their defaults, or tells what is wrong with them.
func (o Options) complete() (Options, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	if o.Feed.Logger == nil {
		o.Feed.Logger = o.Logger
	}
	if o.Feed.Registerer == nil {
		o.Feed.Registerer = o.Registerer
	}
	if o.Webhook != nil {
		w := *o.Webhook
		if w.Logger == nil {
			w.Logger = o.Logger
		}
		if w.Registerer == nil {
			w.Registerer = o.Registerer
		}
		o.Webhook = &w
	}
	o.Workers = cmp.Or(o.Workers, DefaultWorkers)
	if o.Workers < 1 {
		return o, fmt.Errorf("%d workers: want at least 1", o.Workers)
	}
	err := o.LeaderElection.complete()
	return o, err
}

// Validate tells what makes no sense in the times of an election that is on.
func (l LeaderElection) Validate() error { return l.complete() }

func (l *LeaderElection) complete() error {
	l.Namespace = cmp.Or(l.Namespace, DefaultNamespace)
	l.Name = cmp.Or(l.Name, DefaultLease)
	l.LeaseDuration = cmp.Or(l.LeaseDuration, DefaultLeaseDuration)
	l.RenewDeadline = cmp.Or(l.RenewDeadline, DefaultRenewDeadline)
	l.RetryPeriod = cmp.Or(l.RetryPeriod, DefaultRetryPeriod)
	switch {
	case !l.On:
		return nil
	case l.RetryPeriod < 0:
		return errors.New("the retry period of leader election: want more than 0")
	case l.RenewDeadline <= time.Duration(jitterFactor*float64(l.RetryPeriod)):
		return fmt.Errorf("leader election tries every %v and gives up after %v: want it to give up after more than %g tries",
			l.RetryPeriod, l.RenewDeadline, jitterFactor)
	case l.LeaseDuration <= l.RenewDeadline:
		return fmt.Errorf("a lease of %v that is renewed for up to %v could have two leaders: want it longer",
			l.LeaseDuration, l.RenewDeadline)
	}
	return nil
}
