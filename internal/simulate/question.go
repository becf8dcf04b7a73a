package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

// Question is something that might be otherwise.
type Question struct {
	Name  string        // for programs, and part of the scenario's name: lose-zone-a
	Title string        // what if …
	Mode  topology.Mode // that the service then has; ModeUnset: the one it has now

	change func(*scenario.Scenario) // of a copy that shares what it does not change; nil: nothing
}

// apply gives the scenario that answers the question.
func (q *Question) apply(base *scenario.Scenario) *scenario.Scenario {
	sc := *base
	sc.Name, sc.Title = base.Name+"-"+q.Name, q.Title
	if q.Mode != topology.ModeUnset {
		svc := *base.Snapshot.Services[0]
		svc.Mode = q.Mode
		setService(&sc, &svc)
	}
	if q.change != nil {
		q.change(&sc)
	}
	return &sc
}

// AskMode asks for another distribution mode.
func AskMode(mode topology.Mode) Question {
	return Question{
		Name:  "mode-" + strings.ToLower(string(mode)),
		Title: "mode " + string(mode),
		Mode:  mode,
	}
}

// AskLoss asks for the loss of a zone's endpoints; its clients stay, and need the others.
func AskLoss(base *scenario.Scenario, zone topology.Zone) (Question, error) {
	endpoints := perZone(base)
	if endpoints[zone] == 0 {
		zones := slices.Sorted(maps.Keys(endpoints))
		return Question{}, fmt.Errorf("lose zone %s: it has no endpoints; there are some in %s", zone, joined(zones))
	}
	if len(endpoints) == 1 {
		return Question{}, fmt.Errorf("lose zone %s: no other zone has endpoints", zone)
	}
	return Question{
		Name:  "lose-" + string(zone),
		Title: inWords(zone) + " lost",
		change: func(sc *scenario.Scenario) {
			sc.Affected = affected(sc, zone)
			sc.Steps = []scenario.Step{{At: sc.Stress.From, Verb: scenario.Lose, Where: scenario.Where{Zone: zone}}}
		},
	}, nil
}

// maxFactor bounds what traffic may be multiplied by.
const maxFactor = 100

// AskTraffic asks for another amount of traffic from a zone.
func AskTraffic(base *scenario.Scenario, zone topology.Zone, factor float64) (Question, error) {
	if !(factor >= 0 && factor <= maxFactor) {
		return Question{}, fmt.Errorf("traffic × %v: want 0 to %v", factor, maxFactor)
	}
	if len(affected(base, zone)) == 0 {
		var zones []topology.Zone
		for _, c := range base.Clients {
			zones = append(zones, c.Zone)
		}
		return Question{}, fmt.Errorf("traffic of zone %s: it has no clients; there are some in %s", zone, joined(zones))
	}
	return Question{
		Name:  fmt.Sprintf("traffic-%s-x%s", zone, exact(factor)),
		Title: fmt.Sprintf("traffic of %s × %s", inWords(zone), exact(factor)),
		change: func(sc *scenario.Scenario) {
			sc.Affected = affected(sc, zone)
			sc.Steps = []scenario.Step{{
				At: sc.Stress.From, Verb: scenario.Rate, Where: scenario.Where{Zone: zone}, Factor: factor,
			}}
		},
	}, nil
}

// affected gives the zone if it has clients.
func affected(sc *scenario.Scenario, zone topology.Zone) []topology.Zone {
	if slices.ContainsFunc(sc.Clients, func(c scenario.Clients) bool { return c.Zone == zone }) {
		return []topology.Zone{zone}
	}
	return nil
}

// maxReplicas bounds how many endpoints are simulated.
const maxReplicas = 10_000

// AskReplicas asks for another number of endpoints, in a zone or, with an empty zone, in all of them: then more go where
// there are fewest, and go first from where there are most, as a topology spread constraint has it.
func AskReplicas(base *scenario.Scenario, zone topology.Zone, count int) (Question, error) {
	if count < 0 || count > maxReplicas || count == 0 && zone == "" {
		return Question{}, fmt.Errorf("%d replicas: want 1 to %d", count, maxReplicas)
	}
	if zone != "" && !slices.Contains(base.Snapshot.Zones(), zone) {
		return Question{}, unknownZone(zone, base.Snapshot.Zones())
	}
	svc, err := scaled(base, zone, count)
	if err != nil {
		return Question{}, err
	}
	q := Question{
		Name: fmt.Sprintf("replicas-%d", count), Title: plural(count, "replica"),
		change: func(sc *scenario.Scenario) { setService(sc, svc) },
	}
	if zone != "" {
		q.Name, q.Title = fmt.Sprintf("replicas-%s-%d", zone, count), plural(count, "replica")+" in "+inWords(zone)
	}
	return q, nil
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// inWords names a zone so that it is seen to be one.
func inWords(zone topology.Zone) string {
	if strings.HasPrefix(string(zone), "zone") {
		return string(zone)
	}
	return "zone " + string(zone)
}

// joined lists zones in a sentence.
func joined(zones []topology.Zone) string {
	names := make([]string, 0, len(zones))
	for _, z := range zones {
		names = append(names, string(z))
	}
	return strings.Join(names, ", ")
}
