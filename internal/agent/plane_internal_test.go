package agent

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/weir-lb/weir/internal/core/topology"
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

// BenchmarkOneChangeAmongTenThousandServices measures a change of one service from snapshot to pools, listeners aside.
func BenchmarkOneChangeAmongTenThousandServices(b *testing.B) {
	p, planner, one := manyPools(b, 10_000), planning(), parse(b, services(10_000))
	changed := *one.Services[5_000]
	changed.Endpoints = changed.Endpoints[:5]
	other := *one
	other.Services = slices.Clone(one.Services)
	other.Services[5_000] = &changed
	snapshots := []*topology.Snapshot{one, &other}
	follow := func(i int) {
		table := planner.next(snapshots[i%2], nil).table
		p.follow(table, p.prepare(table))
	}
	follow(0)
	b.ReportAllocs()
	for i := 1; b.Loop(); i++ {
		follow(i)
	}
}
