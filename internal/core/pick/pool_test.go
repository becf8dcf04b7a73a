package pick_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
)

func target(addr string, zone topology.Zone, cost topology.Cost) pick.Target {
	return pick.Target{Addr: netip.MustParseAddrPort(addr), Zone: zone, Cost: cost, Home: cost == 0}
}

func TestGroupsAreInOrderOfUse(t *testing.T) {
	a := target("10.0.0.1:80", "a", 0)
	b := target("10.0.0.2:80", "b", 1)
	c := target("10.0.0.3:80", "c", 1)
	d := target("10.0.0.4:80", "d", 1)
	far := target("10.0.0.5:80", "e", 4)
	other := target("10.0.0.6:80", "a", 2)
	other.Cluster = "west"
	lent := target("10.0.0.7:80", "b", 1)
	lent.Home = true
	group := func(zone topology.Zone, cost topology.Cost, endpoints ...int) overflow.Group {
		return overflow.Group{Zone: zone, Cost: cost, Endpoints: endpoints}
	}
	west := group("a", 2, 2)
	west.Cluster = "west"
	tests := []struct {
		name   string
		rotate uint64
		in     []pick.Target
		want   []overflow.Group
	}{
		{"home first, then by cost", 0, []pick.Target{far, b, other, a}, []overflow.Group{
			group("a", 0, 3), group("b", 1, 1), west, group("e", 4, 0),
		}},
		{"zones of equal cost by name", 0, []pick.Target{d, c, b, a}, []overflow.Group{
			group("a", 0, 3), group("b", 1, 2), group("c", 1, 1), group("d", 1, 0),
		}},
		{"zones of equal cost rotated for another client", 4, []pick.Target{d, c, b, far, a}, []overflow.Group{
			group("a", 0, 4), group("c", 1, 1), group("d", 1, 0), group("b", 1, 2), group("e", 4, 3),
		}},
		{"the plan lends home an endpoint of another zone", 0, []pick.Target{a, b, lent}, []overflow.Group{
			group("a", 0.5, 0, 2), group("b", 1, 1),
		}},
		{"no home: the cheapest zone is home", 0, []pick.Target{far, c}, []overflow.Group{
			group("c", 1, 1), group("e", 4, 0),
		}},
		{"an address that is named twice counts once", 0, []pick.Target{a, a}, []overflow.Group{group("a", 0, 0)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &recorder{}
			p := pick.NewPool(pick.Options{Zone: "a", Strategy: r, Rotate: tt.rotate})
			p.Update(0, tt.in)
			for i := range tt.want {
				tt.want[i].ID = i + 1
			}
			if diff := cmp.Diff(tt.want, r.layout.Groups); diff != "" {
				t.Error("groups (-want +got):\n" + diff)
			}
		})
	}
}

func TestUpdateKeepsWhatIsKnownOfEndpointsThatStay(t *testing.T) {
	r := &recorder{decision: overflow.Decision{Baseline: millis(10), Cap: 8, Routes: []overflow.Route{{Share: 1}}}}
	p := pick.NewPool(pick.Options{Zone: "zone-a", Strategy: r})
	p.Update(0, home(2))
	var open []pick.Ticket
	for range 20 {
		ticket, _ := p.Pick(seconds(1), pick.Request{})
		open = append(open, ticket)
	}
	for i := range open {
		open[i].Answer(seconds(1)+millis(40), pick.Success)
	}
	p.Tick(seconds(1.1))
	before := p.Status().Endpoints

	list := home(3)
	slices.Reverse(list)
	list[2].Home = false // the plan takes one away from home: it stays the same endpoint
	p.Update(seconds(1.1), list)
	after := p.Status().Endpoints
	for i, e := range before {
		got := after[2-i]
		if got.Addr != e.Addr || got.InFlight != e.InFlight || got.Slowdown < 2 {
			t.Errorf("after the change %+v, before %+v: want it to be remembered", got, e)
		}
	}
	if after[0].InFlight != 0 || after[0].Slowdown != 2.5 {
		t.Errorf("the newcomer stands at %+v", after[0])
	}
	for i := range open {
		open[i].Close(seconds(1.2), pick.Success)
	}
	for _, e := range p.Status().Endpoints {
		if e.InFlight != 0 {
			t.Errorf("%+v has something in flight in the end", e)
		}
	}
}

func TestRoutesMayNameASubsetOfAGroup(t *testing.T) {
	r := &recorder{decision: overflow.Decision{Routes: []overflow.Route{
		{Group: 0, Share: 0.5}, {Group: 1, Share: 0.5, Endpoints: []int{4}},
	}}}
	p := pick.NewPool(pick.Options{Zone: "zone-a", Strategy: r})
	p.Update(0, targets(9))
	counts := make(map[netip.AddrPort]int)
	for range 100 {
		ticket, _ := p.Pick(0, pick.Request{})
		counts[ticket.Addr()]++
	}
	if got := counts[targets(9)[4].Addr]; got < 49 || got > 51 {
		t.Errorf("the one endpoint of the second route got %d of 100, want 50: %v", got, counts)
	}
}

func TestRetryAvoidsWhatWasTried(t *testing.T) {
	p := pick.NewPool(pick.Options{Zone: "zone-a", Strategy: fixed{shares: []float64{1}}})
	p.Update(0, targets(9))
	var tried []uint32
	var zones []topology.Zone
	for range 9 {
		ticket, _ := p.Pick(0, pick.Request{Avoid: tried})
		if slices.Contains(tried, ticket.ID()) {
			t.Fatalf("attempt %d repeats endpoint %d although %v were tried of 9", len(tried)+1, ticket.ID(), tried)
		}
		tried, zones = append(tried, ticket.ID()), append(zones, ticket.Zone())
	}
	// After two failures at home the third attempt leaves it: the zone may have gone, which only the next tick tells.
	want := []topology.Zone{"zone-a", "zone-a", "zone-b", "zone-b", "zone-b", "zone-c", "zone-c", "zone-c", "zone-a"}
	if diff := cmp.Diff(want, zones); diff != "" {
		t.Error("zones of the attempts (-want +got):\n" + diff)
	}
	if ticket, v := p.Pick(0, pick.Request{Avoid: tried}); v != pick.Picked || ticket.Zone() != "zone-a" {
		t.Errorf("with all tried: %v in %s, want one at home again", v, ticket.Zone())
	}
}

func TestRetryOfEverybodyTakesOneThatServes(t *testing.T) {
	p := pick.NewPool(pick.Options{Random: rand.New(rand.NewPCG(41, 42)).Uint64})
	p.Update(0, home(2))
	for range 5 {
		ticket, _ := p.Pick(0, pick.Request{Avoid: []uint32{2}})
		ticket.Close(0, pick.Failure)
	}
	for range 50 { // the first sits out, the second was tried
		if ticket, v := p.Pick(0, pick.Request{Avoid: []uint32{1, 2}}); v != pick.Picked || ticket.ID() != 2 {
			t.Fatalf("%v of %d, want the one that serves", v, ticket.ID())
		}
	}
	until := p.Status().Endpoints[0].Until + seconds(2)
	p.Tick(until)
	p.Tick(until + seconds(2)) // now the first is due for a trial
	if ticket, _ := p.Pick(until, pick.Request{Avoid: []uint32{1}}); ticket.ID() != 2 {
		t.Error("a retry was taken for the trial of the endpoint that it avoids")
	}
	if ticket, _ := p.Pick(until, pick.Request{}); ticket.ID() != 1 {
		t.Error("the next request was not taken for the trial")
	}
}

func TestTickThatChangesNothingPublishesNothing(t *testing.T) {
	p := pick.NewPool(pick.Options{Strategy: fixed{shares: []float64{0.7, 0.3}}})
	p.Update(0, targets(9))
	before := p.Published()
	p.Tick(millis(100))
	if p.Published() != before {
		t.Error("a new view although nothing changed")
	}
}

func TestRetryLeavesAZoneThatFails(t *testing.T) {
	p := pick.NewPool(pick.Options{Zone: "zone-a", Strategy: fixed{shares: []float64{1}}})
	p.Update(0, targets(9))
	for i := range 40 {
		ticket, _ := p.Pick(0, pick.Request{})
		o := pick.Success
		if i%3 == 0 { // a third fails, never five in a row
			o = pick.Failure
		}
		ticket.Close(0, o)
	}
	p.Tick(millis(100))
	first, _ := p.Pick(millis(100), pick.Request{})
	retry, _ := p.Pick(millis(100), pick.Request{Avoid: []uint32{first.ID()}})
	if first.Zone() != "zone-a" || retry.Zone() != "zone-b" {
		t.Errorf("first attempt in %s, retry in %s; want zone-a and zone-b", first.Zone(), retry.Zone())
	}
}

func TestDrainedZoneGetsNothingUntilTheDrainExpires(t *testing.T) {
	r := &recorder{decision: overflow.Decision{Routes: []overflow.Route{{Group: 0, Share: 0.5}, {Group: 1, Share: 0.5}}}}
	p := pick.NewPool(pick.Options{Zone: "zone-a", Strategy: r})
	p.Update(0, targets(9))
	p.Drain("zone-b", seconds(10))
	p.Tick(millis(100))
	if g := r.last.Groups[1]; !g.Drained || g.Usable != 0 {
		t.Errorf("the strategy is told %+v, want drained and none usable", g)
	}
	counts := shareOut(p, 100, plain)
	if diff := cmp.Diff(map[topology.Zone]int{"zone-a": 100}, counts); diff != "" {
		t.Error("while drained (-want +got):\n" + diff)
	}
	if s := p.Status(); !s.Groups[1].Drained || s.Groups[0].Drained || !s.Endpoints[1].Drained {
		t.Errorf("status: %+v", s)
	}
	if !p.Active(seconds(9)) {
		t.Error("no ticks although a drain has to expire")
	}
	p.Tick(seconds(10))
	if got := shareOut(p, 100, plain)["zone-b"]; got < 49 {
		t.Errorf("after the drain zone-b got %d of 100, want 50", got)
	}
}

func TestDrainOfEverythingIsNotFollowed(t *testing.T) {
	p := pick.NewPool(pick.Options{Zone: "zone-a"})
	p.Update(0, targets(9))
	for _, z := range []topology.Zone{"zone-a", "zone-b", "zone-c"} {
		p.Drain(z, seconds(10))
	}
	p.Tick(millis(100))
	if got := shareOut(p, 10, plain)["zone-a"]; got != 10 {
		t.Errorf("%d of 10 at home, want all: there is nowhere to go", got)
	}
}

func TestDrainOfHomeGoesToTheNextZone(t *testing.T) {
	p := pick.NewPool(pick.Options{Zone: "zone-a"})
	p.Update(0, targets(9))
	p.Drain("zone-a", seconds(10))
	p.Tick(millis(100))
	if got := shareOut(p, 10, plain)["zone-b"]; got != 10 {
		t.Errorf("%d of 10 in zone-b, want all", got)
	}
	p.Drain("zone-a", 0)
	p.Tick(millis(200))
	if got := shareOut(p, 10, plain)["zone-a"]; got != 10 {
		t.Errorf("%d of 10 at home after the drain was lifted, want all", got)
	}
}

func TestIdlePoolSleepsAndARequestWakesIt(t *testing.T) {
	p := pick.NewPool(pick.Options{Zone: "zone-a"})
	p.Update(seconds(100), targets(9))
	if p.Active(seconds(100)) {
		t.Error("a pool without requests asks for ticks")
	}
	ticket, _ := p.Pick(seconds(200), pick.Request{})
	if !p.Active(seconds(200)) {
		t.Error("a request does not wake the pool")
	}
	for at := 200.0; at < 230; at += 0.1 {
		p.Tick(seconds(at))
	}
	if !p.Active(seconds(230)) {
		t.Error("the pool sleeps while a request waits")
	}
	ticket.Answer(seconds(230), pick.Success) // it goes on as a stream, which needs no ticks
	for at := 230.0; at < 239.9; at += 0.1 {
		p.Tick(seconds(at))
	}
	if !p.Active(seconds(239.9)) {
		t.Error("the pool sleeps before its memory has faded")
	}
	for at := 239.9; at < 241; at += 0.1 {
		p.Tick(seconds(at))
	}
	if p.Active(seconds(241)) {
		t.Error("the pool does not sleep although nothing waits")
	}
}

func TestStatusShowsThePool(t *testing.T) {
	why := reason.New(reason.ZoneCopes)
	r := &recorder{decision: overflow.Decision{
		Baseline: millis(10), Cap: 8, Shed: 0.1, State: overflow.Crisis, Reason: why, Since: seconds(3),
		Routes: []overflow.Route{{Group: 0, Share: 0.5}, {Group: 1, Share: 0.4}},
		Groups: []overflow.GroupStatus{{Share: 0.5, Slowdown: 3, Delivered: 0.9, Allowed: 10, Demand: 20}, {Share: 0.4}},
	}}
	p := pick.NewPool(pick.Options{Zone: "a", Strategy: r})
	p.Update(0, []pick.Target{target("10.0.0.1:80", "a", 0), target("10.0.0.2:80", "a", 0), target("10.0.0.3:80", "b", 1)})
	ticket, _ := p.Pick(seconds(3), pick.Request{Avoid: []uint32{3}})
	ticket.Connected(time.Millisecond)
	ticket.Answer(seconds(3)+millis(10), pick.Success) // and goes on streaming
	for range 5 {
		failing, _ := p.Pick(seconds(3), pick.Request{Avoid: []uint32{1, 2}})
		failing.Close(seconds(3), pick.Failure)
	}
	p.Tick(seconds(3.1))

	want := pick.Status{
		Decision: r.decision, Allowed: 1, Horizon: millis(160), Active: true,
		Groups: []pick.GroupStatus{
			{GroupStatus: r.decision.Groups[0], Zone: "a", Home: true, Usable: 2, RTT: time.Millisecond, Limit: millis(80)},
			{GroupStatus: r.decision.Groups[1], Zone: "b", Failing: true, Limit: millis(80)},
		},
		Endpoints: []pick.EndpointStatus{
			{Endpoint: target("10.0.0.1:80", "a", 0), Standing: balance.Serving, Slowdown: 1, Ramp: 1},
			{Endpoint: target("10.0.0.2:80", "a", 0), Standing: balance.Serving, Slowdown: 1, Ramp: 1},
			{
				Endpoint: target("10.0.0.3:80", "b", 1), Record: health.Record{Out: true, Ejections: 1}, Group: 1,
				Standing: balance.Out, Cause: health.ByRules, Slowdown: 6, Ramp: 1,
			},
		},
	}
	want.Decision.Groups = nil // the groups have it
	for i, g := range route.Groups([]pick.Target{target("10.0.0.1:80", "a", 0), target("10.0.0.2:80", "a", 0), target("10.0.0.3:80", "b", 1)}, 0) {
		want.Groups[i].Group = g
	}
	want.Endpoints[slices.IndexFunc(want.Endpoints, func(e pick.EndpointStatus) bool { return e.Addr == ticket.Addr() })].InFlight = 1
	got := p.Status()
	if until := got.Endpoints[2].Until; until < seconds(3.75) || until > seconds(4.25) {
		t.Errorf("the pause ends at %v, want 4 s and a quarter more or less", until)
	}
	opts := []cmp.Option{
		cmpopts.IgnoreFields(health.Record{}, "Until", "Pauses", "Recent"),
		cmpopts.IgnoreUnexported(pick.GroupStatus{}, pick.EndpointStatus{}, health.Record{}), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
	}
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Error("status (-want +got):\n" + diff)
	}
}
