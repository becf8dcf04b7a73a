package agent

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/weir-lb/weir/internal/latest"
)

// manyPools gives what would run if every address of a large cluster could be opened; nothing listens.
func manyPools(tb testing.TB, n int) *running {
	tb.Helper()
	s := parse(tb, services(n))
	a, err := New(Config{Node: "a-1"}, latest.New(*s), Deps{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	r := newRunning(a)
	r.world = a.planner.next(s, nil)
	r.wanted = make(map[netip.AddrPort]*wantedPool)
	for i := range r.world.pools {
		r.update(&r.world.pools[i])
	}
	return r
}

// BenchmarkATickOfTenThousandIdlePools measures what idle services cost ten times a second.
func BenchmarkATickOfTenThousandIdlePools(b *testing.B) {
	r := manyPools(b, 10_000)
	for range 100 {
		r.tick() // whatever is left of their beginning unwinds
	}
	b.ReportAllocs()
	for b.Loop() {
		r.tick()
	}
}

// BenchmarkTwoThousandNewPools measures a start.
func BenchmarkTwoThousandNewPools(b *testing.B) {
	for b.Loop() {
		manyPools(b, 2_000)
	}
}
