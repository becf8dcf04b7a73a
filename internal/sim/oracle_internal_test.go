package sim

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

// leastCost is transport's twin: it tries every way to divide whole demands over whole rooms. Infinite: there is none.
func leastCost(demands, rooms []int, costs [][]float64) float64 {
	zone := 0
	for zone < len(demands) && demands[zone] == 0 {
		zone++
	}
	if zone == len(demands) {
		return 0
	}
	least := math.Inf(1)
	for room := range rooms {
		if rooms[room] == 0 {
			continue
		}
		demands[zone]--
		rooms[room]--
		least = min(least, costs[zone][room]+leastCost(demands, rooms, costs))
		demands[zone]++
		rooms[room]++
	}
	return least
}

func TestTheOracleDividesDemandAtTheLeastCost(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		zones, groups := 1+random.IntN(3), 1+random.IntN(3)
		demands, rooms, costs := make([]int, zones), make([]int, groups), make([][]float64, zones)
		need, room := 0, 0
		for z := range demands {
			demands[z] = random.IntN(4)
			need += demands[z]
			for range groups {
				costs[z] = append(costs[z], float64(random.IntN(6)))
			}
		}
		for g := range rooms {
			rooms[g] = random.IntN(6)
			room += rooms[g]
		}
		if need > room {
			continue
		}
		floats := func(all []int) (some []float64) {
			for _, n := range all {
				some = append(some, float64(n))
			}
			return some
		}
		flows := transport(floats(demands), floats(rooms), costs)
		cost, used := 0.0, make([]float64, groups)
		for z := range flows {
			sum := 0.0
			for g, flow := range flows[z] {
				if flow < -1e-9 {
					t.Fatalf("a flow of %v", flow)
				}
				cost += flow * costs[z][g]
				used[g] += flow
				sum += flow
			}
			if math.Abs(sum-float64(demands[z])) > 1e-6 {
				t.Fatalf("demand %d of %v gets %v", z, demands, sum)
			}
		}
		for g := range used {
			if used[g] > float64(rooms[g])+1e-6 {
				t.Fatalf("room %d of %v is used by %v", g, rooms, used[g])
			}
		}
		if want := leastCost(demands, rooms, costs); math.Abs(cost-want) > 1e-6 {
			t.Fatalf("demands %v, rooms %v, costs %v: it costs %v, and %v would do", demands, rooms, costs, cost, want)
		}
	}
}

// foreseen plays a scenario with the oracle.
func foreseen(t *testing.T, text string) *Result {
	t.Helper()
	sc, err := scenario.Parse("foreseen", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	oracle, err := strategy.Named(strategy.OracleName)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(Options{Scenario: sc, Strategy: &oracle, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const foreseenHead = `What is to come is known
-- cluster --
nodes a:4x2 b:4x2 c:4x2
service web
endpoints a:6 b:6 c:6
-- run --
clients a:2 b:2 c:2
rate a:660 b:660 c:660
length 60s
stress 20s..50s
-- steps --
`

func TestUnderTheOracleNoEndpointIsTooBusyWhereThatIsPossible(t *testing.T) {
	for _, c := range []struct {
		name, steps    string
		least, most    float64 // of the busiest endpoint, over the stress
		inZone, inMore float64
	}{
		{"at rest all stays", "", 0.50, 0.60, 0.99, 1},
		{"a surge is sent away, as far as it has to be", "20s rate a x2\n", 0.80, 0.87, 0.86, 0.93},
		{"what is slow is avoided", "20s slow a x10\n", 0.75, 0.87, 0.66, 0.68},
		{"what fails is avoided", "20s fail a/50% 1\n", 0.80, 0.87, 0.88, 1},
		{"what is lost is avoided at once", "20s lose a\n", 0.75, 0.87, 0.66, 0.68},
		{"where it is not possible all are as busy", "20s rate * x1.65\n", 0.88, 0.94, 0.3, 0.4},
	} {
		r := foreseen(t, foreseenHead+c.steps)
		busiest := 0.0
		for _, e := range r.Endpoints {
			busiest = max(busiest, e.Load)
		}
		if busiest < c.least || busiest > c.most {
			t.Errorf("%s: the busiest endpoint is %.3f busy, want %v to %v", c.name, busiest, c.least, c.most)
		}
		if in := r.Window.InZone; in < c.inZone || in > c.inMore {
			t.Errorf("%s: %.3f stay in their zone, want %v to %v", c.name, in, c.inZone, c.inMore)
		}
		if r.Window.Success < 0.9999 || r.Window.Good < 0.97 {
			t.Errorf("%s: success %.4f, good %.4f", c.name, r.Window.Success, r.Window.Good)
		}
	}
}

func TestTheOracleSpillsToTheCheapestZone(t *testing.T) {
	r := foreseen(t, strings.Replace(foreseenHead, "nodes", "costs a>c=3\nnodes", 1)+"20s rate a x2\n")
	busy := make(map[string]float64)
	for _, e := range r.Endpoints {
		busy[string(e.Zone)] += e.Load / 6
	}
	if busy["b"] < 0.75 || busy["c"] > 0.6 { // a to c costs three times as much
		t.Errorf("zones are %v busy, want b to take the surge", busy)
	}
}
