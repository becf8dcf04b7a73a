package strategy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

// named gives a strategy that there is.
func named(t *testing.T, name string) strategy.Strategy {
	t.Helper()
	c, err := strategy.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// zone is a zone as zone-aware routing sees it.
type zone struct {
	name          topology.Zone
	clients       int
	healthy, size int // endpoints
}

// whole is a zone whose endpoints are all healthy.
func whole(name topology.Zone, clients, endpoints int) zone {
	return zone{name, clients, endpoints, endpoints}
}

// decide makes one step of envoy-zone for a client of the first zone.
func decide(t *testing.T, zones ...zone) overflow.Decision {
	t.Helper()
	client := strategy.Client{Zone: zones[0].name}
	var layout overflow.Layout
	var counters overflow.Counters
	for _, z := range zones {
		if z.clients > 0 {
			client.Clients = append(client.Clients, strategy.ZoneCount{Zone: z.name, Count: z.clients})
		}
		g := overflow.Group{Zone: z.name}
		for range z.size {
			g.Endpoints = append(g.Endpoints, layout.Endpoints)
			layout.Endpoints++
		}
		layout.Groups = append(layout.Groups, g)
		counters.Groups = append(counters.Groups, overflow.GroupCounters{Usable: z.healthy})
	}
	counters.Endpoints = make([]overflow.EndpointCounters, layout.Endpoints)
	c := named(t, "envoy-zone")
	s := c.New(client)
	s.Reset(0, layout)
	return s.Step(100*time.Millisecond, &counters)
}

// shares gives the groups' shares in percent.
func shares(d overflow.Decision) string {
	text := ""
	for _, g := range d.Groups {
		text += fmt.Sprintf("%.2f ", 100*g.Share)
	}
	return text
}

func TestZonesKeepWhatTheirEndpointsAreToTheirClients(t *testing.T) {
	for name, c := range map[string]struct {
		zones []zone
		want  string
	}{
		// The first case of Envoy's page: a larger part of the clients than of the endpoints. 50 % of the clients and 3
		// of 12 endpoints: half stays. b has 4/12 - 30 % = 3.33 % left, c has 5/12 - 20 % = 21.67 %: the other half
		// goes to them as 2 to 13.
		"more clients than endpoints": {[]zone{whole("a", 5, 3), whole("b", 3, 4), whole("c", 2, 5)}, "50.00 6.67 43.33 "},
		// The second case: at least as large a part of the endpoints as of the clients.
		"more endpoints than clients": {[]zone{whole("c", 2, 5), whole("a", 5, 3), whole("b", 3, 4)}, "100.00 0.00 0.00 "},
		"as many of both":             {[]zone{whole("a", 3, 4), whole("b", 3, 4), whole("c", 3, 4)}, "100.00 0.00 0.00 "},
		// Envoy's issue 38758: clients in two zones, endpoints in three alike; about 66 % stays and 33 % goes to the
		// third.
		"a zone without clients": {[]zone{whole("a", 1, 2), whole("b", 1, 2), whole("c", 0, 2)}, "66.67 0.00 33.33 "},
		// Half of a's endpoints are ejected: 3 of 15 healthy ones for a third of the clients is 60 %; b and c have the
		// same left.
		"ejected ones do not count": {[]zone{{"a", 8, 3, 6}, whole("b", 8, 6), whole("c", 8, 6)}, "60.00 20.00 20.00 "},
		"the own zone is gone":      {[]zone{{"a", 8, 0, 6}, whole("b", 8, 6), whole("c", 8, 6)}, "0.00 50.00 50.00 "},
		"no endpoint at home":       {[]zone{whole("a", 1, 0), whole("b", 1, 6), whole("c", 2, 6)}, "0.00 100.00 0.00 "},
		"only another zone is hit":  {[]zone{whole("b", 8, 6), {"a", 8, 0, 6}, whole("c", 8, 6)}, "100.00 0.00 0.00 "},
		"no client is known here":   {[]zone{whole("a", 0, 0), whole("b", 1, 6), whole("c", 1, 6)}, "0.00 50.00 50.00 "},
		// What keeps Envoy from looking at zones.
		"fewer than six":         {[]zone{whole("a", 1, 1), whole("b", 1, 1), whole("c", 1, 3)}, "20.00 20.00 60.00 "},
		"fewer than six healthy": {[]zone{{"a", 1, 1, 2}, whole("b", 1, 2), whole("c", 1, 2)}, "20.00 40.00 40.00 "},
		"six":                    {[]zone{whole("a", 1, 2), whole("b", 1, 2), whole("c", 1, 2)}, "100.00 0.00 0.00 "},
		"one zone":               {[]zone{whole("a", 3, 9)}, "100.00 "},
		"nobody counted clients": {[]zone{whole("a", 0, 2), whole("b", 0, 6)}, "25.00 75.00 "},
		"nothing at all":         {[]zone{whole("a", 1, 0), whole("b", 1, 0)}, "100.00 0.00 "},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(t, c.zones...)
			if diff := cmp.Diff(c.want, shares(d)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if d.Panic || d.Confined || d.Shed > 0 || d.Reason.Code != reason.CountsEndpoints {
				t.Errorf("panic %v, confined %v, shed %v, %s", d.Panic, d.Confined, d.Shed, d.Reason)
			}
		})
	}
}

func TestBelowHalfOfAllEndpointsNobodysHealthIsBelieved(t *testing.T) {
	for name, c := range map[string]struct {
		zones  []zone
		panics bool
		want   string
	}{
		"half":             {[]zone{{"a", 1, 0, 6}, whole("b", 1, 6)}, false, "0.00 100.00 "},
		"one less":         {[]zone{{"a", 1, 0, 6}, {"b", 1, 5, 6}}, true, "50.00 50.00 "},
		"by size of zones": {[]zone{{"a", 1, 2, 6}, {"b", 1, 3, 18}}, true, "25.00 75.00 "},
		"all are out":      {[]zone{{"a", 1, 0, 6}, {"b", 1, 0, 2}}, true, "75.00 25.00 "},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(t, c.zones...)
			if diff := cmp.Diff(c.want, shares(d)); diff != "" || d.Panic != c.panics {
				t.Errorf("panic %v, want %v (-want +got)\n%s", d.Panic, c.panics, diff)
			}
			if c.panics != (d.Reason.Code == reason.TooFewHealthy) {
				t.Errorf("reason %s", d.Reason)
			}
		})
	}
}

func TestEndpointsOfOtherClustersCountForTheZoneTheyName(t *testing.T) {
	c := named(t, "envoy-zone")
	s := c.New(strategy.Client{Zone: "a", Clients: []strategy.ZoneCount{{Zone: "a", Count: 1}, {Zone: "b", Count: 1}}})
	s.Reset(0, overflow.Layout{Endpoints: 8, Groups: []overflow.Group{
		{Zone: "a", Endpoints: []int{0}}, {Zone: "a", Cluster: "far", Endpoints: []int{1, 2, 3}}, {Zone: "b", Endpoints: []int{4, 5, 6, 7}},
	}})
	d := s.Step(0, &overflow.Counters{Groups: []overflow.GroupCounters{{Usable: 1}, {Usable: 3}, {Usable: 4}}})
	if got := shares(d); got != "25.00 75.00 0.00 " {
		t.Errorf("shares %s, want the zone's four to share alike", got)
	}
}

// The purpose that Envoy's page states: about the same number of requests for each endpoint, if clients are alike.
func TestEveryEndpointGetsTheSameIfAllClientsSendTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		zones := make([]zone, 2+random.IntN(4))
		endpoints, clients := 0, 0
		for i := range zones {
			zones[i] = whole(topology.Zone(rune('a'+i)), 1+random.IntN(9), random.IntN(9))
			endpoints += zones[i].size
			clients += zones[i].clients
		}
		if endpoints < 6 {
			continue
		}
		got := make([]float64, len(zones))
		for i, from := range zones {
			turned := append([]zone{from}, zones[:i]...)
			turned = append(turned, zones[i+1:]...)
			d := decide(t, turned...)
			for j, g := range d.Groups {
				to := int(turned[j].name[0] - 'a')
				got[to] += g.Share * float64(from.clients) / float64(clients)
			}
		}
		for i, z := range zones {
			if want := float64(z.size) / float64(endpoints); math.Abs(got[i]-want) > 1e-9 {
				t.Fatalf("%v: %s gets %.4f of all requests, want %.4f", zones, z.name, got[i], want)
			}
		}
	}
}

func TestPanicEndsWhereItsReasonEnds(t *testing.T) {
	c := named(t, "envoy-zone")
	s := c.New(strategy.Client{Zone: "a"})
	s.Reset(time.Second, overflow.Layout{Endpoints: 2, Groups: []overflow.Group{{Zone: "a", Endpoints: []int{0, 1}}}})
	var got []string
	for i, usable := range []int{2, 0, 0, 1} {
		now := time.Duration(2+i) * time.Second
		d := s.Step(now, &overflow.Counters{Groups: []overflow.GroupCounters{{Usable: usable}}})
		got = append(got, fmt.Sprint(d.Panic, " since ", d.Since))
	}
	want := []string{"false since 1s", "true since 3s", "true since 3s", "false since 5s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
