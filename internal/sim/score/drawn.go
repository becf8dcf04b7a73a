package score

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/weir-lb/weir/internal/grid"
	"github.com/weir-lb/weir/internal/sim"
)

// Drawn is what a comparison of scenarios that were drawn at random says beside its tables, which are by kind.
type Drawn struct {
	Seed      uint64  `json:"seed"`
	Scenarios int     `json:"scenarios"`
	Strategy  string  `json:"strategy"` // which the others are compared with
	Rivals    []Rival `json:"rivals"`
	// Calm counts the scenarios in which both the strategy and the limit answer 98 % well; CalmCost is the strategy's cost there as
	// a multiple of the limit's. 0: there is no limit, or it costs nothing.
	Calm     int     `json:"calm"`
	CalmCost float64 `json:"calmCost"`
	// Oscillating counts the scenarios in which the strategy's spill varies by more than 6 points.
	Oscillating int `json:"oscillating"`
	// Runs are the scenarios one by one, in the order in which they were drawn.
	Runs []DrawnRun `json:"runs"`
}

// DrawnRun is one drawn scenario, with a number for each strategy by its name.
type DrawnRun struct {
	Scenario    string             `json:"scenario"`
	Good        map[string]float64 `json:"good"`
	Dollars     map[string]float64 `json:"dollarsPerHour"`
	Oscillation map[string]float64 `json:"oscillation"`
}

// Rival is another strategy in the same scenarios. Numbers are fractions of good answers: the strategy's minus the other's.
type Rival struct {
	Strategy string    `json:"strategy"`
	Title    string    `json:"title"`
	Limit    bool      `json:"limit,omitempty"`
	Mean     float64   `json:"mean"`
	Better   int       `json:"better"` // scenarios, by more than 2 points
	Worse    int       `json:"worse"`
	Worst    []Extreme `json:"worst"` // the scenarios with the smallest difference, which are below 0
}

// Extreme is a scenario by which a strategy loses.
type Extreme struct {
	Scenario   string  `json:"scenario"`
	Difference float64 `json:"difference"`
	Good       float64 `json:"good"` // of the strategy
	Other      float64 `json:"other"`
}

const (
	// clearly is a difference in good answers that users notice: 2 points.
	clearly = 0.02
	// wellServed is a share of good answers with which cost is what counts.
	wellServed = 0.98
	// restless is a spill that varies by more than 6 points.
	restless = 0.06
	// mostExtremes is how many scenarios are named.
	mostExtremes = 3
)

// Draw says how scenarios were drawn.
type Draw struct {
	Seed    uint64
	Names   []string      // of the scenarios
	Kind    func(int) int // of a scenario, as an index into Kinds
	Kinds   []Label
	Against string // the strategy that the others are compared with
}

// CompareDrawn makes a board of results of drawn scenarios, one run of each with each strategy. Its tables are by kind, its
// numbers means over the scenarios of the kind.
func CompareDrawn(results []*sim.Result, d Draw, o Options) Board {
	number := make(map[string]int, len(d.Names))
	for i, name := range d.Names {
		number[name] = i
	}
	byKind, all := make([]*sim.Result, 0, len(results)), make([]*sim.Result, 0, len(results))
	for _, r := range results {
		i, ok := number[r.Scenario]
		if !ok {
			continue
		}
		kind, whole := *r, *r
		kind.Scenario, kind.Seed = d.Kinds[d.Kind(i)].Name, uint64(i) //nolint:gosec // an index.
		whole.Scenario, whole.Seed, whole.Line = "overall", kind.Seed, nil
		byKind, all = append(byKind, &kind), append(all, &whole)
	}
	o.Scenarios = d.Kinds
	b := Compare(byKind, o)
	o.Scenarios = []Label{{Name: "overall", Title: "all drawn scenarios"}}
	total := Compare(all, o)
	b.Overall = total.Tables[0]
	b.Drawn = &Drawn{Seed: d.Seed, Scenarios: len(d.Names), Strategy: d.Against}
	b.Drawn.compare(all, &d, &b.Overall)
	return b
}

// byNumber are the runs of a strategy that had requests, by the number of the scenario.
type byNumber map[int]*sim.Result

// compare sets the strategy against each other one, scenario by scenario.
func (d *Drawn) compare(results []*sim.Result, draw *Draw, t *Table) {
	runs := make(map[string]byNumber)
	for i := range t.Rows {
		runs[t.Rows[i].Strategy] = make(byNumber)
	}
	for _, r := range results {
		if all := runs[r.Strategy]; all != nil && r.Window.Requests > 0 {
			all[int(r.Seed)] = r //nolint:gosec // an index.
		}
	}
	d.list(runs, draw)
	own := runs[draw.Against]
	for _, r := range own {
		if r.Oscillation > restless {
			d.Oscillating++
		}
	}
	for i := range t.Rows {
		row := &t.Rows[i]
		if row.Strategy == draw.Against || len(own) == 0 {
			continue
		}
		rival := Rival{Strategy: row.Strategy, Title: row.Title, Limit: row.Limit, Worst: []Extreme{}}
		rival.compare(own, runs[row.Strategy], draw.Names)
		d.Rivals = append(d.Rivals, rival)
		if row.Limit {
			d.spend(own, runs[row.Strategy])
		}
	}
}

// list tells each scenario's numbers.
func (d *Drawn) list(runs map[string]byNumber, draw *Draw) {
	for number, name := range draw.Names {
		run := DrawnRun{Scenario: name, Good: map[string]float64{}, Dollars: map[string]float64{}, Oscillation: map[string]float64{}}
		for strategy, all := range runs {
			if r := all[number]; r != nil {
				run.Good[strategy], run.Dollars[strategy] = rounded(r.Window.Good), rounded(r.Window.Dollars)
				run.Oscillation[strategy] = rounded(r.Oscillation)
			}
		}
		d.Runs = append(d.Runs, run)
	}
}

// spend compares the cost with that of the limit where both serve well.
func (d *Drawn) spend(own, limit byNumber) {
	var spent, least float64
	for _, number := range slices.Sorted(maps.Keys(own)) { // sums of floats depend on the order
		a, b := own[number], limit[number]
		if b != nil && min(a.Window.Good, b.Window.Good) >= wellServed {
			d.Calm++
			spent, least = spent+a.Window.Dollars, least+b.Window.Dollars
		}
	}
	if least > 0 {
		d.CalmCost = rounded(spent / least)
	}
}

// compare sets all runs of the strategy against those of the other.
func (r *Rival) compare(own, other byNumber, names []string) {
	n := 0.0
	for number, name := range names {
		if a, b := own[number], other[number]; a != nil && b != nil {
			n++
			r.add(name, a.Window.Good, b.Window.Good)
		}
	}
	r.Mean = rounded(r.Mean / max(1, n))
	slices.SortStableFunc(r.Worst, func(a, b Extreme) int { return cmp.Compare(a.Difference, b.Difference) })
	r.Worst = r.Worst[:min(len(r.Worst), mostExtremes)]
}

// add takes in a scenario.
func (r *Rival) add(scenario string, own, other float64) {
	difference := own - other
	r.Mean += difference
	switch {
	case difference > clearly:
		r.Better++
	case difference < -clearly:
		r.Worse++
	}
	if difference < 0 {
		r.Worst = append(r.Worst, Extreme{
			Scenario: scenario, Difference: rounded(difference), Good: rounded(own), Other: rounded(other),
		})
	}
}

// drawnTables are those of drawn scenarios: good answers by kind, and the strategy against each other one.
func (b *Board) drawnTables() (kinds, rivals [][]grid.Cell) {
	head := []grid.Cell{{Text: "good %", Tone: grid.Dim}}
	for i := range b.Tables {
		head = append(head, grid.Cell{Text: b.Tables[i].Scenario, Tone: grid.Dim})
	}
	kinds = append(kinds, append(head, grid.Cell{Text: "all", Tone: grid.Dim}))
	for r := range b.Overall.Rows {
		row := []grid.Cell{grid.Text(b.Overall.Rows[r].Title)}
		for i := range b.Tables {
			row = append(row, goodCell(&b.Tables[i].Rows[r]))
		}
		kinds = append(kinds, append(row, goodCell(&b.Overall.Rows[r])))
	}
	rivals = append(rivals, nil)
	for _, title := range []string{"other", "mean", "better", "worse", "worst", "own", "other's", "scenario"} {
		rivals[0] = append(rivals[0], grid.Cell{Text: title, Tone: grid.Dim})
	}
	for _, r := range b.Drawn.Rivals {
		row := []grid.Cell{
			grid.Text(cmp.Or(r.Title, r.Strategy)), grid.Text(signed(r.Mean)),
			grid.Text(strconv.Itoa(r.Better)), grid.Text(strconv.Itoa(r.Worse)),
		}
		for i, e := range r.Worst {
			if i > 0 {
				row = []grid.Cell{{}, {}, {}, {}}
			}
			rivals = append(rivals, append(row, grid.Text(signed(e.Difference)), grid.Text(fixed(hundred*e.Good, 1)),
				grid.Text(fixed(hundred*e.Other, 1)), grid.Text(e.Scenario)))
		}
		if len(r.Worst) == 0 {
			rivals = append(rivals, append(row, grid.Text("-"), grid.Text("-"), grid.Text("-"), grid.Text("-")))
		}
	}
	return kinds, rivals
}

func goodCell(r *Row) grid.Cell {
	c := r.Cells[goodKey]
	if c.Known == 0 {
		return grid.Text("-")
	}
	cell := grid.Text(fixed(hundred*c.Mean, 1))
	if c.Best {
		cell.Tone = best
	}
	return cell
}

func signed(fraction float64) string {
	if math.Abs(fraction) < 0.0005 {
		return "0.0"
	}
	return fmt.Sprintf("%+.1f", hundred*fraction)
}

// drawnNotes say what the tables mean.
func (b *Board) drawnNotes() []string {
	d := b.Drawn
	notes := []string{
		fmt.Sprintf("%d scenarios drawn with seed %d, one run each. Differences are in points of good answers, own less other's; better and "+
			"worse count the scenarios with more than 2 points.", d.Scenarios, d.Seed),
		fmt.Sprintf("%s: the spill varies by more than 6 points in %s.", d.Strategy, count(d.Oscillating, "scenario")),
	}
	if d.CalmCost > 0 {
		notes = append(notes, fmt.Sprintf("Where %s and the limit both answer 98 %% well (%s) it costs %.2f times as much as the limit.",
			d.Strategy, count(d.Calm, "scenario"), d.CalmCost))
	}
	return append(notes, fmt.Sprintf("To look into one: weir simulate SCENARIO --seed %d --seeds 1; --show SCENARIO prints it.", d.Seed))
}
