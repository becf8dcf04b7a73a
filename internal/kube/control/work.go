package control

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

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
	logger     *slog.Logger
}

// run works until ctx is done.
func (w *work) run(ctx context.Context) error {
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[topology.ServiceName](firstRetry, lastRetry))
	w.planner.lead(ctx, queue)
	var workers sync.WaitGroup
	for range w.workers {
		workers.Go(func() {
			for w.next(ctx, queue) {
			}
		})
	}
	<-ctx.Done()
	queue.ShutDown()
	workers.Wait()
	w.reconciler.reporter.EndTerm()
	return nil
}

// next reconciles one service; false once the queue is shut down and empty.
func (w *work) next(ctx context.Context, q queue) bool {
	name, isShutDown := q.Get()
	if isShutDown {
		return false
	}
	defer q.Done(name)
	if ctx.Err() != nil { // the next leader checks everything again
		return true
	}
	again, err := w.reconcile(ctx, name)
	switch {
	case err != nil:
		w.logger.Error("service is not written, trying again", "service", name.String(), "error", err)
		q.AddRateLimited(name)
	case again > 0:
		q.Forget(name)
		q.AddAfter(name, again)
	default:
		q.Forget(name)
	}
	return true
}

// reconcile turns a panic, which is a mistake of ours about one service, into an error, so that the others go on.
func (w *work) reconcile(ctx context.Context, name topology.ServiceName) (again time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return w.reconciler.reconcile(ctx, name)
}
