package pick_test

import (
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/overflow"
	"github.com/weir-lb/weir/internal/core/pick"
)

// aged is a pool whose strategy records, with a baseline.
func aged(baseline time.Duration) (*pick.Pool, *recorder) {
	r := &recorder{decision: overflow.Decision{Baseline: baseline, Cap: 8, Routes: []overflow.Route{{Share: 1}}}}
	p := pick.NewPool(pick.Options{Zone: "zone-a", Strategy: r})
	p.Update(0, home(3))
	return p, r
}

func TestBlackHoleIsSeenAfterATickAndASlot(t *testing.T) {
	for _, baseline := range []time.Duration{millis(2), millis(20), millis(500)} {
		t.Run(baseline.String(), func(t *testing.T) {
			p, r := aged(baseline)
			start := seconds(1)
			p.Tick(start)
			for range 10 {
				p.Pick(start, pick.Request{})
			}
			p.Tick(start + baseline/2)
			if got := r.last.Groups[0].Waiting; got != 0 {
				t.Errorf("%d waiting before a baseline has passed, want 0", got)
			}
			// A slot is at most half a baseline wide, or 8.4 ms.
			seen := start + baseline + max(baseline/2, millis(8.4))
			p.Tick(seen)
			g := r.last.Groups[0]
			if g.Waiting != 10 && g.Failed != 10 {
				t.Fatalf("at %v: %d waiting, want 10", seen-start, g.Waiting)
			}
			real := 10 * (seen - start).Seconds() / baseline.Seconds()
			if width := 10 * max(0.5, millis(8.4).Seconds()/baseline.Seconds()); g.Aged < real-width || g.Aged > real+width {
				t.Errorf("ages sum to %.1f baselines, want %.1f within a slot", g.Aged, real)
			}
		})
	}
}

func TestAgesAreCapped(t *testing.T) {
	p, r := aged(millis(20))
	p.Tick(seconds(1))
	for range 4 {
		p.Pick(seconds(1), pick.Request{})
	}
	p.Tick(seconds(1) + millis(15*20))
	if g := r.last.Groups[0]; g.Waiting != 4 || g.Aged != 4*8 {
		t.Errorf("%d waiting, aged %v; want 4 and 32: each at most Cap", g.Waiting, g.Aged)
	}
}

func TestOverdueRequestsCountOnceAsFailed(t *testing.T) {
	p, r := aged(millis(20))
	p.Tick(seconds(1))
	var open []pick.Ticket
	for range 6 {
		ticket, _ := p.Pick(seconds(1), pick.Request{})
		open = append(open, ticket)
	}
	p.Tick(seconds(1.4)) // 20 baselines: more than 16 and a slot
	if g := r.last.Groups[0]; g.Failed != 6 || g.Waiting != 0 {
		t.Fatalf("%d failed, %d waiting; want 6 and 0", g.Failed, g.Waiting)
	}
	for i := range open { // whatever comes of them
		open[i].Answer(seconds(2), []pick.Outcome{pick.Success, pick.Failure, pick.Canceled}[i%3])
		open[i].Close(seconds(2), pick.Success)
	}
	p.Tick(seconds(2.1))
	p.Tick(seconds(3))
	if g := r.total[0]; g.Sent != 6 || g.Failed != 6 || g.OK != 0 {
		t.Errorf("in the end %d sent, %d failed, %d well; want 6, 6, 0", g.Sent, g.Failed, g.OK)
	}
	if e := p.Status().Endpoints[0]; e.InFlight != 0 || e.Slowdown <= 2 {
		t.Errorf("the endpoint was late and stands at %+v, want nothing in flight and a high slowdown", e)
	}
}

func TestOverdueRequestsAreCountedWithoutTicksToo(t *testing.T) {
	p, r := aged(millis(20))
	p.Tick(seconds(1))
	var open []pick.Ticket
	for at := seconds(1); at < seconds(9); at += millis(1) { // the ring goes round many times before the next tick
		ticket, _ := p.Pick(at, pick.Request{})
		open = append(open, ticket)
	}
	young, _ := p.Pick(seconds(9), pick.Request{})
	for i := range open[:7000] { // their slots have been taken over: they must not take others out
		open[i].Close(seconds(9), pick.Success)
	}
	p.Tick(seconds(9.05))
	// 320 ms are in time, 20 of them have not waited yet, and a slot is 8 ms.
	if g := r.last.Groups[0]; g.Waiting < 240 || g.Waiting > 300 {
		t.Errorf("%d waiting, want about 270: those between 1 and 16 baselines", g.Waiting)
	}
	p.Tick(seconds(10))
	// A few found their slot not taken over: nobody had noticed that they were late, and they were answered.
	if g := r.total[0]; g.Sent != 8001 || g.Failed+g.OK != 8001 || g.OK > 20 {
		t.Errorf("%d sent, %d failed, %d well; want 8001 counted, nearly all as failed", g.Sent, g.Failed, g.OK)
	}
	young.Close(seconds(10), pick.Success)
}

func TestChangeOfTheBaselineForgetsNothingThatWasOverdue(t *testing.T) {
	p, r := aged(millis(20))
	p.Tick(seconds(1))
	for at := seconds(1); at < seconds(3); at += millis(1) {
		p.Pick(at, pick.Request{})
	}
	p.Tick(seconds(3.5))
	r.decision.Baseline = millis(200)
	for i := range 20 { // the old ring is dropped on the way
		p.Tick(seconds(4 + float64(i)*0.1))
	}
	if g := r.total[0]; g.Failed != 2000 {
		t.Errorf("%d failed in all, want 2000", g.Failed)
	}
}

func TestAnsweredStreamIsInFlightButHasNoAge(t *testing.T) {
	p, r := aged(millis(20))
	p.Tick(seconds(1))
	stream, _ := p.Pick(seconds(1), pick.Request{})
	stream.Answer(seconds(1)+millis(20), pick.Success)
	p.Tick(seconds(60))
	if g := r.last.Groups[0]; g.Waiting != 0 || g.Failed != 0 || g.OK != 1 {
		t.Errorf("waiting %d, failed %d, well %d; want 0, 0, 1", g.Waiting, g.Failed, g.OK)
	}
	var inFlight int64
	for _, e := range p.Status().Endpoints {
		inFlight += e.InFlight
	}
	if inFlight != 1 {
		t.Errorf("%d in flight, want the stream", inFlight)
	}
}

func TestRequestsSurviveAChangeOfTheBaseline(t *testing.T) {
	p, r := aged(millis(20))
	p.Tick(seconds(1))
	old, _ := p.Pick(seconds(1), pick.Request{})
	late, _ := p.Pick(seconds(1), pick.Request{})
	r.decision.Baseline = millis(200)
	p.Tick(seconds(1.01)) // decides
	p.Tick(seconds(1.02)) // new ring in use
	young, _ := p.Pick(seconds(1.02), pick.Request{})
	p.Tick(seconds(1.6))
	if g := r.last.Groups[0]; g.Waiting != 3 {
		t.Errorf("%d waiting after 600 ms at a baseline of 200 ms, want 3 from two rings", g.Waiting)
	}
	old.Close(seconds(1.7), pick.Success)
	young.Close(seconds(1.7), pick.Success)
	p.Tick(seconds(8))
	late.Close(seconds(8.1), pick.Success)
	p.Tick(seconds(9))
	if g := r.total[0]; g.Sent != 3 || g.OK != 2 || g.Failed != 1 {
		t.Errorf("%d sent, %d well, %d failed; want 3, 2, 1", g.Sent, g.OK, g.Failed)
	}
}

func TestWithoutBaselineNothingWaits(t *testing.T) {
	p, r := aged(0)
	p.Tick(seconds(1))
	ticket, _ := p.Pick(seconds(1), pick.Request{})
	p.Tick(seconds(11))
	if g := r.last.Groups[0]; g.Waiting != 0 || g.Failed != 0 {
		t.Errorf("waiting %d, failed %d; want 0 and 0", g.Waiting, g.Failed)
	}
	ticket.Close(seconds(11), pick.Success)
	p.Tick(seconds(12))
	if g := r.last.Groups[0]; g.OK != 1 || g.Latency.Round(millis(1)) != seconds(10) {
		t.Errorf("well %d, in %v; want 1 in 10 s", g.OK, g.Latency)
	}
}
