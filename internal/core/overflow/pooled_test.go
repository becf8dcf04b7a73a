package overflow_test

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/topology"
)

// pooled is the real pool as a balancer of the model: the law, the pool's counters and picks, and the health rules
// together, under virtual time.
type pooled struct {
	w       *world
	zone    int
	pool    *pick.Pool
	tiers   bool // the zone after its own is tier 1, the one after that tier 2 and cheaper
	unready func(*server) bool
}

func newPooled(w *world, client int, s overflow.Strategy) *pooled {
	c := w.callers[client]
	p := &pooled{w: w, zone: c.zone}
	p.pool = pick.NewPool(pick.Options{
		Zone: zoneName(c.zone), Strategy: s, Random: w.random(3, client).Uint64, Rotate: uint64(client), Parallel: 1,
	})
	p.Discover(0, func(*server) bool { return true })
	return p
}

func zoneName(z int) topology.Zone { return topology.Zone(rune('a' + z)) }

// Discover implements balancer. An endpoint's index is its address.
func (p *pooled) Discover(now time.Duration, usable func(*server) bool) {
	var targets []pick.Target
	for i, s := range p.w.servers {
		if !usable(s) {
			continue
		}
		t := pick.Target{Zone: zoneName(s.zone), Home: s.zone == p.zone}
		var addr [4]byte
		binary.BigEndian.PutUint32(addr[:], uint32(i)) //nolint:gosec // a few dozen endpoints.
		t.Addr = netip.AddrPortFrom(netip.AddrFrom4(addr), 80)
		if !t.Home {
			t.Cost = 1
		}
		if p.tiers {
			t.Tier = (s.zone - p.zone + 3) % 3
			t.Cost = topology.Cost(3-t.Tier) * t.Cost
		}
		t.Unready = p.unready != nil && p.unready(s)
		targets = append(targets, t)
	}
	p.pool.Update(now, targets)
}

// Pick implements balancer.
func (p *pooled) Pick(now time.Duration, r *request) int {
	ticket, verdict := p.pool.Pick(now, pick.Request{})
	if verdict != pick.Picked {
		return -1
	}
	r.ticket = ticket
	addr := ticket.Addr().Addr().As4()
	e := int(binary.BigEndian.Uint32(addr[:]))
	rtt := p.w.cross
	if p.w.servers[e].zone == p.zone {
		rtt = p.w.rtt
	}
	r.ticket.Connected(rtt)
	return e
}

// Done implements balancer.
func (p *pooled) Done(now time.Duration, r *request) {
	outcome := pick.Failure
	if r.ok {
		outcome = pick.Success
	}
	r.ticket.Answer(now, outcome)
	r.ticket.Close(now, outcome)
}

// Tick implements balancer.
func (p *pooled) Tick(now time.Duration) { p.pool.Tick(now) }

func TestLawKeepsItsPromisesWithTheRealPool(t *testing.T) {
	for _, b := range lawful() {
		switch b.scenario {
		case "skew 70 %", "brownout x10", "half fail", "A fails 50 %", "zone lost", "steady", "all at 110 %":
		default:
			continue
		}
		t.Run(b.scenario, func(t *testing.T) {
			t.Parallel()
			r := named(b.scenario).run(t, policy{name: "Weir", pooled: true}, shortCourse(), 1)
			t.Logf("good %.3f ok %.3f cross %.3f calm %.4f react %v oscillation %.3f p99 %v",
				r.good, r.ok, r.cross, r.calmCross, r.react, r.oscillation, r.p99)
			b.aboveHazl = 0
			b.check(t, r, result{})
		})
	}
}
