package ops_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/weir-lb/weir/internal/ops"
)

// journal records in which order parts end.
type journal struct {
	mu    sync.Mutex
	names []string
}

func (j *journal) part(name string) ops.Part {
	return ops.Part{Name: name, Run: func(ctx context.Context) error {
		<-ctx.Done()
		j.mu.Lock()
		defer j.mu.Unlock()
		j.names = append(j.names, name)
		return ctx.Err()
	}}
}

func TestPartsEndInReverseOrderWhenTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var j journal
	if err := ops.Run(ctx, j.part("admin"), j.part("watch"), j.part("agent")); err != nil {
		t.Fatalf("Run: %v", err)
	}
	if want := []string{"agent", "watch", "admin"}; !slices.Equal(want, j.names) {
		t.Errorf("ended in order %v, want %v", j.names, want)
	}
}

func TestAPartThatFailsEndsTheOthersAndIsNamed(t *testing.T) {
	var j journal
	broken := errors.New("disk on fire")
	err := ops.Run(t.Context(), j.part("admin"), ops.Part{
		Name: "watch",
		Run:  func(context.Context) error { return broken },
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "watch: ") {
		t.Errorf("Run: %v, want the error of watch with its name", err)
	}
	if want := []string{"admin"}; !slices.Equal(want, j.names) {
		t.Errorf("ended %v, want %v", j.names, want)
	}
}

func TestAPartThatEndsInSilenceIsAnError(t *testing.T) {
	var j journal
	err := ops.Run(t.Context(), j.part("admin"), ops.Part{
		Name: "agent",
		Run:  func(context.Context) error { return nil },
	})
	if err == nil || err.Error() != "agent ended by itself" {
		t.Errorf("Run: %v, want that the agent ended by itself", err)
	}
}

func TestTheFirstSignalEndsTheContextAndTheSecondAborts(t *testing.T) {
	aborted := make(chan int, 1)
	ctx, stop := ops.OnSignals(t.Context(), func(status int) { aborted <- status })
	defer stop()

	kill(t, syscall.SIGTERM)
	<-ctx.Done()
	select {
	case status := <-aborted:
		t.Fatalf("the first signal aborted with status %d", status)
	default:
	}

	kill(t, syscall.SIGINT)
	if status := <-aborted; status != 130 {
		t.Errorf("the second signal aborted with status %d, want 130", status)
	}
}

func TestStopGivesTheSignalsBackWithoutOne(t *testing.T) {
	ctx, stop := ops.OnSignals(t.Context(), func(int) { t.Error("aborted without a signal") })
	stop()
	if ctx.Err() == nil {
		t.Error("the context outlives stop")
	}
}

func kill(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(syscall.Getpid(), s); err != nil {
		t.Fatalf("send %v to this process: %v", s, err)
	}
}
