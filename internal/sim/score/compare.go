package score

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/weir-lb/weir/internal/sim"
)

// Options say what a board has. The zero value takes everything there is a result of, by name.
type Options struct {
	Scenarios  []Label   // rows of results that are not named are left out
	Strategies []Label   // likewise
	Measures   []Measure // nil: Measures()
}

// Compare makes a board of results: any number of them, in any order, nil ones left out. Of two results of the same
// scenario, strategy and seed only one counts: equal runs have equal results.
func Compare(results []*sim.Result, o Options) Board {
	runs := gather(results)
	o = o.completed(runs)
	b := Board{
		Notice: notice, Confidence: confidence, Measures: o.Measures, Seeds: runs.seeds(&o), Tables: make([]Table, 0, len(o.Scenarios)),
	}
	fields := make([]field, 0, len(o.Scenarios))
	for _, s := range o.Scenarios {
		f := runs.field(s, &o)
		t := f.table(&o)
		t.Scenario, t.Title = s.Name, s.Title
		for i := range t.Rows {
			t.Rows[i].Spill = spill(runs[of{s.Name, o.Strategies[i].Name}], s.Affected)
		}
		fields = append(fields, f)
		b.Tables = append(b.Tables, t)
	}
	all, shared := overall(fields, &o)
	b.Overall = all.table(&o)
	b.Common, b.commonSeeds = len(shared.fields), len(shared.seeds)
	b.Overall.Scenario, b.Overall.Title = "overall", "all scenarios"
	return b
}

// completed fills in what was not named.
func (o Options) completed(rs runs) Options {
	names := func(name func(of) string) (labels []Label) {
		set := make(map[string]bool)
		for key := range rs {
			set[name(key)] = true
		}
		for _, name := range slices.Sorted(maps.Keys(set)) {
			labels = append(labels, Label{Name: name, Title: name})
		}
		return labels
	}
	if o.Scenarios == nil {
		o.Scenarios = names(func(key of) string { return key.scenario })
	}
	if o.Strategies == nil {
		o.Strategies = names(func(key of) string { return key.strategy })
	}
	if o.Measures == nil {
		o.Measures = Measures()
	}
	return o
}

// of says what a run was of.
type of struct{ scenario, strategy string }

// runs are the results, each list by seed, each seed once.
type runs map[of][]*sim.Result

func gather(results []*sim.Result) runs {
	found := make(runs)
	for _, r := range results {
		if r != nil {
			key := of{r.Scenario, r.Strategy}
			found[key] = append(found[key], r)
		}
	}
	for key, list := range found {
		slices.SortStableFunc(list, func(a, b *sim.Result) int { return cmp.Compare(a.Seed, b.Seed) })
		found[key] = slices.CompactFunc(list, func(a, b *sim.Result) bool { return a.Seed == b.Seed })
	}
	return found
}

// seeds counts the different seeds of what a board has.
func (rs runs) seeds(o *Options) int {
	set := make(map[uint64]bool)
	for _, scenario := range o.Scenarios {
		for _, strategy := range o.Strategies {
			for _, r := range rs[of{scenario.Name, strategy.Name}] {
				set[r.Seed] = true
			}
		}
	}
	return len(set)
}

// field is the numbers of one scenario.
type field struct {
	runs   []int      // of each strategy
	series [][]series // of each measure and strategy
}

// series is one measure of one strategy in one scenario.
type series struct {
	points []point // by seed
	known  int     // of asked
	asked  int     // runs that had the number, or never got there
}

// point is a number of one run.
type point struct {
	seed  uint64
	value float64
	never bool
}

func (s *series) add(p point) {
	s.points = append(s.points, p)
	s.count(p)
}

func (s *series) count(p point) {
	s.asked++
	if !p.never {
		s.known++
	}
}

// at finds the point of a seed.
func (s *series) at(seed uint64) (point, bool) {
	i, ok := slices.BinarySearchFunc(s.points, seed, func(p point, seed uint64) int { return cmp.Compare(p.seed, seed) })
	if !ok {
		return point{}, false
	}
	return s.points[i], true
}

// field reads the numbers of a scenario.
func (rs runs) field(scenario Label, o *Options) field {
	f := field{runs: make([]int, len(o.Strategies)), series: make([][]series, len(o.Measures))}
	for c, l := range o.Strategies {
		f.runs[c] = len(rs[of{scenario.Name, l.Name}])
	}
	for m := range o.Measures {
		measure := &o.Measures[m]
		f.series[m] = make([]series, len(o.Strategies))
		for c, l := range o.Strategies {
			for _, r := range rs[of{scenario.Name, l.Name}] {
				value, ok := measure.read(r)
				if ok || measure.Never != nil {
					f.series[m][c].add(point{seed: r.Seed, value: value, never: !ok})
				}
			}
		}
		if measure.Never != nil {
			measure.fillNever(f.series[m], measure.Never(scenario))
		}
	}
	return f
}

// read gives a finite number or none. What is beyond any measure is none, so that no sum of squares overflows.
func (m *Measure) read(r *sim.Result) (float64, bool) {
	const beyond = 1e100
	value, ok := m.Of(r)
	if !ok || math.IsNaN(value) || math.Abs(value) > beyond {
		return 0, false
	}
	return value, true
}

// fillNever gives the points that never got there the worst number: never, or what is worse than that.
func (m *Measure) fillNever(all []series, never float64) {
	worse := math.Max
	if m.Better == Higher {
		worse = math.Min
	}
	for c := range all {
		for _, p := range all[c].points {
			if !p.never {
				never = worse(never, p.value)
			}
		}
	}
	for c := range all {
		for i := range all[c].points {
			if p := &all[c].points[i]; p.never {
				p.value = never
			}
		}
	}
}

// table judges the numbers.
func (f *field) table(o *Options) Table {
	t := Table{Rows: make([]Row, 0, len(o.Strategies)), pairs: make(map[pair]Difference)}
	for c, l := range o.Strategies {
		row := Row{Strategy: l.Name, Title: cmp.Or(l.Title, l.Name), Runs: f.runs[c], Limit: l.Limit, Cells: make(map[string]Cell, len(o.Measures))}
		for m := range o.Measures {
			row.Cells[o.Measures[m].Key] = f.cell(m, c, o)
			for other := range o.Strategies {
				if other != c {
					key := pair{l.Name, o.Strategies[other].Name, o.Measures[m].Key}
					t.pairs[key] = o.Measures[m].difference(&f.series[m][c], &f.series[m][other])
				}
			}
		}
		t.Rows = append(t.Rows, row)
	}
	t.measureDistances()
	return t
}

func (f *field) cell(m, c int, o *Options) Cell {
	measure, s := &o.Measures[m], &f.series[m][c]
	values := make([]float64, 0, len(s.points))
	for _, p := range s.points {
		values = append(values, p.value)
	}
	cell := Cell{Seeds: len(values), Known: s.known, Runs: s.asked}
	cell.Mean, cell.Half = meanAndHalf(values)
	beats, beaten := false, false
	for other := range f.series[m] {
		if other == c || o.Strategies[other].Limit || o.Strategies[c].Limit {
			continue
		}
		verdict := measure.difference(s, &f.series[m][other]).Verdict
		beats = beats || verdict == Better
		beaten = beaten || verdict == Worse
	}
	cell.Best = beats && !beaten
	return cell
}

// common is what every strategy ran that was run at all.
type common struct {
	fields []int
	seeds  []uint64
}

// overall averages over the scenarios, seed by seed. Only what every strategy ran counts that was run at all: means over
// different scenarios would say nothing of the strategies, and means of different seeds nothing of the noise.
func overall(fields []field, o *Options) (all field, most common) {
	all = field{runs: make([]int, len(o.Strategies)), series: make([][]series, len(o.Measures))}
	for i := range fields {
		for c, n := range fields[i].runs {
			all.runs[c] += n
		}
	}
	for m := range o.Measures {
		all.series[m] = make([]series, len(o.Strategies))
		var shared common
		for i := range fields {
			shared.add(i, complete(fields[i].series[m], all.runs))
		}
		for c, n := range all.runs {
			if n > 0 {
				all.series[m][c] = shared.average(fields, m, c)
			}
		}
		if len(shared.fields)*len(shared.seeds) > len(most.fields)*len(most.seeds) {
			most = shared
		}
	}
	return all, most
}

// complete gives the seeds, sorted, with which every strategy has a number that was run at all.
func complete(all []series, runs []int) []uint64 {
	var seeds []uint64
	first := true
	for c := range all {
		if runs[c] == 0 {
			continue
		}
		if first {
			for _, p := range all[c].points {
				seeds = append(seeds, p.seed)
			}
		}
		first = false
		seeds = slices.DeleteFunc(seeds, func(seed uint64) bool {
			_, ok := all[c].at(seed)
			return !ok
		})
	}
	return seeds
}

// add takes a scenario in, with the seeds that it shares with those before. One without any says nothing.
func (s *common) add(i int, seeds []uint64) {
	if len(seeds) == 0 {
		return
	}
	if len(s.fields) == 0 {
		s.seeds = seeds
	}
	s.fields = append(s.fields, i)
	s.seeds = slices.DeleteFunc(s.seeds, func(seed uint64) bool { return !slices.Contains(seeds, seed) })
}

// average makes a strategy's series of means over the scenarios.
func (s *common) average(fields []field, m, c int) series {
	var all series
	for _, seed := range s.seeds {
		var values []float64
		for _, i := range s.fields {
			p, _ := fields[i].series[m][c].at(seed) // complete has seen it
			values = append(values, p.value)
			all.count(p)
		}
		all.points = append(all.points, point{seed: seed, value: mean(values)})
	}
	return all
}
