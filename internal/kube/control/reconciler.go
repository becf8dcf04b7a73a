package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/plans"
	"github.com/weir-lb/weir/internal/kube/status"
)

// reporter publishes what became of a service.
type reporter interface {
	Report(ctx context.Context, d *plans.Decision, o status.Outcome) error
	Forget(name topology.ServiceName)
	EndTerm()
}

// reconciler makes one service's slices say what was decided, and tells what came of it.
type reconciler struct {
	writer   *writer
	reporter reporter
}

// reconcile writes and reports one service, and gives when to look again; 0: no need. An error makes the queue ask again, later each time. Slices that changed
// under the writer's hands are no error: they come through the feed within moments, with a new decision. A service whose
// hints another writer keeps removing is checked again when they may be written again, or when they have stood for long enough.
func (r *reconciler) reconcile(ctx context.Context, name topology.ServiceName) (again time.Duration, err error) {
	written := r.writer.write(ctx, name)
	if written.decision == nil {
		r.reporter.Forget(name)
		return 0, nil
	}
	if ctx.Err() != nil {
		return 0, nil //nolint:nilerr // the controller stops; the next leader checks everything again.
	}
	told := r.reporter.Report(ctx, written.decision, status.Outcome{
		Slices:  len(written.decision.Record.Slices),
		Pending: written.pending,
		Written: written.written,
		Undone:  written.undone,
		Err:     written.err,
	})
	if told != nil {
		told = fmt.Errorf("report on service %s: %w", name, told)
	}
	if err := errors.Join(withoutStale(written.err), told); err != nil {
		return 0, err
	}
	return written.again, nil
}

// withoutStale leaves out of joined errors those that need not be tried again.
func withoutStale(err error) error {
	joined, ok := err.(interface{ Unwrap() []error }) // just what errors.Join gave
	switch {
	case ok:
		var rest []error
		for _, e := range joined.Unwrap() {
			rest = append(rest, withoutStale(e))
		}
		return errors.Join(rest...)
	case isStale(err):
		return nil
	default:
		return err
	}
}
