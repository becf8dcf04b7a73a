package control

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/hints"
	"github.com/weir-lb/weir/internal/kube/plans"
	"github.com/weir-lb/weir/internal/kube/policyset"
	"github.com/weir-lb/weir/internal/latest"
	"github.com/weir-lb/weir/internal/ops"
)

// Preview is what a controller would do to a cluster as it is.
type Preview struct {
	State *feed.State
	// Decisions are sorted by name.
	Decisions []*plans.Decision
	// Edits are what would be written, sorted by service, those of a service in the order in which they would be.
	Edits []Edit
}

// Edit is what would be done to one EndpointSlice.
type Edit struct {
	Service string     `json:"service"` // namespace/name
	Slice   string     `json:"endpointSlice"`
	Ops     []hints.Op `json:"operations"` // of a JSON patch
}

// ReadPreview reads a cluster once, plans it and returns what would be written. It writes nothing. A cluster that was not read whole
// before ctx is done is an error.
func ReadPreview(ctx context.Context, config *rest.Config, o Options) (*Preview, error) {
	limit := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cache, err := feed.NewCache(config, o.Feed)
	if err != nil {
		return nil, fmt.Errorf("prepare to read the cluster: %w", err)
	}
	f, err := feed.New(cache, o.Feed)
	if err != nil {
		return nil, err
	}
	parts := []ops.Part{{Name: "watch", Run: cache.Start}, {Name: "feed", Run: f.Run}}
	waits := []<-chan struct{}{f.Synced()}
	sets := latest.New[*policy.Set](nil)
	if o.Policies {
		policies, err := policyset.NewFollower(config, policyset.Options{RulesOnly: true, Logger: o.Logger})
		if err != nil {
			return nil, err
		}
		sets = policies.Sets()
		parts, waits = append(parts, ops.Part{Name: "policies", Run: policies.Run}), append(waits, policies.Ready())
	}
	read := func(ctx context.Context) error {
		for _, w := range waits {
			select {
			case <-w:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		cancel()
		return nil
	}
	if err := ops.Run(ctx, append(parts, ops.Part{Name: "reading", Run: read})...); err != nil {
		return nil, fmt.Errorf("read the cluster: %w", err)
	}
	state, _ := f.States().Load()
	if err := limit.Err(); err != nil || state == nil {
		return nil, fmt.Errorf("read the cluster: %w", cmp.Or(err, ctx.Err()))
	}
	set, _ := sets.Load()
	return preview(state, set), nil
}

func preview(s *feed.State, policies *policy.Set) *Preview {
	store := plans.NewStore(time.Now)
	store.Update(s, policies)
	p := &Preview{State: s, Decisions: store.All()}
	for _, d := range p.Decisions {
		for _, phase := range inOrder(edits(d)) {
			for _, e := range phase {
				p.Edits = append(p.Edits, Edit{Service: d.Record.Name.String(), Slice: e.slice.Name, Ops: e.ops})
			}
		}
	}
	return p
}

// Problems lists what is wrong with the services that were read.
func (p *Preview) Problems() []reason.Finding {
	var all []reason.Finding
	for _, d := range p.Decisions {
		all = append(all, d.Record.Problems...)
	}
	return all
}
