package pick_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/topology"
)

// ready is so many ready endpoints of total.
type ready struct{ n, total int }

// levels makes home and tiers 1, 2 … with so many endpoints that are ready.
func levels(parts ...ready) []pick.Target {
	var list []pick.Target
	for tier, r := range parts {
		for i := range r.total {
			list = append(list, pick.Target{
				Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(tier), byte(i >> 8), byte(i)}), 80),
				Zone: topology.Zone(fmt.Sprint("zone-", tier)), Home: tier == 0, Tier: tier, Unready: i >= r.n,
			})
		}
	}
	return list
}

// percents gives the groups' shares.
func percents(p *pick.Pool) []int {
	var shares []int
	for _, g := range p.Status().Groups {
		shares = append(shares, int(math.Round(100*g.Share)))
	}
	return shares
}

// usual is the threshold whose factor is Envoy's 140 %.
const usual = 100.0 / 140

func TestThresholdCapsHomeAsEnvoyCapsPriorities(t *testing.T) {
	full := ready{100, 100}
	tests := []struct {
		name      string
		threshold float64
		in        []ready
		want      []int
	}{
		{"A-71 100", usual, []ready{full, full}, []int{100, 0}},
		{"A-71 72", usual, []ready{{72, 100}, full}, []int{100, 0}},
		{"A-71 71", usual, []ready{{71, 100}, full}, []int{99, 1}},
		{"A-71 50", usual, []ready{{50, 100}, full}, []int{70, 30}},
		{"A-71 25", usual, []ready{{25, 100}, full}, []int{35, 65}},
		{"A-71 0", usual, []ready{{0, 100}, full}, []int{0, 100}},
		{"A-71 25, 25", usual, []ready{{25, 100}, {25, 100}}, []int{50, 50}},
		{"A-71 25, 25, 20", usual, []ready{{25, 100}, {25, 100}, {20, 100}}, []int{37, 35, 28}},
		{"A-72 5 at 50 %", 0.5, []ready{{5, 10}, full}, []int{100, 0}},
		{"A-72 4 at 50 %", 0.5, []ready{{4, 10}, full}, []int{80, 20}},
		{"A-72 3 at 50 %", 0.5, []ready{{3, 10}, full}, []int{60, 40}},
		{"A-72 2 at 50 %", 0.5, []ready{{2, 10}, full}, []int{40, 60}},
		{"A-72 1 at 50 %", 0.5, []ready{{1, 10}, full}, []int{20, 80}},
		{"A-72 7 at 70 %", 0.7, []ready{{7, 10}, full}, []int{100, 0}},
		{"A-72 6 at 70 %", 0.7, []ready{{6, 10}, full}, []int{85, 15}},
		{"A-72 5 at 70 %", 0.7, []ready{{5, 10}, full}, []int{71, 29}},
		{"K-54 6 at 60 %, which Kuma rounds to 100 %", 0.6, []ready{{6, 10}, full}, []int{100, 0}},
		{"K-54 89 and 90 at 90 %", 0.9, []ready{{89, 100}, full}, []int{99, 1}},
		{"all have to be well", 1, []ready{{9, 10}, full}, []int{90, 10}},
		{"A-70 along the tiers", 0.5, []ready{{1, 10}, {2, 10}, full}, []int{20, 40, 40}},
		{"nobody is healthy", 0.5, []ready{{0, 10}, {0, 10}}, []int{100, 0}},
		{"a threshold that is hardly one", 1e-300, []ready{{1, 10}, full}, []int{100, 0}},
		{"no threshold", 0, []ready{{1, 10}, full}, []int{100, 0}},
		{"home alone", 0.5, []ready{{1, 10}}, []int{100}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := pick.NewPool(pick.Options{Zone: "zone-0", Config: pick.Config{Config: balance.Config{Threshold: tt.threshold}}})
			p.Update(0, levels(tt.in...))
			if diff := cmp.Diff(tt.want, percents(p)); diff != "" {
				t.Error("percent (-want +got):\n" + diff)
			}
		})
	}
}

func TestThresholdOnlyTakesFromWhatTheStrategyDecided(t *testing.T) {
	tests := []struct {
		name   string
		shares []float64
		shed   float64
		in     []ready
		want   []int
	}{
		{"home has less than it might", []float64{0.3, 0.7}, 0, []ready{{4, 10}, {10, 10}}, []int{30, 70}},
		{"home has more", []float64{0.9, 0.1}, 0, []ready{{4, 10}, {10, 10}}, []int{80, 20}},
		{"the second tier is left as it is", []float64{0.9, 0.05, 0.05}, 0, []ready{{4, 10}, {10, 10}, {10, 10}}, []int{80, 15, 5}},
		{"a tier has more than it may", []float64{0.2, 0.8, 0}, 0, []ready{{10, 10}, {3, 10}, {10, 10}}, []int{20, 60, 20}},
		{"what no tier has room for is home's", []float64{0.2, 0.8}, 0, []ready{{10, 10}, {3, 10}}, []int{40, 60}},
		{"some are shed", []float64{0.6, 0.2}, 0.2, []ready{{2, 10}, {10, 10}}, []int{40, 40}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := pick.NewPool(pick.Options{
				Zone: "zone-0", Strategy: fixed{shares: tt.shares, shed: tt.shed}, Config: pick.Config{Config: balance.Config{Threshold: 0.5}},
			})
			p.Update(0, levels(tt.in...))
			if diff := cmp.Diff(tt.want, percents(p)); diff != "" {
				t.Error("percent (-want +got):\n" + diff)
			}
			counts := shareOut(p, 1000, plain)
			for i, want := range tt.want {
				if got := counts[topology.Zone(fmt.Sprint("zone-", i))]; got < 10*want-3 || got > 10*want+3 {
					t.Errorf("zone-%d got %d of 1000 requests, want %d %%", i, got, want)
				}
			}
		})
	}
}

// Whatever the strategy decides and whoever is ready, shares stay shares, no level has more than it may, and nothing goes
// where nobody is ready.
func TestThresholdKeepsSharesShares(t *testing.T) {
	random := rand.New(rand.NewPCG(71, 72))
	for range 2000 {
		n := 1 + random.IntN(4)
		in, shares, sum := make([]ready, n), make([]float64, n), 0.0
		healthy := 0
		for i := range in {
			in[i].total = 1 + random.IntN(8)
			in[i].n = random.IntN(in[i].total + 1)
			shares[i] = random.Float64()
			sum += shares[i]
			healthy += in[i].n
		}
		for i := range shares {
			shares[i] /= sum
		}
		threshold := 0.01 + 0.99*random.Float64()
		p := pick.NewPool(pick.Options{Strategy: fixed{shares: slices.Clone(shares)}, Config: pick.Config{Config: balance.Config{Threshold: threshold}}})
		p.Update(0, levels(in...))
		total, enough := 0.0, 0.0
		for _, r := range in {
			enough += min(1, float64(r.n)/float64(r.total)/threshold)
		}
		for i, g := range p.Status().Groups {
			total += g.Share
			// Rounding up to whole percent lets a factor pass by less than one percent of itself, or of its inverse.
			most := float64(in[i].n)/float64(in[i].total)/threshold*1.011 + 0.01
			if n > 1 && healthy > 0 && enough > 1.05 && g.Share > most {
				t.Fatalf("%v of %v at %v: level %d has %.3f, want %.3f at most", in, shares, threshold, i, g.Share, most)
			}
			if n > 1 && healthy > 0 && in[i].n == 0 && g.Share > 1e-9 {
				t.Fatalf("%v of %v: level %d has %.3f and nobody who is ready", in, shares, i, g.Share)
			}
		}
		if math.Abs(total-1) > 1e-9 {
			t.Fatalf("%v of %v at %v: the shares sum to %v", in, shares, threshold, total)
		}
	}
}

func TestZonesOfATierShareByTheirUsableEndpoints(t *testing.T) {
	list := levels(ready{2, 10}, ready{9, 9})
	for i := range list {
		if list[i].Tier == 1 && i%3 == 0 {
			list[i].Zone = "zone-9"
		}
	}
	p := pick.NewPool(pick.Options{Zone: "zone-0", Config: pick.Config{Config: balance.Config{Threshold: 0.5}}})
	p.Update(0, list)
	if diff := cmp.Diff([]int{40, 40, 20}, percents(p)); diff != "" {
		t.Error("percent (-want +got):\n" + diff)
	}
}

func TestUnreadyEndpointsCountAndAreNeverPicked(t *testing.T) {
	r := &recorder{decision: overflow.Decision{Routes: []overflow.Route{{Share: 1}}}}
	p := pick.NewPool(pick.Options{Zone: "zone-0", Strategy: r})
	list := levels(ready{2, 5}, ready{0, 3})
	p.Update(0, list)
	want := []overflow.Group{
		{ID: 1, Zone: "zone-0", Endpoints: []int{0, 1}},
		{ID: 2, Zone: "zone-1", Tier: 1},
	}
	if diff := cmp.Diff(want, r.layout.Groups, cmp.Transformer("empty", func(s []int) string { return fmt.Sprint(s) })); diff != "" {
		t.Error("groups (-want +got):\n" + diff)
	}
	for i, g := range p.Status().Groups {
		if len(g.Members) != []int{5, 3}[i] || len(g.Ready) != []int{2, 0}[i] || g.Usable != len(g.Ready) {
			t.Errorf("group %d: %+v", i, g)
		}
	}
	for range 200 {
		if ticket, v := p.Pick(0, pick.Request{}); v != pick.Picked || !slices.Contains(list[:2], target0(ticket, list)) {
			t.Fatalf("%v: picked %v, which is not ready", v, ticket.Addr())
		}
	}
	for i := range list {
		list[i].Unready = true
	}
	p.Update(seconds(1), list)
	if _, v := p.Pick(seconds(1), pick.Request{}); v != pick.NoEndpoint {
		t.Errorf("verdict %v although nobody is ready, want NoEndpoint", v)
	}
}

// target0 finds a ticket's target.
func target0(ticket pick.Ticket, list []pick.Target) pick.Target {
	return list[slices.IndexFunc(list, func(t pick.Target) bool { return t.Addr == ticket.Addr() })]
}

//
func TestPanicUsesWhoSitsOut(t *testing.T) {
	half, never := 0.5, 0.0
	tests := []struct {
		name   string
		panic  *float64
		in     []ready
		out    int // of home's ten sit out
		spread int // endpoints of home that get requests
	}{
		{"too few are left, and there is nobody else", &half, []ready{{10, 10}}, 6, 10},
		{"just enough are left", &half, []ready{{10, 10}}, 5, 5},
		{"the others are healthy", &half, []ready{{10, 10}, {10, 10}}, 6, 4},
		{"the others are not healthy either", &half, []ready{{10, 10}, {2, 10}}, 6, 10},
		{"who is not ready does not help", &half, []ready{{6, 10}}, 3, 6},
		{"never", &never, []ready{{10, 10}}, 9, 1},
		{"nobody asked for it", nil, []ready{{10, 10}}, 6, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := pick.Config{Config: balance.Config{Panic: tt.panic}}
			c.Health.MaxOut = 1
			p := pick.NewPool(pick.Options{
				Zone: "zone-0", Random: rand.New(rand.NewPCG(81, 82)).Uint64, Strategy: fixed{shares: []float64{1}}, Config: c,
			})
			list := levels(tt.in...)
			p.Update(0, list)
			eject(t, p, list[:tt.out])
			used := make(map[netip.AddrPort]bool)
			for range 500 {
				ticket, v := p.Pick(millis(10), pick.Request{})
				if v != pick.Picked {
					t.Fatal(v)
				}
				used[ticket.Addr()] = true
				ticket.Close(millis(10), pick.Canceled)
			}
			if len(used) != tt.spread {
				t.Errorf("%d endpoints used, want %d", len(used), tt.spread)
			}
			if got := p.Status().Groups[0].Panics; got != (tt.spread == tt.in[0].n) {
				t.Errorf("panics: %v", got)
			}
		})
	}
}

func TestAStrategyMayDisbelieveEverybodysHealth(t *testing.T) {
	for _, panics := range []bool{true, false} {
		c := pick.Config{}
		c.Health.MaxOut = 1
		p := pick.NewPool(pick.Options{
			Zone: "zone-0", Random: rand.New(rand.NewPCG(83, 84)).Uint64, Config: c,
			Strategy: fixed{shares: []float64{0.5, 0.5}, panics: panics},
		})
		list := levels(ready{6, 6}, ready{6, 6})
		p.Update(0, list)
		eject(t, p, list[:4])
		used := make(map[netip.AddrPort]bool)
		for range 500 {
			ticket, v := p.Pick(millis(10), pick.Request{})
			if v != pick.Picked {
				t.Fatal(v)
			}
			used[ticket.Addr()] = true
			ticket.Close(millis(10), pick.Canceled)
		}
		want := 8
		if panics {
			want = 12
		}
		if len(used) != want {
			t.Errorf("panics %v: %d endpoints used, want %d", panics, len(used), want)
		}
		for _, g := range p.Status().Groups {
			if g.Panics != panics {
				t.Errorf("%s panics: %v, want %v", g.Zone, g.Panics, panics)
			}
		}
	}
}

// eject makes endpoints fail until they sit out.
func eject(t *testing.T, p *pick.Pool, targets []pick.Target) {
	t.Helper()
	for _, e := range p.Status().Endpoints {
		if !slices.ContainsFunc(targets, func(t pick.Target) bool { return t.Addr == e.Addr }) {
			continue
		}
		var open []pick.Ticket
		for failures := 0; failures < 5; {
			ticket, v := p.Pick(0, pick.Request{})
			if v != pick.Picked {
				t.Fatal(v)
			}
			open = append(open, ticket) // or the least loaded would be picked again and again
			o := pick.Canceled
			if ticket.Addr() == e.Addr {
				failures, o = failures+1, pick.Failure
			}
			ticket.Answer(0, o)
		}
		for i := range open {
			open[i].Close(0, pick.Canceled)
		}
	}
	p.Tick(millis(10))
}

func TestWithoutPanicNobodyServesWhenAllSitOut(t *testing.T) {
	never, always := 0.0, 1.0
	for _, tt := range []struct {
		panic *float64
		want  pick.Verdict
	}{{&never, pick.NoEndpoint}, {&always, pick.Picked}, {nil, pick.Picked}} {
		c := pick.Config{Config: balance.Config{Panic: tt.panic}}
		c.Health.MaxOut = 1
		p := pick.NewPool(pick.Options{Zone: "zone-0", Config: c})
		list := levels(ready{2, 2})
		p.Update(0, list)
		eject(t, p, list[:1])
		eject(t, p, list[1:])
		if _, v := p.Pick(millis(10), pick.Request{}); v != tt.want {
			t.Errorf("panic %v: verdict %v, want %v", tt.panic, v, tt.want)
		}
	}
}
