package pick_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
)

// twoOf is the dumb twin of the choice between two: with floats, from what Status shows.
func twoOf(random uint64, endpoints []pick.EndpointStatus) pick.EndpointStatus {
	n := float64(len(endpoints))
	i := int(math.Floor(float64(random>>32) / (1 << 32) * n))
	j := int(math.Floor(float64(random&math.MaxUint32) / (1 << 32) * (n - 1)))
	if j >= i {
		j++
	}
	load := func(e pick.EndpointStatus) float64 {
		if e.Out {
			return math.Inf(1)
		}
		return float64(e.InFlight+1) * e.Slowdown
	}
	a, b := endpoints[i], endpoints[j]
	if load(b)+math.Floor(256*min(a.Slowdown, b.Slowdown)/4)/256 < load(a) {
		return b
	}
	return a
}

// sequential plays requests one after the other to two endpoints, the first of which takes so many times as long as the other, and
// gives the part of each hundred that it gets.
func sequential(slower float64) []float64 {
	random := rand.New(rand.NewPCG(15, 16))
	p := pick.NewPool(pick.Options{Random: random.Uint64, Strategy: fixed{shares: []float64{1}, baseline: millis(10)}})
	p.Update(0, home(2))
	first, now, tick := home(2)[0].Addr, time.Duration(0), time.Duration(0)
	shares := make([]float64, 200)
	for i := range shares {
		for range 100 {
			ticket, _ := p.Pick(now, pick.Request{})
			took := millis(10 * math.Exp(0.5*random.NormFloat64()-0.125))
			if ticket.Addr() == first {
				shares[i] += 0.01
				took = time.Duration(float64(took) * slower)
			}
			now += took
			ticket.Answer(now, pick.Success)
			ticket.Close(now, pick.Success)
			for ; tick < now; tick += millis(100) {
				p.Tick(tick)
			}
		}
	}
	return shares
}

func TestOneRequestAtATimeIsSharedEvenlyByEqualEndpoints(t *testing.T) {
	equal := sequential(1)
	sum := 0.0
	for _, share := range equal {
		sum += share / float64(len(equal))
	}
	if math.Abs(sum-0.5) > 0.03 || slices.Min(equal) < 0.25 || slices.Max(equal) > 0.75 {
		t.Errorf("one of two equal endpoints got %.2f of the requests, of a hundred %.2f to %.2f", sum, slices.Min(equal), slices.Max(equal))
	}
	slow := sequential(2)
	if most := slices.Max(slow); most > 0.4 {
		t.Errorf("an endpoint that takes twice as long got %.2f of a hundred requests", most)
	}
}

func TestPowerOfTwoAgreesWithItsDumbTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	var drawn uint64
	p := pick.NewPool(pick.Options{Random: func() uint64 { drawn = random.Uint64(); return drawn }})
	p.Update(0, home(7))
	var open []pick.Ticket
	now := time.Duration(0)
	for i := range 5000 {
		now += millis(1)
		if i%50 == 0 {
			p.Tick(now)
		}
		before := p.Status()
		ticket, _ := p.Pick(now, pick.Request{})
		if want := twoOf(drawn, before.Endpoints); ticket.Addr() != want.Addr {
			t.Fatalf("request %d: picked %v, the twin %v of %+v", i, ticket.Addr(), want.Addr, before.Endpoints)
		}
		open = append(open, ticket)
		for len(open) > 0 && random.IntN(3) > 0 && i%7 != 0 { // lets them pile up and drain
			k := random.IntN(len(open))
			open[k].Answer(now+time.Duration(ticket.ID())*millis(3), pick.Success) // later ones are slower
			open[k].Close(now, pick.Success)
			open = append(open[:k], open[k+1:]...)
		}
	}
}

func TestSlowerEndpointGetsFewerRequests(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	p := pick.NewPool(pick.Options{Random: random.Uint64, Strategy: fixed{shares: []float64{1}, baseline: millis(10)}})
	p.Update(0, home(2))
	slow := home(2)[0].Addr
	counts := make(map[bool]int)
	for step := range 1000 {
		now := millis(float64(step) * 10)
		if step%10 == 0 {
			p.Tick(now)
		}
		var open []pick.Ticket
		for range 5 { // at the same time, so that numbers in flight matter too
			ticket, _ := p.Pick(now, pick.Request{})
			open = append(open, ticket)
			counts[ticket.Addr() == slow]++
		}
		for i := range open {
			took := millis(10)
			if open[i].Addr() == slow {
				took = millis(40)
			}
			open[i].Answer(now+took, pick.Success)
			open[i].Close(now+took, pick.Success)
		}
	}
	if got := float64(counts[true]) / 5000; got < 0.15 || got > 0.3 {
		t.Errorf("an endpoint four times slower got %.2f of the requests, want about a quarter or a fifth", got)
	}
}

func TestNewcomerStartsSlowly(t *testing.T) {
	p := pick.NewPool(pick.Options{})
	p.Update(0, home(3))
	for _, e := range p.Status().Endpoints {
		if e.Slowdown != 1 {
			t.Errorf("one of the first endpoints counts as %v times slow, want 1", e.Slowdown)
		}
	}
	p.Update(seconds(60), home(4))
	if got := p.Status().Endpoints[3].Slowdown; got != 2.5 {
		t.Errorf("a newcomer counts as %v times slow, want 2.5", got)
	}
	p.Tick(seconds(69.9))
	if got := p.Status().Endpoints[3].Slowdown; got != 2.5 {
		t.Errorf("after 9.9 s a newcomer counts as %v times slow, want 2.5", got)
	}
	p.Tick(seconds(70))
	if got := p.Status().Endpoints[3].Slowdown; got != 1 {
		t.Errorf("after 10 s a newcomer counts as %v times slow, want 1", got)
	}
}

func TestNobodyIsLeftOutOfAPoolThatIsFasterThanItsBaseline(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 18))
	p := pick.NewPool(pick.Options{Random: random.Uint64, Strategy: fixed{shares: []float64{1}, baseline: millis(1)}})
	p.Update(0, home(3))
	var served [4]int
	request := func(now time.Duration) {
		ticket, _ := p.Pick(now, pick.Request{})
		took := millis(0.3 + 0.1*random.Float64())
		ticket.Answer(now+took, pick.Success)
		ticket.Close(now+took, pick.Success)
		served[slices.IndexFunc(home(4), func(target pick.Target) bool { return target.Addr == ticket.Addr() })]++
	}
	const newcomer = 60 // seconds
	for ms := range 120_000 {
		now := millis(float64(ms))
		if ms == newcomer*1000 {
			p.Update(now, home(4))
		}
		if ms == (newcomer+20)*1000 {
			served = [4]int{} // the slow start is over
		}
		if ms%100 == 0 {
			p.Tick(now)
		}
		request(now) // one at a time, so that nothing is ever in flight
	}
	for i, n := range served {
		if share := float64(n) / 40_000; share < 0.05 {
			t.Errorf("endpoint %d answered %.2f of the requests of four: %v", i, share, served)
		}
	}
}

func TestRoundRobinTakesTurns(t *testing.T) {
	p := pick.NewPool(pick.Options{Config: pick.Config{Algorithm: pick.RoundRobin}})
	p.Update(0, home(4))
	var last []uint32
	for i := range 40 {
		ticket, _ := p.Pick(0, pick.Request{})
		if len(last) >= 4 && ticket.ID() != last[len(last)-4] {
			t.Fatalf("request %d went to %d, want %d again after four: %v", i, ticket.ID(), last[len(last)-4], last)
		}
		last = append(last, ticket.ID())
		if i%10 == 9 {
			p.Tick(millis(float64(i))) // a tick does not start again from the first
		}
	}
}

func TestLeastRequestPrefersTheIdle(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 16))
	p := pick.NewPool(pick.Options{Config: pick.Config{Algorithm: pick.LeastRequest, Choices: 5}, Random: random.Uint64})
	p.Update(0, home(5))
	for range 500 { // all five are compared, so they fill up evenly
		p.Pick(0, pick.Request{})
	}
	for _, e := range p.Status().Endpoints {
		if e.InFlight < 95 || e.InFlight > 105 {
			t.Errorf("%v has %d in flight, want about 100", e.Addr, e.InFlight)
		}
	}
}

func TestAlgorithmsAreFoundByName(t *testing.T) {
	for _, a := range pick.Algorithms() {
		if got, err := pick.ParseAlgorithm(string(a)); got != a || err != nil {
			t.Errorf("ParseAlgorithm(%q) = %q, %v", a, got, err)
		}
	}
	if got, err := pick.ParseAlgorithm("roundrobin"); got != pick.RoundRobin || err != nil {
		t.Errorf("ParseAlgorithm(roundrobin) = %q, %v", got, err)
	}
	if got, err := pick.ParseAlgorithm(""); got != pick.PowerOfTwo || err != nil {
		t.Errorf("the default is %q, %v", got, err)
	}
	if _, err := pick.ParseAlgorithm("best"); err == nil {
		t.Error("no error for an unknown algorithm")
	}
}
