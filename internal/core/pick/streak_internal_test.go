package pick

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/health"
)

func TestRowsOfFailuresAgreeWithTheirTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(91, 92))
	kinds := []Outcome{Failure, ServerError, GatewayError, LocalError}
	row := func(history []Outcome, counts ...Outcome) uint16 { // from the end, as long as all are of these kinds
		n := uint16(0)
		for _, o := range slices.Backward(history) {
			if !slices.Contains(counts, o) {
				break
			}
			n++
		}
		return n
	}
	for range 2000 {
		var rows uint64
		var history []Outcome
		favourite := kinds[random.IntN(len(kinds))]
		for range random.IntN(30) {
			o := favourite
			if random.IntN(4) == 0 {
				o = kinds[random.IntN(len(kinds))]
			}
			history = append(history, o)
			rows = lengthen(rows, o)
		}
		want := health.Streaks{
			Any: uint16(len(history)), Server: row(history, ServerError, GatewayError, LocalError),
			Gateway: row(history, GatewayError, LocalError), Local: row(history, LocalError),
		}
		if diff := cmp.Diff(want, streaks(rows)); diff != "" {
			t.Fatalf("after %v (-want +got):\n%s", history, diff)
		}
	}
}

func TestRowsStopAtTheirMaximum(t *testing.T) {
	var rows uint64
	for range health.MaxStreak + 10 {
		rows = lengthen(rows, LocalError)
	}
	const m = health.MaxStreak
	if got := streaks(rows); got != (health.Streaks{Any: m, Server: m, Gateway: m, Local: m}) {
		t.Errorf("%+v, want %d each", got, m)
	}
	if got := streaks(lengthen(rows, Failure)); got != (health.Streaks{Any: m}) {
		t.Errorf("after a failure of no kind %+v, want the other rows ended", got)
	}
}
