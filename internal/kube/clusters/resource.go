package clusters

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/weir-lb/weir/internal/ops"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// delay is how long changes are gathered, as a feed does. It bounds how often a server that never stops telling makes weir
	// work, too.
	delay = 50 * time.Millisecond
	// firstRetry doubles up to lastRetry. With what is added to keep the agents of a cluster apart, a kind that a cluster did not
	// have is found within 30 s.
	firstRetry = time.Second
	lastRetry  = 20 * time.Second
	// watchFor is how long one watch lasts, and listFor how long a list may take. A server that is silent for longer than
	// watchFor is asked anew, so that a loss that nothing tells of is found.
	watchFor = time.Minute
	listFor  = 30 * time.Second
	// maxPending is how many events are taken in one delay; the rest waits in the connection.
	maxPending = 500
)

// resource is one kind of object of one API server, followed by list and watch. An informer would keep all that the server
// tells, and would not say whether it is there.
type resource struct {
	client client.WithWatch
	list   func() client.ObjectList
	older  func() client.ObjectList // of an older version of the kind, asked for while the other is absent; nil: there is none
	where  []client.ListOption
	most   int // objects; more are left out
	// told is called with all objects by namespace/name after each change, and with the error when the server is lost. It may keep
	// the map.
	told func(objects map[string]client.Object, err error)

	objects map[string]client.Object
	isFull  bool
}

// errTooMany tells that some objects are left out.
var errTooMany = errors.New("there are more objects than are followed")

// run follows until ctx is done.
func (r *resource) run(ctx context.Context) {
	retry := firstRetry
	for {
		began := time.Now()
		err := r.session(ctx)
		if ctx.Err() != nil {
			return
		}
		r.told(maps.Clone(r.objects), err)
		if time.Since(began) > lastRetry {
			retry = firstRetry
		}
		if isAbsent(err) && r.older != nil {
			r.list, r.older = r.older, r.list
		}
		if !ops.Sleep(ctx, retry+rand.N(retry/4+1)) { //nolint:gosec // nothing is gained by guessing it.
			return
		}
		retry = min(2*retry, lastRetry)
	}
}

// isAbsent tells whether an API server does not know a kind.
func isAbsent(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// session lists, then watches until the server is lost.
func (r *resource) session(ctx context.Context) error {
	for {
		version, err := r.relist(ctx)
		for err == nil {
			version, err = r.watch(ctx, version)
		}
		if !errors.Is(err, errEnded) || !ops.Sleep(ctx, firstRetry) {
			return err
		}
	}
}

// errEnded tells that a watch ended early and told nothing. Client-go gives such a watch for a connection that it cannot make, too:
// whether the server is there, a list tells.
var errEnded = errors.New("the watch ended early")

// relist replaces all objects.
func (r *resource) relist(ctx context.Context) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, listFor)
	defer cancel()
	list := r.list()
	if err := r.client.List(ctx, list, append(r.where, client.Limit(int64(r.most)))...); err != nil {
		if isAbsent(err) {
			r.objects = nil
		}
		return "", fmt.Errorf("list: %w", err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return "", fmt.Errorf("list: %w", err)
	}
	r.objects, r.isFull = make(map[string]client.Object, min(len(items), r.most)), list.GetContinue() != ""
	for _, item := range items {
		if o, ok := item.(client.Object); ok {
			r.put(o)
		}
	}
	r.report()
	return list.GetResourceVersion(), nil
}

func (r *resource) report() {
	var err error
	if r.isFull {
		err = errTooMany
	}
	r.told(maps.Clone(r.objects), err)
}

func (r *resource) put(o client.Object) {
	key := o.GetNamespace() + "/" + o.GetName()
	if _, ok := r.objects[key]; !ok && len(r.objects) >= r.most {
		r.isFull = true
		return
	}
	r.objects[key] = o
}

// watch follows changes from a version on, for watchFor at most, and gives the version to go on from.
func (r *resource) watch(ctx context.Context, version string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, watchFor+listFor)
	defer cancel()
	seconds := int64(watchFor / time.Second)
	began := time.Now()
	w, err := r.client.Watch(ctx, r.list(), append(r.where, &client.ListOptions{Raw: &metav1.ListOptions{
		ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	}})...)
	if err != nil {
		return "", fmt.Errorf("watch: %w", err)
	}
	defer w.Stop()
	f := &flow{resource: r, watch: w, version: version}
	if err := f.follow(); err != nil {
		return "", err
	}
	if ctx.Err() == nil && !f.isTold && time.Since(began) < watchFor/2 {
		return "", errEnded
	}
	return f.version, ctx.Err()
}

// flow is one watch.
type flow struct {
	*resource

	watch   watch.Interface
	version string // to go on from
	isTold  bool   // there was an event
	pending int    // events that are not reported yet
}

// follow takes events until the watch ends.
func (f *flow) follow() error {
	events := f.watch.ResultChan()
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		select {
		case event, isOpen := <-events:
			if !isOpen {
				f.flush()
				return nil
			}
			if err := f.take(event); err != nil {
				return err
			}
			switch f.pending {
			case 1:
				due.Reset(delay)
			case maxPending:
				events = nil
			}
		case <-due.C:
			f.flush()
			events = f.watch.ResultChan()
		}
	}
}

func (f *flow) flush() {
	if f.pending > 0 {
		f.report()
	}
	f.pending = 0
}

// take notes one event.
func (f *flow) take(event watch.Event) error {
	if event.Type == watch.Error {
		return fmt.Errorf("watch: %w", apierrors.FromObject(event.Object))
	}
	o, ok := event.Object.(client.Object)
	if !ok {
		return fmt.Errorf("watch: an event of %T", event.Object)
	}
	f.version, f.isTold = o.GetResourceVersion(), true
	f.pending++
	switch event.Type {
	case watch.Added, watch.Modified:
		f.put(o)
	case watch.Deleted:
		delete(f.objects, o.GetNamespace()+"/"+o.GetName())
	case watch.Bookmark, watch.Error:
	}
	return nil
}
