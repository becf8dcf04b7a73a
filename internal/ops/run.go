package ops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// Part is one long-running piece of a command. Run returns when ctx is done and everything it started has ended; nil
// then. A part that returns earlier ends the whole command.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
}

// Run runs parts until ctx is done or one of them ends. Then it stops them one by one, the last given first, and waits
// for each: what others lean on (the admin server) goes first into the list and so outlives them.
//
// Errors: those of all parts, each with the part's name, joined; a part that ends by itself without an error is one.
func Run(ctx context.Context, parts ...Part) error {
	running := make([]*runningPart, len(parts))
	ended := make(chan struct{}, len(parts))
	for i, p := range parts {
		running[i] = start(ctx, p, ended)
	}
	var errs []error
	select {
	case <-ctx.Done():
	case <-ended:
		if ctx.Err() == nil {
			errs = append(errs, unexpected(running)...)
		}
	}
	for _, r := range slices.Backward(running) {
		r.cancel()
		<-r.done
	}
	for _, r := range running {
		if r.err != nil && !errors.Is(r.err, context.Canceled) {
			errs = append(errs, fmt.Errorf("%s: %w", r.name, r.err))
		}
	}
	return errors.Join(errs...)
}

// runningPart is a part's goroutine. err may be read once done is closed.
type runningPart struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// start runs p under a context of its own, so that Run decides when it ends.
func start(ctx context.Context, p Part, ended chan<- struct{}) *runningPart {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &runningPart{name: p.Name, cancel: cancel, done: make(chan struct{})}
	go func() {
		r.err = p.Run(own)
		close(r.done)
		ended <- struct{}{}
	}()
	return r
}

// unexpected names the parts that ended by themselves, in silence.
func unexpected(running []*runningPart) []error {
	var errs []error
	for _, r := range running {
		select {
		case <-r.done:
			if r.err == nil {
				errs = append(errs, fmt.Errorf("%s ended by itself", r.name))
			}
		default:
		}
	}
	return errs
}

// OnSignals gives a context that ends at the first SIGTERM or SIGINT. The second one calls abort with the exit status
// that a shell expects of that signal (128 and its number); it skips the drain.
// Call stop to give the signals back.
func OnSignals(ctx context.Context, abort func(status int)) (_ context.Context, stop func()) {
	signals := make(chan os.Signal, 2) // room for both, so that neither is lost
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	ctx, cancel := context.WithCancel(ctx)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-signals:
			cancel()
		case <-quit:
			return
		}
		select {
		case s := <-signals:
			if number, ok := s.(syscall.Signal); ok {
				abort(128 + int(number))
			}
		case <-quit:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(quit)
		<-done
		cancel()
	}
}
