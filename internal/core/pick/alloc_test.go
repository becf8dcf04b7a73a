package pick_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
)

func TestAttemptAllocatesNothing(t *testing.T) {
	requests := map[string]pick.Request{
		"plain":     {},
		"with key":  {Key: 42, HasKey: true},
		"the retry": {Avoid: []uint32{1, 2}},
	}
	for _, a := range pick.Algorithms() {
		for name, r := range requests {
			t.Run(string(a)+" "+name, func(t *testing.T) {
				p := pick.NewPool(pick.Options{
					Random: rand.Uint64, Config: pick.Config{Algorithm: a}, Strategy: fixed{shares: []float64{0.7, 0.3}, baseline: time.Millisecond},
				})
				p.Update(0, targets(30))
				outcomes := []pick.Outcome{pick.Success, pick.Failure, pick.Canceled}
				n := 0
				allocs := testing.AllocsPerRun(2000, func() {
					n++
					ticket, v := p.Pick(time.Second, r)
					if v != pick.Picked {
						t.Fatal(v)
					}
					ticket.Connected(time.Millisecond)
					ticket.Answer(time.Second, outcomes[n%3])
					ticket.Close(time.Second, outcomes[n%2])
				})
				if allocs != 0 {
					t.Errorf("%v allocations in an attempt, want 0", allocs)
				}
			})
		}
	}
}

func TestPoolWithoutRandomStillWorks(t *testing.T) {
	p := pick.NewPool(pick.Options{})
	p.Update(0, home(10))
	counts := make(map[string]int)
	for range 1000 {
		ticket, _ := p.Pick(0, pick.Request{})
		ticket.Close(0, pick.Success)
		counts[ticket.Addr().String()]++
	}
	if len(counts) != 10 {
		t.Errorf("%d of 10 endpoints used: %v", len(counts), counts)
	}
}
