package control

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/plans"
	"github.com/weir-lb/weir/internal/latest"
	"github.com/weir-lb/weir/internal/patience"
)

func newTestQueue(t *testing.T) queue {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[topology.ServiceName]())
	t.Cleanup(q.ShutDown)
	return q
}

// take gives the names that are in a queue.
func take(q queue) []string {
	var names []string
	for q.Len() > 0 {
		name, _ := q.Get()
		q.Done(name)
		names = append(names, name.Name)
	}
	return names
}

func TestANewLeaderLooksAtEverythingOnceAndThenAtWhatChanges(t *testing.T) {
	record := func(name string) *feed.Record {
		return &feed.Record{Name: topology.ServiceName{Namespace: "shop", Name: name}}
	}
	a, b := record("a"), record("b")
	states := latest.New[*feed.State](nil)
	p := newPlanner(states, plans.NewStore(time.Now))
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = p.run(ctx) })
	defer running.Wait()
	defer stop()
	if p.isReady() {
		t.Error("ready before there is a state")
	}
	states.Store(&feed.State{Records: []*feed.Record{a, b}})
	patience.Within(t, time.Second, "the state is planned", p.isReady)
	term, end := context.WithCancel(t.Context())
	q := newTestQueue(t)
	p.lead(term, q)
	if diff := cmp.Diff([]string{"a", "b"}, take(q)); diff != "" {
		t.Errorf("at first (-want +got)\n%s", diff)
	}
	states.Store(&feed.State{Records: []*feed.Record{a, record("b"), record("c")}})
	changed := func() bool { return q.Len() == 2 }
	patience.Within(t, time.Second, "what changed is in the queue", changed)
	patience.Stays(t, 50*time.Millisecond, "nothing else is in the queue", changed)
	if diff := cmp.Diff([]string{"b", "c"}, take(q)); diff != "" {
		t.Errorf("then (-want +got)\n%s", diff)
	}
	p.policies.Store(policy.NewSet(policy.Set{}))
	patience.Stays(t, 50*time.Millisecond, "policies that cap no service put none into the queue", func() bool { return q.Len() == 0 })
	end()
	retired := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.queue == nil
	}
	patience.Within(t, time.Second, "the queue is retired", retired)
	states.Store(&feed.State{Records: []*feed.Record{a}})
	patience.Stays(t, 50*time.Millisecond, "a retired queue gets nothing", func() bool { return retired() && q.Len() == 0 })
}
