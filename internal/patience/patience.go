// Package patience waits in tests for what other goroutines or processes bring about, and keeps what they log. Where the project promises a time,
// Within says by when; where it promises that something lasts, Stays says for how long.
//
// Times are measured on a clock that stands still while the machine does not let the test run, so that a busy machine
// delays a test and does not fail it. What has to be exact belongs under a fake clock.
package patience

import (
	"sync/atomic"
	"testing"
	"time"
)

const (
	limit = time.Minute          // a busy machine manages anything in this time
	pause = 3 * time.Millisecond // short against what tests measure with it, a second
	// stall is the longest time between two samples of the clock that counts. A machine with a free processor wakes a
	// goroutine within a millisecond after its pause.
	stall = 2 * pause
	// samples is the least number of times that Stays asks, however slow the answers are.
	samples = 10
)

// Until asks until holds and gives how long that took. It is for what has no promised time: a process is up, a fixture is
// in the state that the test starts from.
func Until(tb testing.TB, what string, holds func() bool) time.Duration {
	tb.Helper()
	c := start()
	defer c.stop()
	began := time.Now()
	for !holds() {
		if time.Since(began) > limit {
			tb.Fatalf("waited in vain until %s", what)
		}
		time.Sleep(pause)
	}
	return c.now()
}

// Within asks until holds, which has to be within the promised time, and gives how long that took. After the promised time
// it asks on, so that the failure says how late it was.
func Within(tb testing.TB, promised time.Duration, what string, holds func() bool) time.Duration {
	tb.Helper()
	took := Until(tb, what, holds)
	if took > promised {
		tb.Errorf("it took %v until %s, want at most %v", took, what, promised)
	}
	return took
}

// Stays asks for that long, and at least ten times, and fails the test at the first time that holds does not.
func Stays(tb testing.TB, lasting time.Duration, what string, holds func() bool) {
	tb.Helper()
	c := start()
	defer c.stop()
	for n := 0; n < samples || c.now() < lasting; n++ {
		if !holds() {
			tb.Fatalf("after %v of %v it no longer held that %s", c.now(), lasting, what)
		}
		time.Sleep(pause)
	}
}

// clock counts the time in which the machine lets goroutines run. Each of its samples adds what has passed since the last
// one, at most stall.
type clock struct {
	ran  atomic.Int64
	quit chan struct{}
	done chan struct{}
}

func start() *clock {
	c := &clock{quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		tick := time.NewTicker(pause)
		defer tick.Stop()
		last := time.Now()
		for {
			select {
			case <-c.quit:
				return
			case <-tick.C:
				now := time.Now()
				c.ran.Add(int64(min(now.Sub(last), stall)))
				last = now
			}
		}
	}()
	return c
}

func (c *clock) now() time.Duration { return time.Duration(c.ran.Load()) }

func (c *clock) stop() {
	close(c.quit)
	<-c.done
}
