package pick

import (
	"math"

	"github.com/weir-lb/weir/internal/core/hash"
)

// The sizes of a table, Envoy's. The largest is a prime.
const (
	defaultTable = 65_537
	maxTable     = 5_000_011
)

// maglevTable has a slot for each remainder of a key, filled by the endpoints round by round, each in an order of its own.
//
// Source: Eisenbud et al., "Maglev", NSDI 2016, section 3.4, with hashes and weights as Envoy has them, slot for slot.
type maglevTable struct {
	slots []uint32 // owners
}

func newMaglevTable(c *Config, weightedKeys []weightedKey) *maglevTable {
	f := newFiller(tableSize(c), weightedKeys)
	// A round for each slot of the heaviest; a try costs a fiftieth of what the queue costs for a slot.
	const worthQueueing = 50
	if f.heaviest*float64(len(weightedKeys)) < worthQueueing {
		f.fill()
	} else {
		f.fillQueued()
	}
	return &maglevTable{slots: f.slots}
}

// tableSize gives the prime that comes to the configured size; only with a prime does each order reach every slot.
// The validator reports a size that is none.
func tableSize(c *Config) uint64 {
	if c.TableSize == 0 {
		return defaultTable
	}
	size := min(max(2, c.TableSize), maxTable)
	for !prime(size) {
		size++
	}
	return size
}

func prime(n uint64) bool {
	for d := uint64(2); d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return n > 1
}

// filler is a table while it is filled.
type filler struct {
	slots  []uint32
	taken  []uint64 // one bit for each slot: it stays in the nearest cache while slots are touched all over
	free   int
	keys   []weightedKey
	orders []order

	heaviest float64 // of the weights
	targets  []float64
}

// order is the order in which an endpoint wants slots: at, at + skip, and so on, around the table.
type order struct{ at, skip uint64 }

func newFiller(size uint64, weightedKeys []weightedKey) *filler {
	f := &filler{
		slots: make([]uint32, size), taken: make([]uint64, size/64+1), free: int(size), //nolint:gosec // at most maxTable.
		keys: weightedKeys, orders: make([]order, len(weightedKeys)), targets: make([]float64, len(weightedKeys)),
	}
	for i, s := range weightedKeys {
		f.heaviest = max(f.heaviest, s.weight)
		f.orders[i] = order{
			at:   hash.XXH64String(0, s.key) % size,
			skip: hash.XXH64String(1, s.key)%(size-1) + 1,
		}
	}
	return f
}

// take gives an endpoint the next slot of its order that is free, and sets its target higher.
func (f *filler) take(i int) {
	size, taken, o := uint64(len(f.slots)), f.taken, f.orders[i]
	at := o.at
	for taken[at/64]>>(at%64)&1 != 0 {
		if at += o.skip; at >= size {
			at -= size
		}
	}
	taken[at/64] |= 1 << (at % 64)
	f.slots[at] = f.keys[i].index
	f.free--
	f.orders[i].at = at
	f.targets[i] += f.heaviest
}

// fill goes round by round. An endpoint takes a slot in those rounds in which round × weight has come to its target, which
// then grows by the largest weight: the heaviest takes one in every round, one of half its weight in every other.
func (f *filler) fill() {
	for round := 1.0; f.free > 0; round++ {
		for i := range f.keys {
			if round*f.keys[i].weight < f.targets[i] {
				continue
			}
			if f.take(i); f.free == 0 {
				return
			}
		}
	}
}

// fillQueued does the same with a queue of the endpoints, by round and then by index, which skips the rounds in which a light
// endpoint does nothing: with one heavy endpoint among thousands they would be nearly all.
func (f *filler) fillQueued() {
	queue := make(rounds, len(f.keys)) // all in the first round, in order: a heap already
	for i := range queue {
		queue[i] = actor{round: 1, index: i}
	}
	for f.free > 0 {
		i := queue[0].index
		f.take(i)
		queue[0].round = nextRound(queue[0].round, f.keys[i].weight, f.targets[i])
		queue.sink()
	}
}

// nextRound gives the first round after this one in which round × weight comes to the target, in the arithmetic of fill,
// which tries every round.
func nextRound(round uint64, weight, target float64) uint64 {
	next := max(round+1, uint64(math.Ceil(target/weight)))
	for next > round+1 && float64(next-1)*weight >= target {
		next--
	}
	for float64(next)*weight < target {
		next++
	}
	return next
}

// actor is an endpoint and the round in which it takes its next slot.
type actor struct {
	round uint64
	index int
}

func (a actor) before(b actor) bool {
	return a.round < b.round || a.round == b.round && a.index < b.index
}

// rounds is a heap of actors.
type rounds []actor

// sink moves the first actor down to where it belongs.
func (q rounds) sink() {
	for at := 0; ; {
		child := 2*at + 1
		if child >= len(q) {
			return
		}
		if child+1 < len(q) && q[child+1].before(q[child]) {
			child++
		}
		if !q[child].before(q[at]) {
			return
		}
		q[at], q[child] = q[child], q[at]
		at = child
	}
}

func (t *maglevTable) over(endpoints []*endpoint) picker {
	return &maglev{table: t, endpoints: endpoints}
}

// maglev takes the endpoint whose slot the request's key leads to.
type maglev struct {
	table     *maglevTable
	endpoints []*endpoint
}

func (p *maglev) pick(_, key uint64) *endpoint { return p.probe(key) }

func (p *maglev) probe(key uint64) *endpoint {
	return p.endpoints[p.table.slots[key%uint64(len(p.table.slots))]]
}

// maxProbes bounds how many slots are looked at for a substitute: if half of the endpoints serve, all but one of 65,536
// keys find one.
const maxProbes = 16

// next gives the first endpoint that the query accepts, beginning with the one that its key belongs to; nil if it accepts
// none. It tries the slots that Envoy tries at its retries, so that an endpoint's keys are shared out among all others.
func (p *maglev) next(q query) *endpoint {
	for attempt := range uint64(maxProbes) {
		if e := p.probe(q.key ^ -attempt); q.accepts(e) {
			return e
		}
	}
	return around(p.endpoints, &q)
}
