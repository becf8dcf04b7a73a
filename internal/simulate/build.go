package simulate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// Given is what a cluster's objects do not tell of a service.
type Given struct {
	Rates Rates
	// ServiceTime, Workers and Utilisation describe an endpoint: how long a request takes it, how many it serves at once,
	// and how busy all of them are at the Rates. Two of them make the third, so that at least one has to be 0. A ServiceTime
	// that nothing says is 20 ms, a Utilisation 0.6.
	ServiceTime time.Duration
	Workers     int
	Utilisation float64
	CV          float64 // of service times: standard deviation over mean; 0: they are all the same
	Bytes       float64 // of a request and its answer
	Clients     int     // in each zone; 0: 8
	PerGB       float64 // dollars for a GB that travels one cost unit
}

// What is taken where Given says nothing.
const (
	DefaultServiceTime = 20 * time.Millisecond
	DefaultUtilisation = 0.6 // a usual target of autoscalers
	DefaultClients     = 8
)

// The times of a scenario that was built: warm-up, calm, then what is asked about, and its end.
const (
	askedFrom   = 30 * time.Second
	askedTo     = 90 * time.Second
	builtLength = 100 * time.Second
)

// Build makes a scenario of a service of s, as it is: nothing happens in it.
//
// The endpoints are the ready ones of the service's first address family. Rates that are not given by zone are divided as
// plans divide them: as the service says, else by the CPU of the nodes.
func Build(s *topology.Snapshot, svc *topology.Service, g Given) (*scenario.Scenario, error) {
	snapshot, err := serviceOnly(s, svc)
	if err != nil {
		return nil, err
	}
	clients, err := g.clients(&snapshot)
	if err != nil {
		return nil, err
	}
	sc := &scenario.Scenario{
		Name:     svc.Namespace + "-" + svc.Name,
		Title:    fmt.Sprintf("%s as it is", svc.ServiceName),
		Snapshot: snapshot,
		Clients:  clients,
		Network: scenario.Network{
			SameZone: 300 * time.Microsecond, CrossZone: 1200 * time.Microsecond, CrossCluster: 5 * time.Millisecond, Jitter: 0.1,
		},
		Price:     scenario.Price{PerGB: g.PerGB},
		Discovery: scenario.Discovery{Delay: time.Second, Jitter: 0.5, Lost: 40 * time.Second},
		Length:    builtLength,
		Stress:    scenario.Window{From: askedFrom, To: askedTo},
	}
	sc.Server, err = g.server(sc)
	if err != nil {
		return nil, err
	}
	mean := sc.Server.Service.Mean
	sc.Request = scenario.Request{Timeout: max(time.Second, timeoutServiceTimes*mean), Bytes: g.Bytes}
	return sc, nil
}

// timeoutServiceTimes is the timeout in mean service times, if that is more than a second.
const timeoutServiceTimes = 20

// serviceOnly gives a snapshot with nothing but the service, and of it what takes requests.
func serviceOnly(s *topology.Snapshot, svc *topology.Service) (topology.Snapshot, error) {
	only := *svc
	families := svc.Families()
	if len(families) == 0 {
		return topology.Snapshot{}, fmt.Errorf("service %s has no endpoints", svc.ServiceName)
	}
	only.Endpoints = nil
	for _, e := range svc.Endpoints {
		switch {
		case e.Family() != families[0] || !e.IsReady():
		case e.Zone == "":
			return topology.Snapshot{}, fmt.Errorf("endpoint %v of service %s has no zone", e.Addr, svc.ServiceName)
		default:
			only.Endpoints = append(only.Endpoints, e)
		}
	}
	if len(only.Endpoints) == 0 {
		return topology.Snapshot{}, fmt.Errorf("service %s has no ready %v endpoint", svc.ServiceName, families[0])
	}
	return topology.NewSnapshot(slices.Clone(s.Nodes), []*topology.Service{&only}, s.Costs), nil
}

// clients divides the rate over the zones.
func (g *Given) clients(snapshot *topology.Snapshot) ([]scenario.Clients, error) {
	rates := g.Rates.Zones
	if len(rates) == 0 {
		rates = divide(snapshot, g.Rates.Total)
	}
	count := g.Clients
	if count == 0 {
		count = DefaultClients
	}
	known := snapshot.Zones()
	var clients []scenario.Clients
	for _, r := range rates {
		if !slices.Contains(known, r.Zone) {
			return nil, unknownZone(r.Zone, known)
		}
		clients = append(clients, scenario.Clients{Zone: r.Zone, Count: count, Rate: r.Rate})
	}
	if len(clients) == 0 {
		return nil, errors.New("there is no traffic: no rate above 0")
	}
	slices.SortFunc(clients, func(a, b scenario.Clients) int { return strings.Compare(string(a.Zone), string(b.Zone)) })
	return clients, nil
}

func unknownZone(zone topology.Zone, known []topology.Zone) error {
	names := make([]string, 0, len(known))
	for _, z := range known {
		names = append(names, string(z))
	}
	return fmt.Errorf("no zone %s: did you mean %s?", zone, strings.Join(topology.Near(string(zone), names), ", "))
}

// divide splits a rate as the plan expects it; zones without traffic are left out.
func divide(snapshot *topology.Snapshot, total float64) []ZoneRate {
	svc := snapshot.Services[0]
	p := plan.Compute(plan.InputOf(snapshot, plan.SurveyNodes(snapshot.Nodes), svc, svc.Endpoints[0].Family()))
	sum := 0.0
	for _, z := range p.Zones {
		sum += float64(z.Demand)
	}
	var rates []ZoneRate
	for _, z := range p.Zones {
		share := float64(z.Demand) / sum
		if sum == 0 { // no node counts: as endpoints are spread
			share = float64(z.Ready) / float64(len(svc.Endpoints))
		}
		if z.Zone != "" && total*share > 0 {
			rates = append(rates, ZoneRate{z.Zone, total * share})
		}
	}
	return rates
}

// server makes of two of service time, workers and utilisation the third.
func (g *Given) server(sc *scenario.Scenario) (scenario.Server, error) {
	busy := g.Utilisation
	if busy == 0 {
		busy = DefaultUtilisation
	}
	if !(busy > 0 && busy <= maxUtilisation) {
		return scenario.Server{}, fmt.Errorf("utilisation %v: want more than 0 and at most %v", g.Utilisation, maxUtilisation)
	}
	perEndpoint := 0.0 // requests per second
	for _, c := range sc.Clients {
		perEndpoint += c.Rate / float64(len(sc.Snapshot.Services[0].Endpoints))
	}
	mean, workers := g.ServiceTime, g.Workers
	switch {
	case workers > 0 && mean > 0 && g.Utilisation > 0:
		return scenario.Server{}, errors.New("service time, workers and utilisation: two of them say what the third is")
	case workers > 0 && mean == 0 && g.Utilisation > 0:
		seconds := busy * float64(workers) / perEndpoint
		if seconds > maxServiceTime.Seconds() {
			return scenario.Server{}, fmt.Errorf("%s of an endpoint with %.3g requests/s are %v busy with requests of %.3g s: want at most %v",
				plural(workers, "worker"), perEndpoint, busy, seconds, maxServiceTime)
		}
		mean = time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
	case workers > 0 && mean == 0:
		mean = DefaultServiceTime
	case workers == 0:
		if mean == 0 {
			mean = DefaultServiceTime
		}
		needed := math.Round(perEndpoint * mean.Seconds() / busy)
		workers = int(min(max(1, needed), math.MaxInt32)) // nearly idle ones may be more than an int holds
	}
	if mean < minServiceTime || mean > maxServiceTime || workers > maxWorkers {
		return scenario.Server{}, fmt.Errorf("%s with requests of %v: want at most %d and %v to %v",
			plural(workers, "worker"), mean, maxWorkers, minServiceTime, maxServiceTime)
	}
	d := scenario.Distribution{Kind: scenario.Lognormal, Mean: mean, CV: g.CV}
	if g.CV == 0 {
		d.Kind = scenario.Constant
	}
	return scenario.Server{
		Workers: workers,
		Queue:   max(queueLeast, queuePerWorker*workers),
		Service: d,
		Start:   5 * time.Second,
		Drain:   30 * time.Second, // Kubernetes' default grace period
	}, nil
}

// What an endpoint can be.
const (
	maxUtilisation = 5 // an overload of which nothing is left to learn
	minServiceTime = time.Microsecond
	maxServiceTime = time.Minute
	maxWorkers     = 100_000

	queueLeast     = 250 // with 4 workers of 20 ms a second and a quarter of work: longer than clients wait
	queuePerWorker = 60  // and the same with more workers
)

// Utilisation is how busy the endpoints of a scenario are, on average, at its rates.
func Utilisation(sc *scenario.Scenario) float64 {
	rate := 0.0
	for _, c := range sc.Clients {
		rate += c.Rate
	}
	slots := len(sc.Snapshot.Services[0].Endpoints) * sc.Server.Workers
	return rate * sc.Server.Service.Mean.Seconds() / float64(slots)
}
