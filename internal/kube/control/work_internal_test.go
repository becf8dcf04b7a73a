package control

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/plans"
	"github.com/weir-lb/weir/internal/latest"
	"github.com/weir-lb/weir/internal/patience"
)

func TestATermThatEndsLetsTheReporterRest(t *testing.T) {
	d := decide(t, nil, "->a")
	r, people := newTestReconciler(newCluster(d), &store{d})
	p := newPlanner(latest.New[*feed.State](nil), plans.NewStore(time.Now))
	w := &work{reconciler: r, planner: p, workers: 2, logger: slog.New(slog.DiscardHandler)}
	for terms := 1; terms <= 2; terms++ {
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.run(ctx) }()
		patience.Within(t, time.Second, "the leader has a queue", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.queue != nil
		})
		if people.rests != terms-1 {
			t.Errorf("rested %d times while at work in term %d", people.rests, terms)
		}
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if people.rests != terms {
			t.Errorf("rested %d times after %d terms", people.rests, terms)
		}
	}
}
