package pick

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
)

// modulo is the simplest hashing algorithm: a key belongs to the endpoint at its remainder, and then to the next one.
type modulo struct{}

func (modulo) over(endpoints []*endpoint) picker { return &remainder{endpoints} }

type remainder struct{ endpoints []*endpoint }

func (d *remainder) pick(_, key uint64) *endpoint { return d.endpoints[key%uint64(len(d.endpoints))] }

func (d *remainder) next(q query) *endpoint {
	for i := range uint64(len(d.endpoints)) {
		if e := d.pick(0, q.key+i); q.accepts(e) {
			return e
		}
	}
	return nil
}

// making counts how many tables were made.
func making(n *int) maker {
	return func(targets []Target) hashTable {
		if len(targets) == 0 {
			panic("a table of nobody")
		}
		*n++
		return modulo{}
	}
}

// block makes n endpoints in each of some zones, the first of which is home.
func block(n, zones int) []Target {
	var list []Target
	for z := range zones {
		for i := range n {
			list = append(list, Target{
				Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(z), 0, byte(i)}), 80),
				Zone: topology.Zone(fmt.Sprint("zone-", z)), Home: z == 0, Cost: topology.Cost(z),
			})
		}
	}
	return list
}

func hashingPool(c Config, targets []Target) (*Pool, *int) {
	made := new(int)
	p := NewPool(Options{Zone: "zone-0", Random: rand.New(rand.NewPCG(3, 3)).Uint64})
	p.Apply(0, prepare(c, targets, making(made)))
	return p, made
}

// owner gives the index of the endpoint that a key finds.
func owner(t *testing.T, p *Pool, key uint64) int {
	t.Helper()
	ticket, v := p.Pick(0, Request{Key: key, HasKey: true})
	if v != Picked {
		t.Fatalf("verdict %v", v)
	}
	ticket.Close(0, Canceled)
	return int(ticket.Addr().Addr().As4()[3])
}

// fails makes the owner of a key sit out.
func fails(t *testing.T, p *Pool, key uint64) {
	t.Helper()
	at := owner(t, p, key)
	for owner(t, p, key) == at {
		ticket, _ := p.Pick(0, Request{Key: key, HasKey: true})
		ticket.Close(0, LocalError)
	}
}

func TestTablesAreMadeAheadAndForAllThatAreReady(t *testing.T) {
	list := block(5, 3)
	list[4].Unready = true
	p, made := hashingPool(Config{}, list)
	if *made != 3 {
		t.Errorf("%d tables for three groups", *made)
	}
	for key := range uint64(40) {
		if got := owner(t, p, key); got != int(key%4) {
			t.Errorf("key %d is with %d, want %d of the 4 that are ready", key, got, key%4)
		}
	}
	for tick := range 50 {
		p.Tick(time.Duration(tick) * 100 * time.Millisecond)
	}
	if *made != 3 {
		t.Errorf("%d tables after some ticks, want the same three", *made)
	}
}

func TestPauseMovesOnlyTheKeysOfWhoSitsOut(t *testing.T) {
	p, made := hashingPool(Config{}, block(5, 2))
	fails(t, p, 2)
	p.Tick(100 * time.Millisecond)
	for key := range uint64(50) {
		want := int(key % 5)
		if want == 2 {
			want = 3
		}
		if got := owner(t, p, key); got != want {
			t.Errorf("key %d is with %d, want %d", key, got, want)
		}
	}
	if *made != 2 {
		t.Errorf("%d tables, want the two from the beginning", *made)
	}
}

func TestTrialIsForKeysThatBelongToTheEndpoint(t *testing.T) {
	p, _ := hashingPool(Config{}, block(5, 1))
	fails(t, p, 2)
	p.Tick(100 * time.Millisecond)
	p.Tick(p.Status().Endpoints[2].Until) // due from now on
	for key := range uint64(50) {
		if key%5 == 2 {
			continue
		}
		if got := owner(t, p, key); got != int(key%5) {
			t.Fatalf("key %d was taken for a trial of %d", key, got)
		}
	}
	ticket, _ := p.Pick(later, Request{Key: 7, HasKey: true})
	if ticket.ID() != 3 {
		t.Fatalf("a key of the endpoint went to %d, want its trial", ticket.ID())
	}
	if got := owner(t, p, 12); got != 3 {
		t.Errorf("while it is tried its other keys go to %d, want the next one", got)
	}
	ticket.Close(later, Success)
	if got := owner(t, p, 12); got != 2 {
		t.Errorf("after the trial its keys go to %d, want back to it", got)
	}
}

const later = 5 * time.Second

func TestDrainMovesOnlyTheKeysOfTheDrained(t *testing.T) {
	list := block(4, 1)
	list[3].Zone = "lent"
	p, made := hashingPool(Config{}, list)
	p.Drain("lent", time.Minute)
	p.Tick(time.Second)
	for key := range uint64(40) {
		want := int(key % 4)
		if want == 3 {
			want = 0 // the next one
		}
		if got := owner(t, p, key); got != want {
			t.Errorf("key %d is with %d, want %d", key, got, want)
		}
	}
	p.Tick(2 * time.Second)
	p.Tick(2 * time.Minute)
	if got := owner(t, p, 3); got != 3 || *made != 1 {
		t.Errorf("after the drain the key is with %d, %d tables made; want it back, and one table", got, *made)
	}
}

// naming is a strategy that names who is in use in the group after home.
type naming struct{ endpoints []int }

func (*naming) Reset(time.Duration, overflow.Layout) {}

func (s *naming) Step(_ time.Duration, c *overflow.Counters) overflow.Decision {
	return overflow.Decision{
		Cap: 8, Groups: make([]overflow.GroupStatus, len(c.Groups)),
		Routes: []overflow.Route{{Group: 1, Share: 1, Endpoints: s.endpoints}},
	}
}

func TestEndpointsThatAStrategyNamesTakeTheKeysOfTheOthersAndBuildNothing(t *testing.T) {
	s, made := &naming{endpoints: []int{7, 5}}, new(int) // the second zone has 5 to 9
	p := NewPool(Options{Strategy: s, Random: rand.New(rand.NewPCG(5, 5)).Uint64})
	p.Apply(0, prepare(Config{}, block(5, 2), making(made)))
	look := func(want []int) {
		t.Helper()
		for key := range uint64(20) {
			if got := owner(t, p, key); got != want[key%5] {
				t.Errorf("key %d is with %d, want %d", key, got, want[key%5])
			}
		}
	}
	look([]int{0, 2, 2, 0, 0})
	s.endpoints = append(s.endpoints, 8)
	p.Tick(100 * time.Millisecond)
	look([]int{0, 2, 2, 3, 0}) // only the new one's own keys move
	if *made != 2 {
		t.Errorf("%d tables, want the two from the beginning", *made)
	}
}

func TestRingsAndTablesFindNobodyWhoIsNotThere(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	for _, a := range []Algorithm{RingHash, Maglev} {
		targets := many(50)
		w := newHashTable(&Config{Algorithm: a}, targets)
		all := crowd(targets)
		some := slices.Clone(all)
		for i := range some {
			if i%3 > 0 {
				some[i] = nil
			}
		}
		whole, part := w.over(all), w.over(some).(walker)
		for range 2000 {
			key := random.Uint64()
			owner := slices.Index(all, whole.pick(0, key))
			if got := part.pick(0, key); got != some[owner] {
				t.Fatalf("%s: key %d of %d is with %v", a, key, owner, got)
			}
			if got := part.next(asks(key)); got == nil || owner%3 == 0 && got != all[owner] {
				t.Fatalf("%s: key %d of %d goes on to %v", a, key, owner, got)
			}
		}
		if got := w.over(make([]*endpoint, 50)).(walker).next(asks(1)); got != nil {
			t.Errorf("%s: %v of nobody", a, got)
		}
	}
}

func TestPanicKeepsKeysWhereTheyBelong(t *testing.T) {
	half := 0.9
	c := Config{Config: balance.Config{Panic: &half}}
	c.Health.MaxOut = 1
	p, _ := hashingPool(c, block(4, 1))
	for key := range uint64(3) {
		fails(t, p, key)
	}
	p.Tick(100 * time.Millisecond)
	if !p.Status().Groups[0].Panics {
		t.Fatal("one of four serves and nobody panics")
	}
	for key := range uint64(20) {
		if got := owner(t, p, key); got != int(key%4) {
			t.Errorf("key %d is with %d, want %d", key, got, key%4)
		}
	}
}

func TestConfigThatIsTheSameKeepsThePickers(t *testing.T) {
	p, made := hashingPool(Config{}, block(3, 1))
	before := p.view.Load()
	p.Apply(time.Second, prepare(Config{}, block(3, 1), making(made)))
	if p.view.Load() != before {
		t.Error("a new view although nothing changed")
	}
}

// shifting is a strategy whose shares a test changes.
type shifting struct{ shares []float64 }

func (s *shifting) Reset(time.Duration, overflow.Layout) {}

func (s *shifting) Step(_ time.Duration, c *overflow.Counters) overflow.Decision {
	d := overflow.Decision{Cap: 8, Groups: make([]overflow.GroupStatus, len(c.Groups))}
	for i, share := range s.shares {
		d.Routes = append(d.Routes, overflow.Route{Group: i, Share: share})
	}
	return d
}

// A change of shares moves the keys that have to move, and each stays on one endpoint otherwise.
func TestOverflowMovesAsFewKeysAsItCan(t *testing.T) {
	const keys = 20_000
	s := &shifting{shares: []float64{1}}
	p := NewPool(Options{Strategy: s, Random: rand.New(rand.NewPCG(4, 4)).Uint64})
	p.Apply(0, prepare(Config{}, block(5, 3), making(new(int))))
	look := func() []netip.AddrPort {
		found := make([]netip.AddrPort, keys)
		for key := range found {
			ticket, _ := p.Pick(0, Request{Key: scatter(uint64(key) * golden), HasKey: true})
			ticket.Close(0, Canceled)
			found[key] = ticket.Addr()
		}
		return found
	}
	before := look()
	for i, step := range []struct {
		shares []float64
		moved  float64 // what has to
	}{
		{[]float64{0.7, 0.3}, 0.3},
		{[]float64{0.6, 0.3, 0.1}, 0.1},
		{[]float64{0.5, 0.3, 0.2}, 0.1}, // the second zone grows: the first one's keys stay
		{[]float64{0.5, 0.4, 0.1}, 0.1},
		{[]float64{0.4, 0.5, 0.1}, 0.1}, // the first grows: the second's stay
		{[]float64{0.9, 0.1}, 0.5},
		{[]float64{1}, 0.1},
	} {
		s.shares = step.shares
		p.Tick(time.Duration(i+1) * 100 * time.Millisecond)
		after, moved := look(), 0.0
		for key := range after {
			if after[key] != before[key] {
				moved += 1.0 / keys
			}
		}
		if moved < step.moved-0.015 || moved > step.moved+0.015 {
			t.Errorf("to %v: %.3f of the keys moved, want %.3f", step.shares, moved, step.moved)
		}
		before = after
	}
}

func TestHashingAndPanicAllocateNothing(t *testing.T) {
	always := 1.0
	for name, c := range map[string]Config{"calm": {}, "panic": {Config: balance.Config{Panic: &always}}} {
		for what, r := range map[string]Request{
			"plain": {}, "with key": {Key: 42, HasKey: true}, "the retry": {Key: 42, HasKey: true, Avoid: []uint32{1, 3}},
		} {
			p, _ := hashingPool(c, block(5, 2))
			fails(t, p, 2)
			p.Tick(100 * time.Millisecond)
			outcomes := []Outcome{Success, ServerError, GatewayError, LocalError, Canceled}
			n := 0
			allocs := testing.AllocsPerRun(1000, func() {
				n++
				ticket, v := p.Pick(time.Second, r)
				if v != Picked {
					t.Fatal(v)
				}
				ticket.Answer(time.Second, outcomes[n%5])
				ticket.Close(time.Second, Success)
			})
			if allocs != 0 {
				t.Errorf("%s, %s: %v allocations in an attempt, want 0", name, what, allocs)
			}
		}
	}
}

func TestReplacedEndpointLeavesItsKeysToTheNewOne(t *testing.T) {
	for _, a := range []Algorithm{RingHash, Maglev} {
		t.Run(string(a), func(t *testing.T) {
			before, after := block(3, 1), block(3, 1)
			after[1].Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 1, 1}), 80)
			p := NewPool(Options{Config: Config{Algorithm: a}})
			p.Update(0, before)
			p.Update(time.Second, after)
			fresh := NewPool(Options{Config: Config{Algorithm: a}})
			fresh.Update(0, after)
			for i := range uint64(1000) {
				r := Request{Key: mix(i * golden), HasKey: true}
				want, _ := fresh.Pick(time.Second, r)
				if got, _ := p.Pick(time.Second, r); got.Addr() != want.Addr() {
					t.Fatalf("key %d goes to %v, want %v", r.Key, got.Addr(), want.Addr())
				}
			}
		})
	}
}
