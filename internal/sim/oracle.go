package sim

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/sim/fleet"
	"github.com/weir-lb/weir/internal/sim/scenario"
)

const (
	// oracleLimit is how busy the oracle lets endpoints be where it has a choice.
	oracleLimit = 0.85
	// oracleCrowded is how busy good endpoints may be before worse ones are used as well.
	oracleCrowded = 0.98
	// oracleWorse is how much rarer good answers of an endpoint may be than the best one's before it is avoided.
	oracleWorse = 0.05
	// oraclePenalty is more than any cost: what is avoided is used last.
	oraclePenalty = 1e6
	// oracleMargin is the part of the time for a good answer that an answer may be expected to take: what is ahead in a queue is
	// known by its number alone.
	oracleMargin = 0.8
	// nothing is a flow that rounding leaves.
	nothing = 1e-9
	// oracleSamples is how many service times chances are computed from.
	oracleSamples = 1000
)

// oracle is the limit that strategies are compared with: it knows what each endpoint can do now, and what each client sends.
//
// It divides the demand of each zone at the least cost so that no endpoint is more than oracleLimit busy, and avoids
// endpoints that cannot answer well as long as the others have room. Where that is not possible all endpoints that can answer
// well are equally busy, or all that answer at all. Of a group a request goes to the endpoint where it waits least; where it
// would wait for long because of a chance crowd, it goes to the cheapest group where it does not.
type oracle struct {
	s       *Simulation
	demand  []*demand
	service []time.Duration // sorted samples

	members [][]int     // servers by group
	pods    int         // servers when groups were made
	costs   [][]float64 // by zone of clients and group
	good    [][]bool    // likewise: whether it answers about as often well as the best
	order   [][]int     // by zone of clients: groups, the cheapest first

	at      time.Duration // of the plan
	planned bool
	shares  [][]float64 // by zone of clients and group
	credits [][]float64 // of groups that are owed requests, likewise

	rotation int
}

func newOracle(s *Simulation) *oracle {
	o := &oracle{s: s}
	sampler, random := scenario.NewSampler(s.sc.Server.Service), rand.New(rand.NewPCG(1, 1)) //nolint:gosec // not for secrets.
	for range oracleSamples {
		o.service = append(o.service, sampler.Draw(random))
	}
	slices.Sort(o.service)
	for i := range s.sc.Clients {
		o.demand = append(o.demand, newDemand(s.sc, &s.sc.Clients[i]))
	}
	return o
}

// choose gives an exchange its endpoint. Those that were tried are avoided where there are others.
func (o *oracle) choose(x *exchange) pick.Verdict {
	if !o.planned || o.s.now-o.at >= tick || o.pods != len(o.s.servers) {
		o.plan()
	}
	zone := o.s.clients[x.client].zone
	best, group := -1, o.turn(zone)
	if group >= 0 {
		best = o.shortest(group, x)
	}
	if best < 0 || !o.isInTime(best, x) {
		for _, other := range o.order[zone] {
			if next := o.shortest(other, x); next >= 0 && (best < 0 || o.good[zone][other] && o.isInTime(next, x)) {
				best, group = next, other
				break
			}
		}
	}
	if best < 0 {
		return pick.NoEndpoint
	}
	x.server = int32(best) //nolint:gosec // an index.
	x.cost += o.costs[zone][group]
	if x.tries < maxTried {
		x.tried[x.tries] = uint32(best) //nolint:gosec // an index.
	}
	return pick.Picked
}

// turn gives the group whose turn it is, so that each gets its share evenly over time; -1: none has a share.
func (o *oracle) turn(zone int) int {
	best := -1
	for g, share := range o.shares[zone] {
		o.credits[zone][g] += share
		if share > 0 && (best < 0 || o.credits[zone][g] > o.credits[zone][best]) {
			best = g
		}
	}
	if best >= 0 {
		o.credits[zone][best]--
	}
	return best
}

// shortest gives the server of a group where a request is begun first; -1: none answers.
func (o *oracle) shortest(group int, x *exchange) int {
	server, least := -1, math.Inf(1)
	members := o.members[group]
	o.rotation++
	for i := range members {
		id := members[(i+o.rotation)%len(members)] // of several that are equal each has its turn
		v := &o.s.servers[id]
		if o.capacity(v) == 0 {
			continue
		}
		load := o.load(v)
		if slices.Contains(x.avoid(), uint32(id)) { //nolint:gosec // an index.
			load += oraclePenalty
		}
		if load < least {
			server, least = id, load
		}
	}
	return server
}

// isInTime tells whether a server's answer is expected in time to be good.
func (o *oracle) isInTime(server int, x *exchange) bool {
	v, sc := &o.s.servers[server], o.s.sc
	ahead := float64(max(0, v.busy+v.queue.length()+v.coming+1-sc.Server.Workers)) / float64(sc.Server.Workers)
	work := (ahead*float64(sc.Server.Service.Mean) + float64(x.work)) * o.s.factor(v)
	elapsed := o.s.now - x.due + v.fault.Delay + 2*o.s.network.half[v.paths[o.s.clients[x.client].zone]]
	return work+float64(elapsed) <= oracleMargin*float64(sc.GoodWithin())
}

// load is what a server has to do, in the time that it takes.
func (o *oracle) load(v *server) float64 {
	return float64(v.busy+v.queue.length()+v.coming+1) * o.s.factor(v)
}

// capacity is how many workers of usual speed a server is worth; 0: it does not answer, or is not to be used any more.
func (o *oracle) capacity(v *server) float64 {
	if v.lost || v.fault.Hang || v.fault.Fail >= 1 || v.pod.Phase != fleet.Ready || v.refusing() {
		return 0
	}
	return float64(o.s.sc.Server.Workers) / o.s.factor(v)
}

// chance is how often an idle server answers well.
func (o *oracle) chance(zone int, v *server) float64 {
	left := o.s.sc.GoodWithin() - v.fault.Delay - 2*o.s.network.half[v.paths[zone]]
	most := time.Duration(float64(max(0, left)) / o.s.factor(v))
	i, _ := slices.BinarySearch(o.service, most)
	return (1 - v.fault.Fail) * float64(i) / oracleSamples
}

// regroup puts the servers of each zone of a cluster into groups, those that answer badly into one of their own.
func (o *oracle) regroup() {
	type key struct {
		place  topology.Place
		isGood bool
	}
	best := make([]float64, len(o.s.zones))
	for z := range best {
		for id := range o.s.servers {
			if v := &o.s.servers[id]; o.capacity(v) > 0 {
				best[z] = max(best[z], o.chance(z, v))
			}
		}
	}
	at, keys := make(map[key]int), []key(nil)
	regions := o.s.sc.Snapshot.Regions()
	o.members, o.pods = nil, len(o.s.servers)
	for id := range o.s.servers {
		v := &o.s.servers[id]
		if o.capacity(v) == 0 {
			continue
		}
		place := topology.Place{Zone: v.pod.Zone, Region: regions[v.pod.Zone], Cluster: v.pod.Cluster}
		k := key{place, o.chance(0, v) >= best[0]-oracleWorse}
		g, ok := at[k]
		if !ok {
			g = len(o.members)
			at[k] = g
			keys, o.members = append(keys, k), append(o.members, nil)
		}
		o.members[g] = append(o.members[g], id)
	}
	n := len(o.s.zones)
	o.costs, o.good, o.order = make([][]float64, n), make([][]bool, n), make([][]int, n)
	for z := range n {
		from := topology.Place{Zone: o.s.zones[z].Zone, Region: regions[o.s.zones[z].Zone]}
		for g, k := range keys {
			o.costs[z] = append(o.costs[z], float64(o.s.sc.Snapshot.Costs.Between(from, k.place)))
			o.good[z] = append(o.good[z], o.chance(z, &o.s.servers[o.members[g][0]]) >= best[z]-oracleWorse)
			o.order[z] = append(o.order[z], g)
		}
		slices.SortStableFunc(o.order[z], func(a, b int) int { return cmp.Compare(o.costs[z][a], o.costs[z][b]) })
	}
}

// plan divides the demand of now.
func (o *oracle) plan() {
	o.at, o.planned = o.s.now, true
	o.regroup()
	demands, needed := o.demands()
	capacities, total := make([]float64, len(o.members)), 0.0
	for g, members := range o.members {
		for _, id := range members {
			capacities[g] += oracleLimit * o.capacity(&o.s.servers[id])
		}
		if o.good[0][g] { // for the clients of the first zone: chances differ by the network alone
			total += capacities[g]
		}
	}
	o.shares = make([][]float64, len(demands))
	switch {
	case needed <= total:
		for z, flows := range transport(demands, capacities, o.penalised()) {
			for _, flow := range flows {
				o.shares[z] = append(o.shares[z], flow/max(demands[z], math.SmallestNonzeroFloat64))
			}
		}
	case needed <= oracleCrowded/oracleLimit*total:
		o.spread(capacities, func(g int) bool { return o.good[0][g] })
	default:
		o.spread(capacities, func(int) bool { return true })
	}
	if len(o.credits) != len(o.shares) || len(o.credits[0]) != len(o.members) {
		o.credits = make([][]float64, len(o.shares))
		for z := range o.credits {
			o.credits[z] = make([]float64, len(o.members))
		}
	}
}

// demands gives how many workers of usual speed the requests of each zone keep busy now, and their sum.
func (o *oracle) demands() (demands []float64, sum float64) {
	for _, d := range o.demand {
		_, rate := d.around(o.at.Seconds())
		demands = append(demands, rate*o.s.sc.Server.Service.Mean.Seconds())
		sum += demands[len(demands)-1]
	}
	return demands, sum
}

// penalised are the costs, more than any for groups that are to be avoided.
func (o *oracle) penalised() [][]float64 {
	costs := make([][]float64, len(o.costs))
	for z := range costs {
		costs[z] = slices.Clone(o.costs[z])
		for g := range costs[z] {
			if !o.good[z][g] {
				costs[z][g] += oraclePenalty
			}
		}
	}
	return costs
}

// spread makes all groups of a kind equally busy.
func (o *oracle) spread(capacities []float64, uses func(group int) bool) {
	sum := 0.0
	for g, capacity := range capacities {
		if uses(g) {
			sum += capacity
		}
	}
	for z := range o.shares {
		o.shares[z] = make([]float64, len(capacities))
		for g, capacity := range capacities {
			if uses(g) {
				o.shares[z][g] = capacity / sum
			}
		}
	}
}

// transport divides each demand over capacities at the least cost; what finds none is left out. It gives the flow of each
// demand to each of them.
//
// Source: successive shortest paths for the transportation problem (R. Ahuja, T. Magnanti, J. Orlin, Network Flows, 9.7):
// each piece of demand takes the cheapest path to a capacity, which may move flows that are there.
func transport(demands, capacities []float64, costs [][]float64) [][]float64 {
	flows := make([][]float64, len(demands))
	for i := range flows {
		flows[i] = make([]float64, len(capacities))
	}
	capacities = slices.Clone(capacities)
	for i, left := range demands {
		for left > nothing {
			last, moves := cheapest(i, flows, capacities, costs)
			if last < 0 {
				break
			}
			amount := min(left, capacities[last])
			for j := last; moves[j].from >= 0; j = moves[j].from {
				amount = min(amount, flows[moves[j].of][moves[j].from])
			}
			capacities[last] -= amount
			left -= amount
			j := last
			for ; moves[j].from >= 0; j = moves[j].from {
				flows[moves[j].of][j] += amount
				flows[moves[j].of][moves[j].from] -= amount
			}
			flows[i][j] += amount
		}
	}
	return flows
}

// move takes the flow of a demand from one capacity to another. From is -1 where a path begins.
type move struct{ from, of int }

// cheapest finds the cheapest path of a demand to a capacity that is not used up (R. Bellman 1958): the capacity, and the
// moves that lead to each; -1: there is none.
func cheapest(demand int, flows [][]float64, capacities []float64, costs [][]float64) (last int, moves []move) {
	distance := slices.Clone(costs[demand])
	moves = make([]move, len(capacities))
	for j := range moves {
		moves[j] = move{from: -1}
	}
	for range capacities {
		for j := range capacities {
			for of := range flows {
				if flows[of][j] > nothing {
					relax(move{j, of}, distance, moves, costs[of])
				}
			}
		}
	}
	last = -1
	for j, capacity := range capacities {
		if capacity > nothing && (last < 0 || distance[j] < distance[last]) {
			last = j
		}
	}
	return last, moves
}

// relax shortens the paths over a capacity from which a demand may move on.
func relax(by move, distance []float64, moves []move, costs []float64) {
	for k := range distance {
		if d := distance[by.from] - costs[by.from] + costs[k]; d < distance[k]-nothing {
			distance[k], moves[k] = d, by
		}
	}
}
