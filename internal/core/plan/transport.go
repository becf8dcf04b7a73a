package plan

import "math"

// A transportation problem: what each source has goes to the sinks that have room, as cheaply as possible. It is solved
// twice for a service: in traffic, for what fractional shares could do, and in endpoints, for what hints do.
type transportation struct {
	supply []float64   // of each source, at least 0
	room   []float64   // of each sink, at least 0; together not less than the supply
	cost   [][]float64 // of one unit, by source and sink; finite, at least 0
}

// dust is an amount that counts as nothing: far above the rounding errors of a few hundred additions of numbers up to
// the largest number of endpoints, far below a share that anyone could see.
const dust = 1e-9

// solve gives the cheapest flow by source and sink. Whole supplies and rooms give a whole flow. Where
// several flows are cheapest, lower indexes come first.
//
// Method: successive shortest paths, each found by Bellman-Ford, as the path back over a used arc has a negative cost.
// Every path empties a source, fills a sink or frees an arc. Supply without room stays behind.
func (t *transportation) solve() [][]float64 {
	s := newPaths(t)
	for {
		sink := s.shortest()
		if sink < 0 {
			return s.flow
		}
		s.push(sink)
	}
}

// paths is the state of one solution.
type paths struct {
	*transportation
	flow       [][]float64
	left       []float64 // supply that waits, by source
	free       []float64 // room left, by sink
	toSource   []float64 // length of the shortest path to each source, and below to each sink
	toSink     []float64
	fromSink   []int // the sink before a source on that path; -1: the path starts here
	fromSource []int // the source before a sink
}

func newPaths(t *transportation) *paths {
	sources, sinks := len(t.supply), len(t.room)
	floats := make([]float64, sources*sinks+2*(sources+sinks))
	take := func(n int) []float64 {
		part := floats[:n:n]
		floats = floats[n:]
		return part
	}
	s := &paths{
		transportation: t,
		flow:           make([][]float64, sources),
		left:           take(sources),
		free:           take(sinks),
		toSource:       take(sources),
		toSink:         take(sinks),
		fromSink:       make([]int, sources),
		fromSource:     make([]int, sinks),
	}
	for i := range s.flow {
		s.flow[i] = take(sinks)
	}
	copy(s.left, t.supply)
	copy(s.free, t.room)
	return s
}

// shortest finds the cheapest path from a source that has something left to a sink that has room: the sink, or -1.
func (s *paths) shortest() int {
	for i, left := range s.left {
		s.toSource[i], s.fromSink[i] = math.Inf(1), -1
		if left > dust {
			s.toSource[i] = 0
		}
	}
	for j := range s.toSink {
		s.toSink[j] = math.Inf(1)
	}
	// No shortest path is longer than every source once; the bound also ends a loop that rounding might feed.
	for range s.supply {
		s.reachSinks()
		if !s.reachSources() {
			break
		}
	}
	best := -1
	for j, free := range s.free {
		if free > dust && !math.IsInf(s.toSink[j], 1) && (best < 0 || s.toSink[j] < s.toSink[best]-dust) {
			best = j
		}
	}
	return best
}

func (s *paths) reachSinks() {
	for i, row := range s.cost {
		if math.IsInf(s.toSource[i], 1) {
			continue
		}
		for j, cost := range row {
			if path := s.toSource[i] + cost; path < s.toSink[j]-dust {
				s.toSink[j], s.fromSource[j] = path, i
			}
		}
	}
}

// reachSources goes back over used arcs: source i may have its unit elsewhere. It tells whether a path got shorter.
func (s *paths) reachSources() bool {
	shorter := false
	for i, row := range s.flow {
		for j, flow := range row {
			if flow <= dust || s.fromSource[j] == i {
				continue
			}
			if path := s.toSink[j] - s.cost[i][j]; path < s.toSource[i]-dust {
				s.toSource[i], s.fromSink[i], shorter = path, j, true
			}
		}
	}
	return shorter
}

// push sends as much as possible along the shortest path to sink.
func (s *paths) push(sink int) {
	amount := s.free[sink]
	source := s.fromSource[sink]
	for s.fromSink[source] >= 0 {
		j := s.fromSink[source]
		amount = min(amount, s.flow[source][j])
		source = s.fromSource[j]
	}
	amount = min(amount, s.left[source])

	s.left[source] -= amount
	s.free[sink] -= amount
	for j := sink; j >= 0; {
		i := s.fromSource[j]
		s.flow[i][j] += amount
		if j = s.fromSink[i]; j >= 0 {
			s.flow[i][j] -= amount
		}
	}
}
