package agent

import (
	"log/slog"
	"testing"

	"github.com/weir-lb/weir/internal/latest"
)

// manyPools gives what would run if every address of a large cluster could be opened; nothing listens.
func manyPools(tb testing.TB, n int) *l7Plane {
	tb.Helper()
	s := parse(tb, services(n))
	a, err := New(Config{Node: "a-1"}, latest.New(*s), Deps{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	table := a.planner.next(s, nil).table
	plane := newL7Plane(&a.config, a.logger, newMetrics(), a.clock)
	plane.follow(table, plane.prepare(table))
	return plane
}

// BenchmarkATickOfTenThousandIdlePools measures what idle services cost ten times a second.
func BenchmarkATickOfTenThousandIdlePools(b *testing.B) {
	p := manyPools(b, 10_000)
	for range 100 {
		p.Tick() // whatever is left of their beginning unwinds
	}
	b.ReportAllocs()
	for b.Loop() {
		p.Tick()
	}
}

// BenchmarkTwoThousandNewPools measures a start.
func BenchmarkTwoThousandNewPools(b *testing.B) {
	for b.Loop() {
		manyPools(b, 2_000)
	}
}
