package pick

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/topology"
)

// TestAViewThatIsNotDraftedAnewWouldBeTheSame compares with the dumb way, which drafts a view at each tick: whatever
// happens to a pool, a tick that drafted none has missed nothing. Likewise for ages that were not read.
func TestAViewThatIsNotDraftedAnewWouldBeTheSame(t *testing.T) {
	for _, name := range overflow.Names() {
		t.Run(name, func(t *testing.T) {
			strategy, err := overflow.New(name, overflow.Config{})
			if err != nil {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(1, 2))
			p := NewPool(Options{Zone: "zone-a", Random: random.Uint64, Strategy: strategy, Parallel: 1})
			p.Update(0, some(random))
			l := lives{pool: p, random: random}
			for l.now = 100 * time.Millisecond; l.now < 200*time.Second; l.now += 100 * time.Millisecond {
				l.live()
				p.Tick(l.now)
				if p.isStale() {
					t.Fatalf("at %v a tick has passed and the view is stale", l.now)
				}
				if diff := p.view.Load().differs(p.draw(new(view))); diff != "" {
					t.Fatalf("at %v the tick missed a change of %s", l.now, diff)
				}
				for i, g := range p.groups {
					if n := unanswered(g); g.past.empty && n > 0 {
						t.Fatalf("at %v group %d counts as empty with %d requests", l.now, i, n)
					}
				}
			}
		})
	}
}

// differs tells what requests would notice of the difference; empty: nothing. Pickers follow from the rest.
func (v *view) differs(o *view) string {
	same := func(a, b groupView) bool {
		return a.end == b.end && a.group == b.group && a.ages == b.ages && a.failing == b.failing && a.panics == b.panics &&
			(a.picker == nil) == (b.picker == nil) && slices.Equal(a.serving, b.serving) &&
			slices.Equal(a.due, b.due) && slices.Equal(a.ready, b.ready)
	}
	switch {
	case v.shed != o.shed || v.sampled != o.sampled || v.hashes != o.hashes || v.strict != o.strict:
		return "how to place requests"
	case !slices.EqualFunc(v.routes, o.routes, same):
		return "the routes"
	case !slices.EqualFunc(v.groups, o.groups, same):
		return "the other groups"
	default:
		return ""
	}
}

// unanswered counts the requests in a group's age set.
func unanswered(g *group) int {
	n := 0
	for _, r := range g.past.sets {
		for i := range r.shards {
			for j := range r.shards[i].slots {
				n += int(uint32(r.shards[i].slots[j].Load()))
			}
		}
	}
	return n
}

// some gives endpoints in three zones, now and then with one that is not ready.
func some(random *rand.Rand) []Target {
	var all []Target
	for i := range 4 + random.IntN(6) {
		zone := topology.Zone(fmt.Sprintf("zone-%c", 'a'+i%3))
		all = append(all, Target{
			Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 80), Zone: zone,
			Cost: topology.Cost(i % 3), Home: i%3 == 0, Unready: random.IntN(8) == 0,
		})
	}
	return all
}

// lives are what happens to a pool between two ticks.
type lives struct {
	pool   *Pool
	random *rand.Rand
	now    time.Duration
	open   []Ticket
}

func (l *lives) live() {
	bad := l.now/(20*time.Second)%2 == 1 // every other 20 s one zone is slow and fails
	quiet := l.now/(30*time.Second)%3 == 2
	for i := 0; !quiet && i < l.random.IntN(12); i++ {
		at := l.now - time.Duration(l.random.IntN(100))*time.Millisecond
		ticket, verdict := l.pool.Pick(at, Request{})
		if verdict != Picked {
			continue
		}
		switch sick := bad && ticket.Zone() == "zone-a"; {
		case sick && l.random.IntN(2) == 0:
			ticket.Close(at+time.Millisecond, GatewayError)
		case sick:
			l.open = append(l.open, ticket)
		default:
			ticket.Close(at+time.Duration(l.random.IntN(40))*time.Millisecond, Success)
		}
	}
	for len(l.open) > 0 && (!bad || l.random.IntN(3) == 0) {
		l.open[0].Close(l.now, Success)
		l.open = l.open[1:]
	}
	switch l.random.IntN(100) {
	case 0:
		l.pool.Update(l.now, some(l.random))
	case 1:
		l.pool.Configure(l.now, Config{Algorithm: Algorithms()[l.random.IntN(4)], Config: balance.Config{Health: health.Config{Failures: 1 + l.random.IntN(6)}}})
	case 2:
		l.pool.Drain("zone-b", l.now+time.Duration(l.random.IntN(5))*time.Second)
	}
}
