package pick_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
)

// TestNothingIsLostUnderConcurrency makes requests from several goroutines while others tick and look. In the end nothing
// is in flight, and every request was counted exactly once: as answered, failed or overdue.
func TestNothingIsLostUnderConcurrency(t *testing.T) {
	const workers, each = 4, 5000
	r := &recorder{decision: overflow.Decision{
		Baseline: millis(2), Cap: 8, Routes: []overflow.Route{{Group: 0, Share: 0.6}, {Group: 1, Share: 0.4}},
	}}
	p := pick.NewPool(pick.Options{Zone: "zone-a", Random: rand.Uint64, Strategy: r, Parallel: workers})
	p.Update(0, targets(6))

	var clock atomic.Int64 // virtual: each look moves it on, so that some requests are overdue before they are answered
	now := func() time.Duration { return time.Duration(clock.Add(int64(200 * time.Microsecond))) }
	var sent [2]atomic.Int64 // by group
	var requests, background sync.WaitGroup
	for w := range workers {
		requests.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			var open []pick.Ticket
			finish := func() {
				i := random.IntN(len(open))
				ticket := open[i]
				open[i] = open[len(open)-1]
				open = open[:len(open)-1]
				o := pick.Success
				if random.IntN(20) == 0 {
					o = pick.Failure
				}
				ticket.Connected(time.Millisecond)
				ticket.Answer(now(), o)
				ticket.Close(now(), o)
			}
			for range each {
				ticket, v := p.Pick(now(), pick.Request{Key: random.Uint64(), HasKey: random.IntN(9) == 0})
				if v != pick.Picked {
					t.Errorf("verdict %v", v)
					return
				}
				sent[min(int(ticket.Cost()), 1)].Add(1)
				if open = append(open, ticket); len(open) > 20 {
					finish()
				}
			}
			for len(open) > 0 {
				finish()
			}
		})
	}
	stop := make(chan struct{})
	background.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				p.Tick(now())
				_, _ = p.Status(), p.Active(now())
			}
		}
	})
	requests.Wait()
	close(stop)
	background.Wait()
	p.Tick(now() + seconds(1))

	for i := range sent {
		g, want := r.total[i], sent[i].Load()
		if g.Sent != want || g.OK+g.Failed != want {
			t.Errorf("group %d: %d sent, %d answered, %d failed; want %d sent and as many counted", i, g.Sent, g.OK, g.Failed, want)
		}
		if g.OK == 0 || g.Failed < want/40 { // half of those that fail: chance does not reach that far
			t.Errorf("group %d: %d answered, %d failed; want some of each, or this shows nothing", i, g.OK, g.Failed)
		}
		if r.last.Groups[i].Waiting != 0 {
			t.Errorf("group %d: %d still wait", i, r.last.Groups[i].Waiting)
		}
	}
	for _, e := range p.Status().Endpoints {
		if e.InFlight != 0 {
			t.Errorf("%v has %d in flight", e.Addr, e.InFlight)
		}
	}
}

// TestEndpointsComeAndGoUnderConcurrency changes endpoints, drains and ticks while requests fail so often that endpoints
// go out and are tried all the time. What is counted depends on when, but nothing may stay in flight or out for ever.
func TestEndpointsComeAndGoUnderConcurrency(t *testing.T) {
	few, all := targets(6), targets(12)
	p := pick.NewPool(pick.Options{Zone: "zone-a", Random: rand.Uint64, Strategy: fixed{shares: []float64{0.6, 0.4}}})
	p.Update(0, few)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for i := range 5000 {
				ticket, _ := p.Pick(seconds(2), pick.Request{})
				ticket.Close(seconds(2), [...]pick.Outcome{
					pick.Failure, pick.Failure, pick.Failure, pick.Canceled, pick.Success,
				}[i%5])
			}
		})
	}
	wg.Go(func() {
		for i := range 500 {
			at := seconds(2 + float64(i)*0.1)
			if i%2 == 0 {
				p.Update(at, all)
			} else {
				p.Update(at, few)
			}
			p.Drain("zone-b", at+millis(50))
			p.Tick(at + millis(10))
		}
	})
	wg.Wait()

	p.Update(seconds(100), all)
	outs := 0
	for _, e := range p.Status().Endpoints {
		if e.InFlight != 0 {
			t.Errorf("%v has %d in flight", e.Addr, e.InFlight)
		}
		if e.Out {
			outs++
		}
	}
	if outs > len(all)/2 {
		t.Errorf("%d of %d sit out, want half at most", outs, len(all))
	}
	// The places of those who sit out must add up: with everybody well again, nobody is out after their trials.
	for at := seconds(200); at < seconds(210); at += millis(10) {
		if at%millis(100) == 0 {
			p.Tick(at)
		}
		for range 10 {
			ticket, _ := p.Pick(at, pick.Request{})
			ticket.Close(at, pick.Success)
		}
	}
	for _, e := range p.Status().Endpoints {
		if e.Out && e.Group < 2 {
			t.Errorf("%+v is still out", e)
		}
	}
}
