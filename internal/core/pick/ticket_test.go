package pick_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
)

// Each attempt starts at 1 s, at a baseline of 20 ms.
func TestAttemptsLeaveTheSamplesTheyShould(t *testing.T) {
	answer := func(at float64, o pick.Outcome) func(*pick.Ticket) {
		return func(t *pick.Ticket) { t.Answer(seconds(at), o) }
	}
	end := func(at float64, o pick.Outcome) func(*pick.Ticket) {
		return func(t *pick.Ticket) { t.Close(seconds(at), o) }
	}
	type sums struct {
		Sent, OK, Failed int64
		Latency          time.Duration
		InFlight         int64
	}
	tests := []struct {
		name  string
		steps []func(*pick.Ticket)
		want  sums
	}{
		{"a good answer", []func(*pick.Ticket){answer(1.03, pick.Success), end(1.05, pick.Success)}, sums{1, 1, 0, millis(30), 0}},
		{"a good answer, still streaming", []func(*pick.Ticket){answer(1.03, pick.Success)}, sums{1, 1, 0, millis(30), 1}},
		{"a failure", []func(*pick.Ticket){answer(1.03, pick.Failure), end(1.05, pick.Failure)}, sums{1, 0, 1, 0, 0}},
		{"a server error", []func(*pick.Ticket){answer(1.03, pick.ServerError), end(1.05, pick.ServerError)}, sums{1, 0, 1, 0, 0}},
		{"a gateway error", []func(*pick.Ticket){end(1.05, pick.GatewayError)}, sums{1, 0, 1, 0, 0}},
		{"a stream that is reset", []func(*pick.Ticket){answer(1.03, pick.Success), end(1.05, pick.LocalError)}, sums{1, 1, 1, millis(30), 0}},
		{"a stream that breaks", []func(*pick.Ticket){answer(1.03, pick.Success), end(1.05, pick.Failure)}, sums{1, 1, 1, millis(30), 0}},
		{"a stream that the client leaves", []func(*pick.Ticket){answer(1.03, pick.Success), end(1.05, pick.Canceled)}, sums{1, 1, 0, millis(30), 0}},
		{"closed without an answer", []func(*pick.Ticket){end(1.03, pick.Success)}, sums{1, 1, 0, millis(30), 0}},
		{"closed twice", []func(*pick.Ticket){end(1.03, pick.Success), end(1.04, pick.Failure), answer(1.05, pick.Failure)}, sums{1, 1, 0, millis(30), 0}},
		{"answered twice", []func(*pick.Ticket){answer(1.03, pick.Success), answer(1.04, pick.Failure), end(1.05, pick.Success)}, sums{1, 1, 0, millis(30), 0}},
		{"slower than Cap baselines", []func(*pick.Ticket){end(1.25, pick.Success)}, sums{1, 1, 0, millis(160), 0}},
		{"cancelled soon", []func(*pick.Ticket){end(1.1, pick.Canceled)}, sums{1, 0, 0, 0, 0}},
		{"cancelled after more than Cap baselines", []func(*pick.Ticket){end(1.2, pick.Canceled)}, sums{1, 0, 1, 0, 0}},
		{"a clock that went back", []func(*pick.Ticket){end(0.9, pick.Success)}, sums{1, 1, 0, 0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, r := aged(millis(20))
			p.Tick(seconds(1))
			ticket, _ := p.Pick(seconds(1), pick.Request{})
			for _, step := range tt.steps {
				step(&ticket)
			}
			p.Tick(seconds(1.05))
			g := r.total[0]
			got := sums{Sent: g.Sent, OK: g.OK, Failed: g.Failed, Latency: g.Latency.Round(time.Millisecond)}
			for _, e := range p.Status().Endpoints {
				got.InFlight += e.InFlight
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error("samples (-want +got):\n" + diff)
			}
		})
	}
}

func TestLateAnswerOfARemovedEndpointDoesNoHarm(t *testing.T) {
	p, r := aged(millis(20))
	p.Tick(seconds(1))
	var open []pick.Ticket
	for range 30 {
		ticket, _ := p.Pick(seconds(1), pick.Request{})
		open = append(open, ticket)
	}
	p.Update(seconds(1.01), home(6)[3:])
	for i := range open {
		o := []pick.Outcome{pick.Success, pick.Failure, pick.Canceled}[i%3]
		open[i].Answer(seconds(1.02), o)
		open[i].Close(seconds(1.03), o)
	}
	p.Tick(seconds(1.1))
	g := r.last.Groups[0]
	if g.Sent != 0 || g.OK != 0 || g.Failed != 0 || g.Usable != 3 {
		t.Errorf("the new endpoints are told %+v, want nothing of the old ones", g)
	}
	for _, e := range p.Status().Endpoints {
		if e.InFlight != 0 || e.Out {
			t.Errorf("%+v, want untouched", e)
		}
	}
}

func TestWayToAGroupIsLearntFromItsConnections(t *testing.T) {
	r := &recorder{decision: overflow.Decision{
		Baseline: millis(10), Cap: 8, Routes: []overflow.Route{{Group: 1, Share: 1}},
	}}
	p := pick.NewPool(pick.Options{Zone: "zone-a", Strategy: r})
	p.Update(0, targets(9))
	abroad, _ := p.Pick(0, pick.Request{})
	abroad.Connected(millis(8))
	abroad.Connected(millis(5))  // shorter: at once
	abroad.Connected(millis(21)) // longer: a sixteenth
	abroad.Connected(0)          // no measurement
	r.decision.Routes = []overflow.Route{{Group: 0, Share: 1}}
	p.Tick(millis(1))
	home, _ := p.Pick(0, pick.Request{})
	home.Connected(millis(1))
	r.decision.Routes = []overflow.Route{{Group: 1, Share: 1}}
	p.Tick(millis(2))
	if got := []time.Duration{r.last.Groups[0].RTT, r.last.Groups[1].RTT, r.last.Groups[2].RTT}; !cmp.Equal(got, []time.Duration{millis(1), millis(6), 0}) {
		t.Errorf("ways of %v, want 1 ms, 6 ms and not known", got)
	}

	long, _ := p.Pick(seconds(1), pick.Request{})
	long.Close(seconds(1)+millis(15), pick.Success)
	capped, _ := p.Pick(seconds(1), pick.Request{})
	capped.Close(seconds(1)+millis(100), pick.Success) // 8 baselines and 5 ms more of a way count
	p.Tick(seconds(1.1))
	g := r.last.Groups[1]
	if got := g.Latency.Round(time.Millisecond); got != millis(15+85) {
		t.Errorf("latencies sum to %v, want 100 ms with the way", got)
	}
}
