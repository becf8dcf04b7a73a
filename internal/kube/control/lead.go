package control

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// cleanupWait is how long a cleanup waits for the controllers to stop: a pod has 30 s for that, and a Lease that nobody
// gave back ends 15 s later.
const cleanupWait = time.Minute

// whileLeading does something while it holds the controllers' Lease, so that none of them writes at the same time. Where
// there is no Lease there are no controllers.
//
// Errors: a controller that leads for longer than patience; what do gives.
func (c *cleaner) whileLeading(ctx context.Context, patience time.Duration, do func(context.Context) error) error {
	namespace, name := c.options.Namespace, c.options.Lease
	_, err := c.cluster.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return do(ctx)
	case err != nil:
		return fmt.Errorf("read Lease %s/%s to see whether a controller runs: %w", namespace, name, err)
	}
	asked := ctx
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	began, done := make(chan struct{}), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
			Client:     c.cluster.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: "weir-cleanup"},
		},
		Name:            name,
		LeaseDuration:   DefaultLeaseDuration,
		RenewDeadline:   DefaultRenewDeadline,
		RetryPeriod:     DefaultRetryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				close(began)
				err = do(ctx)
				close(done)
				stop()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	timer := time.AfterFunc(patience, func() {
		select {
		case <-began:
		default:
			stop()
		}
	})
	defer timer.Stop()
	elector.Run(ctx)
	select {
	case <-began:
		<-done
		return err
	default:
		if asked.Err() != nil {
			return asked.Err()
		}
		return fmt.Errorf("%s holds the Lease %s/%s: stop all controllers first", cmp.Or(elector.GetLeader(), "somebody"), namespace, name)
	}
}
