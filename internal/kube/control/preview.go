package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/kube/hints"
	"github.com/weir-lb/weir/internal/kube/plans"
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

// Look reads a cluster once, plans it and gives what would be written. It writes nothing.
func Look(ctx context.Context, config *rest.Config, o feed.Options) (*Preview, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cache, err := feed.NewCache(config, o)
	if err != nil {
		return nil, fmt.Errorf("prepare to read the cluster: %w", err)
	}
	f, err := feed.New(cache, o)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 2) // one for each goroutine, so that none waits
	go func() { ended <- cache.Start(ctx) }()
	go func() { ended <- f.Run(ctx) }()
	select {
	case <-f.Synced():
	case err = <-ended:
		if err == nil {
			err = ctx.Err()
		}
		cancel()
		return nil, fmt.Errorf("read the cluster: %w", errors.Join(err, <-ended))
	}
	cancel()
	if err := errors.Join(<-ended, <-ended); err != nil {
		return nil, fmt.Errorf("end reading the cluster: %w", err)
	}
	state, _ := f.States().Load()
	return preview(state), nil
}

func preview(s *feed.State) *Preview {
	book := plans.NewBook(time.Now)
	book.Update(s)
	p := &Preview{State: s, Decisions: book.All()}
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
