package pick_test

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
)

func TestConfigureKeepsWhatIsKnown(t *testing.T) {
	r := &recorder{decision: overflow.Decision{Baseline: millis(10), Cap: 8, Routes: []overflow.Route{{Share: 1}}}}
	p := pick.NewPool(pick.Options{Zone: "zone-a", Random: rand.New(rand.NewPCG(1, 9)).Uint64, Strategy: r})
	list := home(4)
	p.Update(0, list)
	eject(t, p, list[:1])
	var open []pick.Ticket
	for range 30 {
		ticket, _ := p.Pick(seconds(0.2), pick.Request{})
		ticket.Connected(millis(2))
		open = append(open, ticket)
	}
	for i := range open[:20] {
		open[i].Answer(seconds(0.24), pick.Success)
	}
	p.Tick(seconds(0.3))
	before, resets := p.Status(), r.resets

	p.Configure(seconds(0.3), pick.Config{Algorithm: pick.RoundRobin, Config: balance.Config{Health: health.Config{Failures: 9}, Threshold: 0.1}})
	after := p.Status()
	for i, e := range before.Endpoints {
		if got := after.Endpoints[i]; got != e {
			t.Errorf("after the change %+v, before %+v", got, e)
		}
	}
	if after.Groups[0].RTT != millis(2) || r.resets != resets {
		t.Errorf("the way is %v long and the strategy was told %d times, want 2 ms and %d", after.Groups[0].RTT, r.resets, resets)
	}
	for i := range open {
		open[i].Close(seconds(0.4), pick.Success)
	}
	for _, e := range p.Status().Endpoints {
		if e.InFlight != 0 {
			t.Errorf("%v has %d in flight", e.Addr, e.InFlight)
		}
	}
	// One after the other now, which the algorithm before does not do.
	counts := make(map[netip.AddrPort]int)
	for range 30 {
		ticket, _ := p.Pick(seconds(0.4), pick.Request{})
		counts[ticket.Addr()]++
	}
	for _, target := range list[1:] {
		if counts[target.Addr] != 10 {
			t.Errorf("%v got %d of 30 requests, want 10", target.Addr, counts[target.Addr])
		}
	}
}

func TestConfigureChangesTheRulesOfHealth(t *testing.T) {
	p := pick.NewPool(pick.Options{})
	p.Update(0, home(2))
	p.Configure(0, pick.Config{Config: balance.Config{Health: health.Config{Failures: 2}}})
	for range 4 {
		ticket, _ := p.Pick(0, pick.Request{})
		ticket.Close(0, pick.Failure)
	}
	if b := p.Status().Endpoints; !b[0].Out && !b[1].Out {
		t.Error("nobody sits out after two failures each")
	}
	p.Configure(0, pick.Config{Config: balance.Config{Health: health.Config{Failures: -1}}})
	p.Tick(millis(100))
	for _, e := range p.Status().Endpoints {
		if e.Out {
			t.Errorf("%v still sits out although nobody may", e.Addr)
		}
	}
}

func TestApplyReplacesBoth(t *testing.T) {
	p := pick.NewPool(pick.Options{Zone: "zone-a"})
	p.Update(0, home(2))
	x := pick.Prepare(pick.Config{Config: balance.Config{Threshold: 0.5}}, levels(ready{1, 4}, ready{4, 4}))
	for range 2 { // any number of times, of any number of pools
		p.Apply(seconds(1), x)
		if got := percents(p); len(got) != 2 || got[0] != 50 {
			t.Fatalf("shares %v, want half at home", got)
		}
	}
	p.Update(seconds(2), levels(ready{4, 4}, ready{4, 4}))
	p.Update(seconds(3), levels(ready{1, 4}, ready{4, 4}))
	if got := percents(p); got[0] != 50 {
		t.Errorf("shares %v after an Update: want the Config to stay", got)
	}
}

func TestTraitsChangeWithoutForgetting(t *testing.T) {
	p := pick.NewPool(pick.Options{Zone: "zone-a"})
	list := home(2)
	p.Update(0, list)
	ticket, _ := p.Pick(0, pick.Request{})
	for i := range list {
		list[i].Weight, list[i].HashKey, list[i].Tier, list[i].Unready = 7, "pod", 3, i == 1
	}
	before := p.Published()
	p.Update(seconds(1), list)
	if p.Published() == before {
		t.Error("the old view, whose pickers know the old weights, is still there")
	}
	inFlight := int64(0)
	for i, e := range p.Status().Endpoints {
		if e.Endpoint != list[i] {
			t.Errorf("%+v, want %+v", e.Endpoint, list[i])
		}
		inFlight += e.InFlight
	}
	if inFlight != 1 {
		t.Errorf("%d in flight, want the one from before", inFlight)
	}
	ticket.Close(seconds(1), pick.Success)
}

func TestOneThatIsNoLongerReadyGivesUpItsPause(t *testing.T) {
	p := pick.NewPool(pick.Options{})
	list := home(4)
	p.Update(0, list)
	eject(t, p, list[:1])
	list[0].Unready = true
	p.Update(seconds(0.1), list)
	if e := p.Status().Endpoints[0]; e.Out {
		t.Error("it holds a place among those who sit out while it is not ready")
	}
	list[0].Unready = false
	p.Update(seconds(0.2), list)
	used := false
	for range 50 {
		ticket, _ := p.Pick(seconds(0.2), pick.Request{})
		used = used || ticket.Addr() == list[0].Addr
	}
	if !used {
		t.Error("it gets nothing although it is ready again")
	}
}

// with a window of 60 s.
func TestNewEndpointsStartSlowly(t *testing.T) {
	tests := []struct {
		aggression, age, want float64
	}{
		{1, 0, 0.10},
		{1, 6, 0.10},
		{1, 15, 0.25},
		{1, 30, 0.50},
		{1, 45, 0.75},
		{2, 6, 0.316},
		{2, 15, 0.50},
		{2, 30, 0.707},
		{0.5, 30, 0.25},
		{1, 60, 1},
		{0, 30, 0.50}, // not said
	}
	for _, tt := range tests {
		p := pick.NewPool(pick.Options{Config: pick.Config{
			Config: balance.Config{SlowStart: &pick.SlowStart{Window: time.Minute, MinWeight: 0.1, Aggression: tt.aggression}},
		}})
		p.Update(0, home(2))
		p.Update(seconds(100), home(3))
		p.Tick(seconds(100 + tt.age))
		e := p.Status().Endpoints
		if got := e[2].Ramp; got < tt.want-0.001 || got > tt.want+0.001 {
			t.Errorf("aggression %v, age %v s: %.3f of its weight, want %.3f", tt.aggression, tt.age, got, tt.want)
		}
		if e[0].Ramp != 1 || e[1].Ramp != 1 {
			t.Errorf("the first ones start slowly, too: %+v", e)
		}
		p.Tick(seconds(100 + tt.age)) // nothing else keeps the pool awake
		if got, want := p.Active(0), tt.age < 60; got != want {
			t.Errorf("age %v s: active %v, want %v", tt.age, got, want)
		}
	}
}

func TestPowerOfTwoStartsAsSlowlyAsThePolicySays(t *testing.T) {
	random := rand.New(rand.NewPCG(71, 72))
	p := pick.NewPool(pick.Options{Random: random.Uint64, Config: pick.Config{Config: balance.Config{SlowStart: &pick.SlowStart{Window: seconds(100)}}}})
	p.Update(0, home(3))
	p.Update(seconds(200), home(4))
	if got := p.Status().Endpoints[3].Slowdown; got != 1 {
		t.Errorf("the newcomer counts as %v times slow beside its slow start", got)
	}
	now := seconds(250)
	p.Tick(now)
	const requests = 20_000
	served := 0
	for range requests {
		ticket, _ := p.Pick(now, pick.Request{})
		if ticket.Addr() == home(4)[3].Addr {
			served++
		}
		ticket.Close(now, pick.Success)
	}
	// Half a weight among three whole ones; five deviations are 0.012.
	if got := float64(served) / requests; got < 0.143-0.013 || got > 0.143+0.013 {
		t.Errorf("the newcomer served %.3f of the requests, want 1/7", got)
	}
}

func TestWhoComesBackStartsSlowly(t *testing.T) {
	p := pick.NewPool(pick.Options{Config: pick.Config{Config: balance.Config{SlowStart: &pick.SlowStart{Window: seconds(10)}}}})
	list := home(2)
	list[1].Unready = true
	p.Update(0, list)
	list[1].Unready = false
	p.Update(seconds(50), list)
	eject(t, p, list[:1])
	p.Tick(seconds(55))
	w := &world{pool: p, now: seconds(55), answer: broken()}
	w.run(seconds(0.3), millis(1))
	e := p.Status().Endpoints
	if e[0].Out || e[0].Ramp > 0.05 || e[1].Ramp < 0.5 || e[1].Ramp > 0.6 {
		t.Errorf("just back from a pause: %+v; ready for 5 of 10 s: %+v", e[0], e[1])
	}
}

// Whoever changes the Config, the endpoints or both, and however often: nothing is lost and nobody waits.
func TestConfigChangesUnderConcurrency(t *testing.T) {
	never := 0.0
	configs := []pick.Config{
		{},
		{Algorithm: pick.RoundRobin, Config: balance.Config{SlowStart: &pick.SlowStart{Window: seconds(5)}}},
		{Algorithm: pick.LeastRequest, Choices: 3, Config: balance.Config{Threshold: 0.8}},
		{Algorithm: pick.Random, Config: balance.Config{Panic: &never, Health: health.Config{Outliers: &health.Outliers{
			Interval: millis(200), ServerErrors: 3, FailureRate: health.FailureRate{Threshold: 0.5, Hosts: 2},
		}}}},
	}
	for _, a := range pick.Algorithms() {
		configs = append(configs, pick.Config{
			Algorithm: a, TableSize: 251, MinRingSize: 64, Config: balance.Config{SlowStart: &pick.SlowStart{Window: seconds(3), MinWeight: 0.1}},
		})
	}
	lists := [][]pick.Target{targets(6), targets(12), levels(ready{3, 9}, ready{9, 9}), targets(12), levels(ready{5, 9}, ready{8, 9})}
	for i := range lists[3] {
		t := &lists[3][i]
		t.Weight, t.HashKey, t.Affinity, t.AffinityWeight = uint32(i), t.Addr.String()+"-", string(rune('a'+i%2)), uint32(1+i%2*9)
	}
	for i := range lists[4] {
		lists[4][i].Weight = uint32(1 + i%3)
	}
	p := pick.NewPool(pick.Options{Zone: "zone-a", Random: rand.Uint64, Strategy: fixed{shares: []float64{0.6, 0.4}}})
	p.Update(0, lists[0])
	var clock atomic.Int64
	now := func() time.Duration { return time.Duration(clock.Add(int64(100 * time.Microsecond))) }
	outcomes := []pick.Outcome{
		pick.Success, pick.ServerError, pick.Success, pick.GatewayError, pick.LocalError, pick.Success, pick.Canceled, pick.Failure,
	}
	var requests, changes sync.WaitGroup
	for w := range 3 {
		requests.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 5))
			for range 5000 {
				ticket, v := p.Pick(now(), pick.Request{Key: random.Uint64(), HasKey: random.IntN(2) == 0})
				if v != pick.Picked {
					continue // without panic and with all on pause
				}
				ticket.Answer(now(), outcomes[random.IntN(len(outcomes))])
				ticket.Close(now(), outcomes[random.IntN(len(outcomes))])
			}
		})
	}
	changes.Go(func() {
		random := rand.New(rand.NewPCG(9, 9))
		for range 400 {
			c, list := configs[random.IntN(len(configs))], lists[random.IntN(len(lists))]
			switch random.IntN(3) {
			case 0:
				p.Configure(now(), c)
			case 1:
				p.Update(now(), list)
			default:
				p.Apply(now(), pick.Prepare(c, list))
			}
			p.Tick(now())
			_ = p.Status()
		}
	})
	requests.Wait()
	changes.Wait()

	p.Apply(now(), pick.Prepare(pick.Config{}, lists[1]))
	for at := now() + seconds(400); at < now()+seconds(410); at += millis(10) {
		if at%millis(100) < millis(10) {
			p.Tick(at)
		}
		ticket, v := p.Pick(at, pick.Request{})
		if v != pick.Picked {
			t.Fatalf("verdict %v in the end", v)
		}
		ticket.Close(at, pick.Success)
	}
	for _, e := range p.Status().Endpoints {
		if e.InFlight != 0 || e.Out && e.Group < 2 {
			t.Errorf("in the end %+v", e)
		}
	}
}
