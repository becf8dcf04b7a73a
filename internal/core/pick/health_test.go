package pick_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
)

// world drives a pool under virtual time: a request each step, a tick each 100 ms, and endpoints that answer as told.
type world struct {
	pool   *pick.Pool
	now    time.Duration
	answer func(addr netip.AddrPort) pick.Outcome
	counts map[netip.AddrPort]int
}

func (w *world) run(d, every time.Duration) {
	w.counts = make(map[netip.AddrPort]int)
	for end := w.now + d; w.now < end; w.now += every {
		if w.now%millis(100) < every {
			w.pool.Tick(w.now)
		}
		ticket, v := w.pool.Pick(w.now, pick.Request{})
		if v != pick.Picked {
			continue
		}
		w.counts[ticket.Addr()]++
		o := w.answer(ticket.Addr())
		ticket.Answer(w.now+millis(1), o)
		ticket.Close(w.now+millis(1), o)
	}
}

// newWorld has n endpoints at home, chosen at random so that each is tried often.
func newWorld(n int, rules health.Config) *world {
	p := pick.NewPool(pick.Options{
		Zone: "zone-a", Random: rand.New(rand.NewPCG(21, 22)).Uint64, Config: pick.Config{Algorithm: pick.Random, Config: balance.Config{Health: rules}},
	})
	p.Update(0, home(n))
	return &world{pool: p, answer: func(netip.AddrPort) pick.Outcome { return pick.Success }}
}

func (w *world) status(addr netip.AddrPort) pick.EndpointStatus {
	for _, e := range w.pool.Status().Endpoints {
		if e.Addr == addr {
			return e
		}
	}
	return pick.EndpointStatus{}
}

// broken makes these endpoints fail and all others answer.
func broken(addrs ...netip.AddrPort) func(netip.AddrPort) pick.Outcome {
	return func(addr netip.AddrPort) pick.Outcome {
		if slices.Contains(addrs, addr) {
			return pick.Failure
		}
		return pick.Success
	}
}

func TestFiveFailuresInARowEndATurnAtOnce(t *testing.T) {
	w := newWorld(4, health.Config{})
	bad := home(4)[2].Addr
	failed := 0
	for range 1000 { // without any tick
		ticket, _ := w.pool.Pick(0, pick.Request{})
		o := broken(bad)(ticket.Addr())
		if o == pick.Failure {
			failed++
		}
		ticket.Close(0, o)
	}
	if failed != 5 {
		t.Errorf("%d requests met the broken endpoint, want 5", failed)
	}
	if !w.status(bad).Out {
		t.Errorf("the broken endpoint is still in: %+v", w.status(bad))
	}
}

func TestSuccessBreaksTheRow(t *testing.T) {
	w := newWorld(2, health.Config{Rate: 1}) // the rate rule is not meant here
	bad := home(2)[0].Addr
	n := 0
	w.answer = func(addr netip.AddrPort) pick.Outcome {
		if n++; addr == bad && n%4 != 0 {
			return pick.Failure
		}
		return pick.Success
	}
	for range 200 {
		ticket, _ := w.pool.Pick(0, pick.Request{})
		for ticket.Addr() != bad {
			ticket.Close(0, pick.Success)
			ticket, _ = w.pool.Pick(0, pick.Request{})
		}
		ticket.Close(0, w.answer(bad))
	}
	if w.status(bad).Out {
		t.Error("an endpoint sits out that never failed more than three times in a row")
	}
}

func TestBrokenEndpointIsTriedOncePerPauseAndPausesGrow(t *testing.T) {
	w := newWorld(4, health.Config{})
	bad := home(4)[1].Addr
	w.answer = broken(bad)
	w.run(seconds(0.5), millis(1))
	if got := w.counts[bad]; got != 5 {
		t.Fatalf("first half second: %d requests met the broken endpoint, want 5", got)
	}
	// Pauses of 1, 2, 4, 8 and 16 s, a quarter more or less, end within 62 s and last at least 23 s together.
	w.run(seconds(62), millis(1))
	if got := w.counts[bad]; got < 5 || got > 7 {
		t.Errorf("the next 62 s: %d requests met the broken endpoint, want a trial for each pause: 5 to 7", got)
	}
	if e := w.status(bad); !e.Out || e.Ejections < 6 || e.Until <= w.now {
		t.Errorf("at %v it stands at %+v, want out, six pauses or more, the last not over", w.now, e)
	}
}

func TestRepairedEndpointComesBackAfterItsTrial(t *testing.T) {
	w := newWorld(4, health.Config{})
	bad := home(4)[1].Addr
	w.answer = broken(bad)
	w.run(seconds(0.5), millis(1))
	w.answer = broken()
	w.run(seconds(2), millis(1))
	if e := w.status(bad); e.Out || e.Ejections != 1 {
		t.Errorf("repaired endpoint: %+v, want in after one pause", e)
	}
	w.pool.Update(w.now, home(4)) // without requests, what is left of its slowdown is the prior
	w.pool.Tick(w.now + seconds(7))
	if e := w.status(bad); e.Slowdown < 1.3 {
		t.Errorf("repaired endpoint counts as %v times slow, want a slow start", e.Slowdown)
	}
	w.run(seconds(1), millis(1))
	if got := w.counts[bad]; got < 200 || got > 300 {
		t.Errorf("repaired endpoint got %d of 1000 requests, want a quarter", got)
	}
}

func TestTrialIsOneRequestUntilItIsDecided(t *testing.T) {
	w := newWorld(3, health.Config{})
	bad := home(3)[0].Addr
	w.answer = broken(bad)
	w.run(seconds(0.5), millis(1))
	w.now = w.status(bad).Until
	w.pool.Tick(w.now)

	trial, _ := w.pool.Pick(w.now, pick.Request{})
	if trial.Addr() != bad {
		t.Fatalf("the first request after the pause went to %v, want the trial of %v", trial.Addr(), bad)
	}
	w.answer = broken()
	w.run(seconds(5), millis(1))
	if got := w.counts[bad]; got != 0 {
		t.Errorf("%d more requests while the trial is open, want none", got)
	}

	trial.Close(w.now, pick.Canceled)
	w.run(millis(300), millis(1))
	if got := w.counts[bad]; got == 0 || w.status(bad).Out {
		t.Errorf("a cancelled trial is not repeated: %d requests, %+v", got, w.status(bad))
	}
}

func TestNoMoreThanHalfOfAPoolSitsOut(t *testing.T) {
	w := newWorld(5, health.Config{})
	w.answer = func(netip.AddrPort) pick.Outcome { return pick.Failure }
	w.run(seconds(10), millis(1))
	n := 0
	for _, e := range w.pool.Status().Endpoints {
		if e.Out {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d of 5 sit out although all fail, want 2", n)
	}
}

func TestShrunkPoolCallsItsEndpointsBack(t *testing.T) {
	w := newWorld(6, health.Config{})
	list := home(6)
	w.answer = broken(list[0].Addr, list[1].Addr, list[2].Addr)
	w.run(seconds(0.5), millis(1))
	w.pool.Update(w.now, list[:4])
	n := 0
	for _, e := range w.pool.Status().Endpoints {
		if e.Out {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d of 4 sit out, want 2", n)
	}
}

func TestRemovedEndpointFreesItsPlace(t *testing.T) {
	w := newWorld(4, health.Config{})
	list := home(4)
	w.answer = broken(list[0].Addr, list[1].Addr)
	w.run(seconds(0.5), millis(1))
	w.pool.Update(w.now, list[1:]) // one of three may sit out, and one does
	w.pool.Update(w.now, append(list[2:], home(6)[4:]...))
	w.answer = broken(list[2].Addr, list[3].Addr)
	w.run(seconds(0.5), millis(1))
	if !w.status(list[2].Addr).Out || !w.status(list[3].Addr).Out {
		t.Errorf("two of four fail and do not both sit out: %+v", w.pool.Status().Endpoints)
	}
}

func TestEndpointThatNobodyTriesGivesItsPlaceBack(t *testing.T) {
	r := &recorder{decision: overflow.Decision{Routes: []overflow.Route{{Group: 0, Share: 0.5}, {Group: 1, Share: 0.5}}}}
	p := pick.NewPool(pick.Options{Zone: "zone-a", Strategy: r})
	list := targets(6)
	p.Update(0, list)
	w := &world{pool: p, answer: broken(list[1].Addr)}
	w.run(seconds(0.5), millis(1))
	if !w.status(list[1].Addr).Out {
		t.Fatal("the broken endpoint of zone-b serves")
	}
	r.decision.Routes = []overflow.Route{{Group: 0, Share: 1}} // nothing goes to zone-b any more
	w.run(seconds(30), millis(10))
	if !w.status(list[1].Addr).Out {
		t.Error("it is back before half a minute after its pause")
	}
	w.run(seconds(3), millis(10))
	if w.status(list[1].Addr).Out {
		t.Error("it still holds a place although nobody needs it")
	}
}

func TestWhenAllSitOutNobodyDoes(t *testing.T) {
	w := newWorld(3, health.Config{MaxOut: 1})
	w.answer = func(netip.AddrPort) pick.Outcome { return pick.Failure }
	w.run(seconds(0.5), millis(1))
	for _, e := range w.pool.Status().Endpoints {
		if !e.Out {
			t.Fatalf("%+v serves, want all out", e)
		}
	}
	for range 100 {
		if _, v := w.pool.Pick(w.now, pick.Request{}); v != pick.Picked {
			t.Fatalf("verdict %v, want a pick all the same", v)
		}
	}
}

// coinFor makes one endpoint fail half of its requests.
func coinFor(bad netip.AddrPort) func(netip.AddrPort) pick.Outcome {
	coin := rand.New(rand.NewPCG(25, 26))
	return func(addr netip.AddrPort) pick.Outcome {
		if addr == bad && coin.IntN(2) == 0 {
			return pick.Failure
		}
		return pick.Success
	}
}

func TestEndpointThatFailsHalfOfItsRequestsSitsOutSoon(t *testing.T) {
	w := newWorld(6, health.Config{})
	bad := home(6)[3].Addr
	w.answer = coinFor(bad)
	w.run(seconds(2), millis(10))
	if w.status(bad).Ejections == 0 {
		t.Errorf("after 2 s and %d requests it has not sat out", w.counts[bad])
	}
}

func TestEndpointThatFailsHalfOfItsRequestsIsAvoidedByItsSlowdown(t *testing.T) {
	w := newWorld(6, health.Config{Failures: -1})
	w.pool = pick.NewPool(pick.Options{
		Random: rand.New(rand.NewPCG(23, 24)).Uint64, Strategy: fixed{shares: []float64{1}, baseline: millis(1)},
		Config: pick.Config{Config: balance.Config{Health: health.Config{Failures: -1}}},
	})
	w.pool.Update(0, home(6))
	bad := home(6)[3].Addr
	w.answer = coinFor(bad)
	w.run(seconds(60), millis(10))
	if got := w.counts[bad]; got > 60 {
		t.Errorf("%d of 6000 requests met it although nobody sits out, want less than one in a hundred", got)
	}
}

func TestFailuresThatAllShareMakeNobodySitOutByRate(t *testing.T) {
	w := newWorld(6, health.Config{Failures: 40}) // by chance some fail five times in a row: that is not meant here
	coin := rand.New(rand.NewPCG(27, 28))
	w.answer = func(netip.AddrPort) pick.Outcome {
		if coin.IntN(2) == 0 {
			return pick.Failure
		}
		return pick.Success
	}
	w.run(seconds(20), millis(1))
	for _, e := range w.pool.Status().Endpoints {
		if e.Ejections > 0 {
			t.Errorf("%v sat out although all fail alike", e.Addr)
		}
	}
}

func TestRequestsLeaveHomeWhenNobodyThereServes(t *testing.T) {
	for _, tt := range []struct {
		name     string
		strategy fixed
		want     string
	}{
		{"unless the strategy confines them", fixed{shares: []float64{1}, confined: true}, "zone-a"},
		{"at once", fixed{shares: []float64{1}}, "zone-b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := pick.NewPool(pick.Options{Zone: "zone-a", Strategy: tt.strategy})
			p.Update(0, targets(9))
			for range 100 { // 5 failures for each of the 3 at home; without any tick
				ticket, _ := p.Pick(0, pick.Request{})
				if ticket.Zone() == "zone-a" {
					ticket.Close(0, pick.Failure)
				} else {
					ticket.Close(0, pick.Success)
				}
			}
			ticket, _ := p.Pick(0, pick.Request{})
			if string(ticket.Zone()) != tt.want {
				t.Errorf("a request went to %s, want %s", ticket.Zone(), tt.want)
			}
		})
	}
}

func TestGroupGoesAsAWholeOnlyIfAnotherDoesWell(t *testing.T) {
	for _, tt := range []struct {
		name  string
		other pick.Outcome
		want  int
	}{
		{"all zones fail: half of it stays", pick.Failure, 1},
		{"another zone answers: all of it goes", pick.Success, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := pick.NewPool(pick.Options{
				Zone: "zone-a", Random: rand.New(rand.NewPCG(31, 32)).Uint64, Strategy: fixed{shares: []float64{0.5, 0.5}},
			})
			list := targets(9)
			p.Update(0, list)
			w := &world{pool: p, answer: func(addr netip.AddrPort) pick.Outcome {
				for _, e := range list {
					if e.Addr == addr && e.Home {
						return pick.Failure
					}
				}
				return tt.other
			}}
			w.run(seconds(5), millis(1))
			p.Tick(w.now)
			n := 0
			for _, e := range p.Status().Endpoints {
				if e.Out && e.Home {
					n++
				}
			}
			if n != tt.want {
				t.Errorf("%d of 3 at home sit out, want %d", n, tt.want)
			}
		})
	}
}
