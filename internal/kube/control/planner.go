package control

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/plans"
	"github.com/weir-lb/weir/internal/latest"
)

// planner plans each new state, and each change of policies, in one pass, on every replica. On the leader it puts the services
// that have to be reconciled into the queue, which holds each name once however often it is put there: it is bounded by the
// number of services.
type planner struct {
	states   *latest.Value[*feed.State]
	policies *latest.Value[*policy.Set]
	store    *plans.Store

	planned chan struct{} // closed once the first state is planned
	once    sync.Once

	mu    sync.Mutex
	queue queue // nil: this replica does not write
}

// queue is where names of services go.
type queue = workqueue.TypedRateLimitingInterface[topology.ServiceName]

func newPlanner(states *latest.Value[*feed.State], s *plans.Store) *planner {
	return &planner{states: states, policies: latest.New[*policy.Set](nil), store: s, planned: make(chan struct{})}
}

// run plans until ctx is done.
func (p *planner) run(ctx context.Context) error {
	for {
		state, changed := p.states.Load()
		policies, changedPolicies := p.policies.Load()
		if state != nil {
			p.enqueue(p.store.Update(state, policies))
			p.once.Do(func() { close(p.planned) })
		}
		select {
		case <-changed:
		case <-changedPolicies:
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *planner) enqueue(names []topology.ServiceName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue == nil {
		return
	}
	for _, n := range names {
		p.queue.Add(n)
	}
}

// lead makes q the queue until ctx is done, and puts every service into it once: what the leader before did not
// write is not known.
func (p *planner) lead(ctx context.Context, q queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = q
	context.AfterFunc(ctx, func() { p.retire(q) })
	for _, d := range p.store.All() {
		q.Add(d.Record.Name)
	}
}

// retire drops a queue that has no workers any more, unless there is a newer one already.
func (p *planner) retire(q queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue == q {
		p.queue = nil
	}
}

// isReady tells whether the first state is planned.
func (p *planner) isReady() bool {
	select {
	case <-p.planned:
		return true
	default:
		return false
	}
}
