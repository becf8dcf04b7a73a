package balance_test

import (
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/health"
)

// loaded gives a loop that knows what is normal, with four endpoints in each zone, and a step in which each serving endpoint of
// zone a is sent 20 requests and answers as it is told; a broken one fails them.
func loaded(t *testing.T) (c *counting, overload func(answer func(e *balance.EndpointCounters))) {
	t.Helper()
	c = newCounting(t, 4)
	c.rate = 40
	c.run(20 * time.Second)
	return c, func(answer func(e *balance.EndpointCounters)) {
		c.now += step
		in := balance.Counters{Groups: make([]balance.GroupCounters, 3), Endpoints: make([]balance.EndpointCounters, 12)}
		for i := range 4 {
			e, standing := &in.Endpoints[i], c.loop.Decision().Endpoints[i].Standing
			switch {
			case standing == balance.Out:
			case c.broken[i]:
				*e = balance.EndpointCounters{Started: 20, Failed: 20, Streaks: health.Streaks{Any: 20}}
			default:
				e.Started = 20
				answer(e)
			}
		}
		c.loop.Step(c.now, &in)
	}
}

// slow answers everything, later and later.
func slow(e *balance.EndpointCounters) { e.OK, e.Latency = 16, 16*5*usual }

// overloaded answers slowly and times out often, with five failures in a row now and then.
func overloaded(e *balance.EndpointCounters) {
	e.OK, e.Failed, e.Latency, e.Streaks.Any = 8, 8, 8*5*usual, 5
}

// filling answers what it can quickly, as long as it has room.
func filling(e *balance.EndpointCounters) { e.OK, e.Latency = 10, 10*usual }

// rejecting answers what it can quickly, and the rest with 503.
func rejecting(e *balance.EndpointCounters) {
	e.OK, e.Failed, e.Latency, e.Streaks.Any = 10, 10, 10*usual, 5
}

func (c *counting) out() (n int) {
	for _, e := range c.loop.Decision().Endpoints {
		if e.Standing != balance.Serving {
			n++
		}
	}
	return n
}

func TestFullZoneKeepsItsEndpoints(t *testing.T) {
	for _, tt := range []struct {
		name        string
		first, then func(e *balance.EndpointCounters)
	}{{"with queues", slow, overloaded}, {"that rejects", filling, rejecting}} {
		t.Run(tt.name, func(t *testing.T) {
			c, overload := loaded(t)
			for range 3 {
				overload(tt.first)
			}
			for range 20 {
				overload(tt.then)
				if n := c.out(); n > 0 {
					t.Fatalf("%v after it began to be overloaded %d of its endpoints sit out, want none", c.now-20*time.Second, n)
				}
			}
		})
	}
}

func TestBadEndpointOfAFullZoneSitsOut(t *testing.T) {
	c, overload := loaded(t)
	for range 10 {
		overload(slow)
	}
	c.broken[1] = true
	for c.loop.Decision().Endpoints[1].Standing == balance.Serving && c.now < 24*time.Second {
		overload(func(e *balance.EndpointCounters) { e.OK, e.Failed, e.Latency = 18, 1, 18*5*usual/2 })
	}
	if took := c.now - 21*time.Second; c.out() != 1 || took > 2*time.Second {
		t.Errorf("%v after one endpoint broke %d sit out, want that one within 2 s", took, c.out())
	}
}

// Half of the zone is what may sit out while nothing is known of the others.
func TestDeadZoneIsNotFull(t *testing.T) {
	c, overload := loaded(t)
	for i := range 4 {
		c.broken[i] = true
	}
	overload(slow)
	if c.out() != 2 || c.loop.Decision().Groups[0].Full {
		t.Errorf("%d of the 4 endpoints that answer nothing sit out, full: %v; want half of them at once", c.out(), c.loop.Decision().Groups[0].Full)
	}
}

func TestPauseEndsEarlyWhereTheEndpointIsMissed(t *testing.T) {
	c, overload := loaded(t)
	c.broken[1] = true
	for c.now < time.Minute {
		c.run(step)
		if e := &c.loop.Decision().Endpoints[1]; e.Standing == balance.Out && e.Until-c.now > 5*time.Second {
			break
		}
	}
	c.broken[1] = false
	for range 15 {
		overload(slow)
	}
	if s := c.loop.Decision().Endpoints[1].Standing; s == balance.Out {
		t.Errorf("1.5 s after its zone became full it is %v, want a trial or better", s)
	}
}
