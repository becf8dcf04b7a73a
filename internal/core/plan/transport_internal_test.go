package plan

import (
	"math"
	"math/rand/v2"
	"testing"
)

func costOf(t *transportation, flow [][]float64) float64 {
	sum := 0.0
	for i, row := range flow {
		for j, amount := range row {
			sum += amount * t.cost[i][j]
		}
	}
	return sum
}

// cheapest tries every way to send whole units, one unit after the other.
func cheapest(t *transportation, source int, left []float64, room []float64) float64 {
	for source < len(left) && left[source] == 0 {
		source++
	}
	if source == len(left) {
		return 0
	}
	best := math.Inf(1)
	left[source]--
	for j := range room {
		if room[j] == 0 {
			continue
		}
		room[j]--
		best = min(best, t.cost[source][j]+cheapest(t, source, left, room))
		room[j]++
	}
	left[source]++
	return best
}

// checkFlow wants every supply sent and no room exceeded.
func checkFlow(t *testing.T, p *transportation, flow [][]float64) {
	t.Helper()
	into := make([]float64, len(p.room))
	for i, row := range flow {
		sent := 0.0
		for j, amount := range row {
			if amount < -dust {
				t.Fatalf("%v flows from %d to %d", amount, i, j)
			}
			sent += amount
			into[j] += amount
		}
		if math.Abs(sent-p.supply[i]) > 1e-6 {
			t.Fatalf("source %d sends %v of %v", i, sent, p.supply[i])
		}
	}
	for j := range into {
		if into[j] > p.room[j]+1e-6 {
			t.Fatalf("sink %d gets %v and has room for %v", j, into[j], p.room[j])
		}
	}
}

func TestTransportIsAsCheapAsTryingEverything(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		p := &transportation{supply: make([]float64, 1+random.IntN(3)), room: make([]float64, 1+random.IntN(3))}
		supply, room := 0, 0
		for i := range p.supply {
			n := random.IntN(4)
			p.supply[i] = float64(n)
			supply += n
		}
		for j := range p.room {
			n := random.IntN(4)
			p.room[j] = float64(n)
			room += n
		}
		p.room[0] += float64(max(0, supply-room))
		for range p.supply {
			row := make([]float64, len(p.room))
			for j := range row {
				row[j] = float64(random.IntN(6))
			}
			p.cost = append(p.cost, row)
		}
		flow := p.solve()
		checkFlow(t, p, flow)
		for _, row := range flow {
			for _, amount := range row {
				if amount != math.Round(amount) {
					t.Fatalf("whole supplies and rooms, but %v flows", amount)
				}
			}
		}
		want := cheapest(p, 0, append([]float64(nil), p.supply...), append([]float64(nil), p.room...))
		if got := costOf(p, flow); math.Abs(got-want) > 1e-9 {
			t.Fatalf("%+v costs %v, want %v", p, got, want)
		}
	}
}

// No cheaper flow exists exactly when no ring of moves pays: some sources send a bit elsewhere, in turn.
func TestTransportOfFractionsLeavesNoRingThatPays(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		zones := 2 + random.IntN(50)
		p := &transportation{supply: make([]float64, zones), room: make([]float64, zones)}
		sum := 0.0
		for z := range p.room {
			p.room[z] = random.Float64()
			sum += p.room[z]
		}
		for z := range p.supply {
			p.supply[z] = sum / float64(zones) / 1.2
			row := make([]float64, zones)
			for j := range row {
				row[j] = float64(1 + random.IntN(4))
			}
			row[z] = 0
			p.cost = append(p.cost, row)
		}
		flow := p.solve()
		checkFlow(t, p, flow)
		if ring := payingRing(p, flow); ring < -1e-6 {
			t.Fatalf("%d zones: a ring of moves saves %v", zones, -ring)
		}
	}
}

// payingRing gives the least cost of moving a bit around, by Floyd and Warshall; sink n stands for room that is left.
func payingRing(p *transportation, flow [][]float64) float64 {
	n := len(p.room)
	way := make([][]float64, n+1)
	for a := range way {
		way[a] = make([]float64, n+1)
		for b := range way[a] {
			way[a][b] = math.Inf(1)
		}
	}
	for a := range n { // from sink a to sink b: some source sends less to a and more to b
		used := 0.0
		for i := range p.supply {
			used += flow[i][a]
			for b := range n {
				if flow[i][a] > 1e-6 {
					way[a][b] = min(way[a][b], p.cost[i][b]-p.cost[i][a])
				}
			}
		}
		way[n][a] = 0
		if p.room[a]-used > 1e-6 {
			way[a][n] = 0
		}
	}
	for k := range way {
		for a := range way {
			for b := range way {
				way[a][b] = min(way[a][b], way[a][k]+way[k][b])
			}
		}
	}
	least := 0.0
	for a := range way {
		least = min(least, way[a][a])
	}
	return least
}
