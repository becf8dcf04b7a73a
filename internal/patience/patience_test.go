package patience_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-lb/weir/internal/patience"
)

// probe is a test that takes its failures as answers.
type probe struct {
	testing.TB
	said []string
}

func (p *probe) Helper() {}

func (p *probe) Errorf(format string, args ...any) {
	p.said = append(p.said, fmt.Sprintf(format, args...))
}

func (p *probe) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	runtime.Goexit()
}

// failures runs something against a condition that holds from one time to another and gives what it says.
func failures(t *testing.T, from, to time.Duration, run func(p *probe, holds func() bool)) string {
	t.Helper()
	p := &probe{TB: t}
	synctest.Test(t, func(*testing.T) {
		began := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			run(p, func() bool { return time.Since(began) >= from && time.Since(began) < to })
		}()
		<-done
	})
	return strings.Join(p.said, "; ")
}

func TestWhatIsLateOrDoesNotLastFails(t *testing.T) {
	const ever = time.Hour
	tests := []struct {
		name     string
		from, to time.Duration
		run      func(p *probe, holds func() bool)
		want     string // part of what the test says; empty: nothing
	}{
		{"in time", 900 * time.Millisecond, ever, func(p *probe, holds func() bool) {
			patience.Within(p, time.Second, "it is there", holds)
		}, ""},
		{"late", 3 * time.Second, ever, func(p *probe, holds func() bool) {
			patience.Within(p, time.Second, "it is there", holds)
		}, "until it is there, want at most 1s"},
		{"never", ever, ever, func(p *probe, holds func() bool) {
			patience.Within(p, time.Second, "it is there", holds)
		}, "waited in vain until it is there"},
		{"no time is promised", 3 * time.Second, ever, func(p *probe, holds func() bool) {
			patience.Until(p, "it is there", holds)
		}, ""},
		{"it stays", 0, 3 * time.Second, func(p *probe, holds func() bool) {
			patience.Stays(p, 2*time.Second, "it is there", holds)
		}, ""},
		{"it ends", 0, time.Second, func(p *probe, holds func() bool) {
			patience.Stays(p, 2*time.Second, "it is there", holds)
		}, "of 2s it no longer held that it is there"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := failures(t, tt.from, tt.to, tt.run)
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("it says %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWhatAsksSlowlyIsAskedOftenEnough(t *testing.T) {
	n := 0
	if got := failures(t, 0, time.Hour, func(p *probe, holds func() bool) {
		patience.Stays(p, time.Second, "it is there", func() bool { n++; time.Sleep(time.Second); return holds() })
	}); got != "" || n != 10 {
		t.Errorf("%d questions, want 10; %q", n, got)
	}
}
