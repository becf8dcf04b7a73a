package balance_test

import (
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
)

// counting is a data plane that only counts: the kernel's, or load reports. It sends what the decision says, spreads it
// evenly over the endpoints of a group that serve, and answers as zones and endpoints are told to.
type counting struct {
	loop      *balance.Loop
	endpoints []route.Endpoint
	now       time.Duration
	rate      float64 // requests in a step
	slow      map[topology.Zone]float64
	broken    map[int]bool    // endpoints that only fail
	owed      map[int]float64 // fractions of requests, to be sent later
	failed    map[int]int64   // requests so far
}

const (
	usual = 20 * time.Millisecond
	step  = 100 * time.Millisecond
)

func newCounting(t *testing.T, perZone int) *counting {
	t.Helper()
	law, err := overflow.New("Weir", overflow.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{
		loop: balance.New(balance.Options{Zone: "a", Strategy: law}, balance.Config{}), rate: 60,
		slow: map[topology.Zone]float64{"a": 1, "b": 1, "c": 1}, broken: map[int]bool{}, owed: map[int]float64{}, failed: map[int]int64{},
	}
	for z, zone := range []topology.Zone{"a", "b", "c"} {
		for i := range perZone {
			c.endpoints = append(c.endpoints, route.Endpoint{
				Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(z), byte(i)}), 80), Zone: zone,
				Cost: topology.Cost(z), Home: z == 0,
			})
		}
	}
	c.loop.Apply(0, c.endpoints)
	return c
}

// run steps the loop for that long.
func (c *counting) run(length time.Duration) {
	for end := c.now + length; c.now < end; {
		c.now += step
		in := c.count()
		c.loop.Step(c.now, &in)
	}
}

// count sends a step's requests and counts them by endpoint, and nothing else.
func (c *counting) count() balance.Counters {
	d := c.loop.Decision()
	in := balance.Counters{
		Groups: make([]balance.GroupCounters, len(d.Groups)), Endpoints: make([]balance.EndpointCounters, len(d.Endpoints)),
	}
	for _, r := range d.Routes {
		var serving, due []int
		for _, i := range d.Groups[r.Group].Members {
			switch d.Endpoints[i].Standing {
			case balance.Serving:
				serving = append(serving, i)
			case balance.Due:
				due = append(due, i)
			default: // no requests
			}
		}
		for _, i := range due { // one request each
			c.send(&in.Endpoints[i], i, 1)
		}
		for _, i := range serving {
			c.owed[i] += r.Share * c.rate / float64(len(serving))
			n := math.Floor(c.owed[i])
			c.owed[i] -= n
			c.send(&in.Endpoints[i], i, int64(n))
		}
	}
	return in
}

func (c *counting) send(to *balance.EndpointCounters, i int, n int64) {
	to.Started += n
	if c.broken[i] {
		to.Failed += n
		c.failed[i] += n
		return
	}
	to.OK += n
	to.Latency += time.Duration(float64(n) * c.slow[c.endpoints[i].Zone] * float64(usual))
}

func (c *counting) share(group int) float64 { return c.loop.Decision().Groups[group].Share }

func TestLoopSpillsByCountersAloneAndComesBack(t *testing.T) {
	c := newCounting(t, 3)
	c.run(20 * time.Second)
	if d := c.loop.Decision(); d.State != overflow.Calm || c.share(0) != 1 || d.Baseline == 0 {
		t.Fatalf("%v with shares %v and a baseline of %v: want calm, all at home, and a baseline", d.State, d.Routes, d.Baseline)
	}
	c.slow["a"] = 5
	c.run(5 * time.Second)
	if c.share(0) > 0.5 || c.share(1) < 0.3 {
		t.Errorf("home is slow, and shares are %v: want most of it in the cheapest other zone", c.loop.Decision().Routes)
	}
	c.slow["a"] = 1
	c.run(time.Minute)
	if c.share(0) != 1 {
		t.Errorf("home is well, and shares are %v: want all at home", c.loop.Decision().Routes)
	}
}

func TestEndpointThatOnlyFailsSitsOutByCountersAloneAndReturns(t *testing.T) {
	c := newCounting(t, 4)
	c.run(10 * time.Second)
	c.broken[2] = true
	c.run(step)
	for c.loop.Decision().Endpoints[2].Standing == balance.Serving && c.now < 20*time.Second {
		c.run(step)
	}
	d := c.loop.Decision()
	if e := &d.Endpoints[2]; e.Standing != balance.Out || e.Ejections != 1 || c.failed[2] < 5 {
		t.Fatalf("after %d failures it is %v with %d pauses: want it out, once, and not before 5", c.failed[2], e.Standing, e.Ejections)
	}
	if c.failed[2] > 30 {
		t.Errorf("it failed %d requests before its pause, want the 5 that are needed and the rest of a step", c.failed[2])
	}
	before := c.failed[2]
	c.run(10 * time.Second)
	if e := &c.loop.Decision().Endpoints[2]; e.Ejections < 3 || c.failed[2]-before > 10 {
		t.Errorf("in 10 s %d pauses and %d more failures: want trials of one request, and longer pauses", e.Ejections, c.failed[2]-before)
	}
	c.broken[2] = false
	c.run(time.Minute)
	if e := &c.loop.Decision().Endpoints[2]; e.Standing != balance.Serving {
		t.Errorf("it is repaired and %v: want it to serve", e.Standing)
	}
}

func TestLoopKeepsAFaultThatAllShareFromEmptyingThePool(t *testing.T) {
	c := newCounting(t, 2)
	for i := range c.endpoints {
		c.broken[i] = true
	}
	for range 300 {
		c.run(step)
		out := 0
		for _, e := range c.loop.Decision().Endpoints {
			if e.Standing != balance.Serving {
				out++
			}
		}
		if out > 3 {
			t.Fatalf("at %v %d of 6 endpoints sit out, want half at most", c.now, out)
		}
	}
}

func TestStreaksThatADataPlaneCountsEndATurn(t *testing.T) {
	c := newCounting(t, 3)
	in := balance.Counters{Groups: make([]balance.GroupCounters, 3), Endpoints: make([]balance.EndpointCounters, 9)}
	in.Endpoints[1] = balance.EndpointCounters{Started: 55, OK: 50, Failed: 5}
	c.loop.Step(step, &in)
	if s := c.loop.Decision().Endpoints[1].Standing; s != balance.Serving {
		t.Errorf("failures among good answers: %v, want serving", s)
	}
	in.Endpoints[1].Streaks.Any = 5
	c.loop.Step(2*step, &in)
	if s := c.loop.Decision().Endpoints[1].Standing; s != balance.Out {
		t.Errorf("five failures in a row: %v, want out", s)
	}
}

func TestApplySaysWhatItKept(t *testing.T) {
	c := newCounting(t, 2)
	next := append([]route.Endpoint{c.endpoints[5], c.endpoints[0]}, c.endpoints[2:5]...)
	next[4].Cost = 7 // another endpoint, as far as what is known of it goes; its zone stays
	kept := c.loop.Apply(step, next)
	if got := fmt.Sprint(kept); got != "{[5 0 2 3 -1] [0 1 2]}" {
		t.Errorf("kept %s, want {[5 0 2 3 -1] [0 1 2]}", got)
	}
	for i := range next {
		next[i].Tier++
	}
	if kept = c.loop.Apply(step, next[1:]); fmt.Sprint(kept.Groups) != "[0 1 2]" {
		t.Errorf("in other tiers groups %v, want the same", kept.Groups)
	}
}

// A data plane that only has counters: in a step it counts, and then follows the decision.
func ExampleLoop_Step() {
	law, _ := overflow.New("Weir", overflow.Config{})
	loop := balance.New(balance.Options{Zone: "a", Strategy: law}, balance.Config{})
	loop.Apply(0, []route.Endpoint{
		{Addr: netip.MustParseAddrPort("10.0.0.1:80"), Zone: "a", Home: true},
		{Addr: netip.MustParseAddrPort("10.0.0.2:80"), Zone: "a", Home: true},
		{Addr: netip.MustParseAddrPort("10.1.0.1:80"), Zone: "b", Cost: 1},
	})
	d := loop.Step(100*time.Millisecond, &balance.Counters{
		Groups: make([]balance.GroupCounters, 2),
		Endpoints: []balance.EndpointCounters{
			{Started: 20, OK: 20, Latency: 20 * 12 * time.Millisecond},
			{Started: 20, Failed: 20},
			{},
		},
	})
	for _, r := range d.Routes {
		fmt.Printf("%s %.2f\n", d.Groups[r.Group].Zone, r.Share)
	}
	fmt.Println(d.Endpoints[0].Out, d.Endpoints[1].Out)
	// Output:
	// a 1.00
	// false true
}
