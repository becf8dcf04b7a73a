package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/hints"
	"github.com/weir-lb/weir/internal/kube/plans"
	"github.com/weir-lb/weir/internal/ops"
)

// parallelPatches is how many slices of a service are written at once. A patch takes an API server a few milliseconds,
// so a service of 5,000 endpoints in 50 slices is half-hinted for some tens of them; more would only queue up in its
// priority levels.
const parallelPatches = 8

// slotLimit is how long the patches of one service may keep the other services waiting: more than a healthy API server takes
// for the largest, and less than admission webhooks that hang, which often concern the services of one namespace only.
const slotLimit = 2 * time.Second

// decisions is where the writer finds what was decided last.
type decisions interface {
	Lookup(name topology.ServiceName) (*plans.Decision, bool)
}

// writer makes EndpointSlices say the plan: one service at a time, so that each is half-hinted as short as possible, and
// no more patches than the bucket gives tokens for. It is safe for concurrent use.
type writer struct {
	client    apiClient
	decisions decisions
	bucket    *rate.Limiter
	meter     meter
	slot      chan struct{} // holds one element while a service is written
	awaited   awaited
	damper    *damper
}

// meter counts what the writer does.
type meter interface {
	// Wrote is called for each patch.
	Wrote(took time.Duration, err error)
	// Undone is called each time that another writer removed a service's hints, which will be written again after wait.
	Undone(wait time.Duration)
}

func newWriter(c apiClient, d decisions, bucket *rate.Limiter, m meter) *writer {
	return &writer{
		client: c, decisions: d, bucket: bucket, meter: m,
		slot: make(chan struct{}, 1), damper: newDamper(bucket, m.Undone),
	}
}

// result is what became of a service.
type result struct {
	decision *plans.Decision // that was written; nil: there is none any more
	written  int             // slices that were written
	pending  int             // slices that do not say it yet, those for which the feed is behind among them
	err      error           // why others of those do not; errors.Join of one for each

	undone bool          // another writer keeps removing what is written, so that it is written less and less often
	again  time.Duration // when to check again though nothing changes; 0: no need
}

// write makes the slices of a service say what was decided last.
func (w *writer) write(ctx context.Context, name topology.ServiceName) result {
	d, ok := w.decisions.Lookup(name)
	if !ok {
		return w.forget(name)
	}
	now, behind := w.due(d)
	if len(now) == 0 {
		if behind == 0 {
			w.damper.stands(name)
		}
		return w.damped(result{decision: d, pending: behind})
	}
	if wait := w.damper.ask(d, len(now)); wait > 0 {
		return w.damped(result{decision: d, pending: len(now) + behind, again: wait})
	}
	select {
	case w.slot <- struct{}{}:
	case <-ctx.Done():
		return result{decision: d, pending: len(edits(d)), err: ctx.Err()}
	}
	pass := sync.OnceFunc(func() { <-w.slot })
	defer pass()
	return w.writeDue(ctx, name, pass)
}

// writeDue writes what is due now: it may be another decision than before the wait. It frees the slot when the
// writing takes long.
func (w *writer) writeDue(ctx context.Context, name topology.ServiceName, pass func()) result {
	d, now, behind := w.current(name)
	for tokens := 0; len(now) > tokens; {
		missing := len(now) - tokens
		if err := w.take(ctx, missing); err != nil {
			return result{decision: d, pending: len(now) + behind, err: err}
		}
		tokens += missing
		d, now, behind = w.current(name) // the wait may have been long: what was decided meanwhile counts
	}
	if d == nil {
		return w.forget(name)
	}
	// Writing that has begun is ended, also when the controller is asked to stop: it takes well under a second, and the
	// next leader would find the service half-hinted.
	defer time.AfterFunc(slotLimit, pass).Stop()
	written, err := w.writeAll(context.WithoutCancel(ctx), name, now)
	pending := len(now) - written + behind
	if pending == 0 {
		w.damper.wrote(d)
	}
	return w.damped(result{decision: d, written: written, pending: pending, err: err})
}

// damped adds to a result what the damper makes of the service.
func (w *writer) damped(r result) result {
	slowed, again := w.damper.slows(r.decision.Record.Name)
	r.undone = slowed
	if r.again == 0 {
		r.again = again
	}
	return r
}

// current finds what was decided last for a service and what is due of it; nil: there is no such service any more.
func (w *writer) current(name topology.ServiceName) (d *plans.Decision, now []edit, behind int) {
	d, ok := w.decisions.Lookup(name)
	if !ok {
		return nil, nil, 0
	}
	now, behind = w.due(d)
	return d, now, behind
}

// forget drops what is remembered of a service that is gone.
func (w *writer) forget(name topology.ServiceName) result {
	w.awaited.forget(name)
	w.damper.forget(name)
	return result{}
}

// due lists what a decision asks for and can be written now, and counts the slices for which the feed is behind.
func (w *writer) due(d *plans.Decision) (now []edit, behind int) {
	return w.awaited.filter(d.Record.Name, d.Record.Slices, edits(d))
}

// edits lists what has to be done to the slices of a decided service.
func edits(d *plans.Decision) []edit {
	var list []edit
	for _, s := range d.Record.Slices {
		if ops := hints.Edit(s, d); len(ops) > 0 {
			list = append(list, edit{slice: s, ops: ops})
		}
	}
	return list
}

// take waits until the bucket has given a token for each of n patches, so that they can follow one another without a
// pause. The rate is kept, and what is written at once is bounded by the bucket's size and by that of the largest service.
func (w *writer) take(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	now := time.Now()
	taken := takeFrom(w.bucket, now, n)
	if taken == nil {
		return fmt.Errorf("a bucket of %d tokens gives none", w.bucket.Burst())
	}
	if !ops.Sleep(ctx, taken.wait(now)) {
		taken.giveBack(time.Now())
		return ctx.Err()
	}
	return nil
}

// writeAll writes edits phase by phase, those of a phase in parallel, and gives how many succeeded. A phase that did not
// succeed whole is the last one: what would follow relies on it.
func (w *writer) writeAll(ctx context.Context, name topology.ServiceName, list []edit) (written int, err error) {
	for _, phase := range inOrder(list) {
		n, err := w.writePhase(ctx, name, phase)
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

func (w *writer) writePhase(ctx context.Context, name topology.ServiceName, list []edit) (written int, err error) {
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(parallelPatches)
	for _, e := range list {
		group.Go(func() error {
			one := w.writeOne(ctx, name, e)
			mu.Lock()
			defer mu.Unlock()
			if one == nil {
				written++
			}
			err = errors.Join(err, one)
			return nil // the others go on
		})
	}
	_ = group.Wait() // gives nil
	return written, err
}

// writeOne writes one edit and remembers that the version which it was made from is past.
func (w *writer) writeOne(ctx context.Context, name topology.ServiceName, e edit) error {
	began := time.Now()
	version, err := e.apply(ctx, w.client)
	w.meter.Wrote(time.Since(began), err)
	switch {
	case isStale(err):
		w.awaited.add(name, e.slice, nil)
	case err == nil && version != e.slice.ResourceVersion: // else nothing changed, and nothing will come through the watch
		w.awaited.add(name, e.slice, e.ops)
	}
	return err
}
