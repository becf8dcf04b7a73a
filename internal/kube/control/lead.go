package control

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cleanupWait is how long a cleanup waits for the controllers to stop: a pod has 30 s for that, and a Lease that was not
// given back ends 15 s later.
const cleanupWait = time.Minute

// whileLeading does something while it holds the controllers' Lease, so that none of them writes at the same time. Where
// there is no Lease there are no controllers.
//
// Errors: a controller that leads for longer than patience; what do gives.
func (c *cleaner) whileLeading(ctx context.Context, patience time.Duration, do func(context.Context) error) error {
	namespace, name := c.options.Namespace, c.options.Lease
	_, err := c.leases.Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return do(ctx)
	case err != nil:
		return fmt.Errorf("read Lease %s/%s to see whether a controller runs: %w", namespace, name, err)
	}
	o := LeaderElection{On: true, Namespace: namespace, Name: name}
	if err := o.complete(); err != nil {
		return err
	}
	l := &lease{client: c.leases, options: o, identity: "weir-cleanup", logger: slog.New(slog.DiscardHandler)}
	held := false
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	timer := time.AfterFunc(patience, stop)
	defer timer.Stop()
	_, err = l.hold(waiting, func(ctx context.Context) error {
		held = timer.Stop()
		return do(ctx)
	})
	switch {
	case held:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return fmt.Errorf("%w: stop all controllers first", l.errHeld())
	}
}
