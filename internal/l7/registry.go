package l7

import (
	"context"
	"io"
	"sync"
)

// registry knows what is open, so that it can be waited for and closed. It is safe for concurrent use.
type registry struct {
	mu    sync.Mutex
	open  map[io.Closer]struct{}
	empty chan struct{} // closed when the last one goes; nil while nothing waits
}

func newRegistry() *registry { return &registry{open: make(map[io.Closer]struct{})} }

// add enters c.
func (r *registry) add(c io.Closer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[c] = struct{}{}
}

// remove takes c out again; it may be called twice.
func (r *registry) remove(c io.Closer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, c)
	if len(r.open) == 0 && r.empty != nil {
		close(r.empty)
		r.empty = nil
	}
}

// each calls f with everything that is open at this moment.
func (r *registry) each(f func(io.Closer)) {
	r.mu.Lock()
	all := make([]io.Closer, 0, len(r.open))
	for c := range r.open {
		all = append(all, c)
	}
	r.mu.Unlock()
	for _, c := range all {
		f(c)
	}
}

// wait returns when nothing is open, or with the context's error. One goroutine at a time.
func (r *registry) wait(ctx context.Context) error {
	r.mu.Lock()
	if len(r.open) == 0 {
		r.mu.Unlock()
		return nil
	}
	empty := make(chan struct{})
	r.empty = empty
	r.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
