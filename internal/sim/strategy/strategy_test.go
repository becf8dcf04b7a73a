package strategy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/route"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

// allStrategies are all strategies and variants.
func allStrategies(t *testing.T) []strategy.Strategy {
	t.Helper()
	all := strategy.All()
	for _, name := range []string{"weir-cost", "weir-latency", "weir-shed"} {
		all = append(all, named(t, name))
	}
	return all
}

func TestTheStrategiesAndTheirOrder(t *testing.T) {
	var got []string
	for _, c := range strategy.All() {
		got = append(got, c.Name)
		if c.Title == "" || c.Source == "" || c.New == nil || c.Checks < 0 {
			t.Errorf("%s lacks something: %+v", c.Name, c)
		}
	}
	want := []string{"random", "static-auto", "static-same-zone", "hints-balanced", "envoy-zone", "envoy-load-aware", "priority", "hazl", "weir", "oracle"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWhoGoesOnAfterARefusedConnection(t *testing.T) {
	got := make(map[string]int)
	for _, c := range allStrategies(t) {
		if c.Reconnects > 0 {
			got[c.Name] = c.Reconnects
		}
	}
	want := map[string]int{"hazl": 2, "oracle": 2, "weir": 2, "weir-cost": 2, "weir-latency": 2, "weir-shed": 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestStrategiesAreFoundByNameInAnyCase(t *testing.T) {
	for _, c := range allStrategies(t) {
		if got := named(t, strings.ToUpper(c.Name)); got.Name != c.Name || got.Title != c.Title {
			t.Errorf("%s is found as %s, %s", c.Name, got.Name, got.Title)
		}
	}
	_, err := strategy.Named("wier")
	if err == nil || !strings.Contains(err.Error(), `"wier"`) || !strings.Contains(err.Error(), "weir-shed") {
		t.Errorf("error %v, want one that names the name and those there are", err)
	}
	if _, err := strategy.Named("static-balanced"); err == nil || !strings.Contains(err.Error(), "hints-balanced") {
		t.Errorf("error %v, want one with the new name", err)
	}
}

// targetsOf gives the targets of a strategy's client in zone a, by the plan of the strategy's mode.
func targetsOf(t *testing.T, c *strategy.Strategy, text string) []pick.Target {
	t.Helper()
	s, err := topology.ParseSnapshot(text)
	if err != nil {
		t.Fatal(err)
	}
	svc := *s.Services[0]
	svc.Mode = c.Mode
	p := plan.Compute(plan.InputOf(&s, plan.SurveyNodes(s.Nodes), &svc, topology.IPv4))
	return route.Select(route.Query{
		Service: &svc, Endpoints: p.Endpoints, Port: svc.Ports[0], Client: policy.Client{Zone: "a"},
		KeepsHome: c.KeepsHome, Mode: c.Mode, Regions: s.Regions(),
	}).Endpoints
}

func TestHomeIsWhatTheStrategyTakesForIt(t *testing.T) {
	const (
		equal = "nodes a:4 b:4 c:4; service web ip=10.9.0.1; endpoints a:2 b:2 c:2"
		few   = "nodes a:4 b:4 c:4; service web ip=10.9.0.1; endpoints a:1 b:5 c:6"
	)
	zones := func(targets []pick.Target) string {
		parts := map[bool]string{}
		for _, t := range targets {
			parts[t.Home] += string(t.Zone)
		}
		return parts[true] + "|" + parts[false]
	}
	for name, want := range map[string][2]string{
		"random":           {"aabbcc|", "abbbbbcccccc|"},
		"static-auto":      {"aa|bbcc", "abcc|bbbbcccc"}, // home is what the plan lends, too
		"static-same-zone": {"aa|bbcc", "a|bbbbbcccccc"},
		"hints-balanced":   {"aa|bbcc", "abcc|bbbbcccc"},
		"envoy-zone":       {"aa|bbcc", "a|bbbbbcccccc"},
		"envoy-load-aware": {"aa|bbcc", "a|bbbbbcccccc"},
		"priority":         {"aa|bbcc", "a|bbbbbcccccc"},
		"hazl":             {"aa|bbcc", "a|bbbbbcccccc"},
		"weir":             {"aa|bbcc", "a|bbbbbcccccc"},
	} {
		c := named(t, name)
		got := [2]string{zones(targetsOf(t, &c, equal)), zones(targetsOf(t, &c, few))}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// pool makes a strategy's pool for a client in zone a.
func pool(c *strategy.Strategy, targets []pick.Target, client strategy.Client) *pick.Pool {
	p := pick.NewPool(pick.Options{
		Zone: "a", Random: rand.New(rand.NewPCG(7, 0)).Uint64, Strategy: c.New(client), Config: c.Pool,
	})
	p.Update(0, targets)
	return p
}

// target is the nth endpoint of a zone, counted from 0.
func target(zone byte, n int) pick.Target {
	return pick.Target{
		Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, zone, byte(n >> 8), byte(n)}), 80),
		Zone: topology.Zone(zone), Home: zone == 'a', Cost: 1,
	}
}

// spread gives the shares by zone of the pool's last decision.
func spread(p *pick.Pool) map[topology.Zone]float64 {
	got := make(map[topology.Zone]float64)
	for _, g := range p.Status().Groups {
		got[g.Zone] += g.Share
	}
	return got
}

// Whoever is there and whatever happens to requests: shares sum to 1, are never negative, are the same each time, and
// do not depend on the order in which endpoints are told.
func TestSharesAreSharesForEverybody(t *testing.T) {
	client := strategy.Client{Zone: "a", Clients: []strategy.ZoneCount{{Zone: "a", Count: 5}, {Zone: "b", Count: 3}, {Zone: "c", Count: 2}}}
	for _, c := range allStrategies(t) {
		t.Run(c.Name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 4))
			for range 25 {
				var targets []pick.Target
				for zone := range byte(1 + random.IntN(3)) {
					for n := range random.IntN(6) {
						e := target('a'+zone, n)
						e.Unready = random.IntN(8) == 0
						targets = append(targets, e)
					}
				}
				shuffled := slices.Clone(targets)
				random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
				fails := topology.Zone('a' + byte(random.IntN(3)))
				first, again, other := pool(&c, targets, client), pool(&c, targets, client), pool(&c, shuffled, client)
				for tick := range 30 {
					now := time.Duration(1+tick) * 100 * time.Millisecond
					for _, p := range []*pick.Pool{first, again, other} {
						play(p, now, fails)
					}
					checkShares(t, first)
					if diff := cmp.Diff(spread(first), spread(again)); diff != "" {
						t.Fatalf("not the same twice:\n%s", diff)
					}
				}
				if quiet := pool(&c, shuffled, client); !near(spread(pool(&c, targets, client)), spread(quiet)) {
					t.Fatalf("another order of %d endpoints: %v", len(targets), spread(quiet))
				}
				checkShares(t, other)
			}
		})
	}
}

// play sends some requests, which fail in one zone, and ticks.
func play(p *pick.Pool, now time.Duration, fails topology.Zone) {
	zoneOf := make(map[netip.AddrPort]topology.Zone)
	for _, e := range p.Status().Endpoints {
		zoneOf[e.Addr] = e.Zone
	}
	for range 12 {
		ticket, verdict := p.Pick(now-50*time.Millisecond, pick.Request{})
		if verdict != pick.Picked {
			continue
		}
		outcome := pick.Success
		if zoneOf[ticket.Addr()] == fails {
			outcome = pick.GatewayError
		}
		ticket.Answer(now-30*time.Millisecond, outcome)
		ticket.Close(now-30*time.Millisecond, outcome)
	}
	p.Tick(now)
}

func checkShares(t *testing.T, p *pick.Pool) {
	t.Helper()
	status := p.Status()
	sum := status.Shed
	for _, g := range status.Groups {
		if g.Share < 0 || math.IsNaN(g.Share) {
			t.Fatalf("share of %s: %v", g.Zone, g.Share)
		}
		sum += g.Share
	}
	if len(status.Groups) > 0 && math.Abs(sum-1) > 1e-9 {
		t.Fatalf("the shares sum to %v: %+v", sum, status.Groups)
	}
}

// near tells whether all zones have the same but for rounding.
func near(a, b map[topology.Zone]float64) bool {
	for _, zone := range []topology.Zone{"a", "b", "c"} {
		if math.Abs(a[zone]-b[zone]) > 1e-9 {
			return false
		}
	}
	return true
}

// counts gives the requests of each zone, of so many.
func counts(t *testing.T, p *pick.Pool, now time.Duration, n int) map[topology.Zone]int {
	t.Helper()
	zoneOf := make(map[netip.AddrPort]topology.Zone)
	for _, e := range p.Status().Endpoints {
		zoneOf[e.Addr] = e.Zone
	}
	got := make(map[topology.Zone]int)
	for range n {
		ticket, verdict := p.Pick(now, pick.Request{})
		if verdict != pick.Picked {
			t.Fatal(verdict)
		}
		got[zoneOf[ticket.Addr()]]++
		ticket.Close(now, pick.Canceled)
	}
	return got
}

// broken is a pool after ten seconds in which its own zone failed every request.
func broken(t *testing.T, name string) *pick.Pool {
	t.Helper()
	c := named(t, name)
	var targets []pick.Target
	for _, zone := range []byte("abc") {
		for n := range 6 {
			e := target(zone, n)
			e.Home = e.Home || name == "random" // without hints everybody is home
			targets = append(targets, e)
		}
	}
	client := strategy.Client{Zone: "a", Clients: []strategy.ZoneCount{{Zone: "a", Count: 8}, {Zone: "b", Count: 8}, {Zone: "c", Count: 8}}}
	p := pool(&c, targets, client)
	for tick := range 100 {
		play(p, time.Duration(1+tick)*100*time.Millisecond, "a")
	}
	return p
}

func TestWhoCountsHealthLeavesAZoneThatFailsAndKubeProxyDoesNot(t *testing.T) {
	for name, want := range map[string][2]int{ // out of a hundred: fewest and most that go to the failing zone
		"random":           {20, 45},
		"static-auto":      {100, 100},
		"static-same-zone": {100, 100},
		"hints-balanced":   {100, 100},
		"envoy-zone":       {0, 0},
		"envoy-load-aware": {0, 0},
		"priority":         {0, 0},
		"hazl":             {0, 6}, // trials
		"weir":             {0, 10},
	} {
		p := broken(t, name)
		if got := counts(t, p, 10*time.Second, 100)["a"]; got < want[0] || got > want[1] {
			t.Errorf("%s: %d of 100 requests go to the zone that fails, want %d to %d", name, got, want[0], want[1])
		}
	}
}

func TestEnvoyEjectsForHalfAMinuteAndThenLonger(t *testing.T) {
	for _, name := range []string{"envoy-zone", "priority"} {
		p := broken(t, name)
		for _, e := range p.Status().Endpoints {
			if e.Out != (e.Zone == "a") {
				t.Errorf("%s: endpoint of zone %s sits out: %v", name, e.Zone, e.Out)
			}
			if e.Zone == "a" && (e.Until < 30*time.Second || e.Until > 40*time.Second || e.Ejections != 1) {
				t.Errorf("%s: ejected %d times, until %v, want once and 30 s after it failed", name, e.Ejections, e.Until)
			}
		}
		for tick := range 320 {
			play(p, time.Duration(101+tick)*100*time.Millisecond, "a")
		}
		for _, e := range p.Status().Endpoints {
			if e.Zone == "a" && (e.Ejections != 2 || e.Until < 90*time.Second || e.Until > 103*time.Second) {
				t.Errorf("%s: ejected %d times, until %v, want twice and the second time for 60 s", name, e.Ejections, e.Until)
			}
		}
	}
}

func TestLinkerdsBreakerTripsAfterSevenFailures(t *testing.T) {
	c := named(t, "hazl")
	for failures, want := range map[int]bool{6: false, 7: true} {
		p := pool(&c, []pick.Target{target('a', 0)}, strategy.Client{Zone: "a"})
		for range failures {
			ticket, _ := p.Pick(0, pick.Request{})
			ticket.Answer(0, pick.ServerError)
			ticket.Close(0, pick.ServerError)
		}
		p.Tick(100 * time.Millisecond)
		if got := p.Status().Endpoints[0].Out; got != want {
			t.Errorf("sits out after %d failures: %v, want %v", failures, got, want)
		}
	}
}

func TestOnlyWeirGoesByTheRateOfFailures(t *testing.T) {
	for name, want := range map[string]bool{"weir": true, "hazl": false, "priority": false, "envoy-zone": false} {
		c := named(t, name)
		p := pool(&c, []pick.Target{target('a', 0), target('a', 1)}, strategy.Client{Zone: "a"})
		bad := 0
		for tick := range 50 {
			now := time.Duration(tick) * 100 * time.Millisecond
			for range 100 {
				ticket, _ := p.Pick(now, pick.Request{})
				outcome := pick.Success
				if ticket.Addr() == target('a', 0).Addr {
					if bad++; bad%2 == 0 { // never two in a row
						outcome = pick.ServerError
					}
				}
				ticket.Answer(now, outcome)
				ticket.Close(now, outcome)
			}
			p.Tick(now)
		}
		if got := p.Status().Endpoints[0].Ejections > 0; got != want {
			t.Errorf("%s puts out an endpoint that fails every second request of %d: %v, want %v", name, bad, got, want)
		}
	}
}

// Between two ticks nothing is decided anew; requests must not be lost on that.
func TestWhoCountsHealthNeedsNoTickToLeaveAZone(t *testing.T) {
	for name, want := range map[string]topology.Zone{"envoy-zone": "b", "priority": "b", "hazl": "b", "weir": "b", "static-auto": "a"} {
		c := named(t, name)
		p := pool(&c, []pick.Target{target('a', 0), target('b', 0)}, strategy.Client{
			Zone: "a", Clients: []strategy.ZoneCount{{Zone: "a", Count: 1}, {Zone: "b", Count: 1}},
		})
		for range 40 {
			ticket, _ := p.Pick(0, pick.Request{})
			outcome := pick.Success
			if ticket.Addr() == target('a', 0).Addr {
				outcome = pick.ServerError
			}
			ticket.Answer(0, outcome)
			ticket.Close(0, outcome)
		}
		if got := counts(t, p, 0, 10); got[want] != 10 {
			t.Errorf("%s: %v, want all ten in zone %s", name, got, want)
		}
	}
}

// The tables of Envoy's pages on priority levels and panic threshold.
func TestPriorityFailoverAgreesWithEnvoysTables(t *testing.T) {
	c := named(t, "priority")
	for _, row := range []struct {
		healthy [2]int // percent of either priority
		traffic [2]int // percent
		panics  [2]bool
	}{
		{healthy: [2]int{100, 100}, traffic: [2]int{100, 0}},
		{healthy: [2]int{72, 100}, traffic: [2]int{100, 0}},
		{healthy: [2]int{71, 100}, traffic: [2]int{99, 1}},
		{healthy: [2]int{50, 100}, traffic: [2]int{70, 30}},
		{healthy: [2]int{25, 100}, traffic: [2]int{35, 65}},
		{healthy: [2]int{0, 100}, traffic: [2]int{0, 100}},
		{healthy: [2]int{72, 72}, traffic: [2]int{100, 0}},
		{healthy: [2]int{71, 71}, traffic: [2]int{99, 1}},
		{healthy: [2]int{50, 50}, traffic: [2]int{70, 30}},
		// Both together have less than 100: 35 and 35 of 70.
		{healthy: [2]int{25, 25}, traffic: [2]int{50, 50}, panics: [2]bool{true, true}},
		// 7 and 91 of 98. The page has 7 and 93 %; Envoy gives what rounding leaves to the first, and so does the pool.
		{healthy: [2]int{5, 65}, traffic: [2]int{8, 92}, panics: [2]bool{true, false}},
		{healthy: [2]int{0, 0}, traffic: [2]int{100, 0}, panics: [2]bool{true, true}},
	} {
		t.Run(fmt.Sprint(row.healthy), func(t *testing.T) {
			var targets []pick.Target
			for priority, zone := range []byte("ab") {
				for n := range 100 {
					e := target(zone, n)
					e.Unready = n >= row.healthy[priority]
					targets = append(targets, e)
				}
			}
			for i, g := range pool(&c, targets, strategy.Client{Zone: "a"}).Status().Groups {
				if got := int(math.Round(100 * g.Share)); got != row.traffic[i] || g.Panics != row.panics[i] {
					t.Errorf("priority %d gets %d %%, panics %v; want %d %%, %v", i, got, g.Panics, row.traffic[i], row.panics[i])
				}
			}
		})
	}
}

// steps feeds a strategy of one zone with two others a load or a slowdown, and gives its last decision.
func steps(s overflow.Strategy, length time.Duration, c *overflow.Counters) overflow.Decision {
	var d overflow.Decision
	for now := time.Duration(0); now < length; now += 100 * time.Millisecond {
		d = s.Step(now, c)
	}
	return d
}

// Buoyant's reference: the band is for an endpoint, so that it counts as often as there are active ones, and the pool
// changes by one endpoint at a time.
func TestHazlsBandCountsForEachActiveEndpoint(t *testing.T) {
	layout := overflow.Layout{Endpoints: 5, Groups: []overflow.Group{
		{Zone: "a", Endpoints: []int{0, 1, 2}}, {Zone: "b", Cost: 1, Endpoints: []int{3, 4}},
	}}
	flying := func(n int64) *overflow.Counters {
		c := &overflow.Counters{Groups: make([]overflow.GroupCounters, 2), Endpoints: make([]overflow.EndpointCounters, 5)}
		c.Endpoints[0].InFlight = n
		return c
	}
	active := func(d overflow.Decision) int {
		n := 3
		for _, r := range d.Routes {
			n += len(r.Endpoints)
		}
		return n
	}
	for _, row := range []struct {
		config   overflow.Config
		inFlight int64
		active   int
	}{
		{inFlight: 5, active: 3}, // 2.0 × 3 is not exceeded
		{inFlight: 7, active: 4}, // 6 is, 2.0 × 4 is not
		{inFlight: 9, active: 5}, // 8 is, too
		{config: overflow.Config{Low: 0.5, High: 10}, inFlight: 29, active: 3},
		{config: overflow.Config{Low: 0.5, High: 1}, inFlight: 4, active: 4},
	} {
		for _, c := range strategy.With(row.config) {
			if c.Name != "hazl" {
				continue
			}
			s := c.New(strategy.Client{Zone: "a"})
			s.Reset(0, layout)
			if got := active(steps(s, 2*time.Minute, flying(row.inFlight))); got != row.active {
				t.Errorf("%+v with %d in flight: %d endpoints active, want %d", row.config, row.inFlight, got, row.active)
			}
		}
	}
}

func TestWeirIsMadeByTheWishesOfItsName(t *testing.T) {
	slow := func(c strategy.Strategy, slowdown float64) overflow.Decision {
		s := c.New(strategy.Client{Zone: "a"})
		s.Reset(0, overflow.Layout{Endpoints: 2, Groups: []overflow.Group{
			{Zone: "a", Endpoints: []int{0}}, {Zone: "b", Cost: 1, Endpoints: []int{1}},
		}})
		answered := func(latency time.Duration) *overflow.Counters {
			return &overflow.Counters{Groups: []overflow.GroupCounters{{Sent: 50, OK: 50, Latency: 50 * latency, Usable: 1}, {Usable: 1}}}
		}
		steps(s, time.Minute, answered(20*time.Millisecond))
		var d overflow.Decision
		for tick := range 30 {
			took := time.Duration(slowdown * float64(20*time.Millisecond))
			d = s.Step(time.Minute+time.Duration(tick)*100*time.Millisecond, answered(took))
		}
		return d
	}
	for name, limit := range map[string]float64{"weir-cost": 1.8, "weir": 1.4, "weir-latency": 1.2, "weir-shed": 1.4} {
		c := named(t, name)
		if d := slow(c, limit-0.1); d.State != overflow.Calm {
			t.Errorf("%s at %.1f times the latency: %s, want calm", name, limit-0.1, d.State)
		}
		if d := slow(c, limit+0.1); d.State == overflow.Calm {
			t.Errorf("%s at %.1f times the latency is calm", name, limit+0.1)
		}
	}
	for _, c := range strategy.With(overflow.Config{Prefer: overflow.PreferCost}) {
		if c.Name == "weir" && slow(c, 1.7).State != overflow.Calm {
			t.Error("With does not hand its config to weir")
		}
	}
}

func TestWeirShedsOnlyIfItsNameSaysSo(t *testing.T) {
	for name, want := range map[string]bool{"weir": false, "weir-shed": true} {
		s := named(t, name).New(strategy.Client{Zone: "a"})
		s.Reset(0, overflow.Layout{Endpoints: 2, Groups: []overflow.Group{
			{Zone: "a", Endpoints: []int{0}}, {Zone: "b", Cost: 1, Endpoints: []int{1}},
		}})
		good := overflow.GroupCounters{Sent: 50, OK: 50, Latency: time.Second, Usable: 1}
		steps(s, time.Minute, &overflow.Counters{Groups: []overflow.GroupCounters{good, {Usable: 1}}})
		bad := overflow.GroupCounters{Sent: 50, OK: 10, Failed: 40, Latency: time.Second, Usable: 1}
		shed := 0.0
		for tick := range 100 {
			d := s.Step(time.Minute+time.Duration(tick)*100*time.Millisecond, &overflow.Counters{Groups: []overflow.GroupCounters{bad, bad}})
			shed = max(shed, d.Shed)
		}
		if (shed > 0) != want {
			t.Errorf("%s sheds %.2f, want some: %v", name, shed, want)
		}
	}
}

func TestAConfigThatMakesNoSenseIsOurBug(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a strategy was made of a preference that does not exist")
		}
	}()
	for _, c := range strategy.With(overflow.Config{Prefer: "speed"}) {
		c.New(strategy.Client{})
	}
}
