package pick

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
)

// shadow is a loop without a pool that is told what a pool counted.
type shadow struct {
	loop   *balance.Loop
	random []uint64 // what the pool's loop drew since the last step
	in     balance.Counters
}

func newShadow(t *testing.T) *shadow {
	t.Helper()
	law, err := overflow.New("Weir", overflow.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := new(shadow)
	s.loop = balance.New(balance.Options{Zone: "zone-a", Strategy: law, Random: func() uint64 {
		if len(s.random) == 0 {
			return 1 << 63
		}
		number := s.random[0]
		s.random = s.random[1:]
		return number
	}}, balance.Config{})
	return s
}

// step steps the loop with the pool's counters, changed by edit.
func (s *shadow) step(now time.Duration, c *balance.Counters, edit func(*balance.Counters)) *balance.Decision {
	s.in = balance.Counters{Groups: slices.Clone(c.Groups), Endpoints: slices.Clone(c.Endpoints)}
	edit(&s.in)
	return s.loop.Step(now, &s.in)
}

// withoutAges leaves what a kernel or a load report knows: no ages of requests, and no ejections of its own.
func withoutAges(c *balance.Counters) {
	for i := range c.Groups {
		c.Groups[i] = balance.GroupCounters{RTT: c.Groups[i].RTT}
	}
	for i := range c.Endpoints {
		e := &c.Endpoints[i]
		e.Standing, e.OutAt, e.Cause = balance.Unknown, 0, 0
	}
}

// zonal is a service whose home zone is slow for a while and later fails, with requests that are under way when ticks come.
type zonal struct {
	pool   *Pool
	random *rand.Rand
	open   []pending
}

type pending struct {
	at      time.Duration
	outcome Outcome
	ticket  Ticket
}

// between sends the requests of 100 ms and answers those that are due.
func (z *zonal) between(from time.Duration) {
	for i := range 40 {
		at := from + time.Duration(i)*2500*time.Microsecond
		ticket, verdict := z.pool.Pick(at, Request{})
		if verdict != Picked {
			continue
		}
		took, outcome := time.Duration((10+10*z.random.ExpFloat64())*float64(time.Millisecond)), Success
		if phase := from / (20 * time.Second) % 4; ticket.Zone() == "zone-a" && phase == 1 {
			took *= 4
		} else if ticket.Zone() == "zone-a" && phase == 3 && z.random.IntN(2) == 0 {
			outcome = GatewayError
		}
		z.open = append(z.open, pending{at + took, outcome, ticket})
	}
	slices.SortFunc(z.open, func(a, b pending) int { return int(a.at - b.at) })
	for len(z.open) > 0 && z.open[0].at < from+100*time.Millisecond {
		z.open[0].ticket.Close(z.open[0].at, z.open[0].outcome)
		z.open = z.open[1:]
	}
}

// TestLoopWithoutAPoolDecidesTheSame replays what a pool counts to two loops. The one that gets the same counters decides the
// same to the last bit. The one that gets no ages and no ejections, as a kernel would tell them, spills as much on average
// within 2 points of the requests, and never differs by more than 35 for a second.
func TestLoopWithoutAPoolDecidesTheSame(t *testing.T) {
	law, err := overflow.New("Weir", overflow.Config{})
	if err != nil {
		t.Fatal(err)
	}
	same, blind := newShadow(t), newShadow(t)
	random, ticking := rand.New(rand.NewPCG(5, 6)), false
	p := NewPool(Options{Zone: "zone-a", Strategy: law, Parallel: 1, Random: func() uint64 {
		number := random.Uint64()
		if ticking {
			same.random = append(same.random, number)
		}
		return number
	}})
	targets := block(4, 3)
	for i := range targets {
		targets[i].Zone = topology.Zone("zone-" + string(rune('a'+i/4)))
	}
	same.loop.Apply(0, targets)
	blind.loop.Apply(0, targets)
	p.Update(0, targets)
	same.step(0, &p.counters, func(*balance.Counters) {})
	blind.step(0, &p.counters, withoutAges)
	z := zonal{pool: p, random: random}
	var far, sum, away float64
	steps := 0
	for now := 100 * time.Millisecond; now < 160*time.Second; now += 100 * time.Millisecond {
		z.between(now - 100*time.Millisecond)
		ticking = true
		p.Tick(now)
		ticking = false
		if d := same.step(now, &p.counters, func(*balance.Counters) {}); !equalDecisions(d, p.decision) {
			t.Fatalf("at %v the same counters give\n%+v, the pool has\n%+v", now, d.Routes, p.decision.Routes)
		}
		d := blind.step(now, &p.counters, withoutAges)
		apart := math.Abs(d.Groups[0].Share - p.decision.Groups[0].Share)
		if far = far*0.9 + apart*0.1; far > 0.35 {
			t.Fatalf("at %v the loop without ages keeps %.2f at home, the pool %.2f", now, d.Groups[0].Share, p.decision.Groups[0].Share)
		}
		sum += apart
		away += 1 - p.decision.Groups[0].Share
		steps++
	}
	if away/float64(steps) < 0.2 {
		t.Errorf("on average %.2f of the requests leave home: want a history with more to decide", away/float64(steps))
	}
	if mean := sum / float64(steps); mean > 0.02 {
		t.Errorf("on average the loop without ages is %.3f of the requests away from the pool", mean)
	}
}

func equalDecisions(a, b *balance.Decision) bool {
	return a.Allowed == b.Allowed && a.Active == b.Active && a.Shed == b.Shed && a.State == b.State && a.Baseline == b.Baseline &&
		slices.EqualFunc(a.Routes, b.Routes, func(a, b overflow.Route) bool { return a.Group == b.Group && a.Share == b.Share }) &&
		slices.EqualFunc(a.Endpoints, b.Endpoints, func(a, b balance.Endpoint) bool {
			return a.Standing == b.Standing && a.Record == b.Record && a.Slowdown == b.Slowdown && a.Drained == b.Drained
		})
}
