package strategy

import (
	"math"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/core/topology"
)

// The defaults of Envoy's load_aware_locality.
const (
	weightUpdatePeriod     = time.Second
	smoothingTime          = 5 * time.Second
	varianceThreshold      = 0.1
	probeFraction          = 0.03
	weightExpirationPeriod = 3 * time.Minute
)

// envoyLoadAware is load-aware locality balancing: by the utilisation that endpoints report with their answers (ORCA).
//
// Source: Envoy 1.40, "Load-aware locality load balancing" and the extension's proto, whose defaults these are. Envoy has no
// default for what chooses within a locality: here it is what the other strategies of Envoy have.
func envoyLoadAware() Strategy {
	return Strategy{
		Name: "envoy-load-aware", Title: "Envoy, load-aware", Source: envoyDocs + "load_aware_locality",
		Mode:   topology.ModePreferSameZone,
		New:    func(client Client) overflow.Strategy { return newLoadAware(client) },
		Pool:   pick.Config{Algorithm: pick.LeastRequest, Choices: 2, Config: balance.Config{Health: ejections()}},
		Checks: checks, Reports: true,
	}
}

// Report is what an endpoint last told a client with an answer.
type Report struct {
	Utilisation float64 // above 0; 1: all workers are busy
	At          time.Duration
}

// loadAware is Envoy's load_aware_locality. Once a second it averages the reported utilisations of each locality's
// endpoints, smooths them, and weights localities by endpoints × (1 - utilisation); but everything stays local, except
// for the probes, while the local utilisation is at most varianceThreshold above the mean of the others.
//
// Source: Envoy 1.40's page, whose pseudocode weights follows. We simplified: the
// report of an endpoint that is ejected counts until it expires; priorities and degraded endpoints do not exist.
type loadAware struct {
	localities

	reports  func(endpoint int) (Report, bool) // of an index into Layout.Endpoints
	smoothed map[int]float64                   // utilisation by Group.ID; missing: never reported
	updated  time.Duration
	weights  []float64 // by group; nil: to be made
}

func newLoadAware(client Client) *loadAware {
	l := &loadAware{reports: client.Reports, smoothed: make(map[int]float64)}
	if l.reports == nil {
		l.reports = func(int) (Report, bool) { return Report{}, false }
	}
	return l
}

// Reset implements overflow.Strategy.
func (l *loadAware) Reset(now time.Duration, layout overflow.Layout) {
	l.localities.Reset(now, layout)
	l.weights = nil
}

// Step implements overflow.Strategy.
func (l *loadAware) Step(now time.Duration, c *overflow.Counters) overflow.Decision {
	hosts, _ := l.hosts(now, c)
	if l.weights == nil || now-l.updated >= weightUpdatePeriod {
		l.weights, l.updated = l.weigh(now, hosts), now
	}
	return l.decide(normalised(l.weights, hosts), reason.New(reason.FollowsReports))
}

// utilisation takes in the reports of a group's endpoints; false: none is fresh.
func (l *loadAware) utilisation(now time.Duration, g *overflow.Group) (smoothed float64, isFresh bool) {
	sum, n := 0.0, 0.0
	for _, e := range g.Endpoints {
		if r, ok := l.reports(e); ok && now-r.At <= weightExpirationPeriod {
			sum, n = sum+r.Utilisation, n+1
		}
	}
	before, known := l.smoothed[g.ID]
	switch {
	case n == 0:
		return before, !known // never reported: taken to be idle
	case !known:
		l.smoothed[g.ID] = sum / n
	default:
		alpha := 1 - math.Exp(-weightUpdatePeriod.Seconds()/smoothingTime.Seconds())
		l.smoothed[g.ID] = alpha*sum/n + (1-alpha)*before
	}
	return l.smoothed[g.ID], true
}

// weigh gives each group its weight, by the endpoints that requests may go to.
func (l *loadAware) weigh(now time.Duration, hosts []int) []float64 {
	weights, utilisations := make([]float64, len(hosts)), make([]float64, len(hosts))
	total, remoteHosts, remoteSum := 0.0, 0.0, 0.0
	for i := range hosts {
		n, isFresh := float64(hosts[i]), false
		utilisations[i], isFresh = l.utilisation(now, &l.layout.Groups[i])
		weights[i] = n
		if isFresh {
			weights[i] = n * max(0, 1-utilisations[i])
		}
		total += weights[i]
		if i > 0 {
			remoteHosts += n
			remoteSum += utilisations[i] * n
		}
	}
	if total == 0 {
		for i := range hosts {
			weights[i] = float64(hosts[i])
		}
		return weights
	}
	if remoteHosts == 0 {
		return weights
	}
	if hosts[0] > 0 && utilisations[0] <= remoteSum/remoteHosts+varianceThreshold {
		clear(weights)
		weights[0] = total
	}
	if deficit := probeFraction*total - (total - weights[0]); deficit > 0 {
		taken := min(deficit, weights[0])
		weights[0] -= taken
		for i := 1; i < len(hosts); i++ {
			weights[i] += taken * float64(hosts[i]) / remoteHosts
		}
	}
	return weights
}

// normalised makes shares of the weights of groups that have endpoints; by their endpoints where no weight is left.
func normalised(weights []float64, hosts []int) []float64 {
	shares, sum := make([]float64, len(weights)), 0.0
	for i, w := range weights {
		if hosts[i] > 0 {
			shares[i] = w
			sum += w
		}
	}
	if sum == 0 {
		return even(hosts)
	}
	for i := range shares {
		shares[i] /= sum
	}
	return shares
}
