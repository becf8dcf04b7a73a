package pick_test

import (
	"cmp"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/topology"
)

// river is a closed world in virtual time: three zones, each with a client and three endpoints of four workers, Poisson
// traffic and exponential service times. It exists to see the real pool and the real law work together; the model that
// compares strategies is in package overflow.
type river struct {
	now       time.Duration
	events    []happening // sorted by time, the next one last
	endpoints map[netip.AddrPort]*worker
	clients   []*drinker
	random    *rand.Rand
}

// happening is something to do at a time.
type happening struct {
	at time.Duration
	do func()
}

// worker is an endpoint.
type worker struct {
	busy    int
	waiting []func()
	slow    float64
	refuses bool // answers at once, with an error
}

// drinker is a client; it counts its requests by second.
type drinker struct {
	zone                 topology.Zone
	pool                 *pick.Pool
	sent, good, homeward map[int]int
}

const (
	serviceTime = 20 * time.Millisecond
	perSecond   = 250 // of each client; a zone can serve 600
	patience    = time.Second
)

func newRiver(t *testing.T) *river {
	t.Helper()
	r := &river{endpoints: make(map[netip.AddrPort]*worker), random: rand.New(rand.NewPCG(1, 2))}
	for i, zone := range []topology.Zone{"zone-a", "zone-b", "zone-c"} {
		strategy, err := overflow.New("Weir", overflow.Config{})
		if err != nil {
			t.Fatal(err)
		}
		list := targets(9)
		for j := range list {
			list[j].Home, list[j].Cost = list[j].Zone == zone, 1
			if list[j].Home {
				list[j].Cost = 0
			}
			r.endpoints[list[j].Addr] = &worker{slow: 1}
		}
		d := &drinker{zone: zone, sent: map[int]int{}, good: map[int]int{}, homeward: map[int]int{}}
		d.pool = pick.NewPool(pick.Options{
			Zone: zone, Strategy: strategy, Random: rand.New(rand.NewPCG(3, uint64(i))).Uint64, Rotate: uint64(i),
		})
		d.pool.Update(0, list)
		r.clients = append(r.clients, d)
		r.in(millis(float64(i*33)), func() { r.tick(d) })
		r.in(0, func() { r.send(d) })
	}
	return r
}

func (r *river) in(d time.Duration, do func()) {
	h := happening{r.now + d, do}
	i, _ := slices.BinarySearchFunc(r.events, h, func(a, b happening) int { return cmp.Compare(b.at, a.at) })
	r.events = slices.Insert(r.events, i, h)
}

func (r *river) run(until time.Duration) {
	for r.now < until {
		next := r.events[len(r.events)-1]
		r.events = r.events[:len(r.events)-1]
		r.now = next.at
		next.do()
	}
}

func (r *river) tick(d *drinker) {
	d.pool.Tick(r.now)
	r.in(millis(100), func() { r.tick(d) })
}

func (r *river) exponential(mean time.Duration) time.Duration {
	return time.Duration(r.random.ExpFloat64() * float64(mean))
}

func (r *river) send(d *drinker) {
	r.in(r.exponential(time.Second/perSecond), func() { r.send(d) })
	second := int(r.now / time.Second)
	d.sent[second]++
	ticket, v := d.pool.Pick(r.now, pick.Request{})
	if v != pick.Picked {
		return
	}
	if ticket.Zone() == d.zone {
		d.homeward[second]++
	}
	done := false
	finish := func(o pick.Outcome) {
		if done {
			return
		}
		done = true
		ticket.Answer(r.now, o)
		ticket.Close(r.now, o)
		if o == pick.Success {
			d.good[second]++
		}
	}
	r.in(patience, func() { finish(pick.Failure) })
	w := r.endpoints[ticket.Addr()]
	if w.refuses {
		r.in(millis(1), func() { finish(pick.Failure) })
		return
	}
	r.work(w, func() { finish(pick.Success) })
}

// work lets a worker do something now or when it gets to it.
func (r *river) work(w *worker, done func()) {
	if w.busy == 4 {
		w.waiting = append(w.waiting, done)
		return
	}
	w.busy++
	r.in(time.Duration(w.slow*float64(r.exponential(serviceTime))), func() {
		w.busy--
		done()
		if len(w.waiting) > 0 {
			next := w.waiting[0]
			w.waiting = w.waiting[1:]
			r.work(w, next)
		}
	})
}

// zone gives the workers of a zone.
func (r *river) zone(z topology.Zone) []*worker {
	var in []*worker
	for _, t := range targets(9) {
		if t.Zone == z {
			in = append(in, r.endpoints[t.Addr])
		}
	}
	return in
}

// fraction gives of/sent over some seconds.
func (d *drinker) fraction(of map[int]int, from, to int) float64 {
	var n, sent int
	for s := from; s < to; s++ {
		n, sent = n+of[s], sent+d.sent[s]
	}
	return float64(n) / float64(sent)
}

func TestPoolFollowsTheLawThroughAFault(t *testing.T) {
	tests := []struct {
		name           string
		begin, end     func(w *worker)
		stays          float64 // at most, of zone a's requests, from 2 s after the fault
		good, goodSoon float64 // at least, during the whole fault and from 2 s after its begin
	}{
		{
			"zone a ten times slower",
			func(w *worker) { w.slow = 10 }, func(w *worker) { w.slow = 1 }, 0.3, 0.97, 0.99,
		},
		{
			"zone a refuses",
			func(w *worker) { w.refuses = true }, func(w *worker) { w.refuses = false }, 0.05, 0.99, 0.99,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRiver(t)
			a := r.clients[0]
			r.run(seconds(20))
			if got := a.fraction(a.homeward, 5, 20); got < 0.995 {
				t.Errorf("calm: %.3f in zone, want 0.995", got)
			}
			for _, w := range r.zone("zone-a") {
				tt.begin(w)
			}
			r.run(seconds(50))
			if got := a.fraction(a.homeward, 22, 50); got > tt.stays {
				t.Errorf("fault: %.3f still in zone, want at most %.2f", got, tt.stays)
			}
			if got := a.fraction(a.good, 20, 50); got < tt.good {
				t.Errorf("fault: %.4f answered well, want %.2f", got, tt.good)
			}
			if got := a.fraction(a.good, 22, 50); got < tt.goodSoon {
				t.Errorf("fault, after 2 s: %.4f answered well, want %.2f", got, tt.goodSoon)
			}
			for _, d := range r.clients[1:] {
				// The one that takes zone-a's requests is 80 % busy then, and hands a few of its own on to the third.
				if got := d.fraction(d.homeward, 20, 50); got < 0.95 {
					t.Errorf("%s: %.3f in zone while zone-a suffers, want 0.95", d.zone, got)
				}
			}
			for _, w := range r.zone("zone-a") {
				tt.end(w)
			}
			r.run(seconds(85))
			if got := a.fraction(a.homeward, 80, 85); got < 0.98 {
				t.Errorf("30 s after the fault: %.3f in zone, want 0.98", got)
			}
			if s := a.pool.Status(); s.State != overflow.Calm {
				t.Errorf("30 s after the fault: %v because %v, want calm", s.State, s.Reason)
			}
		})
	}
}

func TestClientsDoNotAllSpillToTheSameZone(t *testing.T) {
	first := make(map[topology.Zone]int)
	for client := range uint64(10) {
		strategy, err := overflow.New("Weir", overflow.Config{})
		if err != nil {
			t.Fatal(err)
		}
		p := pick.NewPool(pick.Options{Zone: "zone-a", Strategy: strategy, Rotate: client})
		p.Update(0, targets(9))
		p.Drain("zone-a", seconds(100))
		p.Tick(millis(100))
		first[p.Status().Groups[1].Zone]++
	}
	if first["zone-b"] != 5 || first["zone-c"] != 5 {
		t.Errorf("the zone to spill to first: %v, want each for half of the clients", first)
	}
}
