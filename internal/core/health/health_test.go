package health_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/health"
)

// middle is the random number that leaves a pause as it is.
const middle = uint64(1) << 63

func TestPausesDoubleUpToTheirBound(t *testing.T) {
	c := health.Config{}.WithDefaults()
	var r health.Record
	want := []time.Duration{1, 2, 4, 8, 16, 30, 30, 30}
	for i, seconds := range want {
		r.Eject(&c, health.ByRules, time.Minute, middle)
		if got := r.Until - time.Minute; got != seconds*time.Second {
			t.Errorf("pause %d lasts %v, want %v", i+1, got, seconds*time.Second)
		}
	}
	for range 100 {
		r.Eject(&c, health.ByRules, 0, middle)
	}
	if r.Until != c.MaxPause {
		t.Errorf("the 108th pause lasts %v, want %v", r.Until, c.MaxPause)
	}
}

func TestPausesAreSpreadByAQuarter(t *testing.T) {
	c := health.Config{}.WithDefaults()
	random := rand.New(rand.NewPCG(1, 2))
	shortest, longest := time.Hour, time.Duration(0)
	for range 10_000 {
		var r health.Record
		r.Eject(&c, health.ByRules, 0, random.Uint64())
		shortest, longest = min(shortest, r.Until), max(longest, r.Until)
	}
	if shortest < 750*time.Millisecond || shortest > 760*time.Millisecond {
		t.Errorf("shortest first pause %v, want 750 ms", shortest)
	}
	if longest > 1250*time.Millisecond || longest < 1240*time.Millisecond {
		t.Errorf("longest first pause %v, want 1.25 s", longest)
	}
}

func TestPausesAreForgivenAfterAsMuchService(t *testing.T) {
	c := health.Config{}.WithDefaults()
	var r health.Record
	r.Eject(&c, health.ByRules, 0, middle)
	r.Eject(&c, health.ByRules, time.Second, middle) // for 2 s
	r.Return(10 * time.Second)

	r.Observe(&c, 11900*time.Millisecond, c.Keep(time.Second), health.Tally{OK: 1})
	if r.Pauses != 2 {
		t.Errorf("pauses remembered after 1.9 s of service: %d, want 2", r.Pauses)
	}
	r.Observe(&c, 12*time.Second, c.Keep(time.Second), health.Tally{OK: 1})
	if r.Pauses != 0 {
		t.Errorf("pauses remembered after 2 s of service: %d, want 0", r.Pauses)
	}
	if r.Ejections != 2 {
		t.Errorf("total %d, want 2", r.Ejections)
	}
}

func TestNoMoreThanASetShareSitsOut(t *testing.T) {
	tests := []struct {
		maxOut float64
		n      int
		want   int
	}{
		{0, 0, 0}, // share 0: the default
		{0, 1, 0},
		{0, 2, 1},
		{0, 3, 1},
		{0, 9, 4},
		{0.7, 10, 7},
		{1, 5, 5},
		{0.1, 9, 0},
	}
	for _, tt := range tests {
		if got := (health.Config{MaxOut: tt.maxOut}).WithDefaults().Allowed(tt.n); got != tt.want {
			t.Errorf("share %v of %d endpoints: %d may sit out, want %d", tt.maxOut, tt.n, got, tt.want)
		}
	}
	if got := (health.Config{Failures: -1}).WithDefaults().Allowed(10); got != 0 {
		t.Errorf("without health rules %d may sit out, want 0", got)
	}
}

func TestFiveInARowTrip(t *testing.T) {
	c := health.Config{}.WithDefaults()
	for row, want := range map[int]health.Cause{4: health.NotOut, 5: health.ByRules, 6: health.ByRules} {
		if got := c.Trips(health.Streaks{Any: uint16(row)}); got != want {
			t.Errorf("%d in a row: %v, want %v", row, got, want)
		}
	}
	if got := (health.Config{Failures: -1}).WithDefaults().Trips(health.Streaks{Any: 1000}); got != health.NotOut {
		t.Errorf("trips by %v although endpoints never sit out", got)
	}
}

func TestRateRule(t *testing.T) {
	c := health.Config{}.WithDefaults()
	tests := []struct {
		name      string
		own, rest health.Tally
		want      bool
	}{
		{"half of the requests fail, the others are fine", health.Tally{OK: 6, Failed: 6}, health.Tally{OK: 100}, true},
		{"too few failures to be sure", health.Tally{OK: 1, Failed: 4}, health.Tally{OK: 100}, false},
		{"rare failures", health.Tally{OK: 80, Failed: 20}, health.Tally{OK: 100}, false},
		{"all fail alike", health.Tally{OK: 50, Failed: 50}, health.Tally{OK: 500, Failed: 500}, false},
		{"worse than others that fail too", health.Tally{OK: 10, Failed: 90}, health.Tally{OK: 60, Failed: 40}, true},
		{"alone", health.Tally{OK: 6, Failed: 6}, health.Tally{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := health.Record{Recent: tt.own}
			if got := r.FailsOften(&c, tt.rest.Add(r.Recent)); got != tt.want {
				t.Errorf("FailsOften = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestReturnClearsWhatWasHeldAgainstIt(t *testing.T) {
	c := health.Config{}.WithDefaults()
	var r health.Record
	r.Observe(&c, time.Second, c.Keep(time.Second), health.Tally{Failed: 9})
	r.Eject(&c, health.ByRules, time.Second, middle)
	r.Return(3 * time.Second)
	if r.Out || r.FailsOften(&c, health.Tally{}) {
		t.Errorf("after the return: %+v, want in service and nothing held against it", r)
	}
}
