package overflow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
)

func BenchmarkStep(b *testing.B) {
	for _, groups := range []int{3, 10} {
		for _, name := range overflow.Names() {
			b.Run(fmt.Sprintf("%s/%d", name, groups), func(b *testing.B) {
				law, c := spilling(b, name, groups)
				b.ReportAllocs()
				now := time.Minute
				for b.Loop() {
					now += 100 * time.Millisecond
					law.Step(now, c)
				}
			})
		}
	}
}

// spilling gives a strategy whose home is slow, so that every part of the law has work.
func spilling(tb testing.TB, name string, groups int) (overflow.Strategy, *overflow.Counters) {
	tb.Helper()
	law, err := overflow.New(name, overflow.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	layout := overflow.Layout{Endpoints: groups * 3}
	c := &overflow.Counters{Endpoints: make([]overflow.EndpointCounters, layout.Endpoints)}
	for g := range groups {
		layout.Groups = append(layout.Groups, overflow.Group{
			Zone: topology.Zone(fmt.Sprint(g)), Cost: topology.Cost(g), Endpoints: []int{3 * g, 3*g + 1, 3*g + 2},
		})
		c.Groups = append(c.Groups, overflow.GroupCounters{Sent: 20, OK: 20, Latency: 200 * time.Millisecond, Usable: 3})
	}
	law.Reset(0, layout)
	for now := time.Duration(0); now < time.Minute; now += 100 * time.Millisecond {
		law.Step(now, c)
	}
	c.Groups[0].Latency *= 2
	return law, c
}

func TestStepAllocatesNothing(t *testing.T) {
	for _, name := range overflow.Names() {
		law, c := spilling(t, name, 3)
		now := time.Minute
		allocs := testing.AllocsPerRun(1000, func() {
			now += 100 * time.Millisecond
			law.Step(now, c)
		})
		if allocs > 0 {
			t.Errorf("%s: %v allocations in a step", name, allocs)
		}
	}
}
