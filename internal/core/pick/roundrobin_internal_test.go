package pick

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/weir-lb/weir/internal/core/balance"
)

// take makes n picks and gives the index of each in its crowd.
func take(p picker, n int) []int {
	random := rand.New(rand.NewPCG(31, 32))
	picks := make([]int, n)
	for i := range picks {
		number := random.Uint64()
		picks[i] = int(p.pick(number, number).id) - 1
	}
	return picks
}

// in any window as long as the weights' sum everybody has exactly their weight.
func TestTurnsAreExactInEveryWindow(t *testing.T) {
	for _, c := range []struct {
		n       int
		weights []uint32
	}{
		{3, []uint32{1, 2, 3}},
		{3, []uint32{2, 4, 6}}, // the same
		{3, []uint32{100, 200, 300}},
		{2, []uint32{1, 1000}},
		{9, []uint32{8, 1, 1, 1, 1, 1, 1, 1, 1}},
		{5, []uint32{7}},
		{40, []uint32{1, 3, 9}},
		{40, []uint32{997, 1000, 13}}, // too many for a schedule
		{1000, []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
	} {
		t.Run(fmt.Sprintf("%d of %v", c.n, c.weights), func(t *testing.T) {
			endpoints := crowd(many(c.n, c.weights...))
			p := newPicker(&Config{Algorithm: RoundRobin}, endpoints, new(counter))
			reduced, sum := reducedWeights(endpoints)
			window := int(sum)
			picks := take(p, 3*window+17)
			have := counts(picks[:window], c.n)
			for at := window; ; at++ {
				for i, n := range have {
					if uint64(n) != reduced[i] {
						t.Fatalf("picks %d to %d: endpoint %d has %d turns of %d, want %d", at-window, at, i, n, window, reduced[i])
					}
				}
				if at == len(picks) {
					return
				}
				have[picks[at]]++
				have[picks[at-window]]--
				if picks[at] != picks[at-window] && at%window != 0 {
					t.Fatalf("pick %d differs from the one a period before", at)
				}
			}
		})
	}
}

// A window of any length is nearly right: nobody's turns come in a bunch.
func TestTurnsAreSpreadEvenly(t *testing.T) {
	random := rand.New(rand.NewPCG(33, 34))
	for range 60 {
		n := 2 + random.IntN(60)
		weights := make([]uint32, n)
		top := []uint32{3, 20, 1000}[random.IntN(3)]
		for i := range weights {
			weights[i] = 1 + random.Uint32N(top)
		}
		endpoints := crowd(many(n, weights...))
		p := newPicker(&Config{Algorithm: RoundRobin}, endpoints, new(counter))
		reduced, sum := reducedWeights(endpoints)
		had := make([]float64, n)
		for k, i := range take(p, int(min(2*sum, 20_000))) {
			had[i]++
			for j := range had {
				ideal := float64(k+1) * float64(reduced[j]) / float64(sum)
				if off := math.Abs(had[j] - ideal); off > 5 {
					t.Fatalf("%T, weights %v: after %d picks endpoint %d had %v turns, want %.1f", p, weights, k+1, j, had[j], ideal)
				}
			}
		}
	}
}

func TestEqualWeightsRotate(t *testing.T) {
	endpoints := crowd(many(7, 5))
	p := newPicker(&Config{Algorithm: RoundRobin}, endpoints, new(counter))
	if _, ok := p.(*roundRobin); !ok {
		t.Fatalf("equal weights have a %T", p)
	}
	picks := take(p, 70)
	for i, k := range picks {
		if want := (picks[0] + i) % 7; k != want {
			t.Fatalf("pick %d is %d, want %d", i, k, want)
		}
	}
}

func TestMemoryOfTurnsDoesNotFollowWeights(t *testing.T) {
	weights := make([]uint32, 5000)
	for i := range weights {
		weights[i] = uint32(1 + i%1000)
	}
	for _, heaviest := range []uint32{1000, math.MaxUint32} {
		weights[7] = heaviest
		endpoints := crowd(many(len(weights), weights...))
		p := newPicker(&Config{Algorithm: RoundRobin}, endpoints, new(counter)).(*strided)
		if cells := len(p.index.guide); cells > 2*len(weights)+2 {
			t.Errorf("a guide of %d cells for %d endpoints", cells, len(weights))
		}
		share := float64(heaviest) / (float64(heaviest) + 2_500_000)
		if got := float64(counts(take(p, 10_000), len(weights))[7]) / 10_000; math.Abs(got-share) > 0.01+share/100 {
			t.Errorf("weight %d has %.4f of the turns, want %.4f", heaviest, got, share)
		}
	}
}

// a slow start takes turns away, in proportion, and gives them to all others.
func TestSlowStartTakesTurnsAway(t *testing.T) {
	for _, weights := range [][]uint32{{1}, {1, 2, 3, 4, 5, 1}, {997, 1000, 13, 500, 501, 502}} {
		for _, part := range []float64{0.1, 0.5, 0.9} {
			targets := many(6, weights...)
			endpoints := crowd(targets)
			endpoints[3].ramp.Store(uint32(part * rampFull))
			p := newPicker(&Config{Algorithm: RoundRobin, Config: balance.Config{SlowStart: &SlowStart{}}}, endpoints, new(counter))
			sum := 0.0
			want := make([]float64, 6)
			for i := range want {
				want[i] = float64(weightOf(&targets[i]))
				if i == 3 {
					want[i] *= part
				}
				sum += want[i]
			}
			const picks = 60_000
			for i, n := range counts(take(p, picks), 6) {
				if got := float64(n) / picks; math.Abs(got-want[i]/sum) > 0.012 {
					t.Errorf("weights %v, endpoint 3 at %v: endpoint %d has %.4f of the picks, want %.4f", weights, part, i, got, want[i]/sum)
				}
			}
		}
	}
}

const rampFull = 1 << 16

func TestEverybodyNewIsPickedAllTheSame(t *testing.T) {
	for _, a := range []Algorithm{RoundRobin, LeastRequest} {
		for _, weights := range [][]uint32{{1}, {1, 2, 3}} {
			endpoints := crowd(many(3, weights...))
			for _, e := range endpoints {
				e.ramp.Store(1)
			}
			p := newPicker(&Config{Algorithm: a, Config: balance.Config{SlowStart: &SlowStart{}}}, endpoints, new(counter))
			for i, n := range counts(take(p, 6000), 3) {
				if n < 600 {
					t.Errorf("%s, weights %v: endpoint %d of three new ones has %d of 6000 picks", a, weights, i, n)
				}
			}
		}
	}
}

// shares gives everybody's part of many picks at random.
func shares(p picker, endpoints []*endpoint, picks int) []float64 {
	part := make([]float64, len(endpoints))
	for i, n := range counts(take(p, picks), len(endpoints)) {
		part[i] = float64(n) / float64(picks)
	}
	return part
}

// draws are with replacement, and all of them are at random.
func TestLeastRequestHasTheProbabilitiesOfDraws(t *testing.T) {
	for _, c := range []struct {
		n, choices      int
		busiest, idlest float64
	}{
		{2, 0, 0.25, 0.75},
		{2, 2, 0.25, 0.75},
		{2, 5, 1. / 32, 31. / 32},
		{10, 2, 0.01, 0.19},
		{10, 3, 0.001, 0.271},
		{10, 8, 0, 0.5695},
		{100, 2, 0.0001, 0.0199},
		{100, 20, 0, 0.1821},
	} {
		endpoints := crowd(many(c.n))
		for i, e := range endpoints {
			e.flow.Store(1) // all have one in flight, but for
			switch i {
			case 0:
				e.flow.Store(0)
			case c.n - 1:
				e.flow.Store(2)
			}
		}
		const picks = 50_000
		got := shares(newPicker(&Config{Algorithm: LeastRequest, Choices: c.choices}, endpoints, new(counter)), endpoints, picks)
		for name, pair := range map[string][2]float64{"idlest": {got[0], c.idlest}, "busiest": {got[c.n-1], c.busiest}} {
			if slack := 5*math.Sqrt(pair[1]/picks) + 1e-4; math.Abs(pair[0]-pair[1]) > slack {
				t.Errorf("%d of %d: the %s has %.5f of the picks, want %.5f", c.choices, c.n, name, pair[0], pair[1])
			}
		}
	}
}

func TestLeastRequestPassesByWhoDoesNotServe(t *testing.T) {
	for _, weights := range [][]uint32{{1}, {1, 2}} {
		endpoints := crowd(many(4, weights...))
		endpoints[1].standing.Store(out)
		endpoints[2].standing.Store(gone)
		for _, e := range endpoints {
			e.flow.Store(5)
		}
		endpoints[1].flow.Store(0)
		p := newPicker(&Config{Algorithm: LeastRequest, Choices: 30}, endpoints, new(counter))
		if got := shares(p, endpoints, 5000); got[1]+got[2] > 0.001 {
			t.Errorf("weights %v: who does not serve has %v of the picks", weights, got)
		}
	}
}

// A-80 with equal weights.
func TestSlowStartOfLeastRequest(t *testing.T) {
	for _, part := range []float64{0.1, 0.5} {
		endpoints := crowd(many(4))
		endpoints[2].ramp.Store(uint32(part * rampFull))
		p := newPicker(&Config{Algorithm: LeastRequest, Config: balance.Config{SlowStart: &SlowStart{}}}, endpoints, new(counter))
		if got, want := shares(p, endpoints, 40_000)[2], part/(3+part); math.Abs(got-want) > 0.01 {
			t.Errorf("at %v the newcomer has %.4f of the picks, want %.4f", part, got, want)
		}
	}
}

// exact for few, close for many.
func TestWeightedLeastRequestFollowsWeightAndLoad(t *testing.T) {
	random := rand.New(rand.NewPCG(35, 36))
	one, none, half, strong := 1.0, 0.0, 0.5, 2.0
	for _, n := range []int{2, 3, 16, 60} {
		for _, bias := range []*float64{nil, &one, &none, &half, &strong} {
			targets := many(n)
			endpoints := make([]*endpoint, 0, n)
			want, sum := make([]float64, n), 0.0
			for i := range targets {
				targets[i].Weight = 1 + random.Uint32N(10)
			}
			targets[0].Weight = 11 // they are never all the same
			power := 1.0
			if bias != nil {
				power = *bias
			}
			endpoints = append(endpoints, crowd(targets)...)
			for i, e := range endpoints {
				active := random.Uint64N(4)
				part := 1.0
				if i%5 == 1 {
					part = 0.25
					e.ramp.Store(rampFull / 4)
				}
				e.flow.Store(active)
				want[i] = part * float64(targets[i].Weight) * math.Pow(float64(active+1), -power)
				sum += want[i]
			}
			got := shares(newPicker(&Config{Algorithm: LeastRequest, Bias: bias, Config: balance.Config{SlowStart: &SlowStart{}}}, endpoints, new(counter)), endpoints, 60_000)
			for i := range want {
				// Of many, those that are favoured by far get somewhat less: see leastWeighted.
				slack := 0.01
				if n > fewWeighted {
					slack += 0.2 * want[i] / sum
				}
				if math.Abs(got[i]-want[i]/sum) > slack {
					t.Errorf("%d endpoints, bias %v: endpoint %d has %.4f of the picks, want %.4f", n, power, i, got[i], want[i]/sum)
				}
			}
		}
	}
}

func TestManyInFlightCountForThemselves(t *testing.T) {
	endpoints := crowd(many(2, 1, 3))
	endpoints[0].flow.Store(299)
	endpoints[1].flow.Store(599)
	p := newPicker(&Config{Algorithm: LeastRequest}, endpoints, new(counter))
	if got := shares(p, endpoints, 40_000)[0]; math.Abs(got-0.4) > 0.01 { // 1/300 to 3/600
		t.Errorf("the first has %.4f of the picks, want 0.4", got)
	}
}

//
func TestRandomIgnoresWeights(t *testing.T) {
	endpoints := crowd(many(4, 1, 100))
	for i, got := range shares(newPicker(&Config{Algorithm: Random}, endpoints, new(counter)), endpoints, 40_000) {
		if math.Abs(got-0.25) > 0.01 {
			t.Errorf("endpoint %d has %.4f of the picks, want a quarter", i, got)
		}
	}
}

func TestPlacesAgreeWithTheirDumbTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(37, 38))
	for range 500 {
		lengths := make([]uint64, 1+random.IntN(20))
		for i := range lengths {
			lengths[i] = random.Uint64N(1 << random.IntN(30))
		}
		lengths[random.IntN(len(lengths))]++
		o := newWeightedIndex(lengths)
		numbers := []uint64{0, o.whole - 1}
		for _, end := range o.ends {
			numbers = append(numbers, end, end-1, random.Uint64N(o.whole))
		}
		for _, number := range numbers {
			if number >= o.whole {
				continue
			}
			want, left := 0, number
			for ; left >= lengths[want]; want++ {
				left -= lengths[want]
			}
			if got := o.at(number); int(got) != want {
				t.Fatalf("lengths %v: number %d is in part %d, want %d", lengths, number, got, want)
			}
		}
	}
}

func TestSharesCoverTheWholeInterval(t *testing.T) {
	random := rand.New(rand.NewPCG(39, 40))
	for range 500 {
		parts := make([]float64, 1+random.IntN(9))
		for i := range parts {
			parts[i] = random.Float64() * math.Pow(10, float64(random.IntN(12)))
			if i > 0 && random.IntN(3) == 0 {
				parts[i] = 0
			}
		}
		o := sharedIndex(parts)
		if last := o.at(whole - 1); o.whole != whole || parts[last] == 0 {
			t.Fatalf("shares %v cover %d, the last number belongs to %d", parts, o.whole, last)
		}
	}
}

// what a part has of the requests falls once less than 1/1.4 of it serves.
func TestPartsLoseTheirShareWithTheirEndpoints(t *testing.T) {
	const layout = "10.0.0.1:80@x:1 10.0.0.2:80@x:1 10.0.0.3:80@y:2 10.0.0.4:80@y:2"
	for _, c := range []struct {
		name, layout string
		out, unready []int
		want         []float64
	}{
		{"all serve", layout, nil, nil, []float64{1. / 6, 1. / 6, 1. / 3, 1. / 3}},
		{"half of the first is out", layout, []int{0}, nil, []float64{0, 0.259, 0.3705, 0.3705}}, // 25.9 to 74.1
		{"half of it is not ready", layout, nil, []int{1}, []float64{0.259, 0, 0.3705, 0.3705}},
		{"all of the second are out", layout, []int{2, 3}, nil, []float64{0.5, 0.5, 0, 0}},
		{"only who has no weight is ready", "10.0.0.1:80@host:90 10.0.0.2:80@rack:0 10.0.0.3:80@rack:0", nil, []int{0, 1}, []float64{0, 0, 1}},
		{"nobody serves", layout, []int{0, 1, 2, 3}, nil, []float64{0.25, 0.25, 0.25, 0.25}},
		{"default weights", "10.0.0.1:80@host:90 10.0.0.2:80@rack:9 10.0.0.3:80@:1 10.0.0.4:80@:1", nil, nil, []float64{0.9, 0.09, 0.005, 0.005}},
		{"no weight", "10.0.0.1:80@host:90 10.0.0.2:80@rack:0 10.0.0.3:80@:10 10.0.0.4:80@:10", nil, nil, []float64{0.9, 0, 0.05, 0.05}},
	} {
		for _, a := range []Algorithm{Random, RoundRobin, LeastRequest, PowerOfTwo} {
			t.Run(c.name+" "+string(a), func(t *testing.T) {
				endpoints := crowd(row(c.layout))
				for _, i := range c.out {
					endpoints[i].standing.Store(out)
				}
				for _, i := range c.unready {
					endpoints[i].target.Unready = true
				}
				p := newPicker(&Config{Algorithm: a}, endpoints, new(counter))
				got := shares(p, endpoints, 40_000)
				if slices.Max(c.want) == 0.25 {
					return // there it only matters that somebody is picked
				}
				for i := range got {
					if math.Abs(got[i]-c.want[i]) > 0.012 {
						t.Errorf("endpoint %d has %.4f of the picks, want %.4f", i, got[i], c.want[i])
					}
				}
			})
		}
	}
}

// Within a part weights count as anywhere.
func TestWeightsCountWithinParts(t *testing.T) {
	endpoints := crowd(row("10.0.0.1:80*1@x:3 10.0.0.2:80*3@x:3 10.0.0.3:80*1@y:1 10.0.0.4:80*1@y:1"))
	want := []float64{3. / 16, 9. / 16, 1. / 8, 1. / 8}
	for _, a := range []Algorithm{RoundRobin, LeastRequest} {
		for i, got := range shares(newPicker(&Config{Algorithm: a}, endpoints, new(counter)), endpoints, 40_000) {
			if math.Abs(got-want[i]) > 0.012 {
				t.Errorf("%s: endpoint %d has %.4f of the picks, want %.4f", a, i, got, want[i])
			}
		}
	}
}

// The choice of the group and the choice of the part come from one random number and must not know of each other.
func TestPartsDoNotDependOnTheChoiceOfTheGroup(t *testing.T) {
	random := rand.New(rand.NewPCG(41, 42))
	endpoints := crowd(row("10.0.0.1:80@x:1 10.0.0.2:80@x:1 10.0.0.3:80@y:1 10.0.0.4:80@y:1"))
	p := newPicker(&Config{Algorithm: Random}, endpoints, new(counter))
	var have [4]float64
	n := 0.0
	for range 150_000 {
		number := random.Uint64()
		if upper(scatter(number)) > whole/10 { // as a view places requests
			continue
		}
		n++
		have[slices.Index(endpoints, p.pick(number, number))]++
	}
	for i := range have {
		if math.Abs(have[i]/n-0.25) > 0.015 {
			t.Errorf("endpoint %d has %.4f of a group's picks, want a quarter", i, have[i]/n)
		}
	}
}

func TestPickersAllocateNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(43, 44))
	for _, a := range Algorithms() {
		for _, weights := range [][]uint32{{1}, {1, 2, 3}, {997, 1000, 13}} {
			for _, part := range []uint32{0, 5} {
				targets := many(50, weights...)
				for i := range targets {
					targets[i].AffinityWeight = part
					targets[i].Affinity = []string{"near", "far"}[i%2]
				}
				endpoints := crowd(targets)
				endpoints[3].ramp.Store(rampFull / 3)
				p := newPicker(&Config{Algorithm: a, Choices: 5, Config: balance.Config{SlowStart: &SlowStart{}}}, endpoints, new(counter))
				if n := testing.AllocsPerRun(500, func() { p.pick(random.Uint64(), 7) }); n != 0 {
					t.Errorf("%s, weights %v, parts %d: %v allocations, want 0", a, weights, part, n)
				}
			}
		}
	}
}

func TestTurnsMayBeTakenAtTheSameTime(t *testing.T) {
	for _, weights := range [][]uint32{{1}, {1, 2, 3}, {997, 1000, 13}} {
		endpoints := crowd(many(30, weights...))
		p := newPicker(&Config{Algorithm: RoundRobin}, endpoints, new(counter))
		reduced, sum := reducedWeights(endpoints)
		var all sync.WaitGroup
		const takers = 4
		each := make([][]int, takers)
		for k := range each {
			all.Go(func() { each[k] = counts(take(p, int(sum)), 30) })
		}
		all.Wait()
		for i := range endpoints {
			n := 0
			for k := range each {
				n += each[k][i]
			}
			if uint64(n) != takers*reduced[i] {
				t.Errorf("weights %v: endpoint %d has %d turns of %d periods, want %d", weights, i, n, takers, takers*reduced[i])
			}
		}
	}
}

func BenchmarkPickers(b *testing.B) {
	for _, a := range Algorithms() {
		for _, weights := range [][]uint32{{1}, {1, 2, 3}, {997, 1000, 13}} {
			b.Run(fmt.Sprintf("%s/weights=%d", a, weights[len(weights)-1]), func(b *testing.B) {
				p := newPicker(&Config{Algorithm: a}, crowd(many(100, weights...)), new(counter))
				b.ReportAllocs()
				number := uint64(0)
				for b.Loop() {
					number += golden
					p.pick(mix(number), number)
				}
			})
		}
	}
}
