package pick_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/health"
	"github.com/weir-lb/weir/internal/core/pick"
)

func TestOutcomesThatAreTheEndpointsFault(t *testing.T) {
	for o, want := range map[pick.Outcome]bool{
		pick.Success: false, pick.Canceled: false, pick.Failure: true, pick.ServerError: true, pick.GatewayError: true,
		pick.LocalError: true,
	} {
		if o.Failed() != want {
			t.Errorf("outcome %d failed: %v, want %v", o, o.Failed(), want)
		}
	}
}

// asked is a policy's outlier detection with weir's own rules out of the way.
func asked(o health.Outliers) health.Config { return health.Config{Failures: -1, Outliers: &o} }

func TestConsecutiveErrorsOfAKindEject(t *testing.T) {
	answers := func(outcomes ...pick.Outcome) []pick.Outcome { return outcomes }
	const server, gateway, local, other = pick.ServerError, pick.GatewayError, pick.LocalError, pick.Failure
	tests := []struct {
		name    string
		rule    health.Outliers
		answers []pick.Outcome
		want    bool
	}{
		{"server errors of all kinds", health.Outliers{ServerErrors: 3}, answers(server, gateway, local), true},
		{"a good answer between", health.Outliers{ServerErrors: 3}, answers(server, server, pick.Success, server), false},
		{"a client that leaves says nothing", health.Outliers{ServerErrors: 3}, answers(server, server, pick.Canceled, server), true},
		{"a 429 is no server error", health.Outliers{ServerErrors: 3}, answers(server, server, other, server), false},
		{"gateway and local errors", health.Outliers{GatewayErrors: 3}, answers(gateway, local, gateway), true},
		{"a 500 is no gateway error", health.Outliers{GatewayErrors: 3}, answers(gateway, gateway, server, gateway), false},
		{"local errors", health.Outliers{LocalErrors: 2}, answers(gateway, local, local), true},
		{"a 503 is no local error", health.Outliers{LocalErrors: 2}, answers(local, gateway, local), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := pick.NewPool(pick.Options{Config: pick.Config{Config: balance.Config{Health: asked(tt.rule)}}})
			p.Update(0, home(2))
			for _, o := range tt.answers {
				ticket, _ := p.Pick(0, pick.Request{Avoid: []uint32{2}})
				ticket.Close(0, o)
			}
			p.Tick(millis(100))
			e := p.Status().Endpoints[0]
			if e.Out != tt.want {
				t.Fatalf("sits out: %v, want %v", e.Out, tt.want)
			}
			if tt.want && e.Until != 30*time.Second {
				t.Errorf("until %v, want 30 s after it failed", e.Until)
			}
		})
	}
}

func TestPausesOfAPolicyGrowByTheirNumber(t *testing.T) {
	w := newWorld(2, asked(health.Outliers{ServerErrors: 3, Pause: seconds(2), MaxPause: seconds(5)}))
	bad := home(2)[0].Addr
	w.answer = func(addr netip.AddrPort) pick.Outcome {
		if addr == bad {
			return pick.ServerError
		}
		return pick.Success
	}
	var pauses []time.Duration
	for range 2000 {
		before := w.status(bad)
		at := w.now
		w.run(millis(10), millis(1))
		if e := w.status(bad); e.Out && e.Until != before.Until {
			pauses = append(pauses, (e.Until - at).Round(seconds(1)))
		}
	}
	want := []time.Duration{2, 4, 5, 5}
	for i, n := range want {
		if len(pauses) <= i || pauses[i] != n*time.Second {
			t.Fatalf("pauses of %v, want %v s first", pauses, want)
		}
	}
}

func TestRatesAreLookedAtOnceInAnInterval(t *testing.T) {
	tests := []struct {
		name string
		rule health.Outliers
	}{
		{"success rate", health.Outliers{SuccessRate: health.SuccessRate{Deviations: 1.9, Hosts: 5, Volume: 100}}},
		{"failure rate", health.Outliers{FailureRate: health.FailureRate{Threshold: 0.3, Hosts: 5, Volume: 50}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(6, asked(tt.rule))
			bad, n := home(6)[3].Addr, 0
			w.answer = func(addr netip.AddrPort) pick.Outcome {
				if n++; addr == bad && n%2 == 0 { // half of its requests
					return pick.ServerError
				}
				return pick.Success
			}
			w.run(seconds(9.9), millis(1))
			if w.status(bad).Out {
				t.Fatal("sits out before the interval is over")
			}
			w.run(seconds(0.3), millis(1))
			for _, e := range w.pool.Status().Endpoints {
				if e.Out != (e.Addr == bad) {
					t.Errorf("%v sits out: %v", e.Addr, e.Out)
				}
			}
			if until := w.status(bad).Until; until != seconds(40) {
				t.Errorf("until %v, want 40 s", until)
			}
			// What was counted before the interval says nothing about the next one.
			w.answer = broken()
			w.run(seconds(45), millis(1))
			if e := w.status(bad); e.Out || e.Ejections != 1 {
				t.Errorf("well again since: %+v", e)
			}
		})
	}
}

func TestWhatWasBeforeThePolicyDoesNotCount(t *testing.T) {
	w := newWorld(6, health.Config{Failures: -1})
	bad, n := home(6)[3].Addr, 0
	w.answer = func(addr netip.AddrPort) pick.Outcome {
		if n++; addr == bad && n%2 == 0 {
			return pick.ServerError
		}
		return pick.Success
	}
	w.run(seconds(20), millis(1))
	w.answer = broken()
	w.pool.Configure(w.now, pick.Config{Algorithm: pick.Random, Config: balance.Config{Health: asked(health.Outliers{
		FailureRate: health.FailureRate{Threshold: 0.3, Hosts: 5, Volume: 50},
	})}})
	w.run(seconds(12), millis(1))
	if e := w.status(bad); e.Ejections != 0 {
		t.Errorf("%+v: want no pause for what it did before", e)
	}
}

func TestNoMoreSitOutThanThePolicyAllows(t *testing.T) {
	tenth, none := 0.1, 0.0
	for _, tt := range []struct {
		share *float64
		want  int
	}{{nil, 5}, {&tenth, 1}, {&none, 0}} {
		w := newWorld(10, asked(health.Outliers{ServerErrors: 2, MaxOut: tt.share}))
		list := home(10)
		ill := map[netip.AddrPort]bool{}
		for _, target := range list[:7] {
			ill[target.Addr] = true
		}
		w.answer = func(addr netip.AddrPort) pick.Outcome {
			if ill[addr] {
				return pick.ServerError
			}
			return pick.Success
		}
		w.run(seconds(2), millis(1))
		outs := 0
		for _, e := range w.pool.Status().Endpoints {
			if e.Out {
				outs++
			}
		}
		if outs != tt.want {
			t.Errorf("%d of 10 sit out, want %d", outs, tt.want)
		}
	}
}

func TestOwnRulesGoOnBesideAPolicy(t *testing.T) {
	p := pick.NewPool(pick.Options{Config: pick.Config{Config: balance.Config{Health: health.Config{Outliers: &health.Outliers{ServerErrors: 50}}}}})
	p.Update(0, home(2))
	for range 5 {
		ticket, _ := p.Pick(0, pick.Request{Avoid: []uint32{2}})
		ticket.Close(0, pick.ServerError)
	}
	p.Tick(millis(100))
	if e := p.Status().Endpoints[0]; !e.Out || e.Until > seconds(1.25) {
		t.Errorf("%+v: want a pause of a second, as always", e)
	}
}
