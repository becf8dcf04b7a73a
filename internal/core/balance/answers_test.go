package balance_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/balance"
	"github.com/weir-lb/weir/internal/core/route"
)

// HAZL keeps for every endpoint the recent latency and the recent failure rate: one of both says nothing of the other.
func TestLatencyAndFailuresOfAnEndpointAreToldApart(t *testing.T) {
	l := balance.New(balance.Options{Zone: "a"}, balance.Config{})
	l.Apply(0, []route.Endpoint{
		{Addr: netip.MustParseAddrPort("10.0.0.1:80"), Zone: "a", Home: true},
		{Addr: netip.MustParseAddrPort("10.0.0.2:80"), Zone: "a", Home: true},
	})
	e := l.Decision().Endpoints
	if got := e[0].Answers(); got.Latency() != 0 || got.FailureRatio() != 0 {
		t.Errorf("before the first answer: %v and %v", got.Latency(), got.FailureRatio())
	}
	c := balance.Counters{Groups: make([]balance.GroupCounters, 1), Endpoints: []balance.EndpointCounters{
		{Started: 4, OK: 4, Latency: 80 * time.Millisecond}, {Started: 4, OK: 1, Failed: 3, Latency: 5 * time.Millisecond},
	}}
	l.Step(100*time.Millisecond, &c)
	slow, failing := e[0].Answers(), e[1].Answers()
	if slow.Latency().Round(time.Microsecond) != 20*time.Millisecond || slow.FailureRatio() != 0 {
		t.Errorf("the slow one: %v and %v, want 20 ms and no failures", slow.Latency(), slow.FailureRatio())
	}
	if failing.Latency().Round(time.Microsecond) != 5*time.Millisecond || failing.FailureRatio() != 0.75 {
		t.Errorf("the failing one: %v and %v, want 5 ms and 75 %% failures", failing.Latency(), failing.FailureRatio())
	}
	if both := slow.Add(failing); both.Latency().Round(time.Microsecond) != 17*time.Millisecond || both.FailureRatio() != 0.375 {
		t.Errorf("both: %v and %v, want 17 ms and 37.5 %%", both.Latency(), both.FailureRatio())
	}
}
