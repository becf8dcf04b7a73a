package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/weir-lb/weir/internal/ops"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// jitterFactor spreads the tries of replicas that wait for the Lease: up to 1.2 further retry periods, as in client-go.
const jitterFactor = 1.2

// lease is the Lease that replicas agree on a leader with, as one of them uses it. One goroutine at a time.
//
// The protocol is that of client-go's tools/leaderelection, so that both can hold the same Lease: a holder that did not renew
// for the duration that it wrote itself has lost it, and clocks are never compared, because the duration is counted from when
// this replica saw the last renewal. That package imports the clients and informers of all kinds of Kubernetes, which are a
// fifth of the program.
type lease struct {
	client   coordinationv1client.LeasesGetter
	options  LeaderElection // complete
	identity string
	logger   *slog.Logger

	seen   *coordinationv1.Lease // as it was last read or written; nil: never
	seenAt time.Time             // when its present spec was first seen
	sentAt time.Time             // when this replica sent its last write that is known to have succeeded
	failed bool                  // that the API server cannot be asked was logged
}

// hold waits until this replica holds the Lease, and calls do with a context that ends with ctx and before the Lease does. It
// returns when do has: until then the Lease is renewed even if ctx is done, and afterwards it is given back. lost tells that
// another replica may have held it before do returned.
func (l *lease) hold(ctx context.Context, do func(context.Context) error) (lost bool, err error) {
	if !l.acquire(ctx) {
		return false, nil
	}
	leading, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- do(leading) }()
	beyond := context.WithoutCancel(ctx)
	for l.renew(beyond) {
		retry := time.NewTimer(l.options.RetryPeriod)
		select {
		case err := <-done:
			retry.Stop()
			l.release(beyond)
			return false, err
		case <-retry.C:
		}
	}
	stop()
	return true, <-done
}

// acquire tries to get the Lease until it has it or ctx is done.
func (l *lease) acquire(ctx context.Context) bool {
	for {
		try, cancel := context.WithTimeout(ctx, l.options.RenewDeadline)
		held, err := l.try(try)
		cancel()
		if held {
			return true
		}
		if ctx.Err() == nil {
			l.warn(err)
		}
		period := float64(l.options.RetryPeriod)
		if !ops.Sleep(ctx, time.Duration(period+rand.Float64()*jitterFactor*period)) {
			return false
		}
	}
}

// renew renews the Lease if that is due, and tries again until the renewal deadline. False: it is lost.
func (l *lease) renew(ctx context.Context) bool {
	ctx, cancel := context.WithDeadline(ctx, l.sentAt.Add(l.options.RetryPeriod+l.options.RenewDeadline))
	defer cancel()
	for time.Since(l.sentAt) >= l.options.RetryPeriod {
		held, err := l.try(ctx)
		l.warn(err)
		if err == nil {
			return held
		}
		if !ops.Sleep(ctx, l.options.RetryPeriod) {
			return false
		}
	}
	return true
}

// warn logs once that the Lease cannot be read or written, until it can.
func (l *lease) warn(err error) {
	if err != nil && !l.failed {
		l.logger.Warn("lease is not available, retrying", "lease", l.options.Namespace+"/"+l.options.Name, "error", err)
	}
	l.failed = err != nil
}

// try acquires or renews the Lease, and tells whether this replica holds it then.
//
// Errors: what the API server says; another replica's Lease is none.
func (l *lease) try(ctx context.Context) (bool, error) {
	now := time.Now()
	if l.isMine() && now.Before(l.expires()) { // no other replica may have written: no need to read
		if l.write(ctx, l.next(now), now) == nil {
			return true, nil
		}
	}
	found, err := l.client.Leases(l.options.Namespace).Get(ctx, l.options.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		l.seen = nil
	case err != nil:
		return false, err
	default:
		l.see(found, now)
	}
	if !l.isMine() && l.holder() != "" && now.Before(l.expires()) {
		return false, nil
	}
	err = l.write(ctx, l.next(now), now)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return false, nil // another replica was quicker
	}
	return err == nil, err
}

// next is the Lease as this replica is to write it.
func (l *lease) next(now time.Time) *coordinationv1.Lease {
	next := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.options.Namespace, Name: l.options.Name}}
	if l.seen != nil {
		next = l.seen.DeepCopy()
	}
	stamp, transitions := metav1.NewMicroTime(now), int32(0)
	if next.Spec.LeaseTransitions != nil {
		transitions = *next.Spec.LeaseTransitions
	}
	if !l.isMine() {
		next.Spec.AcquireTime = &stamp
		if l.seen != nil {
			transitions++
		}
	}
	next.Spec.HolderIdentity, next.Spec.RenewTime, next.Spec.LeaseTransitions = &l.identity, &stamp, &transitions
	next.Spec.LeaseDurationSeconds = new(int32(l.options.LeaseDuration / time.Second))
	return next
}

// write creates or updates the Lease; the API server refuses an update of another version than the one that was read.
func (l *lease) write(ctx context.Context, next *coordinationv1.Lease, now time.Time) error {
	leases := l.client.Leases(l.options.Namespace)
	var written *coordinationv1.Lease
	var err error
	if l.seen == nil {
		written, err = leases.Create(ctx, next, metav1.CreateOptions{})
	} else {
		written, err = leases.Update(ctx, next, metav1.UpdateOptions{})
	}
	if err == nil {
		l.seen, l.seenAt, l.sentAt = written, now, now
	}
	return err
}

// release gives the Lease back, so that another replica need not wait for its end.
func (l *lease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.options.RenewDeadline)
	defer cancel()
	now := time.Now()
	next := l.next(now)
	next.Spec.HolderIdentity, next.Spec.LeaseDurationSeconds = new(""), new(int32(1))
	if err := l.write(ctx, next, now); err != nil {
		l.logger.Warn("lease is not released, it expires by itself", "error", err)
	}
}

// see takes note of the Lease as it was read. Its time counts anew if its holder changed it.
func (l *lease) see(found *coordinationv1.Lease, now time.Time) {
	if l.seen == nil || !reflect.DeepEqual(l.seen.Spec, found.Spec) {
		l.seenAt = now
	}
	l.seen = found
}

// holder is the identity in the Lease; empty: none.
func (l *lease) holder() string {
	if l.seen == nil || l.seen.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.seen.Spec.HolderIdentity
}

func (l *lease) isMine() bool { return l.holder() == l.identity }

// expires is when the Lease ends unless it is renewed.
func (l *lease) expires() time.Time {
	if l.seen == nil || l.seen.Spec.LeaseDurationSeconds == nil {
		return l.seenAt
	}
	return l.seenAt.Add(time.Duration(*l.seen.Spec.LeaseDurationSeconds) * time.Second)
}

// errHeld says which replica did not give the Lease back in time.
func (l *lease) errHeld() error {
	if l.holder() == "" {
		return errors.New("the Lease cannot be had")
	}
	return fmt.Errorf("%s holds the Lease %s/%s", l.holder(), l.options.Namespace, l.options.Name)
}
