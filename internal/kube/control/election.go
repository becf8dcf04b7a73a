package control

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// election runs what only the leader may do for as long as this replica leads.
//
// The manager's own election ends the process of a leader that cannot renew its lease. During an outage of the API server
// every leader would end so, and take its webhook and all that it knows with it. Here a leader that lost the lease stops
// writing, goes on planning, and stands for election again.
type election struct {
	options LeaderElection
	lock    resourcelock.Interface // nil: nobody is elected
	logger  *slog.Logger
	duties  []manager.Runnable // each may be started again after it has ended
	leads   atomic.Bool
}

func newElection(config *rest.Config, o LeaderElection, logger *slog.Logger) (*election, error) {
	e := &election{options: o, logger: logger}
	if !o.On {
		return e, nil
	}
	config = rest.AddUserAgent(config, "leader-election")
	config.Timeout = o.RenewDeadline / 2 // so that a try which hangs leaves time for another
	leases, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	identity := cmp.Or(o.Identity, "weir") + "_" + string(uuid.NewUUID()) // a restarted container has its old host name
	e.lock = &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
	return e, nil
}

// NeedLeaderElection tells the manager that every replica stands for election.
func (e *election) NeedLeaderElection() bool { return false }

// Start stands for election until ctx is done, and leads when elected.
func (e *election) Start(ctx context.Context) error {
	if e.lock == nil {
		return e.lead(ctx)
	}
	for ctx.Err() == nil {
		if err := e.term(ctx); err != nil {
			return err
		}
	}
	return nil
}

// term waits to be elected and leads until the lease is lost or ctx is done. In the second case it gives the lease back,
// but not before all duties have ended.
func (e *election) term(ctx context.Context) error {
	standing, resign := context.WithCancel(context.WithoutCancel(ctx))
	defer resign()
	began, ended := make(chan struct{}), make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            e.lock,
		Name:            e.options.Name,
		LeaseDuration:   e.options.LeaseDuration,
		RenewDeadline:   e.options.RenewDeadline,
		RetryPeriod:     e.options.RetryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(elected context.Context) {
				close(began)
				elected, stop := context.WithCancel(elected)
				defer stop()
				defer context.AfterFunc(ctx, stop)()
				ended <- e.lead(elected)
				resign()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("stand for election: %w", err)
	}
	defer context.AfterFunc(ctx, func() {
		select {
		case <-began: // resigns when its duties have ended
		default:
			resign()
		}
	})()
	elector.Run(standing)
	select {
	case <-began:
		err := <-ended
		if ctx.Err() == nil && err == nil {
			e.logger.Warn("the lease is lost, another replica may write")
		}
		return err
	default:
		return nil
	}
}

// lead does all duties until ctx is done or one of them fails.
func (e *election) lead(ctx context.Context) error {
	if ctx.Err() != nil { // the lease was lost before the news of it got here
		return nil
	}
	e.logger.Info("this replica writes")
	e.leads.Store(true)
	defer e.leads.Store(false)
	duties, ctx := errgroup.WithContext(ctx)
	for _, d := range e.duties {
		duties.Go(func() error { return d.Start(ctx) })
	}
	return duties.Wait()
}

// elected is a manager that leaves to the election what only a leader may run.
type elected struct {
	manager.Manager
	election *election
}

// Add adds a part of the controller. Parts that do not say otherwise are the leader's, as with every manager.
func (m elected) Add(r manager.Runnable) error {
	if part, ok := r.(manager.LeaderElectionRunnable); ok && !part.NeedLeaderElection() {
		return m.Manager.Add(r)
	}
	m.election.duties = append(m.election.duties, r)
	return nil
}
