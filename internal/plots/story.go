package plots

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/score"
)

// story is what there is to draw of one scenario.
type story struct {
	scenario *scenario.Scenario
	affected []topology.Zone // never empty, but in a scenario without clients
	runs     []run           // of the strategies that have results, in their order
	scores   scores
}

// run is one strategy in a scenario.
type run struct {
	look    look
	results []*sim.Result // one for each seed; the first is the one to draw over time
}

// scores are a table of the board with the looks of its rows.
type scores struct {
	subtitle string
	board    *score.Board
	rows     []scoreRow
}

// scoreRow is a row of the board.
type scoreRow struct {
	look  look
	cells []score.Cell
}

// story collects what belongs to a scenario.
func (r Report) story(sc *scenario.Scenario, looks []look) story {
	s := story{scenario: sc, affected: sc.Affected}
	if len(s.affected) == 0 {
		for i := range sc.Clients {
			s.affected = append(s.affected, sc.Clients[i].Zone)
		}
	}
	for _, l := range looks {
		current := run{look: l}
		for _, result := range r.Results {
			if result.Scenario == sc.Name && result.Strategy == l.name {
				current.results = append(current.results, result)
			}
		}
		if len(current.results) == 0 {
			continue
		}
		drawn := slices.IndexFunc(current.results, func(result *sim.Result) bool { return len(result.Line) > 0 })
		if drawn > 0 {
			current.results[0], current.results[drawn] = current.results[drawn], current.results[0]
		}
		s.runs = append(s.runs, current)
	}
	var table *score.Table
	if r.Board != nil {
		i := slices.IndexFunc(r.Board.Tables, func(t score.Table) bool { return t.Scenario == sc.Name })
		if i >= 0 {
			table = &r.Board.Tables[i]
		}
	}
	s.scores = r.scores(table, looks)
	s.scores.subtitle = title(sc)
	return s
}

// title is a scenario's, or its name.
func title(sc *scenario.Scenario) string {
	if sc.Title == "" {
		return sc.Name
	}
	return sc.Title
}

// overall is the table over all scenarios.
func (r Report) overall(looks []look) scores {
	var table *score.Table
	if r.Board != nil {
		table = &r.Board.Overall
	}
	s := r.scores(table, looks)
	s.subtitle = fmt.Sprintf("mean over %s", count(len(r.Scenarios), "scenario"))
	return s
}

// scores gives the rows of a table their looks, in the order of the strategies. A nil table has none.
func (r Report) scores(table *score.Table, looks []look) scores {
	s := scores{board: r.Board}
	if table == nil {
		return s
	}
	for _, l := range looks {
		i := slices.IndexFunc(table.Rows, func(row score.Row) bool { return row.Strategy == l.name })
		if i >= 0 {
			s.rows = append(s.rows, scoreRow{look: l, cells: table.Rows[i].Cells})
		}
	}
	return s
}

// cell finds a measure of a row; false: the board has none, or no seed had the number.
func (s *scores) cell(row *scoreRow, key string) (score.Cell, bool) {
	i := slices.IndexFunc(s.board.Measures, func(m score.Measure) bool { return m.Key == key })
	if i < 0 || i >= len(row.cells) || row.cells[i].Known == 0 || !isFinite(row.cells[i].Mean) {
		return score.Cell{}, false
	}
	return row.cells[i], true
}

// isFinite tells a number that can be drawn.
func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// count writes a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// line is what is drawn over time. It may be empty.
func (r *run) line() []sim.Point { return r.results[0].Line }

// mean is the mean over the seeds that have a number; not a number: none has.
func (r *run) mean(of func(*sim.Result) float64) float64 {
	sum, known := 0.0, 0
	for _, result := range r.results {
		if v := of(result); !math.IsNaN(v) {
			sum += v
			known++
		}
	}
	return sum / float64(known)
}

// known gives a number of figures; not a number: there were no requests, and what figures say then is no observation.
func known(f *sim.Figures, value float64) float64 {
	if f.Requests == 0 {
		return math.NaN()
	}
	return value
}

// who names the clients that the stress is about.
func (s *story) who() string {
	if len(s.affected) == len(s.scenario.Clients) {
		return "all clients"
	}
	names := make([]string, 0, len(s.affected))
	for _, zone := range s.affected {
		names = append(names, string(zone))
	}
	if len(names) == 1 {
		return "clients in zone " + names[0]
	}
	return "clients in zones " + strings.Join(names, ", ")
}

// when names the time of the stress.
func (s *story) when() string {
	if w := s.scenario.Stress; w.To > w.From {
		return fmt.Sprintf("While the stress is on (%s to %s)", seconds(w.From), seconds(w.To))
	}
	return "In this run"
}

// zones are what the affected clients saw in some seconds.
func (s *story) zones(points []sim.Point) iter.Seq[*sim.ZonePoint] {
	return func(yield func(*sim.ZonePoint) bool) {
		for i := range points {
			for j := range points[i].Zones {
				z := &points[i].Zones[j]
				if slices.Contains(s.affected, z.Zone) && !yield(z) {
					return
				}
			}
		}
	}
}

// spillAt is the share of the affected clients' requests that left their zone; not a number: none was taken.
func (s *story) spillAt(points []sim.Point) float64 {
	var crossed, answered int64
	for z := range s.zones(points) {
		crossed += z.Crossed
		answered += z.Answered
	}
	if answered == 0 {
		return math.NaN()
	}
	return float64(crossed) / float64(answered)
}

// goodAt is the share of the affected clients' requests that were good; not a number: there were none.
func (s *story) goodAt(points []sim.Point) float64 {
	var good, requests int64
	for z := range s.zones(points) {
		good += z.Good
		requests += z.Requests
	}
	if requests == 0 {
		return math.NaN()
	}
	return float64(good) / float64(requests)
}

// hasOneZone tells whether the stress is about a single zone among others: then its own p99 is drawn, otherwise that of
// all clients, as percentiles of zones do not add up.
func (s *story) hasOneZone() bool { return len(s.affected) == 1 && len(s.scenario.Clients) > 1 }

// p99At is the 99th percentile in seconds, of the worst of the points; not a number: there were no requests.
func (s *story) p99At(points []sim.Point) float64 {
	var p99 time.Duration
	if s.hasOneZone() {
		for z := range s.zones(points) {
			p99 = max(p99, z.P99)
		}
	} else {
		for i := range points {
			p99 = max(p99, points[i].P99)
		}
	}
	if p99 <= 0 {
		return math.NaN()
	}
	return p99.Seconds()
}

// p99 is what p99At is a second of, over the stress.
func (s *story) p99(r *sim.Result) float64 {
	of := &r.Window
	if s.hasOneZone() {
		of = &r.Affected
	}
	return known(of, of.P99.Seconds())
}

// length is how long the time axis is.
func (s *story) length() time.Duration {
	length := s.scenario.Length
	for i := range s.runs {
		if line := s.runs[i].line(); len(line) > 0 {
			length = max(length, line[len(line)-1].At+time.Second)
		}
	}
	return length
}
