package control

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/weir-lb/weir/internal/core/topology"
)

// How long the queue waits after a failure, doubled each time. The first wait outlasts a hiccup; the last one is what a
// service may have to wait beyond the end of an outage.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// work is the leader's duty: a queue of services, and workers that reconcile them. It may be started again and again, one
// at a time.
type work struct {
	reconciler *reconciler
	planner    *planner
	workers    int
	logger     logr.Logger
}

// Start works until ctx is done.
func (w *work) Start(ctx context.Context) error {
	anyName := true // each term has a controller of its own, and so has each of several in one process
	c, err := controller.NewTypedUnmanaged("hints", controller.TypedOptions[topology.ServiceName]{
		Reconciler:              w.reconciler,
		MaxConcurrentReconciles: w.workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[topology.ServiceName](firstRetry, lastRetry),
		SkipNameValidation:      &anyName,
		LogConstructor: func(name *topology.ServiceName) logr.Logger {
			if name == nil {
				return w.logger
			}
			return w.logger.WithValues("service", name.String())
		},
	})
	if err != nil {
		return err
	}
	if err := c.Watch(source.TypedFunc[topology.ServiceName](w.planner.lead)); err != nil {
		return err
	}
	defer w.reconciler.reporter.Rest() // the workers have ended by then
	return c.Start(ctx)
}
