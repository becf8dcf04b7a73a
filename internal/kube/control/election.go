package control

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
)

// election runs what only the leader may do for as long as this replica leads.
//
// The usual election ends the process of a leader that cannot renew its lease. During an outage of the API server every
// leader would end so, and take its webhook and all that it knows with it. Here a leader that lost the lease stops writing,
// goes on planning, and stands for election again.
type election struct {
	lease  *lease // nil: there is one replica, which leads
	logger *slog.Logger
	duties []func(context.Context) error // each may be started again after it has ended
	leads  atomic.Bool
	status prometheus.Gauge
}

func newElection(config *rest.Config, o *Options) (*election, error) {
	e := &election{logger: o.Logger, status: newLeaderStatus(o.LeaderElection.Name)}
	if !o.LeaderElection.On {
		return e, nil
	}
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election") // which changes what it is given
	config.Timeout = o.LeaderElection.RenewDeadline / 2                    // so that a try which hangs leaves time for another
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if err := o.Registerer.Register(e.status); err != nil {
		return nil, fmt.Errorf("register the metric of leader election: %w", err)
	}
	identity := cmp.Or(o.LeaderElection.Identity, "weir") + "_" + string(uuid.NewUUID()) // a restarted container has its old host name
	e.lease = &lease{client: client, options: o.LeaderElection, identity: identity, logger: o.Logger}
	return e, nil
}

// newLeaderStatus makes the metric that Kubernetes' components have.
func newLeaderStatus(lease string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "leader_election_master_status",
		Help:        "1 on the replica that holds the Lease, 0 on the others. 'name' is that of the Lease.",
		ConstLabels: prometheus.Labels{"name": lease},
	})
}

// run stands for election until ctx is done, and leads when elected.
func (e *election) run(ctx context.Context) error {
	if e.lease == nil {
		return e.lead(ctx)
	}
	for ctx.Err() == nil {
		lost, err := e.lease.hold(ctx, e.lead)
		if err != nil {
			return err
		}
		if lost {
			e.logger.Warn("the lease is lost, another replica may write")
		}
	}
	return nil
}

// lead runs all duties until ctx is done or one of them fails.
func (e *election) lead(ctx context.Context) error {
	if ctx.Err() != nil { // the lease was lost before the news of it got here
		return nil
	}
	e.logger.Info("this replica writes")
	e.leads.Store(true)
	e.status.Set(1)
	defer e.leads.Store(false)
	defer e.status.Set(0)
	duties, ctx := errgroup.WithContext(ctx)
	for _, do := range e.duties {
		duties.Go(func() error { return do(ctx) })
	}
	return duties.Wait()
}
