// Package patience waits in tests for what other goroutines or processes bring about. It ends as soon as that holds and
// fails a test only after a time in which a busy machine manages anything.
package patience

import (
	"testing"
	"time"
)

const (
	limit = time.Minute
	pause = 3 * time.Millisecond // short against what tests measure with it, a second
)

// Until asks until holds and gives how long that took.
func Until(tb testing.TB, what string, holds func() bool) time.Duration {
	tb.Helper()
	started := time.Now()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			tb.Fatalf("waited in vain until %s", what)
		}
	}
	return time.Since(started)
}
