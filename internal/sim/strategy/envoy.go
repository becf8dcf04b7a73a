package strategy

import (
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/topology"
)

const envoyDocs = "https://www.envoyproxy.io/docs/envoy/latest/intro/arch_overview/upstream/load_balancing/"

// Envoy's defaults, and what we had to choose where it has none.
const (
	// panicBelow is the fraction of healthy endpoints below which health is ignored.
	panicBelow = 0.5
	// overprovisioning is how many times what it needs a priority is taken to have.
	overprovisioning = 1.4
	// serverErrors in a row eject an endpoint.
	serverErrors = 5
	// ejection is how long the first ejection lasts; the nth lasts n times as long.
	ejection = 30 * time.Second
	// checks is how long active health checks take to notice. Envoy has no default for it.
	checks = 10 * time.Second
)

// envoyZone is zone-aware routing with a load assignment that has one priority.
//
// Source: Envoy's pages on zone-aware routing, panic threshold and outlier detection. zoneAware says what we
// simplified.
func envoyZone() Strategy {
	return Strategy{
		Name: "envoy-zone", Title: "Envoy, zone-aware", Source: envoyDocs + "zone_aware",
		Mode:   topology.ModePreferSameZone, // its hints make home the client's own zone, and all of it
		New:    func(client Client) overflow.Strategy { return newZoneAware(client) },
		Pool:   pick.Config{Algorithm: pick.LeastRequest, Choices: 2, Config: balance.Config{Health: ejections()}},
		Checks: checks,
	}
}

// priority is failover by health: the client's own zone is priority 0, all others together are priority 1.
//
// Source: Envoy's pages on priority levels, overprovisioning and panic threshold; Istio makes such a configuration of
// its locality failover. A priority's health is min(100, 140 × fraction of its endpoints that are healthy); what
// priority 0 lacks of 100 goes to priority 1, and if both together have less than 100 each gets its part of the sum.
//
// We simplified nothing of that arithmetic: the pool has it, for policies. Zones of priority 1 share by their healthy
// endpoints.
func priority() Strategy {
	half := panicBelow
	return Strategy{
		Name: "priority", Title: "priority failover, 1.4", Source: envoyDocs + "priority",
		Mode: topology.ModePreferSameZone,
		New: func(Client) overflow.Strategy {
			return overflow.Unconfined(must(overflow.New("Static", overflow.Config{})))
		},
		Pool: pick.Config{
			Algorithm: pick.LeastRequest, Choices: 2, Config: balance.Config{Threshold: 1 / overprovisioning, Panic: &half, Health: ejections()},
		},
		Checks: checks,
	}
}

// ejections are Envoy's outlier detection by server errors in a row.
//
// Envoy lets no more than 10 % of a cluster be ejected unless it is told to. Then nearly all of a zone that is lost
// stays in use, and neither zone-aware routing nor failover, which count healthy endpoints, ever begins; so there is no
// limit here. Left out is the detector that compares success rates, which needs a hundred requests for each endpoint of
// each client in ten seconds. An ejection ends with one request as a trial, where Envoy lets all come back.
func ejections() health.Config {
	all := 1.0
	return health.Config{
		Failures: -1, // none of the rules that are weir's own
		Outliers: &health.Outliers{ServerErrors: serverErrors, Pause: ejection, MaxOut: &all},
	}
}
