package score

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

// Details is what charts of a scenario need beside the cells. Times are seconds since the start of the run.
type Details struct {
	About  string  `json:"about,omitempty"`
	Length float64 `json:"length"`
	// The stress; both are 0 where there is none.
	From float64 `json:"from"`
	To   float64 `json:"to"`
	// Zones are those of the clients under stress, that timelines are of; none: all clients'. The 99th percentile is theirs
	// only if they are of a single zone, as percentiles of zones do not add up; otherwise it is of all clients.
	Zones   []topology.Zone `json:"zones,omitempty"`
	Timeout float64         `json:"timeout,omitempty"`
	Every   float64         `json:"every"` // seconds that a point of a timeline covers
	Steps   []StepView      `json:"steps,omitempty"`
}

// StepView is a step as scenario files have it, but for the time.
type StepView struct {
	At   float64 `json:"at"`
	What string  `json:"what"`
}

// Timeline is a strategy in a scenario second by second, of one seed. Shares are fractions, latencies milliseconds; null
// stands for a time without requests.
type Timeline struct {
	Spill []*float64 `json:"spill"` // share of the requests that left the client's zone
	Good  []*float64 `json:"good"`  // share that was answered well and in time
	P99   []*float64 `json:"p99"`   // of the worst second of each point
	// Stress has the same of the whole stress, as means over the seeds.
	Stress struct {
		Spill *float64 `json:"spill"`
		Good  *float64 `json:"good"`
		P99   *float64 `json:"p99"`
	} `json:"stress"`
}

// ZoneLoad is the load of a zone's endpoints under stress, of one seed: 1 is all that an endpoint can do.
type ZoneLoad struct {
	Cluster string        `json:"cluster,omitempty"` // empty: that of the clients
	Zone    topology.Zone `json:"zone"`
	Means   []float64     `json:"means"` // of each endpoint that had requests
	Peak    float64       `json:"peak"`  // the busiest second of any
}

// mostPoints is how many points a timeline has at most: about one for each pixel of a chart's width.
const mostPoints = 400

// AddDetails adds what charts show, of the strategies, scenarios and results that the board was made of.
func (b *Board) AddDetails(strategies []strategy.Strategy, scenarios []*scenario.Scenario, results []*sim.Result) {
	for i := range b.Overall.Rows {
		row := &b.Overall.Rows[i]
		if at := slices.IndexFunc(strategies, func(s strategy.Strategy) bool { return s.Name == row.Strategy }); at >= 0 {
			row.Source = strategies[at].Source
		}
	}
	for i := range b.Tables {
		t := &b.Tables[i]
		at := slices.IndexFunc(scenarios, func(sc *scenario.Scenario) bool { return sc.Name == t.Scenario })
		if at < 0 {
			continue
		}
		d := newDetailer(scenarios[at])
		t.Details = &d.Details
		for k := range t.Rows {
			row := &t.Rows[k]
			d.add(row, slices.DeleteFunc(slices.Clone(results), func(r *sim.Result) bool {
				return r == nil || r.Scenario != t.Scenario || r.Strategy != row.Strategy
			}))
		}
	}
}

// detailer makes the details of one scenario.
type detailer struct {
	Details

	isZoneP99 bool
	chunk     int // seconds of a point
}

func newDetailer(sc *scenario.Scenario) *detailer {
	d := &detailer{chunk: max(1, int(math.Ceil(sc.Length.Seconds()/mostPoints)))}
	d.Details = Details{
		About: sc.About, Length: sc.Length.Seconds(), From: sc.Stress.From.Seconds(), To: sc.Stress.To.Seconds(),
		Timeout: sc.Request.Timeout.Seconds(), Every: float64(d.chunk),
	}
	if len(sc.Affected) < len(sc.Clients) {
		d.Zones = sc.Affected
	}
	d.isZoneP99 = len(d.Zones) == 1
	for _, st := range sc.Steps {
		_, what, _ := strings.Cut(st.String(), " ")
		d.Steps = append(d.Steps, StepView{At: st.At.Seconds(), What: what})
	}
	return d
}

// add details a row with its results, one for each seed.
func (d *detailer) add(row *Row, results []*sim.Result) {
	if len(results) == 0 {
		return
	}
	drawn := max(0, slices.IndexFunc(results, func(r *sim.Result) bool { return len(r.Line) > 0 }))
	t := new(Timeline)
	for points := range slices.Chunk(results[drawn].Line, d.chunk) {
		spill, good, p99 := d.point(points)
		t.Spill, t.Good, t.P99 = append(t.Spill, spill), append(t.Good, good), append(t.P99, p99)
	}
	mean := func(of func(*sim.Result) (*sim.Figures, float64)) *float64 {
		var values []float64
		for _, r := range results {
			if f, value := of(r); f.Requests > 0 { // without requests figures are no observation
				values = append(values, value)
			}
		}
		if len(values) == 0 {
			return nil
		}
		return new(rounded(mean(values)))
	}
	t.Stress.Spill = mean(func(r *sim.Result) (*sim.Figures, float64) { return &r.Affected, 1 - r.Affected.InZone })
	t.Stress.Good = mean(func(r *sim.Result) (*sim.Figures, float64) { return &r.Affected, r.Affected.Good })
	t.Stress.P99 = mean(func(r *sim.Result) (*sim.Figures, float64) {
		if d.isZoneP99 {
			return &r.Affected, millis(r.Affected.P99)
		}
		return &r.Window, millis(r.Window.P99)
	})
	row.Timeline, row.Zones = t, zoneLoads(results[drawn].Endpoints)
}

// point sums up some seconds of the clients under stress.
func (d *detailer) point(points []sim.Point) (spill, good, p99 *float64) {
	var crossed, answered, well, requests int64
	var slowest time.Duration
	for i := range points {
		if !d.isZoneP99 {
			slowest = max(slowest, points[i].P99)
		}
		for _, z := range points[i].Zones {
			if len(d.Zones) > 0 && !slices.Contains(d.Zones, z.Zone) {
				continue
			}
			crossed, answered, well, requests = crossed+z.Crossed, answered+z.Answered, well+z.Good, requests+z.Requests
			if d.isZoneP99 {
				slowest = max(slowest, z.P99)
			}
		}
	}
	if slowest > 0 {
		p99 = new(rounded(millis(slowest)))
	}
	return ratio(crossed, answered), ratio(well, requests), p99
}

// ratio is a share of requests; nil of none.
func ratio(part, of int64) *float64 {
	if of == 0 {
		return nil
	}
	const digits = 1e4 // a hundredth of a percent is more than a chart shows
	return new(math.Round(digits*float64(part)/float64(of)) / digits)
}

// zoneLoads groups endpoints by cluster and zone, sorted. Those without a request under stress, as of a rollout that was
// over before, are left out.
func zoneLoads(endpoints []sim.Endpoint) []ZoneLoad {
	var all []ZoneLoad
	for _, e := range slices.SortedStableFunc(slices.Values(endpoints), func(a, b sim.Endpoint) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Zone, b.Zone))
	}) {
		if last := len(all) - 1; last < 0 || all[last].Zone != e.Zone || all[last].Cluster != e.Cluster {
			all = append(all, ZoneLoad{Cluster: e.Cluster, Zone: e.Zone, Means: []float64{}})
		}
		z := &all[len(all)-1]
		z.Peak = math.Max(z.Peak, rounded(e.Peak))
		if e.Peak > 0 {
			z.Means = append(z.Means, rounded(e.Load))
		}
	}
	return all
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
